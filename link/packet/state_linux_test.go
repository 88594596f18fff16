package packet

import (
	"math/rand/v2"
	"testing"
	"time"

	"bondstack/link"
	"bondstack/link/internal/kernel"

	"golang.org/x/sys/unix"
)

func TestStateOfVeth(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	want := link.State{Up: true, Carrier: true, Speed: 10000, Duplex: link.DuplexFull}
	usable(t, e, true)
	if s := e.LinkState(); s != want {
		t.Errorf("LinkState() = %+v, want %+v", s, want)
	}
	p.peer.Down("veth1")
	if s := e.LinkState(); !s.Up || s.Carrier {
		t.Errorf("with the peer down LinkState() = %+v, want up without carrier at once", s)
	}
	p.near.Down("veth0")
	if s := e.LinkState(); s.Up || s.Carrier {
		t.Errorf("when down LinkState() = %+v, want down", s)
	}
}

// TestSubscribersAreTold cuts and restores the carrier: with the kernel's news
// alone, with polling alone, and with both.
func TestSubscribersAreTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		poll  time.Duration
		quiet bool
	}{
		{"news", -1, false},
		{"polling", 0, true},
		{"both", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			e := p.open(Options{PollInterval: c.poll})
			usable(t, e, true)
			told := make(chan struct{}, 100)
			cancel := e.SubscribeLinkState(func() { told <- struct{}{} })
			if c.quiet {
				e.ns.Unwatch(e.monitor)
			}
			for range 2 {
				p.peer.Down("veth1")
				awaitState(t, e, told, false)
				p.peer.Up("veth1")
				awaitState(t, e, told, true)
			}
			cancel()
			cancel()
			for len(told) > 0 {
				<-told
			}
			p.peer.Down("veth1")
			usable(t, e, false)
			e.Close()
			e.Wait()
			if len(told) != 0 {
				t.Error("a subscriber was told after it cancelled")
			}
		})
	}
}

// awaitState waits until a subscriber is told and finds the link usable or not.
func awaitState(t *testing.T, e link.StateEndpoint, told chan struct{}, want bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case <-told:
			if e.LinkState().Usable() == want {
				return
			}
		case <-limit:
			t.Fatalf("not told that the link is usable: %v", want)
		}
	}
}

// TestSubscriberMayCloseAndLock: a subscriber that waits for a lock keeps
// neither cancel nor Close from returning.
func TestSubscriberMayCloseAndLock(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	usable(t, e, true)
	attach(e)
	in, out := make(chan struct{}), make(chan struct{})
	cancel := e.SubscribeLinkState(func() {
		close(in)
		<-out
		e.LinkState()
	})
	p.peer.Down("veth1")
	<-in
	cancel()
	e.Close()
	close(out)
	e.Wait()
}

// TestSharedNamespace: endpoints of one namespace share what they can, and the
// last one ends it.
func TestSharedNamespace(t *testing.T) {
	p := newPair(t)
	before := countDescriptors(t)
	a, b := p.open(Options{}), p.open(Options{})
	if a.ns != b.ns {
		t.Error("two endpoints of a namespace do not share it")
	}
	attach(a)
	attach(b)
	a.Close()
	hears(t, p, b, attach(b), "the other is closed")
	b.Close()
	if n := countDescriptors(t) - 1; n > before { // hears has one
		t.Errorf("%d descriptors, want no more than %d as before", n, before)
	}
	if n := kernel.InUse(); n != 0 {
		t.Errorf("%d namespaces in use after all was closed", n)
	}
}

// BenchmarkLinkState is what a poll costs.
func BenchmarkLinkState(b *testing.B) {
	p := newPair(b)
	e := p.open(Options{PollInterval: -1})
	b.ReportAllocs()
	for b.Loop() {
		if !e.LinkState().Up {
			b.Fatal("down")
		}
	}
}

// BenchmarkCarrierLoss is how long after the peer's interface went down a
// subscriber finds out, by the kernel's news and by polling.
func BenchmarkCarrierLoss(b *testing.B) {
	for _, c := range []struct {
		name string
		poll time.Duration
		news bool
	}{
		{"news", -1, true},
		{"polling", DefaultPollInterval, false},
		{"both", DefaultPollInterval, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := newPair(b)
			e := p.open(Options{PollInterval: c.poll})
			told := make(chan time.Time, 100)
			defer e.SubscribeLinkState(func() {
				if !e.LinkState().Usable() {
					told <- time.Now()
				}
			})()
			if !c.news {
				e.ns.Unwatch(e.monitor)
			}
			flow := time.NewTicker(time.Millisecond)
			defer flow.Stop()
			end := make(chan struct{})
			defer close(end)
			go func() {
				for {
					select {
					case <-end:
						return
					case <-flow.C:
						write(e, frame(kernel.Broadcast, "flow"))
					}
				}
			}()
			var total time.Duration
			for b.Loop() {
				b.StopTimer()
				for !e.LinkState().Usable() {
				}
				for len(told) > 0 {
					<-told
				}
				// The monitor has seen it too, and the phase of its polling varies.
				time.Sleep(20*time.Millisecond + rand.N(2*DefaultPollInterval))
				b.StartTimer()
				p.peer.Down("veth1")
				down := time.Now()
				total += max((<-told).Sub(down), 0)
				b.StopTimer()
				p.peer.Up("veth1")
				b.StartTimer()
			}
			b.ReportMetric(float64(total.Microseconds())/float64(b.N), "us-after-return")
		})
	}
}

// BenchmarkIdle is what an attached endpoint uses of one processor while
// nothing happens: its polling.
func BenchmarkIdle(b *testing.B) {
	p := newPair(b)
	attach(p.open(Options{}))
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	for b.Loop() {
		time.Sleep(100 * time.Millisecond)
	}
	b.ReportMetric(100*float64(used()-before)/float64(b.Elapsed()), "percent-of-a-cpu")
}
