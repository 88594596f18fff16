package bonding_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"
)

// senders writes a frame and returns the slaves that it went by.
func (r *rig) senders(frame []byte) []string {
	r.tb.Helper()
	for _, l := range r.links {
		l.Drain()
	}
	linktest.Write(r, frame)
	names := []string{}
	for _, s := range r.Status().Slaves {
		if len(r.links[s.Name].Drain()) > 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// explained are frames of the bond's own to many places, of several kinds.
func (r *rig) explained() [][]byte {
	var frames [][]byte
	for i := range 20 {
		f4, f6 := linktest.Flow4(i*37), linktest.Flow6(i*41)
		f4.SrcMAC, f6.SrcMAC = r.LinkAddress(), r.LinkAddress()
		frames = append(frames, f4.UDP([]byte("x")), f6.UDP([]byte("x")), f4.IP(1, []byte{8, 0, 0, 0, 1, byte(i), 0, 0}))
	}
	return frames
}

// TestExplainFrame: what is said is what the data path does, in each mode that binds
// flows to slaves, and so is what would be with a slave down.
func TestExplainFrame(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    bonding.Options
	}{
		{"active-backup", bonding.Options{Mode: bonding.ActiveBackup}},
		{"broadcast", bonding.Options{Mode: bonding.Broadcast}},
		{"xor layer2", bonding.Options{Mode: bonding.BalanceXOR}},
		{"xor layer3+4", bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer34}},
		{"xor consistent", bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer34, XmitHashMap: bonding.HashConsistent}},
		{"tlb by hash", bonding.Options{Mode: bonding.BalanceTLB, XmitHashPolicy: xmithash.Layer34, StaticTLB: true}},
		{"alb by hash", bonding.Options{Mode: bonding.BalanceALB, XmitHashPolicy: xmithash.Layer34, StaticTLB: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.o, 3)
			var without []bonding.FrameExplanation
			frames := r.explained()
			for _, f := range frames {
				e := r.ExplainFrame(f)
				if got := r.senders(f); !slices.Equal(e.Slaves, got) || e.Rule == "" {
					t.Fatalf("said %v (%s), sent by %v", e.Slaves, e.Rule, got)
				}
				if len(e.Without) != 3 {
					t.Fatalf("told of %d slaves down, want 3", len(e.Without))
				}
				without = append(without, e)
			}
			for n, s := range r.Status().Slaves {
				r.enable(s.Name, false)
				for i, f := range frames {
					if w := without[i].Without[n]; w.Down != s.Name || !slices.Equal(w.Slaves, r.senders(f)) {
						t.Fatalf("said %v (%s) without %s, sent by %v", w.Slaves, w.Rule, s.Name, r.senders(f))
					}
				}
				r.enable(s.Name, true)
				if tc.o.Mode == bonding.ActiveBackup {
					r.set("active_slave", without[0].Slaves[0])
				}
			}
		})
	}
}

// TestExplainPlaced: flows that are placed by load are told of once they are.
func TestExplainPlaced(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceTLB, bonding.BalanceALB} {
		r := newRig(t, bonding.Options{Mode: mode}, 3)
		for _, f := range r.explained() {
			if e := r.ExplainFrame(f); len(e.Slaves) == 0 && !strings.Contains(e.Rule, "places the flow") {
				t.Fatalf("%s: before the first frame: %s", mode, e.FramePath)
			}
			got := r.senders(f)
			e := r.ExplainFrame(f)
			if !slices.Equal(e.Slaves, got) {
				t.Fatalf("%s: said %s, sent by %v", mode, e.FramePath, got)
			}
			for _, w := range e.Without {
				if slices.Contains(w.Slaves, w.Down) {
					t.Fatalf("%s: %s is used while it is down", mode, w.Down)
				}
			}
		}
		other := linktest.Flow4(1).UDP([]byte("x")) // of a bridged host
		if e := r.ExplainFrame(other); !slices.Equal(e.Slaves, r.senders(other)) || !strings.Contains(e.Rule, "active slave") {
			t.Errorf("%s: another's frame: %s", mode, e.FramePath)
		}
	}
}

func TestExplainFrameWords(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer34}, 2)
	e := r.ExplainFrame(linktest.Flow4(0).UDP([]byte("x")))
	if last := e.Steps[len(e.Steps)-1]; !strings.HasPrefix(last, "slave = 0x") || !strings.HasSuffix(last, "which is "+e.Slaves[0]) {
		t.Errorf("the last step is %q", last)
	}
	rr := newRig(t, bonding.Options{Mode: bonding.BalanceRR}, 2)
	if e := rr.ExplainFrame(nil); fmt.Sprint(e.Slaves) != "[eth0 eth1]" || !strings.Contains(e.Rule, "take turns, 1 frames") {
		t.Errorf("balance-rr: %s", e.FramePath)
	}
	igmp := linktest.Flow4(0).IP(2, make([]byte, 8))
	if e := rr.ExplainFrame(igmp); !slices.Equal(e.Slaves, rr.senders(igmp)) || !strings.Contains(e.Rule, "IGMP") {
		t.Errorf("IGMP in balance-rr: %s", e.FramePath)
	}
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceXOR, bonding.IEEE8023AD, bonding.BalanceALB} {
		if e := newRig(t, bonding.Options{Mode: mode}, 0).ExplainFrame(nil); len(e.Slaves) != 0 || e.Rule == "" || len(e.Without) != 0 {
			t.Errorf("%s without slaves: %s", mode, e.FramePath)
		}
	}
}

// FuzzExplainFrame: any bytes are explained, and as the data path has it.
func FuzzExplainFrame(f *testing.F) {
	f.Add(uint8(2), linktest.Flow4(0).UDP([]byte("x")))
	f.Add(uint8(6), linktest.Flow6(0).UDP([]byte("x")))
	f.Add(uint8(4), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, mode uint8, frame []byte) {
		r := newRig(t, bonding.Options{Mode: bonding.Mode(mode % 7), XmitHashPolicy: xmithash.Encap34}, 2)
		e := r.ExplainFrame(frame)
		if r.Mode() == bonding.BalanceXOR && len(frame) >= 14 {
			if got := r.senders(frame); !slices.Equal(got, e.Slaves) {
				t.Errorf("said %s, sent by %v", e.FramePath, got)
			}
		}
	})
}

// TestExplain: each reason that keeps a slave from being used is named.
func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		name  string
		o     bonding.Options
		deed  func(*rig)
		inUse bool   // eth0
		why   string // a part of what is said of eth0
		sum   string // a part of the summary
	}{
		{"first", bonding.Options{Mode: bonding.ActiveBackup}, func(r *rig) {}, true, "active: it has the greatest prio", "eth0 is the active slave"},
		{"primary", bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0"}, func(r *rig) {}, true, "it is the primary", "eth0 is the active slave: it is the primary"},
		{"backup", bonding.Options{Mode: bonding.ActiveBackup}, func(r *rig) { r.set("active_slave", "eth1") }, false, "backup: eth1 is active: it was chosen", "eth1 is"},
		{"better one stays back", bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0", PrimaryReselect: bonding.ReselectFailure}, func(r *rig) {
			r.carrier("eth0", false)
			r.carrier("eth0", true)
			r.ms(1000)
		}, false, "although the primary eth0 is up (primary_reselect failure)", ""},
		{"only one", bonding.Options{Mode: bonding.ActiveBackup}, func(r *rig) { r.carrier("eth1", false); r.ms(1000) }, true, "the only one that is up", ""},
		{"carrier", bonding.Options{Mode: bonding.ActiveBackup}, func(r *rig) { r.carrier("eth0", false); r.ms(1000) }, false, "no carrier", "eth1 is"},
		{"by hand", bonding.Options{Mode: bonding.BalanceXOR}, func(r *rig) { r.enable("eth0", false) }, false, "disabled by hand", "1 of 2 slaves send"},
		{"drained", bonding.Options{Mode: bonding.BalanceXOR}, func(r *rig) { r.Drain("eth0") }, false, "it is drained", "1 of 2"},
		{"updelay", bonding.Options{Mode: bonding.BalanceXOR, UpDelay: time.Second}, func(r *rig) {
			r.carrier("eth0", false)
			r.ms(1000)
			r.carrier("eth0", true)
			r.ms(100)
		}, false, "waits for updelay", "1 of 2"},
		{"downdelay", bonding.Options{Mode: bonding.BalanceXOR, DownDelay: time.Second}, func(r *rig) { r.silently("eth0", false); r.ms(200) }, false, "downdelay runs", ""},
		{"sends", bonding.Options{Mode: bonding.BalanceRR}, func(r *rig) {}, true, "sends", "2 of 2 slaves send"},
		{"802.3ad", bonding.Options{Mode: bonding.IEEE8023AD}, func(r *rig) {}, false, "", "carrier is o"},
		{"all down", bonding.Options{Mode: bonding.ActiveBackup}, func(r *rig) {
			r.carrier("eth0", false)
			r.carrier("eth1", false)
			r.ms(1000)
		}, false, "no carrier", "nothing is sent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.o, 2)
			tc.deed(r)
			e := r.Explain()
			s := e.Slaves[0]
			if s.InUse != tc.inUse || !strings.Contains(s.Why, tc.why) || !strings.Contains(e.Summary, tc.sum) {
				t.Errorf("%q; eth0 in use %v: %q; want %q, %v, %q", e.Summary, s.InUse, s.Why, tc.sum, tc.inUse, tc.why)
			}
			if s.InUse != (s.Remedy == "") && !strings.HasPrefix(s.Why, "backup") {
				t.Errorf("in use %v, remedy %q", s.InUse, s.Remedy)
			}
			if names := r.carries(); tc.o.Mode != bonding.BalanceRR && tc.o.Mode != bonding.IEEE8023AD && strings.Contains(names, "eth0") != s.InUse && tc.name != "downdelay" {
				t.Errorf("carried by %s, said in use %v", names, s.InUse)
			}
		})
	}
	if e := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0).Explain(); e.Summary != "there are no slaves" {
		t.Errorf("without slaves: %q", e.Summary)
	}
}
