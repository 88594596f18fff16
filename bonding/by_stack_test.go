package bonding_test

import (
	"sync"
	"sync/atomic"
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
	late atomic.Int64 // nanoseconds
}

func (c *lateClock) NowMonotonic() tcpip.MonotonicTime {
	return c.ManualClock.NowMonotonic().Add(time.Duration(c.late.Load()))
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
		var calls atomic.Int32
		f := func() {
			lock.Lock() // as the stack does
			defer lock.Unlock()
			calls.Add(1)
		}
		defer b.SubscribeNotifyPeers(f)()
		defer b.SubscribeResendMemberships(f)()
		if err := b.SetOption("active_slave", "eth1"); err != nil {
			t.Fatal(err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%s: %d calls at once, want 1", about, n)
		}
		clock.late.Store(int64(time.Second))
		lock.Lock()
		done := make(chan struct{})
		go func() {
			set(b)
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(hostPatience):
			t.Fatalf("%s: waits for the stack's lock", about)
		}
		lock.Unlock()
		await(t, about+": all that was due has come", func() bool {
			clock.RunImmediatelyScheduledJobs()
			return calls.Load() >= 3
		})
		if n := calls.Load(); n != 3 {
			t.Errorf("%s: %d calls, want 3", about, n)
		}
	}
}
