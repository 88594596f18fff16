package bonding_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/probe"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// detectRig is an active-backup bond on the real clock, on two links that a
// switch joins. A target behind it answers at once.
type detectRig struct {
	bond   *bonding.Bond
	links  [2]*linktest.Recorder
	cut    [2]atomic.Bool // both ways, with carrier
	events *bonding.Subscription
}

func newDetectRig(b *testing.B, o bonding.Options) *detectRig {
	o.Mode = bonding.ActiveBackup
	bond, err := bonding.New(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bond.Close)
	r := &detectRig{bond: bond, events: bond.Subscribe(1 << 16)}
	for i := range r.links {
		r.links[i] = linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(fmt.Sprintf("eth%d", i))})
		if err := bond.Enslave(fmt.Sprintf("eth%d", i), r.links[i], bonding.SlaveOptions{}); err != nil {
			b.Fatal(err)
		}
		r.links[i].OnWrite(func(pkts stack.PacketBufferList) { r.transmit(i, pkts) })
	}
	b.Cleanup(bond.UseRoutes(newFakeRoutes()))
	bond.Attach(&linktest.Counter{})
	return r
}

// transmit takes what a link sends to the other link and to the target.
func (r *detectRig) transmit(i int, pkts stack.PacketBufferList) {
	if r.cut[i].Load() {
		return
	}
	for _, pkt := range pkts.AsSlice() {
		v := pkt.ToView()
		frame := append([]byte{}, v.AsSlice()...)
		v.Release()
		m, ok := probe.Parse(probe.TypeARP, frame[14:])
		if !ok {
			continue
		}
		if !r.cut[1-i].Load() {
			r.links[1-i].Inject(frame)
		}
		r.links[i].Inject(answer(frame, m, m.Destination))
	}
	r.links[i].Drain()
}

// active waits for a slave to become the active one, and returns when it did.
func (r *detectRig) active(b *testing.B, name string) time.Time {
	for {
		select {
		case e := <-r.events.C:
			if e.Kind == bonding.EventActive && e.To == name {
				return time.Now()
			}
		case <-time.After(30 * time.Second):
			b.Fatalf("%s does not become active: %+v", name, r.bond.Status().Slaves)
		}
	}
}

// healthy waits until both links count as up.
func (r *detectRig) healthy(b *testing.B) {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		st := r.bond.Status()
		if st.Slaves[0].MIIStatus == "up" && st.Slaves[1].MIIStatus == "up" && st.ActiveSlave != "" {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("not healthy again: %+v", st.Slaves)
		}
	}
}

// BenchmarkDetect measures, on the real clock, the time from a failure of the
// active slave, at a random moment, to the failover. One operation is 25
// failures; min, median and max are of all. For the ARP monitor the link is cut
// both ways and keeps its carrier; the time counts from the cut, which is up to
// an interval after the last answer.
func BenchmarkDetect(b *testing.B) {
	const failures = 25
	targets := []netip.Addr{target1}
	for _, tt := range []struct {
		name string
		o    bonding.Options
		fail func(r *detectRig, i int, down bool)
	}{
		{"events", bonding.Options{}, func(r *detectRig, i int, down bool) { r.links[i].SetCarrier(!down) }},
		{"miimon=100ms", bonding.Options{}, func(r *detectRig, i int, down bool) {
			s := r.links[i].LinkState()
			s.Carrier = !down
			r.links[i].SetStateSilently(s)
		}},
		{"arp_interval=100ms", bonding.Options{ARPInterval: 100 * time.Millisecond, ARPIPTargets: targets, ARPValidate: bonding.ValidateAll},
			func(r *detectRig, i int, down bool) { r.cut[i].Store(down) }},
		{"arp_interval=10ms", bonding.Options{ARPInterval: 10 * time.Millisecond, ARPIPTargets: targets, ARPValidate: bonding.ValidateAll},
			func(r *detectRig, i int, down bool) { r.cut[i].Store(down) }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			r := newDetectRig(b, tt.o)
			random := rand.New(rand.NewPCG(1, 1))
			var took []time.Duration
			for b.Loop() {
				for range failures {
					r.healthy(b)
					time.Sleep(time.Duration(random.Int64N(int64(max(tt.o.ARPInterval, 100*time.Millisecond)))))
					active := 0
					if r.bond.Status().ActiveSlave == "eth1" {
						active = 1
					}
					start := time.Now()
					tt.fail(r, active, true)
					took = append(took, r.active(b, fmt.Sprintf("eth%d", 1-active)).Sub(start))
					tt.fail(r, active, false)
				}
			}
			slices.Sort(took)
			ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
			b.ReportMetric(ms(took[0]), "min-ms")
			b.ReportMetric(ms(took[len(took)/2]), "median-ms")
			b.ReportMetric(ms(took[len(took)-1]), "max-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
