package lacp_test

import (
	"testing"
	"time"

	"bondstack/bonding/lacp"
	"bondstack/bonding/lacp/lacptest"
)

var (
	macA = lacp.MAC{2, 0, 0, 0, 0, 0xa}
	macB = lacp.MAC{2, 0, 0, 0, 0, 0xb}
	macC = lacp.MAC{2, 0, 0, 0, 0, 0xc}
	tenG = lacp.LinkState{Speed: 10000}
	oneG = lacp.LinkState{Speed: 1000}
)

// rig is a node whose ports have a scripted partner each.
type rig struct {
	*lacptest.Net
	t        *testing.T
	a        *lacptest.Node
	partners []*lacptest.Partner
}

// newRig makes a node with n ports of 10 Gbit/s, and a partner on each, all of
// the same system.
func newRig(t *testing.T, c lacp.Config, n int) *rig {
	t.Helper()
	c.System = macA
	r := &rig{Net: lacptest.NewNet(1), t: t}
	r.a = r.NewNode("a", c)
	for i := range n {
		p := r.NewPartner(macB, uint16(i+1))
		r.partners = append(r.partners, p)
		r.Join(r.a.AddPort(tenG), &p.Port)
	}
	t.Cleanup(func() {
		for _, f := range r.Faults() {
			t.Error(f)
		}
		addArcs(r.a.Sys)
	})
	return r
}

// pair makes two nodes with n cables between them.
func pair(t *testing.T, ca, cb lacp.Config, n int) (*lacptest.Net, *lacptest.Node, *lacptest.Node, []*lacptest.Cable) {
	t.Helper()
	net := lacptest.NewNet(1)
	ca.System, cb.System = macA, macB
	a, b := net.NewNode("a", ca), net.NewNode("b", cb)
	var cables []*lacptest.Cable
	for range n {
		cables = append(cables, net.Join(a.AddPort(tenG), b.AddPort(tenG)))
	}
	t.Cleanup(func() {
		net.Finish()
		for _, f := range net.Faults() {
			t.Error(f)
		}
		addArcs(a.Sys)
		addArcs(b.Sys)
	})
	return net, a, b, cables
}

func (r *rig) state(id lacp.PortID, m lacp.Machine) string {
	st := r.a.Port(id)
	return m.StateName(map[lacp.Machine]lacp.MachineState{
		lacp.ReceiveMachine: st.Receive, lacp.PeriodicMachine: st.Periodic, lacp.MuxMachine: st.Mux,
		lacp.SelectionLogic: st.Selection, lacp.ActorChurn: st.ActorChurn, lacp.PartnerChurn: st.PartnerChurn,
	}[m])
}

func (r *rig) want(id lacp.PortID, m lacp.Machine, want string) {
	r.t.Helper()
	if got := r.state(id, m); got != want {
		r.t.Errorf("at %v: port %d: %v is %s, want %s", r.Now(), id, m, got, want)
	}
}

// data checks what the data path may do with a port.
func data(t *testing.T, d *lacptest.Node, id lacp.PortID, takes, sends bool) {
	t.Helper()
	if r, s := d.Sys.Data(id); r != takes || s != sends {
		e, _ := d.Sys.Explain(0, id)
		t.Errorf("%s: Data(%d) = %v, %v, want %v, %v: %v", d.Name, id, r, s, takes, sends, e)
	}
}

func working(d *lacptest.Node, ids ...lacp.PortID) func() bool {
	return func() bool {
		for _, id := range ids {
			if st := d.Port(id); !st.Sends || !st.Takes || st.Fallback {
				return false
			}
		}
		return true
	}
}

// gaps checks the distances of the PDUs that a partner heard.
func gaps(t *testing.T, heard []lacptest.Heard, want, tolerance time.Duration) {
	t.Helper()
	for i := 1; i < len(heard); i++ {
		if d := heard[i].At - heard[i-1].At; d < want-tolerance || d > want+tolerance {
			t.Errorf("gap from %v to %v is %v, want %v", heard[i-1].At, heard[i].At, d, want)
		}
	}
}
