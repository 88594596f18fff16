package lacp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding/lacp"
	"bondstack/bonding/lacp/lacptest"
	"bondstack/link/linktest"
)

const (
	etherHeader = 14
	captures    = "../../testdata/lacp"
)

// replay gives our side what a Linux bond received, from the moment that its
// first PDU shows it to be there, and returns the node and what it sent.
type replay struct {
	*lacptest.Net
	a     *lacptest.Node
	start time.Duration // of the capture
	sent  [2][]lacp.PDU
	linux [2][]lacp.PDU
}

func newReplay(t *testing.T, name string, c lacp.Config) *replay {
	t.Helper()
	r := &replay{Net: lacptest.NewNet(1)}
	var rx, tx [2][]linktest.Captured
	for i := range 2 {
		rx[i] = linktest.ReadPcap(t, filepath.Join(captures, fmt.Sprintf("%s.link%d.rx.pcap", name, i)))
		tx[i] = linktest.ReadPcap(t, filepath.Join(captures, fmt.Sprintf("%s.link%d.tx.pcap", name, i)))
		for _, f := range tx[i] {
			p, err := lacp.Parse(f.Frame[etherHeader:])
			if err != nil {
				t.Fatal(err)
			}
			if got := p.AppendTo(nil); string(got) != string(f.Frame[etherHeader:]) {
				t.Fatalf("Linux's PDU % x is emitted as % x", f.Frame[etherHeader:], got)
			}
			r.linux[i] = append(r.linux[i], p)
		}
	}
	c.System = r.linux[0][0].Actor.System
	r.start = min(tx[0][0].At, tx[1][0].At)
	r.a = r.NewNode("a", c)
	r.a.OnSend = func(_ lacp.Instant, id lacp.PortID, pdu []byte) {
		p, _ := lacp.Parse(pdu)
		r.sent[id-1] = append(r.sent[id-1], p)
	}
	for i := range 2 {
		silent := r.NewPartner(macB, uint16(i+1))
		silent.Silent = true
		r.Join(r.a.AddPort(tenG), &silent.Port)
		for _, f := range rx[i] {
			if f.At >= r.start {
				r.At(f.At-r.start, func() { r.a.Sys.Receive(r.Now(), lacp.PortID(i+1), f.Frame[etherHeader:]) })
			}
		}
	}
	t.Cleanup(func() {
		for _, f := range r.Faults() {
			t.Error(f)
		}
		addArcs(r.a.Sys)
	})
	return r
}

// proc reads the values of the labels in a recorded /proc text, each slave's
// section apart; the first section is the bond's.
func proc(t *testing.T, name string) []map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(captures, name+".proc.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sections := []map[string]string{{}}
	prefix := ""
	for _, line := range strings.Split(string(b), "\n") {
		key, value, ok := strings.Cut(line, ":")
		switch {
		case !ok:
			continue
		case key == "Slave Interface":
			sections = append(sections, map[string]string{})
			prefix = ""
		case strings.HasPrefix(key, "details"):
			prefix = strings.Fields(key)[1] + " "
		}
		if strings.HasPrefix(key, " ") || prefix == "" {
			sections[len(sections)-1][prefix+strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return sections
}

// shown is a port in the terms of the proc text.
func shown(st lacp.PortStatus) map[string]string {
	m := map[string]string{"Aggregator ID": fmt.Sprint(st.Aggregator)}
	for who, i := range map[string]lacp.Info{"actor ": st.Actor, "partner ": st.Partner} {
		key := "port key"
		if who == "partner " {
			key = "oper key"
		}
		m[who+"system priority"] = fmt.Sprint(i.SystemPriority)
		m[who+"system mac address"] = i.System.String()
		m[who+key] = fmt.Sprint(i.Key)
		m[who+"port priority"] = fmt.Sprint(i.PortPriority)
		m[who+"port number"] = fmt.Sprint(i.Port)
		m[who+"port state"] = fmt.Sprint(uint8(i.State))
	}
	return m
}

// matches compares our state with the recorded text: the bond's section, and
// each port's. Churn is left out: Linux's stays "monitoring" for a minute,
// where the standard's ends with the sync.
func (r *replay) matches(t *testing.T, name string) {
	t.Helper()
	want := proc(t, name)
	st := r.a.Sys.Status()
	if st.Active == nil {
		t.Fatalf("%s: no active aggregator", name)
	}
	bond := map[string]string{
		"Aggregator ID": fmt.Sprint(st.Active.ID), "Number of ports": fmt.Sprint(st.Active.Ports),
		"Actor Key": fmt.Sprint(st.Active.ActorKey), "Partner Key": fmt.Sprint(st.Active.PartnerKey),
		"Partner Mac Address": st.Active.PartnerMAC.String(), "System MAC address": st.Config.System.String(),
		"System priority": fmt.Sprint(st.SystemPriority),
	}
	ours, theirs := []map[string]string{}, want[1:]
	for _, p := range st.Ports {
		ours = append(ours, shown(p))
	}
	// The number of the aggregator is by the microsecond in which the first
	// port heard its partner, or lost it; in Linux by the tick.
	relate(ours, bond)
	relate(theirs, want[0])
	compare(t, name, bond, want[0])
	if st.Active.PartnerMAC == (lacp.MAC{}) {
		for _, list := range [][]map[string]string{ours, theirs} {
			slices.SortFunc(list, func(x, y map[string]string) int { return strings.Compare(x["Aggregator ID"], y["Aggregator ID"]) })
			for _, m := range list {
				delete(m, "actor port number")
			}
		}
	}
	for i := range ours {
		compare(t, fmt.Sprintf("%s port %d", name, i+1), ours[i], theirs[i])
	}
}

// relate says of each port only whether its aggregator is the active one.
func relate(ports []map[string]string, bond map[string]string) {
	for _, p := range ports {
		if p["Aggregator ID"] == bond["Aggregator ID"] {
			p["Aggregator ID"] = "active"
		} else {
			p["Aggregator ID"] = "other"
		}
	}
	bond["Aggregator ID"] = "active"
}

func compare(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for key, value := range got {
		if w, ok := want[key]; !ok || w != value {
			t.Errorf("%s: %s is %s, Linux's is %q", what, key, value, w)
		}
	}
}

// With what Open vSwitch sent to Linux, our side comes to the state that Linux
// shows, and tells it in no more PDUs.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name   string
		config lacp.Config
		end    time.Duration
	}{
		{"lacp-fast", lacp.Config{Fast: true}, 8 * time.Second},
		{"lacp-slow", lacp.Config{}, 60 * time.Second},
		{"lacp-mixed", lacp.Config{Fast: true}, 32 * time.Second},
		{"lacp-alone", lacp.Config{Fast: true}, 8 * time.Second},
	} {
		r := newReplay(t, c.name, c.config)
		r.RunTo(c.end)
		r.matches(t, c.name)
		for i := range 2 {
			if got, want := len(r.sent[i]), len(r.linux[i]); got > want+1 || got < want-2 {
				t.Errorf("%s: %d PDUs on link %d, Linux sent %d", c.name, got, i, want)
			}
			first, want := r.sent[i][0], r.linux[i][0]
			if want.Actor.Port = first.Actor.Port; first != want {
				t.Errorf("%s: first PDU %+v, Linux's %+v", c.name, first, want)
			}
			last, want := r.sent[i][len(r.sent[i])-1], r.linux[i][len(r.linux[i])-1]
			if last != want {
				t.Errorf("%s: last PDU %+v, Linux's %+v", c.name, last, want)
			}
		}
	}
}

func TestReplayPartnerLost(t *testing.T) {
	const name = "lacp-partner-lost"
	r := newReplay(t, name, lacp.Config{Fast: true})
	r.RunTo(5 * time.Second)
	if !working(r.a, 1, 2)() {
		t.Error("not working before the loss")
	}
	r.RunTo(13100 * ms) // the last PDU came at 5 s, the next comes at 13.2 s
	r.matches(t, name)
	r.RunTo(17 * time.Second)
	if !working(r.a, 1, 2)() {
		t.Error("not working after the loss")
	}
}

func TestReplayLinkLoss(t *testing.T) {
	const name = "lacp-link-loss"
	r := newReplay(t, name, lacp.Config{Fast: true})
	cable := r.a.Ports[0].Cable()
	// Between the last frame on link 0 and the next.
	r.At(5050*time.Millisecond, func() { cable.SetUp(false) })
	r.At(9040*time.Millisecond, func() { cable.SetUp(true) })
	r.RunTo(5060 * time.Millisecond)
	data(t, r.a, 1, false, false)
	data(t, r.a, 2, true, true)
	r.RunTo(9100 * time.Millisecond)
	data(t, r.a, 1, false, false)
	r.RunTo(12 * time.Second)
	r.matches(t, name)
	if !working(r.a, 1, 2)() {
		t.Error("not working after the loss")
	}
}
