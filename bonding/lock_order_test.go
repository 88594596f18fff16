package bonding_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"
	"bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// upperLink is what those above call of a link.
type upperLink interface {
	netstack.LinkEndpoint
	link.StateEndpoint
	link.FilterEndpoint
	link.VLANEndpoint
	link.RouteUser
}

// fromAbove are the calls that may be made with locks held.
var fromAbove = map[string]func(upperLink){
	"Attach":            func(l upperLink) { l.Attach(&linktest.Sink{}) },
	"Attach(nil)":       func(l upperLink) { l.Attach(nil) },
	"SetMTU":            func(l upperLink) { l.SetMTU(1400) },
	"SetMTU refused":    func(l upperLink) { l.SetMTU(65000) },
	"SetLinkAddress":    func(l upperLink) { l.SetLinkAddress(macOf("eth7")) },
	"SetPromiscuous":    func(l upperLink) { _ = l.SetPromiscuous(true) },
	"AddLinkAddress":    func(l upperLink) { _ = l.AddLinkAddress(macOf("eth8")) },
	"RemoveLinkAddress": func(l upperLink) { _ = l.RemoveLinkAddress(macOf("eth6")) },
	"AddVLAN":           func(l upperLink) { _ = l.AddVLAN(link.VLANTag{Protocol: link.TagProtocolQ, ID: 7}, l.LinkAddress) },
	"RemoveVLAN":        func(l upperLink) { l.RemoveVLAN(link.VLANTag{Protocol: link.TagProtocolQ, ID: 6}) },
	"UseRoutes":         func(l upperLink) { l.UseRoutes(nil)() },
	"LinkState":         func(l upperLink) { l.LinkState() },
}

// above are links on a bond, by name.
var above = map[string]func(*testing.T, *bonding.Bond) upperLink{
	"bond":  func(_ *testing.T, b *bonding.Bond) upperLink { return b },
	"trunk": func(t *testing.T, b *bonding.Bond) upperLink { return trunkOn(t, b) },
	"VLAN":  func(t *testing.T, b *bonding.Bond) upperLink { return vlanOn(t, trunkOn(t, b), 5) },
	"VLAN on VLAN": func(t *testing.T, b *bonding.Bond) upperLink {
		return vlanOn(t, trunkOn(t, vlanOn(t, trunkOn(t, b), 5)), 9)
	},
	"bond on bond": func(t *testing.T, b *bonding.Bond) upperLink { return bondOn(t, b) },
	"bond on VLAN on bond": func(t *testing.T, b *bonding.Bond) upperLink {
		return bondOn(t, vlanOn(t, trunkOn(t, b), 5))
	},
}

func trunkOn(t *testing.T, base netstack.LinkEndpoint) *vlan.Trunk {
	t.Helper()
	trunk, err := vlan.NewTrunk(base)
	if err != nil {
		t.Fatal(err)
	}
	return trunk
}

func vlanOn(t *testing.T, trunk *vlan.Trunk, id uint16) *vlan.Device {
	t.Helper()
	d, err := trunk.Add(link.VLANTag{Protocol: link.TagProtocolQ, ID: id}, vlan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func bondOn(t *testing.T, below netstack.LinkEndpoint) upperLink {
	r := newDownRig(t, bonding.Options{Name: "outer", Mode: bonding.BalanceXOR}, 0)
	if err := r.Enslave("below", below, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return r.Bond
}

// Whoever calls down may hold locks, and those who are called up, logged to or
// written to may want them: so nothing of that is done within the call. All that
// is due at the moment follows right after.
func TestNothingIsToldWithinACallFromAbove(t *testing.T) {
	for place, on := range above {
		t.Run(place, func(t *testing.T) {
			for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceALB, bonding.IEEE8023AD} {
				var followed int32
				for name, call := range fromAbove {
					followed += callWithLock(t, fmt.Sprintf("%s: %s", mode, name), mode, on, call)
				}
				if followed == 0 && mode != bonding.IEEE8023AD { // in which not every place changes the bond's address
					t.Errorf("%s: nothing ever follows", mode)
				}
			}
		})
	}
}

// callWithLock makes a call on a link on a bond with a lock held that all want whom
// the bond calls, and returns how many it has called in the end.
func callWithLock(t *testing.T, what string, mode bonding.Mode, on func(*testing.T, *bonding.Bond) upperLink, call func(upperLink)) int32 {
	var lock sync.Mutex
	var calls atomic.Int32
	var upper upperLink
	ready := false
	back := func() {
		if !ready {
			return
		}
		lock.Lock()
		defer lock.Unlock()
		calls.Add(1)
		upper.LinkState() // takes the lock of a bond above
	}
	clock := &lateClock{ManualClock: faketime.NewManualClock()}
	b, err := bonding.New(bonding.Options{Mode: mode, Clock: clock, NumGratARP: 2, ResendIGMP: 1,
		Logger: slog.New(logger(func(string) { back() }))})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, name := range []string{"eth0", "eth1"} {
		r := linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(name), MaxMTU: 9000})
		r.OnWrite(func(netstack.PacketBufferList) { back() })
		if err := b.Enslave(name, r, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	upper = on(t, b)
	if !b.IsAttached() {
		upper.Attach(&linktest.Sink{})
	}
	_ = upper.AddLinkAddress(macOf("eth6"))
	_ = upper.AddVLAN(link.VLANTag{Protocol: link.TagProtocolQ, ID: 6}, upper.LinkAddress)
	clock.Advance(time.Minute)
	for _, subscribe := range []func(func()) func(){
		b.SubscribeNotifyPeers, b.SubscribeResendMemberships, b.SubscribeLinkState, b.SubscribeChanges,
	} {
		defer subscribe(back)()
	}
	if mode != bonding.IEEE8023AD { // whose timers are many
		if err := b.SetOption("active_slave", "eth1"); err != nil {
			t.Fatal(err)
		}
	}
	clock.late.Store(int64(time.Second))
	ready = true
	lock.Lock()
	soon(t, what, func() { call(upper) })
	if n := calls.Load(); n != 0 {
		t.Errorf("%s: %d calls back with the caller's lock held", what, n)
	}
	lock.Unlock()
	soon(t, "what follows "+what, clock.RunImmediatelyScheduledJobs)
	ready = false
	return calls.Load()
}

// newLateBond returns a bond in active-backup with slaves eth0 and eth1, on a clock
// whose timers can be late.
func newLateBond(t *testing.T, name string) (*bonding.Bond, *lateClock) {
	t.Helper()
	clock := &lateClock{ManualClock: faketime.NewManualClock()}
	b, err := bonding.New(bonding.Options{Name: name, Mode: bonding.ActiveBackup, Clock: clock, NumGratARP: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	for _, name := range []string{"eth0", "eth1"} {
		if err := b.Enslave(name, linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(name)}), bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return b, clock
}

// makeDue has a slave become the active one, and the second announcement of that be
// due before its timer has fired.
func makeDue(t *testing.T, b *bonding.Bond, clock *lateClock, slave string) {
	t.Helper()
	clock.Advance(time.Minute)
	if err := b.SetOption("active_slave", slave); err != nil {
		t.Fatal(err)
	}
	clock.late.Store(int64(time.Second))
}

// parked waits until a goroutine waits for a lock within a function, or f is true.
func parked(t *testing.T, within string, done func() bool) {
	t.Helper()
	await(t, "a goroutine waits in "+within, func() bool {
		if done() {
			return true
		}
		for _, g := range strings.Split(goroutines(), "\n\n") {
			if strings.Contains(g, "sync.Mutex.Lock") && strings.Contains(g, within) {
				return true
			}
		}
		return false
	})
}

// looked is a link that is held while its state is read.
type looked struct {
	*linktest.Recorder
	hold atomic.Pointer[func()]
}

func (l *looked) LinkState() link.State {
	if f := l.hold.Swap(nil); f != nil {
		(*f)()
	}
	return l.Recorder.LinkState()
}

// One VLAN device of a trunk on a bond is a slave of a bond, another gets an
// address, just as an announcement of the bond below is due, and the upper bond
// fails over to the first.
func TestFailoverMeetsAddressOfAnotherVLAN(t *testing.T) {
	inner, clock := newLateBond(t, "inner")
	trunk := trunkOn(t, inner)
	other := vlanOn(t, trunk, 6)
	outer := newRig(t, bonding.Options{Name: "outer", Mode: bonding.ActiveBackup}, 0)
	held := &looked{Recorder: linktest.NewRecorder(linktest.RecorderOptions{Address: macOf("eth9")})}
	if err := outer.Enslave("eth9", held, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := outer.Enslave("vlan5", vlanOn(t, trunk, 5), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := outer.SetPromiscuous(true); err != nil {
		t.Fatal(err)
	}
	makeDue(t, inner, clock, "eth1")
	inside, release := make(chan struct{}), make(chan struct{})
	hold := func() { close(inside); <-release }
	held.hold.Store(&hold)
	var failover, address sync.WaitGroup
	failover.Go(func() { held.SetCarrier(false) })
	<-inside // the outer bond's lock is held
	var addressed atomic.Bool
	address.Go(func() {
		other.SetLinkAddress(macOf("eth6"))
		addressed.Store(true)
	})
	parked(t, "SetLinkAddress", addressed.Load)
	close(release)
	soon(t, "the failover", failover.Wait)
	soon(t, "the new address", address.Wait)
	outer.wantActive("the link is lost", "vlan5")
	clock.RunImmediatelyScheduledJobs()
}

// The untagged frames of a trunk on a bond in 802.3ad, and a bond on a VLAN of it,
// are NICs of one stack. The stack sets the first one's address with its lock held:
// the inner bond begins anew, and the outer one, which is told, asks the stack for
// an announcement that is due.
func TestStackSetsAddressBelowItsOtherNIC(t *testing.T) {
	inner := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	inner.agree()
	inner.Attach(nil)
	trunk := trunkOn(t, inner.Bond)
	outer, clock := newLateBond(t, "outer")
	if err := outer.Enslave("vlan5", vlanOn(t, trunk, 5), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	s := netstack.New(netstack.Options{})
	defer s.Destroy()
	for id, ep := range map[tcpip.NICID]netstack.LinkEndpoint{1: trunk, 2: outer} {
		if err := s.CreateNIC(id, ep); err != nil {
			t.Fatal(err)
		}
	}
	inner.agree()
	makeDue(t, outer, clock, "vlan5")
	var told atomic.Int32
	defer outer.SubscribeNotifyPeers(func() {
		s.NICInfo() // takes the stack's lock
		told.Add(1)
	})()
	soon(t, "SetNICAddress", func() {
		if err := s.SetNICAddress(1, macOf("eth7")); err != nil {
			t.Error(err)
		}
	})
	soon(t, "what follows", inner.clock.RunImmediatelyScheduledJobs)
	if told.Load() == 0 {
		t.Error("the stack was not asked for the announcement")
	}
}

// A table renames a slave with its lock held: who hears of it may change the table.
func TestRenamedSlaveTellsTheTable(t *testing.T) {
	devices := stack.NewDevices(stack.DevicesOptions{})
	defer devices.Close()
	device, err := devices.Add(stack.NewDevice{Name: "a", Link: linktest.NewRecorder(linktest.RecorderOptions{}), Unattached: true})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "b"}, 1)
	if err := r.EnslaveDevice(devices, "a", bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int32
	defer r.SubscribeChanges(func() {
		if told.Add(1) == 1 {
			if err := devices.AddAltName(device.Index(), "c"); err != nil {
				t.Error(err)
			}
		}
	})()
	soon(t, "Rename", func() {
		if err := devices.Rename(device.Index(), "b"); err != nil {
			t.Error(err)
		}
	})
	soon(t, "what follows", r.clock.RunImmediatelyScheduledJobs)
	r.wantActive("renamed to the primary's name", "b")
	if told.Load() == 0 {
		t.Error("nobody was told of the renaming")
	}
}
