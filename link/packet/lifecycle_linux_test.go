package packet

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/link"
	"bondstack/link/internal/kernel"
	"bondstack/link/netnstest"

	"golang.org/x/sys/unix"
)

// hears checks that a frame from the peer arrives, and one of ours there.
func hears(t *testing.T, p *pair, e *Endpoint, r *recorder, what string) {
	t.Helper()
	raw := p.raw()
	raw.send(frame(kernel.Broadcast, what))
	for string(r.next(t).frame[14:]) != what {
	}
	if n, err := write(e, frame(kernel.Broadcast, what)); n != 1 || err != nil {
		t.Errorf("%s: WritePackets = %d, %v, want 1, nil", what, n, err)
	}
	if got := raw.next(); string(got[14:]) != what {
		t.Errorf("%s: the peer received %q", what, got[14:])
	}
}

// usable waits until the link is usable, or is not.
func usable(t *testing.T, e link.StateEndpoint, want bool) {
	t.Helper()
	eventually(t, fmt.Sprint("the link is usable: ", want), func() bool { return e.LinkState().Usable() == want })
}

func TestInterfaceGoesAndComesBack(t *testing.T) {
	for _, queues := range []int{1, 2} {
		for _, c := range []struct {
			name     string
			away     func(p *pair)
			back     func(p *pair)
			reopened uint64
		}{
			{"down and up",
				func(p *pair) { p.near.Down("veth0") },
				func(p *pair) { p.near.Up("veth0") }, 0},
			{"deleted and made anew",
				func(p *pair) { p.near.Delete("veth0") },
				func(p *pair) { netnstest.Veth(t, p.near, "veth0", p.peer, "veth1") }, 1},
			{"renamed away and back",
				func(p *pair) { p.near.Down("veth0"); p.near.Rename("veth0", "away"); p.near.Up("away") },
				func(p *pair) { p.near.Down("away"); p.near.Rename("away", "veth0"); p.near.Up("veth0") }, 1},
			{"replaced by another while it is still there",
				func(p *pair) { p.shelve("veth0", p.near); p.shelve("veth1", p.peer) },
				func(p *pair) { netnstest.Veth(t, p.near, "veth0", p.peer, "veth1") }, 1},
		} {
			t.Run(fmt.Sprint(c.name, "/", queues, " queues"), func(t *testing.T) {
				p := newPair(t)
				// Polling is off: the kernel's news must do.
				e := p.open(Options{Queues: queues, PollInterval: -1})
				r := attach(e)
				descriptors := countDescriptors(t)
				hears(t, p, e, r, "before")
				for range 3 {
					reopened := e.Stats().Reopened
					c.away(p)
					usable(t, e, false)
					// The kernel's news of a new name come a little after it.
					eventually(t, "writes say that the link is gone", func() bool {
						n, err := write(e, frame(kernel.Broadcast, "lost"))
						return n == 0 && link.Gone(err)
					})
					c.back(p)
					usable(t, e, true)
					hears(t, p, e, r, "after")
					if n := e.Stats().Reopened - reopened; n != c.reopened {
						t.Errorf("opened %d times anew, want %d", n, c.reopened)
					}
				}
				// The peers of hears are closed at the end of the test.
				if now := countDescriptors(t) - 4; now > descriptors {
					t.Errorf("%d descriptors, want no more than %d as before", now, descriptors)
				}
			})
		}
	}
}

// TestWhatComesBackIsNoEthernet: an interface of the name that cannot be used
// leaves the link down, says why, and does not keep it from a better one.
func TestWhatComesBackIsNoEthernet(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	r := attach(e)
	p.near.Delete("veth0")
	usable(t, e, false)
	p.near.Run("ip", "tuntap", "add", "dev", "veth0", "mode", "tun")
	eventually(t, "a warning says why", func() bool {
		w := e.Warnings()
		return len(w) == 1 && strings.Contains(w[0], "ethernet")
	})
	if s := e.LinkState(); s.Up {
		t.Errorf("LinkState() = %+v, want down", s)
	}
	p.near.Delete("veth0")
	netnstest.Veth(t, p.near, "veth0", p.peer, "veth1")
	usable(t, e, true)
	hears(t, p, e, r, "better")
	if w := e.Warnings(); len(w) != 0 {
		t.Errorf("Warnings() = %q, want none", w)
	}
}

// shelve gives an interface a name that is not in use.
func (p *pair) shelve(name string, ns *netnstest.Namespace) {
	p.shelved++
	away := fmt.Sprint("away", p.shelved)
	ns.Down(name)
	ns.Rename(name, away)
	ns.Up(away)
}

// TestOpenWhileDown opens an interface that is down, and brings it up.
func TestOpenWhileDown(t *testing.T) {
	for _, queues := range []int{1, 2} {
		p := newPair(t)
		p.near.Down("veth0")
		e := p.open(Options{Queues: queues})
		r := attach(e)
		if s := e.LinkState(); s.Up || s.Carrier {
			t.Errorf("LinkState() = %+v, want down", s)
		}
		p.near.Up("veth0")
		usable(t, e, true)
		hears(t, p, e, r, "up")
	}
}

// TestRestsWhileGone checks that an endpoint whose interface is down or gone
// does not go round in circles.
func TestRestsWhileGone(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	attach(e)
	quiet := func(what string) {
		t.Helper()
		usable(t, e, false)
		before := e.Stats()
		time.Sleep(50 * time.Millisecond) // that nothing happens cannot be awaited
		after := e.Stats()
		if after.RXErrors-before.RXErrors > 1 || after.Reopened != before.Reopened {
			t.Errorf("%s: went on from %+v to %+v while nothing happened", what, before, after)
		}
	}
	p.near.Down("veth0")
	quiet("down")
	p.near.Delete("veth0")
	quiet("gone")
}

// TestManyRounds opens and closes 2000 endpoints with a limit of 256
// descriptors.
func TestManyRounds(t *testing.T) {
	p := newPair(t)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	lower := unix.Rlimit{Cur: 256, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	// Closing waits for the kernel's grace periods, which workers share.
	const workers = 20
	const rounds = 2000 / workers
	before := countDescriptors(t)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			p.near.Do(func() {
				for i := range rounds {
					e, err := New("veth0", Options{})
					if err != nil {
						t.Errorf("round %d: %v", i, err)
						return
					}
					attach(e)
					e.Close()
					e.Wait()
				}
			})
		})
	}
	wg.Wait()
	if after := countDescriptors(t); after > before+5 {
		t.Errorf("%d descriptors after %d rounds, want about %d", after, workers*rounds, before)
	}
}

// countDescriptors counts the open descriptors of the process. It may fall by
// itself: the net package keeps pipes for splicing until they are collected.
func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestAttachAgain attaches, detaches and attaches again under traffic.
func TestAttachAgain(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	e.Wait() // returns: nothing was started
	raw := p.raw()
	for i := range 3 {
		r := attach(e)
		if !e.IsAttached() {
			t.Error("IsAttached() = false after Attach")
		}
		hears(t, p, e, r, fmt.Sprint("round ", i))
		e.Attach(nil)
		if e.IsAttached() {
			t.Error("IsAttached() = true after Attach(nil)")
		}
		e.Wait() // returns: Close was not called
		dropped := e.Stats().RXDroppedUnattached
		raw.send(frame(kernel.Broadcast, "for no one"))
		eventually(t, "the frame is counted", func() bool { return e.Stats().RXDroppedUnattached > dropped })
	}
}

// TestFramesBeforeAttachAreKept: what comes between New and Attach waits.
func TestFramesBeforeAttachAreKept(t *testing.T) { eachWay(t, testFramesBeforeAttachAreKept) }

func testFramesBeforeAttachAreKept(t *testing.T, o Options) {
	p := newPair(t)
	e := p.open(o)
	p.raw().send(frame(kernel.Broadcast, "early"))
	r := attach(e)
	for string(r.next(t).frame[14:]) != "early" {
	}
}

// TestCloseUnderLoad closes while writers write, frames come and the interface
// goes down and up.
func TestCloseUnderLoad(t *testing.T) {
	for round := range 5 {
		p := newPair(t)
		e := p.open(Options{Queues: 1 + round%2, NoRing: round == 2})
		r := newRecorder()
		e.Attach(r)
		go func() {
			for range r.got {
			}
		}()
		raw := p.raw()
		var stop atomic.Bool
		done := make(chan struct{}, 3)
		work := func(f func()) {
			for !stop.Load() {
				f()
			}
			done <- struct{}{}
		}
		sent := make(chan struct{})
		var once atomic.Bool
		go work(func() {
			write(e, frame(kernel.Broadcast, "load"))
			if !once.Swap(true) {
				close(sent)
			}
		})
		go work(func() { unix.Write(raw.fd, frame(kernel.Broadcast, "load")) })
		go work(func() { e.LinkState(); e.Stats(); e.Info(); e.LinkAddress() })
		<-sent
		p.near.Down("veth0")
		p.near.Up("veth0")
		e.Close()
		e.Close()
		e.Wait()
		if s := e.LinkState(); s.Up {
			t.Errorf("LinkState() after Close = %+v, want down", s)
		}
		stop.Store(true)
		for range 3 {
			<-done
		}
		close(r.got)
	}
}
