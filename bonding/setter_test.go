package bonding_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// flapping is a link that loses its carrier when it is set, as many network
// cards do, and says so before the setter returns.
type flapping struct{ *linktest.Recorder }

func (f flapping) SetMTU(mtu uint32) {
	f.Recorder.SetMTU(mtu)
	f.SetCarrier(false)
}

func (f flapping) SetLinkAddress(addr tcpip.LinkAddress) {
	f.Recorder.SetLinkAddress(addr)
	f.SetCarrier(false)
}

func (f flapping) SetPromiscuous(on bool) error {
	f.SetCarrier(false)
	return f.Recorder.SetPromiscuous(on)
}

// soon fails the test when f does not return, and says who waits for what.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		// At once, since the end of the test may hang as well.
		fmt.Fprintf(os.Stderr, "%s: %s does not return\n%s\n", t.Name(), what, goroutines())
		t.Fatalf("%s does not return", what)
	}
}

// goroutines returns the stacks of all goroutines.
func goroutines() string {
	stacks := make([]byte, 1<<20)
	return string(stacks[:runtime.Stack(stacks, true)])
}

// A link may tell of a change from within a setter that the bond calls: the bond
// hears of it right after.
func TestLinkTellsFromWithinSetter(t *testing.T) {
	for what, set := range map[string]func(*rig) error{
		"ChangeMTU":         func(r *rig) error { return r.ChangeMTU(1400) },
		"ChangeLinkAddress": func(r *rig) error { return r.ChangeLinkAddress("\x02\x00\x00\x00\x00\x55") },
		"SetPromiscuous":    func(r *rig) error { return r.SetPromiscuous(true) },
	} {
		r := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
		f := flapping{linktest.NewRecorder(linktest.RecorderOptions{Address: macOf("eth0")})}
		if err := r.Enslave("eth0", f, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		r.attach()
		f.SetCarrier(true)
		r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{})
		r.wantActive("before "+what, "eth0")
		soon(t, what, func() {
			if err := set(r); err != nil {
				t.Errorf("%s = %v", what, err)
			}
		})
		r.clock.RunImmediatelyScheduledJobs()
		r.wantActive("after "+what, "eth1")
	}
}

// A bond in 802.3ad begins anew when its address changes, and tells the bond
// above it, which is the one that changes it.
func TestAddressOfNestedLACP(t *testing.T) {
	inner := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	inner.Attach(nil)
	outer, err := bonding.New(bonding.Options{Name: "outer", Mode: bonding.ActiveBackup, Clock: inner.clock})
	if err != nil {
		t.Fatal(err)
	}
	outer.Attach(&linktest.Counter{})
	if err := outer.Enslave("inner", inner.Bond, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	inner.agree()
	addr := tcpip.LinkAddress("\x02\x00\x00\x00\x00\x55")
	soon(t, "ChangeLinkAddress", func() {
		if err := outer.ChangeLinkAddress(addr); err != nil {
			t.Error(err)
		}
	})
	run(inner.clock, 3*time.Second)
	if got := inner.LinkAddress(); got != addr {
		t.Errorf("the inner bond has %s", got)
	}
	if !outer.LinkState().Usable() || !slices.Equal(states(inner.rig), []string{"active", "active"}) {
		t.Errorf("state of the outer bond is %+v, slaves of the inner are %v", outer.LinkState(), states(inner.rig))
	}
	outer.Close()
}

func states(r *rig) (all []string) {
	for _, s := range r.Status().Slaves {
		all = append(all, s.State)
	}
	return all
}

var _ link.FilterEndpoint = flapping{}
