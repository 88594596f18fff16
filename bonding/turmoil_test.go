package bonding_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// moody is a link whose state a test changes, and that at times finds itself
// gone or full.
type moody struct {
	*linktest.Recorder
	mood atomic.Uint32
}

func (f *moody) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	switch f.mood.Add(1) % 64 {
	case 0:
		return 0, &tcpip.ErrInvalidEndpointState{}
	case 1:
		return pkts.Len() / 2, &tcpip.ErrNoBufferSpace{}
	}
	return pkts.Len(), nil
}

// Everything at once: eight goroutines send, two receive, one enslaves and
// releases, one flaps links, one sets options, one reads the status (A14). The
// race detector sees the rest; here no call may fail that should not, and the
// bond works afterwards and closes.
func TestTurmoil(t *testing.T) {
	list := []bonding.Options{
		{Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACActive},
		{Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACFollow},
	}
	for _, m := range recoveryModes {
		list = append(list, bonding.Options{Mode: m.mode})
	}
	for _, o := range list {
		t.Run(fmt.Sprint(o.Mode, ",", o.FailOverMAC), func(t *testing.T) {
			linktest.CheckGoroutines(t)
			o.MIIMon, o.XmitHashPolicy, o.RxDedup = time.Millisecond, xmithash.Layer34, bonding.DedupOn
			b, err := bonding.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			b.Attach(&linktest.Counter{})
			links := make([]*moody, 4)
			for i := range links {
				links[i] = &moody{Recorder: linktest.NewRecorder(linktest.RecorderOptions{Address: tcpip.LinkAddress([]byte{2, 0, 0, 0, 0, byte(i)})})}
			}
			if err := b.Enslave("keep", links[0], bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
			stop := hammer(b, 8)
			var end atomic.Bool
			var wg sync.WaitGroup
			background := func(seed uint64, f func(rnd *rand.Rand)) {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, 5))
					for !end.Load() {
						f(rnd)
						runtime.Gosched()
					}
				})
			}
			for i := range 2 {
				background(uint64(i), func(rnd *rand.Rand) {
					f := linktest.Flow4(rnd.IntN(100))
					f.DstMAC = b.LinkAddress()
					links[i*2].Inject(f.UDP([]byte("in")))
					links[i*2+1].Inject(f.ARPRequest())
				})
			}
			background(10, func(rnd *rand.Rand) {
				links[rnd.IntN(4)].SetCarrier(rnd.IntN(3) > 0)
			})
			background(11, func(rnd *rand.Rand) {
				option := [][2]string{{"miimon", "1"}, {"miimon", "2"}, {"updelay", "2"}, {"updelay", "0"}, {"downdelay", "2"}, {"xmit_hash_policy", "2"},
					{"all_slaves_active", "1"}, {"all_slaves_active", "0"}, {"num_grat_arp", "5"}, {"rx_dedup", "off"}, {"rx_dedup", "on"}, {"primary_reselect", "2"}}[rnd.IntN(12)]
				if err := b.SetOption(option[0], option[1]); err != nil {
					t.Errorf("SetOption(%s, %s) = %v", option[0], option[1], err)
				}
				_ = b.SetPromiscuous(rnd.IntN(2) == 0)
				_ = b.SetSlavePriority("hot1", int32(rnd.IntN(3)))
				_ = b.SetSlaveEnabled("hot2", rnd.IntN(2) == 0)
			})
			background(12, func(rnd *rand.Rand) {
				b.Status()
				b.LinkState()
				b.SetMTU(uint32(1400 + rnd.IntN(100)))
				b.SetLinkAddress(tcpip.LinkAddress([]byte{2, 0, 0, 0, 7 * byte(rnd.IntN(2)), byte(rnd.IntN(4))})) // at times a slave's own
			})
			for round := range 1000 {
				i := 1 + round%3
				name := fmt.Sprintf("hot%d", i)
				if err := b.Enslave(name, links[i], bonding.SlaveOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := b.Release(name); err != nil {
					t.Fatal(err)
				}
			}
			end.Store(true)
			wg.Wait()
			stop()
			for i, l := range links {
				l.SetCarrier(true)
				if i > 0 && (l.IsAttached() || l.Subscribers() != 0) {
					t.Errorf("link %d is attached %t, has %d subscribers after its release", i, l.IsAttached(), l.Subscribers())
				}
			}
			// It may have to be the active one first, after a delay or a write that found it gone.
			await(t, "the slave's MTU and address", func() bool { return links[0].MTU() == b.MTU() && links[0].LinkAddress() == b.LinkAddress() })
		})
	}
}
