package packet

import (
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"
	"bondstack/link/internal/vnet/vnettest"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// TestChecksumsAreVerified has the peer send frames for which no kernel
// vouches: those with right checksums pass, those with wrong ones do not.
func TestChecksumsAreVerified(t *testing.T) { eachWay(t, testChecksumsAreVerified) }

func testChecksumsAreVerified(t *testing.T, o Options) {
	p := newPair(t)
	e := p.open(o)
	e.SetPromiscuous(true)
	r, raw := attach(e), p.raw()
	random := rand.New(rand.NewPCG(5, 5))
	bad := uint64(0)
	for i := range 40 {
		s := vnettest.Spec{V6: i&1 != 0, UDP: i&2 != 0, Tags: i >> 2 & 1, Payload: 10 + random.IntN(1000)}
		b, _, transport := s.Build(random)
		raw.send(b)
		if got := r.next(t); !got.valid {
			t.Errorf("%+v: RXChecksumValidated = false, want true", s)
		}
		b[transport] ^= 1
		raw.send(b)
		raw.send(frame(kernel.Broadcast, "marker"))
		if got := r.next(t); string(got.frame[14:]) != "marker" || got.valid {
			t.Errorf("%+v: with a wrong checksum received %x, valid %v, want only the marker", s, got.frame, got.valid)
		}
		bad++
	}
	// The last batch is counted when all of it was delivered.
	eventually(t, "each wrong checksum is counted", func() bool { return e.Stats().RXDroppedChecksum == bad })
}

// TestPartialChecksumsOfUDP has the peer's kernel send datagrams: their
// checksums are partial, and the kernel vouches for them.
func TestPartialChecksumsOfUDP(t *testing.T) { eachWay(t, testPartialChecksumsOfUDP) }

func testPartialChecksumsOfUDP(t *testing.T, o Options) {
	p := newPair(t)
	e := p.open(o)
	r := attach(e)
	p.peer.Run("ip", "neigh", "add", stackV4, "lladdr", e.LinkAddress().String(), "dev", "veth1")
	p.peer.Do(func() {
		c, err := net.Dial("udp", net.JoinHostPort(stackV4, "9"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte("partial"))
	})
	got := r.next(t)
	for len(got.frame) < 42+7 || string(got.frame[42:]) != "partial" {
		got = r.next(t)
	}
	if !got.valid {
		t.Error("RXChecksumValidated = false for a datagram that the kernel vouches for")
	}
	if vnet.Verify([][]byte{got.frame}, false) != vnet.Bad {
		t.Error("the checksum was not partial: the test shows nothing")
	}
}

// TestSegmentedDatagrams has the peer's kernel send several datagrams as one
// (UDP_SEGMENT): each must arrive by itself.
func TestSegmentedDatagrams(t *testing.T) { eachWay(t, testSegmentedDatagrams) }

func testSegmentedDatagrams(t *testing.T, o Options) {
	p := newPair(t)
	e := p.open(o)
	r := attach(e)
	p.peer.Run("ip", "neigh", "add", stackV4, "lladdr", e.LinkAddress().String(), "dev", "veth1")
	payload := make([]byte, 3500)
	for i := range payload {
		payload[i] = byte(i / 1000)
	}
	p.peer.Do(func() {
		c, err := net.Dial("udp", net.JoinHostPort(stackV4, "9"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		raw, _ := c.(*net.UDPConn).SyscallConn()
		raw.Control(func(fd uintptr) {
			if err := unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, 1000); err != nil {
				t.Skipf("the kernel does not segment datagrams: %v", err)
			}
		})
		if _, err := c.Write(payload); err != nil {
			t.Fatal(err)
		}
	})
	var sizes []int
	for i := 0; i < 4; {
		got := r.next(t)
		if got.protocol != 0x800 || got.frame[23] != 17 {
			continue
		}
		sizes = append(sizes, len(got.frame)-42)
		if !got.valid || vnet.Verify([][]byte{got.frame}, false) != vnet.Good || got.frame[42] != byte(i) {
			t.Errorf("datagram %d: valid %v, begins with %d", i, got.valid, got.frame[42])
		}
		i++
	}
	if want := []int{1000, 1000, 1000, 500}; !slices.Equal(sizes, want) {
		t.Errorf("datagrams of %v bytes, want %v", sizes, want)
	}
}

// TestSuperFramesCarryTheirSegmentation checks what is known of a frame of many
// segments.
func TestSuperFramesCarryTheirSegmentation(t *testing.T) {
	eachWay(t, testSuperFramesCarryTheirSegmentation)
}

func testSuperFramesCarryTheirSegmentation(t *testing.T, o Options) {
	p := newPair(t)
	e := p.open(o)
	saw := make(chan stack.GSO, 1)
	tap := &tapped{Endpoint: e, look: func(pkt *stack.PacketBuffer) {
		if pkt.Size() > 4000 {
			select {
			case saw <- pkt.GSOOptions:
			default:
			}
		}
	}}
	h := newHost(t, tap)
	l := p.listenPeer(peerV4)
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Write(make([]byte, 1<<20))
			c.Close()
		}
	}()
	sum(h.dial(peerV4, l.Addr().(*net.TCPAddr).Port))
	gso := <-saw
	if gso.Type != stack.GSOTCPv4 || !gso.NeedsCsum || gso.L3HdrLen != 20 || gso.CsumOffset != 16 || gso.MSS < 1000 {
		t.Errorf("GSOOptions = %+v, want those of TCP over IPv4 with a partial checksum", gso)
	}
}

// tapped is an endpoint that shows what it delivers.
type tapped struct {
	*Endpoint
	look func(*stack.PacketBuffer)
	to   stack.NetworkDispatcher
}

func (e *tapped) Attach(d stack.NetworkDispatcher) {
	if d == nil {
		e.Endpoint.Attach(nil)
		return
	}
	e.to = d
	e.Endpoint.Attach(e)
}

func (e *tapped) DeliverNetworkPacket(p tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	e.look(pkt)
	e.to.DeliverNetworkPacket(p, pkt)
}

func (e *tapped) DeliverLinkPacket(p tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	e.to.DeliverLinkPacket(p, pkt)
}

// TestDatapathAllocatesNothing counts the allocations of sending and receiving.
func TestDatapathAllocatesNothing(t *testing.T) { eachWay(t, testDatapathAllocatesNothing) }

func testDatapathAllocatesNothing(t *testing.T, o Options) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := newPair(t)
	e := p.open(o)
	e.Attach(nothing{})
	raw := p.raw()

	list := listOf(frame(kernel.Broadcast, "frame"), 8)
	defer list.Reset()
	if n := testing.AllocsPerRun(200, func() { e.WritePackets(list) }); n >= 1 {
		t.Errorf("WritePackets of 8 frames allocates %v times, want 0", n)
	}
	b := frame(kernel.Broadcast, "frame")
	seen := e.Stats().RXPackets
	// The peer's write and the wait are counted as well.
	if n := testing.AllocsPerRun(200, func() {
		unix.Write(raw.fd, b)
		for seen++; e.stats.rx.packets.Load() < seen; {
		}
	}); n >= 1 {
		t.Errorf("receiving a frame allocates %v times, want 0", n)
	}
}

// nothing is a dispatcher that does nothing.
type nothing struct{}

func (nothing) DeliverNetworkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}
func (nothing) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer)    {}

// listOf is a list of n packets of a frame.
func listOf(frame []byte, n int) stack.PacketBufferList {
	var list stack.PacketBufferList
	for range n {
		list.PushBack(outgoing(frame))
	}
	return list
}

// BenchmarkWritePackets sends small frames to a peer that drops them.
func BenchmarkWritePackets(b *testing.B) {
	for _, n := range []int{1, 32} {
		b.Run(map[int]string{1: "single", 32: "batch"}[n], func(b *testing.B) {
			p := newPair(b)
			e := p.open(Options{})
			list := listOf(frame(kernel.Broadcast, "frame"), n)
			defer list.Reset()
			b.ReportAllocs()
			for b.Loop() {
				e.WritePackets(list)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/frame")
		})
	}
}
