package bonding_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/wire"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Two bonds on the same wires with every monitor, restored order, back-off and
// drains at once, while slaves come and go, frames are made up, NICs leave and
// return, and both are closed in the midst of it. The race detector sees the rest;
// here nothing may hang, panic or be left behind.
func TestTurmoilOfFeatures(t *testing.T) {
	for _, mode := range bonding.AvailableModes() {
		t.Run(mode.String(), func(t *testing.T) {
			linktest.CheckGoroutines(t)
			o := bonding.Options{Mode: mode, ProbeInterval: time.Millisecond, FlapBackoff: time.Millisecond, MIIMon: time.Millisecond,
				RxReorder: bonding.ReorderOn, RxReorderHold: time.Millisecond, XmitHashMap: bonding.HashConsistent, MonitorRule: bonding.MonitorAny}
			if mode.String() != "802.3ad" && !adaptive(mode) {
				o.ARPInterval, o.ARPIPTargets = time.Millisecond, []netip.Addr{target1}
			}
			if mode == bonding.ActiveBackup {
				o.FailOverMAC, o.ARPValidate = bonding.FailOverMACFollow, bonding.ValidateAll
			}
			d := newDuel(t, o)
			for side := range d.bonds {
				d.disturb(t, side)
			}
			d.comeAndGo(t)
			for _, b := range d.bonds {
				b.Close()
			}
			d.end.Store(true)
			d.wg.Wait()
		})
	}
}

// duel is two bonds on three wires, of which the first is always theirs.
type duel struct {
	bonds [2]*bonding.Bond
	ends  [2][3]*wire.Endpoint
	end   atomic.Bool
	wg    sync.WaitGroup
}

func newDuel(t *testing.T, o bonding.Options) *duel {
	d := &duel{}
	for side := range d.bonds {
		b, err := bonding.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		b.UseRoutes(newFakeRoutes())
		d.bonds[side] = b
	}
	for i := range d.ends[0] {
		x, y, err := wire.New(wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d.ends[0][i], d.ends[1][i] = x, y
		t.Cleanup(func() { x.Close(); y.Close() })
	}
	for side, b := range d.bonds {
		if err := b.Enslave("keep", d.ends[side][0], bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		b.Attach(&linktest.Counter{})
	}
	return d
}

func (d *duel) background(seed uint64, f func(*rand.Rand)) {
	d.wg.Go(func() {
		for rnd := rand.New(rand.NewPCG(seed, 3)); !d.end.Load(); runtime.Gosched() {
			f(rnd)
		}
	})
}

// disturb does to a bond what may be done at any time.
func (d *duel) disturb(t *testing.T, side int) {
	b, other := d.bonds[side], d.bonds[1-side]
	d.background(uint64(10+side), func(rnd *rand.Rand) {
		f := linktest.Flow4(rnd.IntN(8))
		f.SrcMAC, f.DstMAC = b.LinkAddress(), other.LinkAddress()
		frames := [][]byte{f.UDP([]byte("data")), f.ARPRequest(),
			f.TCP(linktest.Segment{Seq: rnd.Uint32N(4000), Payload: make([]byte, 100), Flags: header.TCPFlagAck})}
		linktest.Write(b, frames...)
	})
	d.background(uint64(20+side), func(rnd *rand.Rand) {
		name := []string{"keep", "hot1", "hot2"}[rnd.IntN(3)]
		switch rnd.IntN(8) {
		case 0:
			_ = b.Drain(name)
		case 1:
			_ = b.Undrain(name)
		case 2:
			_ = b.SetSlaveEnabled(name, rnd.IntN(3) > 0)
		case 3:
			b.Attach(nil)
			b.Attach(&linktest.Counter{})
		case 4:
			d.ends[side][rnd.IntN(3)].SetCarrier(rnd.IntN(4) > 0)
		case 5:
			d.ends[side][rnd.IntN(3)].SetCut(rnd.IntN(2) == 0)
		case 6:
			b.Status()
			b.LinkState()
		case 7:
			options := [][2]string{{"probe_interval", "0"}, {"probe_interval", "1"}, {"arp_interval", "0"}, {"arp_interval", "1"}, {"rx_reorder", "off"},
				{"rx_reorder", "on"}, {"rx_reorder_flows", "4"}, {"flap_backoff", "0"}, {"flap_backoff", "2"}, {"miimon", "0"}, {"miimon", "1"},
				{"xmit_hash_map", "modulo"}, {"xmit_hash_map", "consistent"}, {"monitor_rule", "all"}, {"monitor_rule", "any"}, {"primary", name},
				{"arp_validate", "none"}, {"arp_validate", "all"}, {"resend_igmp", "3"}, {"tlb_dynamic_lb", "0"}, {"tlb_dynamic_lb", "1"}, {"broadcast_neighbor", "1"}}
			o := options[rnd.IntN(len(options))]
			_ = b.SetOption(o[0], o[1]) // not in every mode, nor at any time
		}
	})
}

// comeAndGo enslaves and releases the links that are not always there.
func (d *duel) comeAndGo(t *testing.T) {
	var wg sync.WaitGroup
	for side, b := range d.bonds {
		wg.Go(func() {
			for round := range 50 {
				i := 1 + round%2
				name := fmt.Sprintf("hot%d", i)
				if err := b.Enslave(name, d.ends[side][i], bonding.SlaveOptions{}); err != nil {
					t.Error(err)
					return
				}
				runtime.Gosched()
				if err := b.Release(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
