package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

func TestMain(m *testing.M) { linktest.Main(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// samples are an active-backup bond two seconds apart, with a failover between.
func samples() (a, b sample) {
	mbps := uint32(10000)
	slave := func(name, state, link string, tx, rx uint64) bonding.SlaveStatus {
		return bonding.SlaveStatus{Name: name, State: state, MIIStatus: link, SpeedMbps: &mbps,
			Counters: bonding.Counters{TxBytes: tx, TxPackets: tx / 1000, RxBytes: rx, RxPackets: rx / 1000}}
	}
	status := func(tx, rx uint64, slaves ...bonding.SlaveStatus) *Status {
		return &Status{Status: bonding.Status{Name: "bond0", Mode: bonding.ActiveBackup, Carrier: true, SpeedMbps: &mbps, Slaves: slaves,
			Counters: bonding.Counters{TxBytes: tx, TxPackets: tx / 1000, RxBytes: rx, RxPackets: rx / 1000}}}
	}
	a = sample{start, status(1e6, 1e6, slave("eth0", "active", "up", 1e6, 1e6), slave("eth1", "backup", "up", 0, 0))}
	b = sample{start.Add(2 * time.Second), status(401e6, 1e6, slave("eth0", "backup", "down", 101e6, 1e6), slave("eth1", "active", "up", 300e6, 0))}
	outage := int64(1500)
	b.ActiveSlave, b.Absent = "eth1", []string{"eth2"}
	b.Slaves[0].Counters.TxDropped, b.Slaves[0].LinkFailureCount, b.Counters.TxDropped = 4, 1, 4
	b.Failovers = []bonding.Failover{{Seq: 7, Time: start.Add(time.Second), Cause: bonding.CauseCarrier, From: "eth0", To: "eth1", OutageUs: &outage}}
	return a, b
}

func text(r *Report, by order, width int) string {
	var b strings.Builder
	for _, l := range view(r, by, width) {
		b.WriteString(l.render(0, false) + "\n")
	}
	return b.String()
}

func TestView(t *testing.T) {
	const want = `bond0  active-backup  carrier on  10 Gbit/s  active slave eth1  03:04:07
sending 1.60 Gbit/s, 200000 packets/s; receiving 0 bit/s, 0 packets/s; lost 4
failovers 7, the last 1s ago: carrier, eth0 to eth1, outage 1.5ms

SLAVE  STATE   LINK      SPEED      SENDING  PACKETS/S  SHARE  RECEIVING  PACKETS/S  SHARE  LOST/S  LOST  FAILURES
eth0   backup  down  10 Gbit/s   400 Mbit/s      50000  25.0%    0 bit/s          0   0.0%       2     4         1
eth1   active  up    10 Gbit/s  1.20 Gbit/s     150000  75.0%    0 bit/s          0   0.0%       0     0         0
eth2  has not appeared yet
`
	r := between(samples())
	if got := text(r, byOrder, 0); got != want {
		t.Errorf("the view is\n%s\nwant\n%s", got, want)
	}
	if got := text(r, bySent, 0); strings.Index(got, "\neth1") > strings.Index(got, "\neth0") {
		t.Errorf("sorted by what was sent it is\n%s", got)
	}
}

// On a narrow terminal what matters least is left out, and nothing is cut.
func TestViewNarrow(t *testing.T) {
	const want = `SLAVE  STATE   LINK      SPEED      SENDING  SHARE  RECEIVING  LOST  FAILURES
eth0   backup  down  10 Gbit/s   400 Mbit/s  25.0%    0 bit/s     4         1
eth1   active  up    10 Gbit/s  1.20 Gbit/s  75.0%    0 bit/s     0         0
`
	r := between(samples())
	if got := text(r, byOrder, 80); !strings.Contains(got, "\n"+want) {
		t.Errorf("in 80 columns it is\n%s\nwant\n%s", got, want)
	}
	if got := text(r, byOrder, 10); !strings.Contains(got, "\nSLAVE  STATE   LINK      SENDING  RECEIVING  LOST\n") {
		t.Errorf("in 10 columns it is\n%s", got)
	}
}

// LACP has its line and its columns.
func TestViewLACP(t *testing.T) {
	a, b := samples()
	b.Mode, b.ActiveSlave, b.Absent = bonding.IEEE8023AD, "", nil
	b.LACP = &bonding.LACPStatus{Aggregator: &bonding.LACPAggregator{ID: 3, Ports: 1, PartnerMAC: "02:00:00:00:00:09"}}
	b.Slaves[1].LACP = &bonding.LACPPort{Aggregator: 3, Mux: "DISTRIBUTING", Actor: bonding.LACPEnd{State: 0x3f}, Partner: bonding.LACPEnd{State: 0x3d}}
	got := text(between(a, b), byOrder, 0)
	for _, want := range []string{"LACP: aggregator 3, 1 ports, partner 02:00:00:00:00:09\n", "  3  ATGSCD--  A-GSCD--  DISTRIBUTING\n", "  -  -         -         -\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the view has no %q:\n%s", want, got)
		}
	}
}

// A name cannot reach the terminal, and a line is no longer than the screen is
// wide, whatever its colours.
func TestRender(t *testing.T) {
	l := line{{"ab\x1b[2Jc\u009b\r\n", bad}, {"déf", plain}, {"ghi", good}}
	for _, tt := range []struct {
		width int
		color bool
		want  string
	}{
		{0, false, "ab?[2Jc???défghi"},
		{13, false, "ab?[2Jc???déf"},
		{14, true, "\x1b[31;1mab?[2Jc???\x1b[0mdéf\x1b[32mg\x1b[0m"},
		{2, true, "\x1b[31;1mab\x1b[0m"},
	} {
		if got := l.render(tt.width, tt.color); got != tt.want {
			t.Errorf("render(%d, %t) = %q, want %q", tt.width, tt.color, got, tt.want)
		}
	}
}

func TestBits(t *testing.T) {
	for n, want := range map[float64]string{0: "0 bit/s", 12: "12 bit/s", 999: "999 bit/s", 1000: "1.00 kbit/s", 12345: "12.3 kbit/s",
		999.6e3: "1.00 Mbit/s", 123e6: "123 Mbit/s", 4.5e13: "45.0 Tbit/s", 1e17: "100000 Tbit/s"} {
		if got := bits(n); got != want {
			t.Errorf("bits(%g) = %s, want %s", n, got, want)
		}
	}
}

// A slave that came back counts anew, and its rate is never below zero.
func TestCountersThatBeganAnew(t *testing.T) {
	a, b := samples()
	b.Slaves[0].Counters.TxBytes = 500_000
	if r := between(a, b); r.Slaves[0].TxBits != 2e6 {
		t.Errorf("it sends %g bit/s, want what it has counted since: 2e6", r.Slaves[0].TxBits)
	}
	if r := between(b, b); r.TxBits != 0 || r.Slaves[0].TxBits != 0 {
		t.Errorf("in no time it sends %g bit/s", r.TxBits)
	}
}

// answers returns the samples in turn, and the last again and again, or an error
// after them.
func answers(after error) func(context.Context) (*Status, error) {
	a, b := samples()
	list := []*Status{a.Status, b.Status}
	return func(context.Context) (*Status, error) {
		if len(list) == 0 {
			return nil, after
		}
		st := list[0]
		if len(list) > 1 || after != nil {
			list = list[1:]
		}
		return st, nil
	}
}

func TestPlain(t *testing.T) {
	linktest.CheckGoroutines(t)
	var out bytes.Buffer
	if err := Run(context.Background(), Options{Ask: answers(nil), Out: &out, Interval: time.Millisecond, Once: true}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.ContainsRune(got, '\x1b') || !strings.Contains(got, "failovers 7") || !strings.HasSuffix(got, "not appeared yet\n") {
		t.Errorf("it prints %q", got)
	}
	out.Reset()
	gone := errors.New("gone")
	if err := Run(context.Background(), Options{Ask: answers(gone), Out: &out, Interval: time.Millisecond, JSON: true}); !errors.Is(err, gone) {
		t.Errorf("Run() = %v, want that nobody answers any more", err)
	}
	var m map[string]any
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatalf("%q: %v", &out, err)
	}
	slave := m["slaves"].([]any)[0].(map[string]any)
	if m["bond"] != "bond0" || m["failovers"] != 7.0 || slave["name"] != "eth0" || slave["tx_share"] != 0.25 || slave["mii_status"] != "down" {
		t.Errorf("JSON is %s", &out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, Options{Ask: answers(nil), Out: &out, Interval: time.Hour}); err != nil {
		t.Errorf("Run() after an interrupt = %v", err)
	}
}

func TestCheckInterval(t *testing.T) {
	for d, ok := range map[time.Duration]bool{0: false, MinInterval - 1: false, MinInterval: true, MaxInterval: true, MaxInterval + 1: false} {
		if err := CheckInterval(d); (err == nil) != ok {
			t.Errorf("CheckInterval(%v) = %v", d, err)
		}
	}
}
