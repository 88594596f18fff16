package xdp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/link"
	"bondstack/link/netnstest"

	"golang.org/x/sys/unix"
)

// victimVariable has the test's program open an endpoint and wait to be killed.
const victimVariable = "BONDSTACK_XDP_VICTIM"

// beVictim opens an endpoint, says so, and waits.
func beVictim() {
	runtime.LockOSThread()
	e, err := New("veth0", Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	e.Attach(newRecorder())
	fmt.Println("open")
	select {}
}

func TestKilledProcessLeavesNothing(t *testing.T) {
	p := newPair(t, 2)
	p.open(Options{}).Close() // or skip
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.near.Start(cmd)
	b := make([]byte, 100)
	n, _ := out.Read(b)
	if got := string(b[:n]); got != "open\n" {
		t.Fatalf("the process said %q", got)
	}
	if got := p.near.Run("ip", "link", "show", "veth0"); !strings.Contains(got, "prog/xdp") {
		t.Errorf("no program while it runs: %s", got)
	}
	cmd.Process.Kill()
	cmd.Wait()
	eventually(t, "the program to go", func() bool {
		got := p.near.Run("ip", "-d", "link", "show", "veth0")
		return !strings.Contains(got, "prog/xdp") && strings.Contains(got, "promiscuity 0")
	})
	p.open(Options{})
}

// countDescriptors counts those of the process.
func countDescriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestOpenAndClose(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	openAndClose(t, rounds)
}

// BenchmarkOpenAndClose does 500 rounds each time.
func BenchmarkOpenAndClose(b *testing.B) {
	for b.Loop() {
		openAndClose(b, 500)
	}
}

// openAndClose opens and closes an endpoint on two queues, every other time
// with traffic, and looks for what is left behind.
func openAndClose(t testing.TB, rounds int) {
	p := newPair(t, 2)
	fd := rawSocket(t, p.peer, "veth1")
	b := etherFrame(p.near.HardwareAddress("veth0"), p.peer.HardwareAddress("veth1"), "ping")
	before, goroutines := 0, 0
	for i := range rounds {
		e := p.open(Options{Ring: MinRing})
		if i%2 == 0 {
			e.Attach(newRecorder())
			eventually(t, "a frame", func() bool {
				unix.Write(fd, b)
				return e.Stats().RXPackets > 0
			})
		}
		e.Close()
		e.Close()
		e.Wait()
		if i == 2 {
			before, goroutines = countDescriptors(t), runtime.NumGoroutine()
		}
	}
	if n := countDescriptors(t); n > before {
		t.Errorf("%d descriptors after %d rounds, want no more than %d", n, rounds, before)
	}
	eventually(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// Attach(nil) returns at once under load, and Close ends the receivers.
func TestDetachUnderLoad(t *testing.T) {
	p := newPair(t, 4)
	e := p.open(Options{})
	stop := p.flood(64)
	defer stop()
	for range 20 {
		r := newRecorder()
		e.Attach(r)
		before := e.Stats().RXPackets
		eventually(t, "frames", func() bool { return e.Stats().RXPackets > before })
		e.Attach(nil)
		if e.IsAttached() {
			t.Fatal("attached after Attach(nil)")
		}
		dropped := e.Stats().RXDroppedUnattached
		eventually(t, "dropped frames", func() bool { return e.Stats().RXDroppedUnattached > dropped })
	}
	e.Close()
	e.Wait()
	if n, err := write(e, etherFrame(make(net.HardwareAddr, 6), make(net.HardwareAddr, 6), "late")); n != 0 || !link.Gone(err) {
		t.Errorf("WritePackets after Close = %d, %v, want 0 and an error that says gone", n, err)
	}
}

// RemoveNIC calls Attach(nil) with the stack's lock held, while frames come in.
func TestRemoveNICUnderLoad(t *testing.T) {
	p := newPair(t, 4)
	e := p.open(Options{})
	s := newHost(t, e)
	p.acquaint(s)
	stop := p.flood(64)
	defer stop()
	eventually(t, "frames", func() bool { return e.Stats().RXPackets > 0 })
	done := make(chan struct{})
	go func() { s.RemoveNIC(1); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("RemoveNIC does not return")
	}
}

// writer writes frames until it is stopped, and tells what became of the last.
type writer struct {
	gone atomic.Bool
	stop func()
}

// newWriter starts n goroutines that write.
func newWriter(p *pair, e *Endpoint, n int) *writer {
	w := &writer{}
	end := make(chan struct{})
	var wg sync.WaitGroup
	b := etherFrame(p.peer.HardwareAddress("veth1"), p.near.HardwareAddress("veth0"), strings.Repeat("load", 100))
	for range n {
		wg.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
					_, err := write(e, b, b, b, b)
					w.gone.Store(link.Gone(err))
					runtime.Gosched()
				}
			}
		})
	}
	w.stop = sync.OnceFunc(func() { close(end); wg.Wait() })
	p.t.Cleanup(w.stop) // of a test that fails
	return w
}

func TestDeletionUnderLoad(t *testing.T) {
	p := newPair(t, 4)
	e := p.open(Options{})
	told := make(chan struct{}, 1000)
	defer e.SubscribeLinkState(func() { told <- struct{}{} })()
	e.Attach(newRecorder())
	for round := range 3 {
		stop := p.flood(64)
		w := newWriter(p, e, 2)
		eventually(t, "traffic both ways", func() bool {
			st := e.Stats()
			return st.RXPackets > 0 && st.TXPackets > 0
		})
		p.near.Delete("veth0")
		eventually(t, "writes to say that the link is gone", w.gone.Load)
		eventually(t, "the link to be down", func() bool { return !e.LinkState().Up })
		stop()
		<-told
		w.stop()
		if round == 2 {
			break
		}
		p.link()
		eventually(t, "the link to come back", func() bool { return e.LinkState().Usable() })
		hears(t, p, e)
	}
	if st := e.Stats(); st.Reopened == 0 || st.TXRefusedDown == 0 {
		t.Errorf("Stats() = %+v, want reopenings and refusals counted", st)
	}
}

// hears checks that a frame passes in each direction.
func hears(t *testing.T, p *pair, e *Endpoint) {
	t.Helper()
	r := newRecorder()
	e.Attach(r)
	fd := rawSocket(t, p.peer, "veth1")
	near, peer := net.HardwareAddr(e.LinkAddress()), p.peer.HardwareAddress("veth1")
	if _, err := unix.Write(fd, etherFrame(near, peer, "to the endpoint")); err != nil {
		t.Fatal(err)
	}
	r.await(t, "a frame from the peer", func(b []byte) bool { return strings.HasSuffix(string(b), "to the endpoint") })
	if n, err := write(e, etherFrame(peer, near, "from the endpoint")); n != 1 || err != nil {
		t.Fatalf("WritePackets = %d, %v, want 1", n, err)
	}
	readFrame(t, fd, "from the endpoint")
}

// readFrame reads from a packet socket until a frame ends with what is wanted.
func readFrame(t *testing.T, fd int, want string) []byte {
	t.Helper()
	b := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, b)
		if err != nil {
			t.Fatalf("wait for %q: %v", want, err)
		}
		if strings.HasSuffix(string(b[:n]), want) {
			return b[:n]
		}
	}
}

// A frame that was refused while the interface was down never goes out later.
func TestDownAndUp(t *testing.T) {
	p := newPair(t, 1)
	e := p.open(Options{})
	r := newRecorder()
	e.Attach(r)
	hears(t, p, e)
	fd := rawSocket(t, p.peer, "veth1")
	peer, near := p.peer.HardwareAddress("veth1"), p.near.HardwareAddress("veth0")
	p.near.Down("veth0")
	for range 10 {
		if n, err := write(e, etherFrame(peer, near, "too early")); n != 0 || !link.Gone(err) {
			t.Fatalf("WritePackets on a link that is down = %d, %v, want 0 and an error that says gone", n, err)
		}
	}
	if e.LinkState().Up {
		t.Error("the link is up")
	}
	p.near.Up("veth0")
	eventually(t, "the link to come up", func() bool { return e.LinkState().Usable() })
	hears(t, p, e)
	write(e, etherFrame(peer, near, "the end"))
	b := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, b)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(string(b[:n]), "too early") {
			t.Fatal("a refused frame went out")
		}
		if strings.HasSuffix(string(b[:n]), "the end") {
			return
		}
	}
}

func TestOpenedWhileDown(t *testing.T) {
	p := newPair(t, 2)
	p.near.Down("veth0")
	e := p.open(Options{})
	e.Attach(newRecorder())
	if e.LinkState().Up {
		t.Error("the link is up")
	}
	if e.MTU() != 1500 {
		t.Errorf("MTU() = %d, want 1500", e.MTU())
	}
	p.near.Up("veth0")
	eventually(t, "the link to come up", func() bool { return e.LinkState().Usable() })
	hears(t, p, e)
}

func TestCarrier(t *testing.T) {
	p := newPair(t, 1)
	e := p.open(Options{})
	e.Attach(newRecorder())
	told := make(chan struct{}, 100)
	defer e.SubscribeLinkState(func() { told <- struct{}{} })()
	for range 2 {
		p.peer.Down("veth1")
		eventually(t, "no carrier", func() bool { return !e.LinkState().Carrier })
		<-told
		p.peer.Up("veth1")
		eventually(t, "a carrier", func() bool { return e.LinkState().Usable() })
		<-told
	}
	if s := e.LinkState(); s.Speed != 10000 || s.Duplex != link.DuplexFull {
		t.Errorf("LinkState() = %+v, want the 10000 Mbit/s, full, that a veth says", s)
	}
	hears(t, p, e)
}

func TestErrorsOfNew(t *testing.T) {
	p := newPair(t, 1)
	first := p.open(Options{})
	defer first.Close()
	if _, err := p.tryOpen(Options{}); !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "another one is on the interface") {
		t.Errorf("a second endpoint: %v, want EBUSY that names the other program", err)
	}
	first.Close()
	if _, err := p.tryOpen(Options{Mode: ModeZeroCopy}); !errors.Is(err, ErrNotSupported) {
		t.Errorf("zero-copy on a veth pair: %v, want ErrNotSupported", err)
	}
	ns := netnstest.New(t)
	ns.Do(func() {
		if _, err := New("none0", Options{}); !errors.Is(err, ErrNoInterface) || !strings.Contains(err.Error(), "none0") {
			t.Errorf("no interface: %v, want ErrNoInterface", err)
		}
		if _, err := New("lo", Options{}); err == nil {
			t.Error("an endpoint on lo, want an error: its frames are not of type ether")
		}
	})
	p.open(Options{}) // the failed ones left nothing
}
