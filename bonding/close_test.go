package bonding_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// firing is a manual clock that counts the timers that go off.
type firing struct {
	*faketime.ManualClock
	fired atomic.Int64
}

func (c *firing) AfterFunc(d time.Duration, f func()) tcpip.Timer {
	return c.ManualClock.AfterFunc(d, func() { c.fired.Add(1); f() })
}

// A closed bond's timers are silent, whether or not the NIC was taken away
// first; so are those of a bond without a NIC.
func TestNoTimerWithoutNIC(t *testing.T) {
	for _, end := range []string{"detach", "close", "detach and close", "never attached", "miimon 0"} {
		clock := &firing{ManualClock: faketime.NewManualClock()}
		b, err := bonding.New(bonding.Options{Mode: bonding.Broadcast, Clock: clock, NumGratARP: 255})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		rec := linktest.NewRecorder(linktest.RecorderOptions{})
		if err := b.Enslave("eth0", rec, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if end != "never attached" {
			b.Attach(&linktest.Sink{})
			clock.Advance(time.Second)
			if n := clock.fired.Load(); n < 10 {
				t.Errorf("%s: timers fired %d times in a second with a NIC", end, n)
			}
			rec.SetCarrier(false)
			rec.SetCarrier(true) // announcements begin
		}
		switch end {
		case "detach":
			b.Attach(nil)
		case "close":
			b.Close()
		case "detach and close":
			b.Attach(nil)
			b.Close()
		case "miimon 0":
			if err := b.SetOptions(map[string]string{"miimon": "0", "num_grat_arp": "0", "rx_dedup": "off"}); err != nil {
				t.Fatal(err)
			}
			clock.Advance(time.Minute) // the announcements end
		}
		clock.Advance(time.Second) // what was due already
		before := clock.fired.Load()
		clock.Advance(time.Hour)
		if n := clock.fired.Load() - before; n > 0 {
			t.Errorf("%s: timers fired %d times in an hour", end, n)
		}
	}
}

// Closing detaches each slave, waits for it and closes it, once; a second Close
// does nothing. Counters stay, and the subscribers hear the end (A1).
func TestClose(t *testing.T) {
	r := newRig(t, bonding.Options{}, 3)
	closed := 0
	r.SetOnCloseAction(func() { closed++ })
	r.send(30)
	for i := range 3 {
		r.links[fmt.Sprintf("eth%d", i)].Inject(r.host(i))
	}
	before := r.Status().Counters
	r.Close()
	r.Close()
	for name, l := range r.links {
		if c := l.Calls(); c.Attach != 1 || c.Detach != 1 || c.Wait == 0 || c.Close != 1 || l.Subscribers() != 0 {
			t.Errorf("%s has seen %+v, %d subscribers", name, c, l.Subscribers())
		}
	}
	if closed != 1 || r.IsAttached() {
		t.Errorf("close action ran %d times, attached %t", closed, r.IsAttached())
	}
	st := r.Status()
	if len(st.Slaves) != 0 || st.Up || st.Carrier || r.LinkState().Usable() {
		t.Errorf("a closed bond's status is %s", text(st))
	}
	if text(st.Counters) != text(before) {
		t.Errorf("counters are %s, were %s", text(st.Counters), text(before))
	}
	for range r.events.C { // ends
	}
	late := r.Subscribe(1)
	if _, open := <-late.C; open {
		t.Error("a subscription of a closed bond is open")
	}
	late.Close()
	if n, err := r.send(1); n != 0 || err != nil || r.drops("tx_no_slave") != 1 {
		t.Errorf("WritePackets() of a closed bond = %d, %v", n, err)
	}
	r.Attach(r.up)
	if r.IsAttached() {
		t.Error("a closed bond was attached")
	}
}

// Close waits for a write that is inside a slave before it detaches and closes
// it.
func TestCloseWaitsForWriters(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	eth0 := r.links["eth0"]
	inside, leave, closed := make(chan bool), make(chan bool), make(chan bool)
	eth0.OnWrite(func(stack.PacketBufferList) { inside <- true; <-leave })
	go r.send(1)
	<-inside
	go func() { r.Close(); close(closed) }()
	for len(r.Status().Slaves) > 0 {
		runtime.Gosched()
	}
	if c := eth0.Calls(); c.Detach != 0 || c.Close != 0 {
		t.Errorf("with a writer inside the slave has seen %+v", c)
	}
	leave <- true
	<-closed
	if c := eth0.Calls(); c.Detach != 1 || c.Close != 1 || c.Write != 1 {
		t.Errorf("the slave has seen %+v", c)
	}
}

// A released slave is its maker's: closing the bond does not close it.
func TestCloseLeavesReleasedSlaves(t *testing.T) {
	r := newRig(t, bonding.Options{}, 2)
	eth0 := r.links["eth0"]
	r.do("-eth0")
	r.Close()
	if c := eth0.Calls(); c.Close != 0 || c.Detach != 1 {
		t.Errorf("the released slave has seen %+v", c)
	}
}

// A NIC of a real netstack is made of the bond and removed: each slave sees one
// attach, one detach and one close, and nothing is left (A1).
func TestNICIsRemoved(t *testing.T) {
	linktest.CheckGoroutines(t)
	for range 100 {
		b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup})
		if err != nil {
			t.Fatal(err)
		}
		var links []*linktest.Recorder
		for i := range 3 {
			l := linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(fmt.Sprintf("eth%d", i))})
			if err := b.Enslave(fmt.Sprintf("eth%d", i), l, bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
			links = append(links, l)
		}
		s := stack.New(stack.Options{})
		if err := s.CreateNIC(1, b); err != nil {
			t.Fatal(err)
		}
		if !b.IsAttached() || !b.Status().Up {
			t.Fatal("the NIC does not have the bond")
		}
		if err := s.RemoveNIC(1); err != nil {
			t.Fatal(err)
		}
		for i, l := range links {
			if c := l.Calls(); c.Attach != 1 || c.Detach != 1 || c.Wait != 1 || c.Close != 1 || l.Subscribers() != 0 || l.IsAttached() {
				t.Fatalf("slave %d has seen %+v, %d subscribers", i, c, l.Subscribers())
			}
		}
		s.Destroy()
	}
}

// The whole stack is torn down at once, with the bond's NIC still there.
func TestStackIsDestroyed(t *testing.T) {
	linktest.CheckGoroutines(t)
	for range 20 {
		b, err := bonding.New(bonding.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := linktest.NewRecorder(linktest.RecorderOptions{})
		if err := b.Enslave("eth0", l, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		s := stack.New(stack.Options{})
		if err := s.CreateNIC(1, b); err != nil {
			t.Fatal(err)
		}
		s.Destroy()
		if c := l.Calls(); c.Attach != 1 || c.Detach != 1 || c.Close != 1 {
			t.Fatalf("the slave has seen %+v", c)
		}
	}
}
