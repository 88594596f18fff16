package xdp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"

	"bondstack/link"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// lists is a dispatcher that takes lists, and keeps how long each was.
type lists struct {
	*recorder
	lengths chan int
}

var _ link.ListDispatcher = lists{}

// DeliverList implements link.ListDispatcher.
func (l lists) DeliverList(list stack.PacketBufferList) {
	for _, pkt := range list.AsSlice() {
		l.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
	}
	l.lengths <- list.Len()
}

// Frames that wait together are delivered together, and in their order.
func TestDeliverList(t *testing.T) {
	p := newPair(t, 1)
	e := p.open(Options{})
	fd := rawSocket(t, p.peer, "veth1")
	const n = 10
	for i := range n {
		b := etherFrame(p.near.HardwareAddress("veth0"), p.peer.HardwareAddress("veth1"), fmt.Sprint("number ", i))
		if _, err := unix.Write(fd, b); err != nil {
			t.Fatal(err)
		}
	}
	ours := func(b []byte) bool { return bytes.Contains(b, []byte("number ")) }
	s := e.open.sockets[0]
	eventually(t, "the frames to come", func() bool {
		found := 0
		for i := range s.received.filled() {
			if b, _, _ := s.bytes(*s.received.at(s.received.consumed() + uint32(i))); ours(b) {
				found++
			}
		}
		return found == n
	})
	l := lists{newRecorder(), make(chan int, 100)}
	e.Attach(l)
	for i := range n {
		if got, want := l.await(t, "a frame", ours), fmt.Sprint("number ", i); !strings.HasSuffix(string(got), want) {
			t.Errorf("received %q, want %s", got, want)
		}
	}
	if got := <-l.lengths; got < n {
		t.Errorf("the first list has %d frames, want all %d", got, n)
	}
}

// A tag stays in its frame both ways.
func TestTagsStayInTheFrame(t *testing.T) {
	for _, mode := range []Mode{ModeCopy, ModeGeneric} {
		t.Run(mode.String(), func(t *testing.T) {
			p := newPair(t, 1)
			e := p.open(Options{Mode: mode})
			r := newRecorder()
			e.Attach(r)
			near, peer := p.near.HardwareAddress("veth0"), p.peer.HardwareAddress("veth1")
			fd := rawSocket(t, p.peer, "veth1")
			want := tagged(etherFrame(near, peer, "from the peer"), 7)
			if _, err := unix.Write(fd, want); err != nil {
				t.Fatal(err)
			}
			got := r.await(t, "the peer's frame", func(b []byte) bool { return strings.HasSuffix(string(b), "from the peer") })
			if !bytes.Equal(got, want) {
				t.Errorf("received %x, want %x", got, want)
			}
			want = tagged(etherFrame(peer, near, "to the peer"), 5)
			if n, err := write(e, want); n != 1 || err != nil {
				t.Fatalf("WritePackets = %d, %v", n, err)
			}
			// The kernel takes the tag out of what a packet socket reads.
			if got := readFrame(t, fd, "to the peer"); !bytes.Equal(got, want) && !bytes.Equal(got, etherFrame(peer, near, "to the peer")) {
				t.Errorf("sent %x, want %x", got, want)
			}
		})
	}
}

// Where the interface takes tags out, or says that it may, there is a warning.
func TestWarningOfTags(t *testing.T) {
	p := newPair(t, 1)
	e := p.open(Options{})
	for _, on := range []bool{true, false, true} {
		p.near.Run("ethtool", "-K", "veth0", "rxvlan", map[bool]string{true: "on", false: "off"}[on])
		said := strings.Contains(strings.Join(e.Warnings(), "\n"), "ethtool -K veth0 rxvlan off")
		if said != on {
			t.Errorf("with rxvlan %v: Warnings() = %q", on, e.Warnings())
		}
	}
}

// tagged puts an 802.1Q tag into a frame.
func tagged(frame []byte, id byte) []byte {
	b := append(append([]byte{}, frame[:12]...), 0x81, 0, 0, id)
	return append(b, frame[12:]...)
}

// A host with an address of its own on the interface goes on beside an endpoint
// with another hardware address, and only then.
func TestShareOthers(t *testing.T) {
	for _, mode := range []Mode{ModeCopy, ModeGeneric} {
		t.Run(mode.String(), func(t *testing.T) {
			p := newPair(t, 1)
			const hostV4 = "10.9.0.3"
			p.near.AddAddress("veth0", hostV4+"/24")
			host := p.near.HardwareAddress("veth0")
			e := p.open(Options{Mode: mode, Share: ShareOthers})
			own := net.HardwareAddr{2, 0, 0, 0, 0, 9}
			e.SetLinkAddress(tcpip.LinkAddress(own))
			r := newRecorder()
			e.Attach(r)
			// The host hears no ARP: frames for groups are the endpoint's.
			p.peer.Run("ip", "neigh", "replace", hostV4, "lladdr", host.String(), "dev", "veth1")
			p.near.Run("ip", "neigh", "replace", peerV4, "lladdr", p.peer.HardwareAddress("veth1").String(), "dev", "veth0")
			reach := func() error { return p.peer.Ping(hostV4, 1) }
			if err := reach(); err != nil {
				t.Errorf("the host: %v", err)
			}
			fd := rawSocket(t, p.peer, "veth1")
			peer := p.peer.HardwareAddress("veth1")
			for _, dst := range []net.HardwareAddr{own, {1, 0, 0x5e, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
				if _, err := unix.Write(fd, etherFrame(dst, peer, dst.String())); err != nil {
					t.Fatal(err)
				}
				r.await(t, dst.String(), func(b []byte) bool { return strings.HasSuffix(string(b), dst.String()) })
			}
			for range 2 {
				if err := e.SetPromiscuous(true); err != nil {
					t.Fatal(err)
				}
				if p.reached(hostV4) {
					t.Error("the host is reached while the endpoint takes everything")
				}
				if err := e.SetPromiscuous(false); err != nil {
					t.Fatal(err)
				}
				if err := reach(); err != nil {
					t.Errorf("the host, after the endpoint gave it back: %v", err)
				}
			}
			if err := e.AddLinkAddress(tcpip.LinkAddress(host)); err != nil {
				t.Fatal(err)
			}
			if p.reached(hostV4) {
				t.Error("the host is reached while its address is the endpoint's")
			}
			if err := e.RemoveLinkAddress(tcpip.LinkAddress(host)); err != nil {
				t.Fatal(err)
			}
			if err := reach(); err != nil {
				t.Errorf("the host, after its address was given back: %v", err)
			}
		})
	}
}

// reached reports whether an address answers the peer within a while.
func (p *pair) reached(address string) bool {
	_, err := p.peer.TryRun("ping", "-n", "-c", "1", "-W", "0.2", address)
	return err == nil
}

// With ShareNone nothing reaches the host.
func TestShareNone(t *testing.T) {
	p := newPair(t, 1)
	p.near.AddAddress("veth0", "10.9.0.3/24")
	p.peer.Run("ip", "neigh", "replace", "10.9.0.3", "lladdr", p.near.HardwareAddress("veth0").String(), "dev", "veth1")
	e := p.open(Options{})
	if p.reached("10.9.0.3") {
		t.Error("the host is reached while the endpoint is open")
	}
	e.Close()
	eventually(t, "the host to be reached again", func() bool { return p.reached("10.9.0.3") })
}

// Frames that cannot be sent are refused by themselves, and the rest go.
func TestInvalidFrames(t *testing.T) {
	p := newPair(t, 1)
	e := p.open(Options{})
	e.Attach(newRecorder())
	fd := rawSocket(t, p.peer, "veth1")
	peer, near := p.peer.HardwareAddress("veth1"), p.near.HardwareAddress("veth0")
	long := etherFrame(peer, near, strings.Repeat("x", 1600))
	longest := etherFrame(peer, near, strings.Repeat("y", 1500))
	n, err := write(e, etherFrame(peer, near, "first"), long, longest, etherFrame(peer, near, "last"))
	if _, ok := err.(*tcpip.ErrMessageTooLong); n != 3 || !ok {
		t.Errorf("WritePackets = %d, %v, want 3 and that one is too long", n, err)
	}
	readFrame(t, fd, "first")
	readFrame(t, fd, "yyyy")
	readFrame(t, fd, "last")
	if st := e.Stats(); st.TXDroppedInvalid != 1 || st.TXPackets != 3 {
		t.Errorf("Stats() = %+v, want one invalid frame and 3 sent", st)
	}
}

// A packet's partial checksum is completed on its way out.
func TestSendPartialChecksum(t *testing.T) {
	p := newPair(t, 1)
	e := p.open(Options{})
	fd := rawSocket(t, p.peer, "veth1")
	b := etherFrame(p.peer.HardwareAddress("veth1"), p.near.HardwareAddress("veth0"), "\x12\x34....some words to be summed up")
	pkt := packetOf(b)
	defer pkt.DecRef()
	pkt.GSOOptions = stack.GSO{NeedsCsum: true, L3HdrLen: 2, CsumOffset: 2}
	var list stack.PacketBufferList
	list.PushBack(pkt)
	if n, err := e.WritePackets(list); n != 1 || err != nil {
		t.Fatalf("WritePackets = %d, %v", n, err)
	}
	got := readFrame(t, fd, "some words to be summed up")
	sum := uint32(binary.BigEndian.Uint16([]byte("..")))
	for s := got[16:]; len(s) > 0; s = s[min(2, len(s)):] {
		w := uint32(s[0]) << 8
		if len(s) > 1 {
			w |= uint32(s[1])
		}
		sum += w
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	// The sum's place had two dots, which are in the sum.
	if sum != 0xffff {
		t.Errorf("the sum over frame %x is %#x, want 0xffff", got, sum)
	}
}

// An interface with a greater MTU than a place holds says so, and carries what
// it can.
func TestGreatMTU(t *testing.T) {
	p := newPair(t, 1)
	p.near.SetMTU("veth0", 9000)
	p.peer.SetMTU("veth1", 9000)
	e := p.open(Options{})
	if least, greatest := e.MTURange(); least != 68 || greatest != MaxMTU || e.MTU() != MaxMTU {
		t.Errorf("MTURange() = %d, %d, MTU() = %d, want 68, %d", least, greatest, e.MTU(), MaxMTU)
	}
	info, warnings := e.Info(), strings.Join(e.Warnings(), "\n")
	if info.Mode != ModeGeneric || !strings.Contains(info.Reason, "takes no XDP program") {
		t.Errorf("Info() = %+v, want generic mode with its reason", info)
	}
	for _, want := range []string{"generic mode", "mtu 3818"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("Warnings() = %q, want them to say %q", warnings, want)
		}
	}
	r := newRecorder()
	e.Attach(r)
	fd := rawSocket(t, p.peer, "veth1")
	peer, near := p.peer.HardwareAddress("veth1"), p.near.HardwareAddress("veth0")
	for _, size := range []int{4000, MaxMTU, 1} {
		if _, err := unix.Write(fd, etherFrame(near, peer, strings.Repeat("z", size))); err != nil {
			t.Fatal(err)
		}
	}
	r.await(t, "the longest frame", func(b []byte) bool { return len(b) == 14+MaxMTU })
	if e.SetMTU(9000); e.MTU() != MaxMTU {
		t.Errorf("MTU() = %d after SetMTU(9000), want %d", e.MTU(), MaxMTU)
	}
	if e.SetMTU(1400); e.MTU() != 1400 {
		t.Errorf("MTU() = %d after SetMTU(1400)", e.MTU())
	}
	eventually(t, "the long frame to be counted", func() bool { return e.Stats().RXDroppedKernel > 0 })
}

// Neither way allocates, beyond what netstack's pools do.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := newPair(t, 1)
	e := p.open(Options{PollInterval: -1})
	b := etherFrame(p.peer.HardwareAddress("veth1"), p.near.HardwareAddress("veth0"), strings.Repeat("a", 1000))
	pkt := packetOf(b)
	defer pkt.DecRef()
	var list stack.PacketBufferList
	list.PushBack(pkt)
	if n := testing.AllocsPerRun(1000, func() { e.WritePackets(list) }); n != 0 {
		t.Errorf("WritePackets allocates %v times", n)
	}
	rx := newReceiver(e, &socket{})
	filter := e.filter.State()
	frame := etherFrame(p.near.HardwareAddress("veth0"), p.peer.HardwareAddress("veth1"), strings.Repeat("a", 1000))
	var c batchCounts
	own := testing.AllocsPerRun(1000, func() { rx.take(frame, filter, &c).DecRef() })
	netstack := testing.AllocsPerRun(1000, func() {
		stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)}).DecRef()
	})
	if own > netstack {
		t.Errorf("a received frame takes %v allocations, of which netstack's are %v", own, netstack)
	}
}
