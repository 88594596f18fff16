package fd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"bondstack/link"
	"bondstack/link/fd"
	"bondstack/link/linktest"
	"bondstack/link/netnstest"
	"bondstack/stack"

	"golang.org/x/sys/unix"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// patience is how long tests wait for what must happen.
const patience = 20 * time.Second

// socketPair makes a pair of unix sockets.
func socketPair(t testing.TB, kind int) [2]int {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// open makes an endpoint on a descriptor, which it closes.
func open(t testing.TB, n int, o fd.Options) *fd.Endpoint {
	t.Helper()
	e, err := fd.New(n, o)
	unix.Close(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// newHost makes a stack on an endpoint.
func newHost(t testing.TB, e netstack.LinkEndpoint, address string) *stack.Host {
	t.Helper()
	h, err := stack.NewHost(e, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix(address)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// exchange sends bytes to who sends them back, and compares them.
func exchange(t testing.TB, c net.Conn, size int) {
	t.Helper()
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	sent := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(sent)
	go c.Write(sent)
	got := make([]byte, size)
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the bytes that come back are others: %v", err)
	}
}

// echo sends back what each connection sends, until the listener is closed.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			io.Copy(c, c)
		}()
	}
}

// Two stacks exchange bytes over a pair of sockets; each end is down when the other
// is closed, at once or when it sends.
func TestSockets(t *testing.T) {
	for _, c := range []struct {
		name string
		kind int
	}{{"seqpacket", unix.SOCK_SEQPACKET}, {"datagram", unix.SOCK_DGRAM}} {
		t.Run(c.name, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			pair := socketPair(t, c.kind)
			a, b := open(t, pair[0], fd.Options{MTU: 9000}), open(t, pair[1], fd.Options{MTU: 9000})
			if a.Kind() != fd.Socket || a.LinkAddress() == b.LinkAddress() || a.MTU() != 9000 {
				t.Errorf("kind %v, addresses %s and %s, MTU %d", a.Kind(), a.LinkAddress(), b.LinkAddress(), a.MTU())
			}
			near, far := newHost(t, a, "10.0.0.1/24"), newHost(t, b, "10.0.0.2/24")
			l, err := far.Listen("tcp", ":7")
			if err != nil {
				t.Fatal(err)
			}
			go echo(l)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			conn, err := near.DialContext(ctx, "tcp", "10.0.0.2:7")
			if err != nil {
				t.Fatal(err)
			}
			exchange(t, conn, 3<<20)
			if s := a.Stats(); s.TXPackets < 300 || s.RXPackets < 300 || s.RXBytes < 3<<20 || s.RXDroppedMalformed+s.RXDroppedOversize+s.TXDroppedInvalid != 0 {
				t.Errorf("counters %+v", s)
			}
			down := make(chan struct{}, 1)
			defer a.SubscribeLinkState(func() { down <- struct{}{} })()
			if s := a.LinkState(); !s.Usable() {
				t.Errorf("state %+v", s)
			}
			far.Close()
			b.Close()
			if c.kind == unix.SOCK_DGRAM {
				if _, err := linktest.Write(a, linktest.Flow4(1).UDP(nil)); !link.Gone(err) {
					t.Errorf("sending to nobody = %v", err)
				}
			}
			select {
			case <-down:
			case <-time.After(patience):
				t.Fatal("nobody tells that the other end is gone")
			}
			if s := a.LinkState(); s.Usable() {
				t.Errorf("state %+v", s)
			}
			if n, err := linktest.Write(a, linktest.Flow4(1).UDP(nil)); n != 0 || !link.Gone(err) {
				t.Errorf("WritePackets = %d, %v", n, err)
			}
			if s := a.Stats(); s.TXRefusedDown == 0 {
				t.Errorf("counters %+v", s)
			}
		})
	}
}

// What is no frame is counted; a frame that is too long is refused.
func TestNotFrames(t *testing.T) {
	pair := socketPair(t, unix.SOCK_SEQPACKET)
	defer unix.Close(pair[1])
	e := open(t, pair[0], fd.Options{})
	var sink linktest.Sink
	e.Attach(&sink)
	for _, b := range [][]byte{make([]byte, 13), make([]byte, 66000), {}, make([]byte, 60)} {
		if err := unix.Send(pair[1], b, 0); err != nil {
			t.Fatal(err)
		}
	}
	sink.Await(t, 1)
	if s := e.Stats(); s.RXDroppedMalformed != 2 || s.RXDroppedOversize != 1 || s.RXPackets != 1 {
		t.Errorf("counters %+v", s)
	}
	if n, err := linktest.Write(e, make([]byte, 14+fd.MaxMTU+1), linktest.Flow4(1).UDP(nil)); n != 1 || err == nil || link.Gone(err) {
		t.Errorf("WritePackets = %d, %v", n, err)
	}
	if s := e.Stats(); s.TXDroppedInvalid != 1 || s.TXPackets != 1 {
		t.Errorf("counters %+v", s)
	}
	// Nobody takes what is sent: it is dropped and counted, and nothing blocks.
	for e.Stats().TXDroppedFull == 0 {
		linktest.Write(e, linktest.Flow4(1).UDP(make([]byte, 1400)))
	}
}

// openTUN makes a TUN or TAP device, and returns its descriptor.
func openTUN(t testing.TB, ns *netnstest.Namespace, name string, flags uint16) int {
	t.Helper()
	n := -1
	ns.Do(func() {
		var err error
		if n, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			t.Skipf("needs a TUN device: %v", err)
		}
		if name == "" {
			return
		}
		request, err := unix.NewIfreq(name)
		if err != nil {
			t.Fatal(err)
		}
		request.SetUint16(flags)
		if err := unix.IoctlIfreq(n, unix.TUNSETIFF, request); err != nil {
			t.Fatal(err)
		}
	})
	return n
}

// A stack exchanges bytes with the kernel over a TAP device that somebody else made,
// with and without a virtio header and offloads.
func TestTAP(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags uint16
	}{{"plain", 0}, {"virtio", unix.IFF_VNET_HDR}} {
		t.Run(c.name, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			ns := netnstest.New(t)
			n := openTUN(t, ns, "tap0", unix.IFF_TAP|unix.IFF_NO_PI|c.flags)
			if c.flags != 0 {
				if err := unix.IoctlSetInt(n, unix.TUNSETOFFLOAD, 0x0f); err != nil {
					t.Fatal(err)
				}
			}
			ns.AddAddress("tap0", "10.0.0.2/24")
			ns.Up("tap0")
			e := open(t, n, fd.Options{})
			if e.Kind() != fd.TAP {
				t.Errorf("kind %v", e.Kind())
			}
			h := newHost(t, e, "10.0.0.1/24")
			var l net.Listener
			ns.Do(func() {
				var err error
				if l, err = net.Listen("tcp", "10.0.0.2:7"); err != nil {
					t.Fatal(err)
				}
			})
			defer l.Close()
			go echo(l)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			conn, err := h.DialContext(ctx, "tcp", "10.0.0.2:7")
			if err != nil {
				t.Fatal(err)
			}
			exchange(t, conn, 2<<20)
			down := make(chan struct{}, 1)
			defer e.SubscribeLinkState(func() { down <- struct{}{} })()
			ns.Delete("tap0")
			select {
			case <-down:
			case <-time.After(patience):
				t.Fatal("nobody tells that the device is gone")
			}
		})
	}
}

// What cannot be a link is refused, with what it is and what is allowed.
func TestRefused(t *testing.T) {
	socket := func(domain, kind int) int {
		n, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	stream := socketPair(t, unix.SOCK_STREAM)
	defer unix.Close(stream[1])
	refused := map[int]string{
		int(file.Fd()):                        "is a file",
		int(r.Fd()):                           "is a pipe",
		int(null.Fd()):                        "a character device other than a TAP device",
		stream[0]:                             "SOCK_STREAM, which has no bounds",
		socket(unix.AF_UNIX, unix.SOCK_DGRAM): "not connected",
		socket(unix.AF_INET, unix.SOCK_DGRAM): "a socket of family 2",
	}
	if os.Geteuid() == 0 {
		ns := netnstest.New(t)
		refused[socket(unix.AF_PACKET, unix.SOCK_RAW)] = "bound to no interface"
		refused[socket(unix.AF_PACKET, unix.SOCK_DGRAM)] = "without Ethernet headers"
		refused[openTUN(t, ns, "", 0)] = "of which no device was made"
		refused[openTUN(t, ns, "tun0", unix.IFF_TUN|unix.IFF_NO_PI)] = "the TUN device tun0"
	}
	for n, want := range refused {
		_, probed := fd.Probe(n)
		_, err := fd.New(n, fd.Options{})
		for _, err := range []error{probed, err} {
			if !errors.Is(err, fd.ErrNotALink) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "allowed are a packet socket") {
				t.Errorf("%q, want %q in it", err, want)
			}
		}
		if n != int(file.Fd()) && n != int(r.Fd()) && n != int(null.Fd()) {
			unix.Close(n)
		}
	}
	if _, err := fd.Probe(1 << 20); !errors.Is(err, fd.ErrNotALink) || !strings.Contains(err.Error(), "is not open") {
		t.Errorf("no descriptor: %v", err)
	}
	pair := socketPair(t, unix.SOCK_SEQPACKET)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	for _, o := range []fd.Options{{MTU: 67}, {MTU: fd.MaxMTU + 1}, {Address: "\x01\x02\x03\x04\x05\x06"}, {Address: "x"}, {Rand: strings.NewReader("")}} {
		if _, err := fd.New(pair[0], o); err == nil {
			t.Errorf("options %+v are taken", o)
		}
	}
}

// Sending allocates nothing.
func TestSendingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	pair := socketPair(t, unix.SOCK_DGRAM)
	defer unix.Close(pair[1])
	e := open(t, pair[0], fd.Options{})
	list := linktest.Packets(linktest.Flow4(1).UDP(make([]byte, 1000)), linktest.Flow4(2).UDP(make([]byte, 1000)))
	defer list.Reset()
	b := make([]byte, 2000)
	if n := testing.AllocsPerRun(200, func() {
		if n, err := e.WritePackets(list); n != 2 || err != nil {
			t.Fatalf("WritePackets = %d, %v", n, err)
		}
		for range 2 {
			unix.Read(pair[1], b)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
