package packet

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"bondstack/link"
	"bondstack/link/internal/kernel"

	"github.com/vishvananda/netlink"
	"gvisor.dev/gvisor/pkg/tcpip"
)

func TestVLANTagIsKept(t *testing.T) { eachWay(t, testVLANTagIsKept) }

func testVLANTagIsKept(t *testing.T, o Options) {
	p := newPair(t)
	e := p.open(o)
	r, raw := attach(e), p.raw()
	for _, c := range []struct {
		name    string
		tag     []byte
		size    int
		pattern byte
	}{
		{"802.1Q", []byte{0x81, 0, 0x20, 7}, 64, 1},
		{"802.1ad", []byte{0x88, 0xa8, 0xe0, 9}, 64, 2},
		{"two tags", []byte{0x88, 0xa8, 0, 1, 0x81, 0, 0, 2}, 64, 3},
		{"shortest that the kernel passes", []byte{0x81, 0, 0, 5}, 2, 4},
		{"fills the first view", []byte{0x81, 0, 0, 5}, 106, 5},
		{"spills by one", []byte{0x81, 0, 0, 5}, 107, 6},
		{"full frame", []byte{0x81, 0, 0, 5}, 1500, 7},
	} {
		want := frame(own(e), string(bytes.Repeat([]byte{c.pattern}, c.size)))
		want = append(want[:12:12], append(c.tag, want[12:]...)...)
		raw.send(want)
		got := r.next(t)
		if !bytes.Equal(got.frame, want) {
			t.Errorf("%s: received %x, want %x", c.name, got.frame, want)
		}
		if protocol := tcpip.NetworkProtocolNumber(c.tag[0])<<8 | tcpip.NetworkProtocolNumber(c.tag[1]); got.protocol != protocol {
			t.Errorf("%s: protocol %#x, want %#x", c.name, got.protocol, protocol)
		}
	}
}

func TestOwnFramesAreNotHeard(t *testing.T) {
	for _, queues := range []int{1, 3} {
		t.Run(fmt.Sprint(queues, " queues"), func(t *testing.T) {
			p := newPair(t)
			e := p.open(Options{Queues: queues})
			r, raw := attach(e), p.raw()
			for i := range 20 {
				if n, err := write(e, frame(kernel.Broadcast, fmt.Sprint("mine ", i))); n != 1 || err != nil {
					t.Fatalf("WritePackets = %d, %v, want 1, nil", n, err)
				}
				raw.next()
				// Each comes back at once where it does.
				raw.send(frame(kernel.Broadcast, fmt.Sprint("theirs ", i)))
				got := r.next(t)
				if want := fmt.Sprint("theirs ", i); string(got.frame[14:]) != want {
					t.Fatalf("received %q, want %q", got.frame[14:], want)
				}
				if got.kind != tcpip.PacketBroadcast {
					t.Errorf("packet type %v, want broadcast", got.kind)
				}
			}
		})
	}
}

func TestAddressFilter(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	r, raw := attach(e), p.raw()
	other := kernel.MAC{2, 0, 0, 0, 0, 9}
	group := kernel.MAC{1, 0x80, 0xc2, 0, 0, 2}
	before := own(e)
	send := func(dst kernel.MAC) {
		raw.send(frame(dst, "probe"))
		raw.send(frame(kernel.Broadcast, "marker"))
	}
	passes := func(what string, dst kernel.MAC, kind tcpip.PacketType) {
		t.Helper()
		send(dst)
		got := r.next(t)
		if string(got.frame[14:]) != "probe" || got.kind != kind {
			t.Errorf("%s: received %q of type %v, want probe of type %v", what, got.frame[14:], got.kind, kind)
			return
		}
		r.next(t)
	}
	dropped := e.Stats().RXDroppedAddress
	drops := func(what string, dst kernel.MAC) {
		t.Helper()
		send(dst)
		if got := r.next(t); string(got.frame[14:]) != "marker" {
			t.Errorf("%s: received %q, want only the marker", what, got.frame[14:])
		}
		dropped++
		eventually(t, what+" is counted", func() bool { return e.Stats().RXDroppedAddress == dropped })
	}
	passes("own address", before, tcpip.PacketHost)
	passes("group address", group, tcpip.PacketMulticast)
	drops("another's address", other)

	e.AddLinkAddress(tcpip.LinkAddress(other[:]))
	passes("added address", other, tcpip.PacketHost)
	e.RemoveLinkAddress(tcpip.LinkAddress(other[:]))
	e.RemoveLinkAddress(tcpip.LinkAddress(other[:]))
	drops("removed address", other)

	e.SetPromiscuous(true)
	passes("promiscuous", other, tcpip.PacketOtherHost)
	e.SetPromiscuous(false)
	drops("promiscuous no more", other)

	e.SetLinkAddress(tcpip.LinkAddress(other[:]))
	passes("new own address", other, tcpip.PacketHost)
	drops("former own address", before)
	if hw := p.near.HardwareAddress("veth0"); !bytes.Equal(hw, before[:]) {
		t.Errorf("the interface's address is %v, want it left alone: %v", hw, net.HardwareAddr(before[:]))
	}
	e.SetLinkAddress(tcpip.LinkAddress(group[:]))
	e.SetLinkAddress("short")
	if e.LinkAddress() != tcpip.LinkAddress(other[:]) {
		t.Errorf("LinkAddress() = %s after bad ones were set, want %s", e.LinkAddress(), tcpip.LinkAddress(other[:]))
	}
	if err := e.AddLinkAddress("short"); err == nil || !strings.Contains(err.Error(), "veth0") {
		t.Errorf("AddLinkAddress(short) = %v, want an error that names the interface", err)
	}
}

func TestHardwareAddressIsSetAndRestored(t *testing.T) {
	p := newPair(t)
	before := p.near.HardwareAddress("veth0")
	e := p.open(Options{SetHardwareAddress: true})
	e.SetLinkAddress("\x02\x00\x00\x00\x00\x05")
	if got := p.near.HardwareAddress("veth0"); got.String() != "02:00:00:00:00:05" {
		t.Errorf("the interface's address is %v, want 02:00:00:00:00:05", got)
	}
	if w := e.Warnings(); len(w) != 0 {
		t.Errorf("Warnings() = %q, want none", w)
	}
	e.Close()
	if got := p.near.HardwareAddress("veth0"); !bytes.Equal(got, before) {
		t.Errorf("after Close the interface's address is %v, want %v", got, before)
	}
}

func TestPromiscuityEndsWithTheEndpoint(t *testing.T) {
	p := newPair(t)
	count := func() (n int) {
		p.near.Do(func() {
			l, err := netlink.LinkByName("veth0")
			if err != nil {
				t.Fatal(err)
			}
			n = l.Attrs().Promisc
		})
		return n
	}
	e := p.open(Options{Queues: 2})
	if n := count(); n != 1 {
		t.Errorf("while open: promiscuity %d, want 1", n)
	}
	e.Close()
	if n := count(); n != 0 {
		t.Errorf("after Close: promiscuity %d, want 0", n)
	}
}

// TestHostileFrames sends frames of every length and of random bytes; after
// each the endpoint still works.
func TestHostileFrames(t *testing.T) { eachWay(t, testHostileFrames) }

func testHostileFrames(t *testing.T, o Options) {
	p := newPair(t)
	e := p.open(o)
	r, raw := attach(e), p.raw()
	random := rand.New(rand.NewPCG(1, 2))
	protocols := []uint16{0, 0x26, 0x800, 0x86dd, 0x8100, 0x88a8, 0x806, 0x8809, 0xffff}
	for size := 14; size <= 64; size++ {
		for _, protocol := range protocols {
			payload := make([]byte, size-14)
			for i := range payload {
				payload[i] = byte(random.Uint32())
			}
			if len(payload) > 0 && protocol == 0x800 {
				payload[0] = 0x45
			}
			raw.send(etherFrame(own(e), protocol, payload))
		}
		raw.send(frame(own(e), "marker"))
		for string(r.next(t).frame[14:]) != "marker" {
		}
	}
	// The kernel itself drops frames with half a VLAN tag.
	s, want := e.Stats(), uint64(51*(len(protocols)+1-2))
	if total := s.RXPackets + s.RXDroppedChecksum + s.RXDroppedMalformed; total < want {
		t.Errorf("delivered and dropped %d frames, want at least %d: %+v", total, want, s)
	}
}

func TestMTU(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	attach(e)
	for _, c := range []struct{ set, want uint32 }{{1400, 1400}, {67, 1400}, {1501, 1400}, {68, 68}, {1500, 1500}} {
		if e.SetMTU(c.set); e.MTU() != c.want {
			t.Errorf("SetMTU(%d): MTU() = %d, want %d", c.set, e.MTU(), c.want)
		}
	}
	p.near.SetMTU("veth0", 1300)
	eventually(t, "the interface's MTU is taken over", func() bool { return e.MTU() == 1300 })
	if least, greatest := e.MTURange(); least != 68 || greatest != 1300 {
		t.Errorf("MTURange() = %d, %d, want 68, 1300", least, greatest)
	}
}

func TestRefusedFrames(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	raw := p.raw()
	good, long := frame(kernel.Broadcast, "good"), frame(kernel.Broadcast, strings.Repeat("x", 1600))

	n, err := write(e, good, long, good)
	if _, ok := err.(*tcpip.ErrMessageTooLong); n != 2 || !ok {
		t.Errorf("WritePackets with a frame too long = %d, %v, want 2, message too long", n, err)
	}
	raw.next()
	raw.next()
	n, err = write(e, []byte{1, 2, 3}, good)
	if _, ok := err.(*tcpip.ErrMalformedHeader); n != 1 || !ok {
		t.Errorf("WritePackets with half a header = %d, %v, want 1, malformed header", n, err)
	}
	raw.next()
	if s := e.Stats(); s.TXDroppedInvalid != 2 || s.TXPackets != 3 || s.TXBytes != 3*18 {
		t.Errorf("counters %+v, want 2 invalid, 3 sent of 54 bytes", s)
	}

	p.near.Down("veth0")
	if n, err := write(e, good, good); n != 0 || !link.Gone(err) {
		t.Errorf("WritePackets while down = %d, %v, want 0 and an error that says the link is gone", n, err)
	}
	e.Close()
	if n, err := write(e, good); n != 0 || !link.Gone(err) {
		t.Errorf("WritePackets after Close = %d, %v, want 0 and an error that says the link is gone", n, err)
	}
	if s := e.Stats(); s.TXRefusedDown != 3 {
		t.Errorf("refused while down %d, want 3", s.TXRefusedDown)
	}
}

// TestFullQueue sends faster than the interface may: what is not taken is told
// and counted, and a call does not wait for room.
func TestFullQueue(t *testing.T) {
	for name, o := range map[string]Options{
		"interface's queue": {},
		"send buffer":       {SendBuffer: 1}, // the kernel's least
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			limit := "20000"
			if o.SendBuffer != 0 {
				limit = "1000000"
			}
			p.near.Run("tc", "qdisc", "add", "dev", "veth0", "root", "tbf", "rate", "8kbit", "burst", "3000", "limit", limit)
			e := p.open(o)
			list := listOf(frame(kernel.Broadcast, strings.Repeat("x", 1000)), 100)
			defer list.Reset()
			n, err := e.WritePackets(list)
			if _, ok := err.(*tcpip.ErrNoBufferSpace); !ok || n == 0 || n == 100 {
				t.Fatalf("WritePackets of 100 frames = %d, %v, want some and no buffer space", n, err)
			}
			if s := e.Stats(); s.TXPackets != uint64(n) || s.TXDroppedNoBuffer != uint64(100-n) {
				t.Errorf("counters %+v, want %d sent and %d dropped", s, n, 100-n)
			}
			if !e.LinkState().Usable() {
				t.Error("the link is down for a full queue")
			}
		})
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	p := newPair(t)
	p.near.Do(func() {
		_, err := New("veth9", Options{})
		if !errors.Is(err, ErrNoInterface) || !strings.Contains(err.Error(), "veth9") {
			t.Errorf("New(veth9) = %v, want ErrNoInterface that names it", err)
		}
		for _, name := range []string{"", "a-name-of-16-byte"} {
			if _, err := New(name, Options{}); err == nil || !strings.Contains(err.Error(), "1 to 15") {
				t.Errorf("New(%q) = %v, want an error that says what is allowed", name, err)
			}
		}
		if _, err := New("lo", Options{}); err == nil || !strings.Contains(err.Error(), "ethernet") {
			t.Errorf("New(lo) = %v, want an error that says what is allowed", err)
		}
		if _, err := OpenFdbased("veth0", Options{Exclusive: true}); err == nil {
			t.Error("OpenFdbased with exclusive = nil, want an error")
		}
	})
}

func TestWarnings(t *testing.T) {
	p := newPair(t)
	e := p.open(Options{})
	if w := e.Warnings(); len(w) != 0 {
		t.Errorf("Warnings() = %q, want none", w)
	}
	p.near.Down("veth0")
	if w := e.Warnings(); len(w) != 1 || !strings.Contains(w[0], "ip link set dev veth0 up") {
		t.Errorf("Warnings() = %q of an interface that is down, want one that names the remedy", w)
	}
	p.near.Up("veth0")
	p.near.AddAddress("veth0", "10.9.0.7/24")
	w := e.Warnings()
	if len(w) != 1 || !strings.Contains(w[0], "10.9.0.7") || !strings.Contains(w[0], "veth0") || !strings.Contains(w[0], "exclusive") {
		t.Errorf("Warnings() = %q, want one that names address, interface and remedy", w)
	}
	i := e.Info()
	if i.Queues != 1 || i.Index == 0 || i.ReceiveBuffer < DefaultReceiveBuffer || i.SendBuffer < DefaultSendBuffer || i.Exclusive {
		t.Errorf("Info() = %+v, want one queue and the default buffers", i)
	}
}
