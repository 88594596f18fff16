package bonding_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link"
	"bondstack/link/linktest"
)

// proc is the bond's status as text.
func (r *rig) proc() string {
	r.tb.Helper()
	var b strings.Builder
	st := r.Status()
	if err := st.WriteProc(&b); err != nil {
		r.tb.Fatal(err)
	}
	return b.String()
}

// The text of an active-backup bond, label by label as /proc/net/bonding has it.
func TestProcActiveBackup(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "p0", PrimaryReselect: bonding.ReselectBetter,
		MIIMon: 50 * time.Millisecond, UpDelay: 200 * time.Millisecond, DownDelay: 100 * time.Millisecond}, 0)
	r.enslave("p0", bonding.SlaveOptions{}, linktest.RecorderOptions{State: link.State{Up: true, Carrier: true, Speed: 1000, Duplex: link.DuplexFull}})
	r.enslave("p1", bonding.SlaveOptions{QueueID: 3}, linktest.RecorderOptions{State: link.State{Up: true, Carrier: true, Speed: link.SpeedUnknown, Duplex: link.DuplexUnknown}})
	r.enslave("p2", bonding.SlaveOptions{}, linktest.RecorderOptions{State: link.State{Up: true, Carrier: false, Speed: 100, Duplex: link.DuplexHalf}})
	r.ms(1000)
	for range 2 {
		r.carrier("p0", false)
		r.ms(100)
		r.carrier("p0", true)
	}
	const want = `Ethernet Channel Bonding Driver: v` + bonding.ProcVersion + `

Bonding Mode: fault-tolerance (active-backup)
Primary Slave: p0 (primary_reselect better)
Currently Active Slave: p1
MII Status: up
MII Polling Interval (ms): 50
Up Delay (ms): 200
Down Delay (ms): 100
Peer Notification Delay (ms): 0

Slave Interface: p0
MII Status: going back
Speed: 1000 Mbps
Duplex: full
Link Failure Count: 2
Permanent HW addr: 02:00:00:00:ee:00
Slave queue ID: 0

Slave Interface: p1
MII Status: up
Speed: Unknown
Duplex: Unknown
Link Failure Count: 0
Permanent HW addr: 02:00:00:00:ee:01
Slave queue ID: 3

Slave Interface: p2
MII Status: down
Speed: 100 Mbps
Duplex: half
Link Failure Count: 0
Permanent HW addr: 02:00:00:00:ee:02
Slave queue ID: 0
`
	if got := r.proc(); got != want {
		t.Errorf("status is\n%s\nwant\n%s", got, want)
	}
}

// And of balance-xor, which shows its hash and no active slave.
func TestProcBalanceXOR(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer34, DownDelay: 300 * time.Millisecond, PeerNotifDelay: 400 * time.Millisecond}, 1)
	r.carrier("eth0", false)
	const want = `Ethernet Channel Bonding Driver: v` + bonding.ProcVersion + `

Bonding Mode: load balancing (xor)
Transmit Hash Policy: layer3+4 (1)
MII Status: down
MII Polling Interval (ms): 100
Up Delay (ms): 0
Down Delay (ms): 300
Peer Notification Delay (ms): 400

Slave Interface: eth0
MII Status: going down
Speed: 10000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: 02:00:00:00:ee:00
Slave queue ID: 0
`
	if got := r.proc(); got != want {
		t.Errorf("status is\n%s\nwant\n%s", got, want)
	}
}

// The other heads of the text.
func TestProcHeads(t *testing.T) {
	for _, tt := range []struct {
		o      bonding.Options
		slaves int
		has    []string
		hasNot []string
	}{
		{bonding.Options{}, 0, []string{"Bonding Mode: load balancing (round-robin)\n", "MII Status: down\n"}, []string{"Primary", "Active", "Hash", "Slave"}},
		{bonding.Options{Mode: bonding.Broadcast}, 1, []string{"Bonding Mode: fault-tolerance (broadcast)\n", "MII Status: up\n"}, []string{"Primary", "Hash"}},
		{bonding.Options{Mode: bonding.ActiveBackup}, 0, []string{"Primary Slave: None\n", "Currently Active Slave: None\n"}, []string{"Hash", "reselect"}},
		// Linux shows a primary only while it is there.
		{bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth9"}, 1, []string{"Primary Slave: None\n", "Currently Active Slave: eth0\n"}, []string{"eth9"}},
		{bonding.Options{MIIMon: -1}, 0, []string{"MII Polling Interval (ms): 0\n"}, nil},
	} {
		text := newRig(t, tt.o, tt.slaves).proc()
		for _, s := range tt.has {
			if !strings.Contains(text, s) {
				t.Errorf("%+v: the text lacks %q:\n%s", tt.o, s, text)
			}
		}
		for _, s := range tt.hasNot {
			if strings.Contains(text, s) {
				t.Errorf("%+v: the text has %q:\n%s", tt.o, s, text)
			}
		}
	}
}

// A writer that fails is told of.
func TestProcWriteError(t *testing.T) {
	st := newRig(t, bonding.Options{}, 1).Status()
	if err := st.WriteProc(broken{}); err == nil {
		t.Error("WriteProc() = nil for a writer that fails")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fmt.Errorf("full") }

// The keys of the JSON form. Programs read them: keys may be added, and then
// here too, but never changed.
func TestStatusKeys(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
	b, err := json.Marshal(r.Status())
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, "the status", m, "active_slave", "arp_interval_ms", "arp_ip_targets", "arp_missed_max", "arp_validate", "carrier", "counters", "downdelay_ms", "duplex", "failover_totals", "failovers", "mac_address", "miimon_ms", "mode", "monitor_rule", "mtu",
		"name", "ns_ip6_targets", "options", "peer_notif_delay_ms", "primary", "primary_reselect", "slaves", "speed_mbps", "up", "updelay_ms", "warnings", "xmit_hash_policy")
	wantKeys(t, "a slave", m["slaves"].([]any)[0].(map[string]any), "counters", "draining", "duplex", "enabled", "flap_hold_ms", "flap_losses", "link_failure_count", "mac_address", "mii_status", "monitors", "mtu",
		"name", "perm_hwaddr", "prio", "queue_id", "receives", "silenced", "speed_mbps", "stands_back", "state", "usable", "weight")
	wantKeys(t, "counters", m["counters"].(map[string]any), "drops", "rx_bytes", "rx_dropped", "rx_multicast", "rx_packets", "tx_bytes", "tx_dropped", "tx_packets")
	drops := m["counters"].(map[string]any)["drops"].(map[string]any)
	for _, reason := range []string{"rx_checksum", "rx_copy", "rx_inactive", "rx_no_nic", "rx_not_member", "rx_other_host", "rx_own", "rx_short", "rx_silenced",
		"tx_error", "tx_link_gone", "tx_malformed", "tx_no_buffer", "tx_no_slave", "tx_silenced"} {
		if _, ok := drops[reason]; !ok {
			t.Errorf("drops lack %s", reason)
		}
	}
	if m["mode"] != "active-backup" || m["mac_address"] != "02:00:00:00:ee:00" || m["speed_mbps"] != float64(10000) {
		t.Errorf("status is %s", b)
	}
	var back bonding.Status
	if err := json.Unmarshal(b, &back); err != nil || text(back) != text(r.Status()) {
		t.Errorf("the status read back differs, %v", err)
	}
}

// wantKeys checks that an object has keys, all of them and in any order.
func wantKeys(t *testing.T, what string, m map[string]any, want ...string) {
	t.Helper()
	var got []string
	for k := range m {
		got = append(got, k)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("keys of %s are\n %v, want\n %v", what, got, want)
	}
}

// Lists are empty, not null, and a speed that is not known is null.
func TestStatusOfNothing(t *testing.T) {
	b, err := json.Marshal(newRig(t, bonding.Options{}, 0).Status())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"slaves":[]`, `"warnings":[]`, `"speed_mbps":null`, `"active_slave":""`, `"duplex":"unknown"`, `"carrier":false`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("status lacks %s: %s", want, b)
		}
	}
}

// Text and JSON follow what is so: cut, wait, restore (A62).
func TestStatusFollowsReality(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode}, 2)
		check := func(when string, up int, failures uint32) {
			t.Helper()
			st, proc := r.Status(), r.proc()
			n := 0
			for _, s := range st.Slaves {
				if s.MIIStatus == "up" && s.Usable {
					n++
				}
			}
			if n != up || st.Slaves[0].LinkFailureCount != failures {
				t.Errorf("%s, %s: %d slaves are up, failure count %d, want %d, %d", m.mode, when, n, st.Slaves[0].LinkFailureCount, up, failures)
			}
			if got := strings.Count(proc, "MII Status: up") - 1; got != up || !strings.Contains(proc, fmt.Sprintf("Link Failure Count: %d\n", failures)) {
				t.Errorf("%s, %s: the text is\n%s", m.mode, when, proc)
			}
			if m.mode == bonding.ActiveBackup {
				for _, s := range st.Slaves {
					if active := s.Name == st.ActiveSlave; (s.State == "active") != active || s.Receives != active {
						t.Errorf("%s: %s is %s and receives %t, active slave %s", when, s.Name, s.State, s.Receives, st.ActiveSlave)
					}
				}
			}
		}
		check("at first", 2, 0)
		r.silently("eth0", false)
		r.ms(1000)
		check("cut", 1, 1)
		r.silently("eth0", true)
		r.ms(1000)
		check("restored", 2, 1)
	}
}

// The order of events of a failover: the link, the active slave, the carrier;
// and of what else befalls a bond.
func TestEvents(t *testing.T) {
	r := newRig(t, bonding.Options{Name: "b7", Mode: bonding.ActiveBackup, UpDelay: 100 * time.Millisecond}, 0)
	for _, tt := range []struct {
		do   string
		want []string
	}{
		{"+eth0", []string{"enslave eth0", "slave eth0: link up, was going back", "active slave eth0, was none", "carrier on"}},
		{"+eth1", []string{"enslave eth1"}},
		{"wait 100", []string{"slave eth1: link up, was going back"}},
		{"eth0 down", []string{"slave eth0: link down, was up", "active slave eth1, was eth0"}},
		{"eth1 down", []string{"slave eth1: link down, was up", "active slave none, was eth1", "carrier off"}},
		{"eth0 up", []string{"slave eth0: link up, was down", "active slave eth0, was none", "carrier on"}},
		{"eth1 up", []string{"slave eth1: link going back, was down"}},
		{"eth0 down", []string{"slave eth0: link down, was up", "slave eth1: link up, was going back", "active slave eth1, was eth0"}},
		{"eth0 up", []string{"slave eth0: link going back, was down"}},
		{"wait 100", []string{"slave eth0: link up, was going back"}},
		{"active_slave=eth0", []string{"active slave eth0, was eth1"}},
		{"-eth1", []string{"release eth1"}},
		{"-eth0", []string{"release eth0", "active slave none, was eth0", "carrier off"}},
	} {
		r.do(tt.do)
		if got := r.told(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q told\n %q, want\n %q", tt.do, got, tt.want)
		}
	}
	r.clock.Advance(time.Second)
	r.do("+eth0")
	e := <-r.events.C
	if e.Bond != "b7" || e.Slave != "eth0" || e.Kind != bonding.EventEnslave || !e.Time.Equal(r.clock.Now()) {
		t.Errorf("event is %+v", e)
	}
	b, err := json.Marshal(e)
	if want := fmt.Sprintf(`{"time":%q,"bond":"b7","kind":"enslave","slave":"eth0"}`, e.Time.Format(time.RFC3339Nano)); err != nil || string(b) != want {
		t.Errorf("event is %s, %v, want %s", b, err, want)
	}
}

// A full queue loses events, counts them, and holds up nobody; others get all.
func TestMissedEvents(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	small, large := r.Subscribe(3), r.Subscribe(100)
	none := r.Subscribe(-1) // one, at least
	for range 5 {
		r.do("eth0 down")
		r.do("eth0 up")
	}
	told := len(large.C)
	if small.Missed() != uint64(told-3) || large.Missed() != 0 || len(small.C) != 3 || none.Missed() != uint64(told-1) {
		t.Errorf("of %d events %d, %d, %d were missed", told, small.Missed(), large.Missed(), none.Missed())
	}
	first := <-large.C
	if got := <-small.C; got != first {
		t.Errorf("first event is %v for one and %v for another", got, first)
	}
	large.Close()
	large.Close()
	n := 0
	for range large.C {
		n++
	}
	if n != told-1 {
		t.Errorf("%d events were left, want %d", n, told-1)
	}
	r.do("eth0 down")
	r.Close()
	for range small.C {
	}
	small.Close()
}
