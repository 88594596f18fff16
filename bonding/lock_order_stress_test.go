package bonding_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// tower is three bonds, a trunk between each and the next, and a fourth bond
// directly below the highest. VLANs 6 and 7 of the lower trunk are for others.
type tower struct {
	t                         *testing.T
	high, side, mid, low      *bonding.Bond
	others                    []upperLink
	links                     []*linktest.Recorder
	ofHigh, ofMid, ofLow      map[string]netstack.LinkEndpoint
	enslaved, called, refused atomic.Int64
}

func newTower(t *testing.T) *tower {
	w := &tower{t: t}
	w.low = w.bond("low", bonding.ActiveBackup)
	w.mid = w.bond("mid", bonding.BalanceALB)
	w.side = w.bond("side", bonding.BalanceXOR)
	w.high = w.bond("high", bonding.ActiveBackup)
	lower := trunkOn(t, w.low)
	w.ofLow = w.with(w.low, map[string]netstack.LinkEndpoint{"eth0": w.link(0), "eth1": w.link(1)})
	w.ofMid = w.with(w.mid, map[string]netstack.LinkEndpoint{"vlan5": vlanOn(t, lower, 5), "eth2": w.link(2)})
	w.with(w.side, map[string]netstack.LinkEndpoint{"eth3": w.link(3)})
	w.ofHigh = w.with(w.high, map[string]netstack.LinkEndpoint{"vlan8": vlanOn(t, trunkOn(t, w.mid), 8), "side": w.side, "eth4": w.link(4)})
	w.others = []upperLink{lower, vlanOn(t, lower, 6), vlanOn(t, lower, 7)}
	for _, l := range append(w.others, w.high) {
		l.Attach(&linktest.Counter{})
	}
	return w
}

// bond makes a bond whose callers-back look at all of them.
func (w *tower) bond(name string, mode bonding.Mode) *bonding.Bond {
	b, err := bonding.New(bonding.Options{Name: name, Mode: mode, MIIMon: time.Millisecond, NumGratARP: 3, ResendIGMP: 2})
	if err != nil {
		w.t.Fatal(err)
	}
	look := func() {
		w.called.Add(1)
		for _, b := range []*bonding.Bond{w.high, w.mid, w.low, w.side} {
			b.LinkState()
		}
	}
	b.SubscribeLinkState(look)
	b.SubscribeChanges(look)
	b.SubscribeNotifyPeers(look)
	b.SubscribeResendMemberships(look)
	return b
}

// link makes a link whose writer looks at the highest bond.
func (w *tower) link(i int) *linktest.Recorder {
	r := linktest.NewRecorder(linktest.RecorderOptions{Address: tcpip.LinkAddress([]byte{2, 0, 0, 0, 0, byte(i)})})
	r.OnWrite(func(netstack.PacketBufferList) { w.high.LinkState() })
	w.links = append(w.links, r)
	return r
}

func (w *tower) with(b *bonding.Bond, slaves map[string]netstack.LinkEndpoint) map[string]netstack.LinkEndpoint {
	for name, ep := range slaves {
		if err := b.Enslave(name, ep, bonding.SlaveOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	return slaves
}

// change does one of the things that those above a link do.
func (w *tower) change(l upperLink, rnd *rand.Rand) {
	addr := tcpip.LinkAddress([]byte{2, 0, 0, 0, 1, byte(rnd.IntN(8))})
	switch rnd.IntN(8) {
	case 0:
		l.SetMTU(uint32(1400 + rnd.IntN(2)*100))
	case 1:
		l.SetLinkAddress(addr)
	case 2:
		_ = l.SetPromiscuous(rnd.IntN(2) == 0)
	case 3:
		_ = l.AddLinkAddress(addr)
	case 4:
		_ = l.RemoveLinkAddress(addr)
	case 5:
		_ = l.AddVLAN(link.VLANTag{Protocol: link.TagProtocolAD, ID: uint16(rnd.IntN(4))}, l.LinkAddress)
	case 6:
		l.RemoveVLAN(link.VLANTag{Protocol: link.TagProtocolAD, ID: uint16(rnd.IntN(4))})
	case 7:
		l.LinkState()
	}
}

// move releases a slave and takes it in again.
func (w *tower) move(b *bonding.Bond, slaves map[string]netstack.LinkEndpoint) {
	for name, ep := range slaves {
		_ = b.Release(name) // it may not be there, because
		if err := b.Enslave(name, ep, bonding.SlaveOptions{}); err != nil {
			w.refused.Add(1) // its MTU is less than the bond's at the moment
		} else {
			w.enslaved.Add(1)
		}
	}
}

// All that those above and those below can do is done at each level of nested bonds
// at once, by callers with locks and with callers-back who want these. Nobody waits
// for ever, and in the end the tower stands.
func TestNestedBondsInTurmoil(t *testing.T) {
	const rounds = 1000
	w := newTower(t)
	var wg sync.WaitGroup
	seed := uint64(0)
	repeat := func(n int, f func(rnd *rand.Rand)) {
		seed++
		rnd := rand.New(rand.NewPCG(seed, 9))
		wg.Go(func() {
			for range n {
				f(rnd)
			}
		})
	}
	var netstackLock sync.Mutex
	defer w.high.SubscribeNotifyPeers(func() {
		netstackLock.Lock()
		defer netstackLock.Unlock()
		w.called.Add(1)
	})()
	for _, l := range append(w.others, w.high) {
		repeat(rounds, func(rnd *rand.Rand) {
			netstackLock.Lock()
			defer netstackLock.Unlock()
			w.change(l, rnd)
		})
		repeat(rounds, func(rnd *rand.Rand) { w.change(l, rnd) })
	}
	for _, l := range w.others {
		repeat(rounds, func(*rand.Rand) { l.Attach(nil); l.Attach(&linktest.Counter{}) })
	}
	for _, b := range []*bonding.Bond{w.mid, w.low, w.side} {
		repeat(rounds, func(rnd *rand.Rand) { w.change(b, rnd) })
	}
	for _, l := range w.links {
		repeat(rounds, func(*rand.Rand) { l.SetCarrier(false); l.SetCarrier(true) })
	}
	repeat(rounds/5, func(*rand.Rand) { w.move(w.high, w.ofHigh) })
	repeat(rounds/5, func(*rand.Rand) { w.move(w.mid, w.ofMid) })
	repeat(rounds/5, func(*rand.Rand) { w.move(w.low, w.ofLow) })
	repeat(rounds, func(*rand.Rand) {
		linktest.Write(w.high, linktest.Flow4(1).UDP([]byte("x")))
		w.high.Status()
	})
	soon(t, "the turmoil", wg.Wait)
	t.Logf("%d calls back, %d enslaved, %d refused", w.called.Load(), w.enslaved.Load(), w.refused.Load())

	for _, b := range []*bonding.Bond{w.low, w.mid, w.side, w.high} {
		b.SetMTU(1400)
	}
	soon(t, "the last move", func() {
		w.move(w.low, w.ofLow)
		w.move(w.mid, w.ofMid)
		w.move(w.high, w.ofHigh)
	})
	await(t, "the tower stands", func() bool { return w.high.LinkState().Usable() && len(w.high.Status().Slaves) == len(w.ofHigh) })
	soon(t, "the end", func() { w.high.Close(); w.mid.Close(); w.low.Close() })
}
