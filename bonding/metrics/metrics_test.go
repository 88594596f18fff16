package metrics

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

func TestMain(m *testing.M) { linktest.Main(m) }

var update = flag.Bool("update", false, "write the golden files anew")

// rig is a bond of two Recorders, on a manual clock.
type rig struct {
	*bonding.Bond
	clock *faketime.ManualClock
	links []*linktest.Recorder
}

func newRig(t *testing.T, o bonding.Options) *rig {
	t.Helper()
	r := &rig{clock: faketime.NewManualClock()}
	o.Clock, o.Rand = r.clock, func() uint64 { return 7 }
	b, err := bonding.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	for i, name := range []string{"eth0", "eth1"} {
		rec := linktest.NewRecorder(linktest.RecorderOptions{Address: tcpip.LinkAddress([]byte{2, 0, 0, 0, 0xee, byte(i)}),
			State: link.State{Up: true, Carrier: true, Speed: 10000, Duplex: link.DuplexFull}})
		if err := b.Enslave(name, rec, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		r.links = append(r.links, rec)
	}
	b.Attach(&linktest.Sink{})
	r.clock.RunImmediatelyScheduledJobs() // the monitor's first pass
	r.Bond = b
	return r
}

func (r *rig) send(t *testing.T, n int) {
	t.Helper()
	for range n {
		if _, err := linktest.Write(r.Bond, linktest.Flow4(1).UDP(make([]byte, 100))); err != nil {
			t.Fatal(err)
		}
	}
}

// failedOver is an active-backup bond after a failover.
func failedOver(t *testing.T) *rig {
	r := newRig(t, bonding.Options{Name: "bond0", Mode: bonding.ActiveBackup, MIIMon: 100 * time.Millisecond})
	r.send(t, 3)
	r.links[0].SetCarrier(false)
	r.clock.Advance(2 * time.Millisecond)
	r.send(t, 4)
	return r
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the exposition is not that of %s; if that is as it should be, run\n  go test ./bonding/metrics -update\ngot:\n%s", path, got)
	}
}

// What Prometheus reads, to the letter.
func TestExposition(t *testing.T) {
	golden(t, "active-backup.txt", exposition(t, New(failedOver(t))))
	r := newRig(t, bonding.Options{Name: "bond1", Mode: bonding.IEEE8023AD, MIIMon: 100 * time.Millisecond})
	r.clock.Advance(5 * time.Second)
	golden(t, "802.3ad.txt", exposition(t, New(r)))
}

// node_exporter's names, types and meaning: all slaves, and those whose link is
// up by the monitor's word.
func TestNodeExporterNames(t *testing.T) {
	r := failedOver(t)
	const want = `# HELP node_bonding_active Number of active slaves per bonding interface.
# TYPE node_bonding_active gauge
node_bonding_active{master="bond0"} 1
# HELP node_bonding_slaves Number of configured slaves per bonding interface.
# TYPE node_bonding_slaves gauge
node_bonding_slaves{master="bond0"} 2
`
	if err := testutil.CollectAndCompare(New(r), strings.NewReader(want), "node_bonding_active", "node_bonding_slaves"); err != nil {
		t.Error(err)
	}
}

// Counts come from the bond, and the outage is in its bucket.
func TestValues(t *testing.T) {
	text := exposition(t, New(failedOver(t)))
	for _, want := range []string{
		`bondstack_slave_transmit_packets_total{master="bond0",slave="eth0"} 3`,
		`bondstack_slave_transmit_packets_total{master="bond0",slave="eth1"} 4`,
		`bondstack_bond_transmit_packets_total{master="bond0"} 7`,
		`bondstack_failovers_total{cause="carrier",master="bond0"} 1`,
		`bondstack_failovers_total{cause="arp_monitor",master="bond0"} 0`,
		`bondstack_failover_outage_seconds_bucket{master="bond0",le="0.001"} 0`,
		`bondstack_failover_outage_seconds_bucket{master="bond0",le="0.003"} 1`,
		`bondstack_failover_outage_seconds_sum{master="bond0"} 0.002`,
		`bondstack_slave_active{master="bond0",slave="eth1"} 1`,
		`bondstack_slave_link_state{master="bond0",slave="eth0",state="down"} 1`,
		`bondstack_slave_speed_bytes_per_second{master="bond0",slave="eth1"} 1.25e+09`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

// A name that is not in UTF-8, which Linux takes, ends nothing.
func TestNamesOfAnyBytes(t *testing.T) {
	r := newRig(t, bonding.Options{Name: "bond\xff"})
	rec := linktest.NewRecorder(linktest.RecorderOptions{Address: "\x02\x00\x00\x00\xee\x09", State: link.State{Up: true, Carrier: true}})
	if err := r.Enslave("eth\xfe", rec, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if want, got := `bondstack_slave_transmit_packets_total{master="\"bond\\xff\"",slave="\"eth\\xfe\""} 0`, exposition(t, New(r)); !strings.Contains(got, want) {
		t.Errorf("there is no %s in\n%.2000s", want, got)
	}
}

// withAll collects all that there is.
func withAll(t *testing.T) *Collector {
	t.Helper()
	near, far, err := wire.New(wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(far.Close)
	h, err := stack.NewHost(near, stack.HostOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	c := New()
	c.AddWithRelays(everything(), func() tcpip.TCPStats { return h.Stack().Stats().TCP }, func() []Relay { return []Relay{{Name: "forward"}, {Name: "user"}} })
	return c
}

// Names, units and help are as Prometheus's own check wants them.
func TestLint(t *testing.T) {
	if problems, err := testutil.CollectAndLint(withAll(t)); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// A bond that was removed is not asked any more.
func TestRemove(t *testing.T) {
	one, two := newRig(t, bonding.Options{Name: "bond0"}), newRig(t, bonding.Options{Name: "bond1"})
	c := New(one, two)
	c.Remove(one)
	c.Remove(one)
	if text := exposition(t, c); strings.Contains(text, "bond0") || !strings.Contains(text, `node_bonding_slaves{master="bond1"} 2`) {
		t.Errorf("without bond0 there is\n%s", text)
	}
}

// Several bonds share a collector; one that changes is read at any time.
func TestConcurrent(t *testing.T) {
	linktest.CheckGoroutines(t)
	one := newRig(t, bonding.Options{Name: "bond0", Mode: bonding.ActiveBackup})
	two := newRig(t, bonding.Options{Name: "bond1", Mode: bonding.IEEE8023AD})
	c := New(one, two)
	stop := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				one.SetOption("active_slave", []string{"eth0", "eth1"}[i%2])
				linktest.Write(two.Bond, linktest.Flow4(i).UDP(nil))
			}
		}
	})
	for range 20 {
		if n, err := testutil.GatherAndCount(registry(t, c), "node_bonding_slaves"); err != nil || n != 2 {
			t.Errorf("%d bonds, %v", n, err)
		}
	}
	close(stop)
	changes.Wait()
}

// What a collection costs, of a bond of one slave that has something of all.
func BenchmarkCollect(b *testing.B) {
	c := New(everything())
	ch := make(chan prometheus.Metric, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		c.Collect(ch)
		for len(ch) > 0 {
			<-ch
		}
	}
}
