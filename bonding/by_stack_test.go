package bonding_test

import (
	"sync"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

// lateClock is a clock whose timers are late: time has gone on, but none has
// fired for it.
type lateClock struct {
	*faketime.ManualClock
	late time.Duration
}

func (c *lateClock) NowMonotonic() tcpip.MonotonicTime {
	return c.ManualClock.NowMonotonic().Add(c.late)
}

// The stack sets addresses and MTUs, and takes the NIC away, with its lock held.
// What is due then and needs that lock comes right after.
func TestAnnouncementsWaitForTheStack(t *testing.T) {
	for about, set := range map[string]func(*bonding.Bond){
		"address": func(b *bonding.Bond) { b.SetLinkAddress(macOf("eth7")) },
		"MTU":     func(b *bonding.Bond) { b.SetMTU(1400) },
		"NIC":     func(b *bonding.Bond) { b.Attach(&linktest.Sink{}) }, // another one
	} {
		clock := &lateClock{ManualClock: faketime.NewManualClock()}
		b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup, Clock: clock, NumGratARP: 2, ResendIGMP: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for _, name := range []string{"eth0", "eth1"} {
			if err := b.Enslave(name, linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(name)}), bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		b.Attach(&linktest.Sink{})
		clock.Advance(time.Minute)
		var lock sync.Mutex
		calls := 0
		f := func() {
			if !lock.TryLock() {
				t.Errorf("%s: called while the stack's lock is held", about)
				return
			}
			defer lock.Unlock()
			calls++
		}
		defer b.SubscribeNotifyPeers(f)()
		defer b.SubscribeResendMemberships(f)()
		if err := b.SetOption("active_slave", "eth1"); err != nil {
			t.Fatal(err)
		}
		if calls != 1 {
			t.Errorf("%s: %d calls at once, want 1", about, calls)
		}
		clock.late = time.Second
		lock.Lock()
		set(b)
		lock.Unlock()
		clock.RunImmediatelyScheduledJobs()
		if calls != 3 {
			t.Errorf("%s: %d calls, want 3", about, calls)
		}
	}
}
