package wire_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// lan is a synchronous switch with a sink at each port, which lets everything
// through.
type lan struct {
	*wire.Switch
	clock *faketime.ManualClock
	sinks []*linktest.Sink
}

func newLAN(t *testing.T, opts wire.SwitchOptions) *lan {
	t.Helper()
	l := &lan{clock: faketime.NewManualClock()}
	opts.Wire.Synchronous = true
	opts.Wire.Clock = l.clock
	opts.Wire.A.Promiscuous = true
	sw, err := wire.NewSwitch(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sw.Close)
	l.Switch = sw
	for i := range opts.Ports {
		l.sinks = append(l.sinks, &linktest.Sink{})
		sw.Port(i).Attach(l.sinks[i])
	}
	return l
}

// station returns the MAC address of station n.
func station(n int) tcpip.LinkAddress {
	return tcpip.LinkAddress([]byte{2, 0, 0, 0, byte(n >> 8), byte(n)})
}

// send sends a frame by a port and returns the ports that it came out of.
func (l *lan) send(t *testing.T, port int, dst, src tcpip.LinkAddress) []int {
	t.Helper()
	f := linktest.Ethernet(dst, src, 0x88b5, []byte("hello"))
	if n, err := linktest.Write(l.Port(port), f); n != 1 || err != nil {
		t.Fatalf("write at port %d = %d, %v", port, n, err)
	}
	var out []int
	for i, s := range l.sinks {
		for _, d := range s.Drain() {
			if !bytes.Equal(d.Frame, f) {
				t.Errorf("port %d: %x came out, want %x", i, d.Frame, f)
			}
			out = append(out, i)
		}
	}
	return out
}

func (l *lan) want(t *testing.T, what string, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: came out of ports %v, want %v", what, got, want)
	}
}

func (l *lan) wantAt(t *testing.T, addr tcpip.LinkAddress, port int) {
	t.Helper()
	got, ok := l.Lookup(addr)
	if ok != (port >= 0) || ok && got != port {
		t.Errorf("Lookup(%v) = %d, %v, want port %d", addr, got, ok, port)
	}
}

func TestSwitchLearns(t *testing.T) {
	l := newLAN(t, wire.SwitchOptions{Ports: 4})
	const broadcast = tcpip.LinkAddress("\xff\xff\xff\xff\xff\xff")
	l.want(t, "unknown", l.send(t, 0, station(1), station(0)), []int{1, 2, 3})
	l.wantAt(t, station(0), 0)
	l.wantAt(t, station(1), -1)
	l.want(t, "known", l.send(t, 1, station(0), station(1)), []int{0})
	l.want(t, "learned from the answer", l.send(t, 0, station(1), station(0)), []int{1})
	l.want(t, "broadcast", l.send(t, 2, broadcast, station(2)), []int{0, 1, 3})
	l.want(t, "multicast", l.send(t, 2, "\x01\x00\x5e\x00\x00\x01", station(2)), []int{0, 1, 3})
	l.want(t, "same port", l.send(t, 2, station(2), station(22)), nil)
	l.want(t, "lacp", l.send(t, 2, "\x01\x80\xc2\x00\x00\x02", station(2)), nil)
	l.want(t, "beyond the reserved", l.send(t, 2, "\x01\x80\xc2\x00\x00\x10", station(2)), []int{0, 1, 3})

	// A station moves, as when a bond fails over to its other link.
	l.want(t, "moved", l.send(t, 3, broadcast, station(0)), []int{0, 1, 2})
	l.wantAt(t, station(0), 3)
	l.want(t, "to where it moved", l.send(t, 1, station(0), station(1)), []int{3})

	// A source that is a group address is nobody's.
	l.send(t, 0, station(1), broadcast)
	l.wantAt(t, broadcast, -1)
	l.wantAt(t, "abc", -1)

	if s, want := l.Stats(), (wire.SwitchStats{Addresses: 4, Learned: 4, Moved: 1}); s != want {
		t.Errorf("Stats() = %+v, want %+v", s, want)
	}
	p := l.PortStats(2)
	p.Cable = wire.Stats{}
	if want := (wire.PortStats{Flooded: 3, SamePort: 1, Reserved: 1}); p != want {
		t.Errorf("PortStats(2) = %+v, want %+v", p, want)
	}
	if p := l.PortStats(0); p.Forwarded != 2 || p.Cable.RxFrames != 3 || p.Cable.TxFrames != 5 {
		t.Errorf("PortStats(0) = %+v", p)
	}
}

// A port that loses carrier is forgotten, and not flooded to.
func TestSwitchForgetsDeadPort(t *testing.T) {
	l := newLAN(t, wire.SwitchOptions{Ports: 3})
	for _, down := range []struct {
		name string
		set  func(bool)
	}{{"carrier", l.Port(1).SetCarrier}, {"device down", l.Port(1).SetUp}, {"port down", l.Far(1).SetUp}} {
		l.send(t, 1, station(9), station(1))
		l.send(t, 2, station(9), station(2))
		l.wantAt(t, station(1), 1)
		down.set(false)
		l.wantAt(t, station(1), -1)
		l.wantAt(t, station(2), 2)
		l.want(t, down.name, l.send(t, 0, station(1), station(0)), []int{2})
		down.set(true)
		l.want(t, down.name+" over", l.send(t, 0, station(1), station(0)), []int{1, 2})
	}
	if s := l.Stats(); s.Flushed != 3 {
		t.Errorf("Stats() = %+v, want 3 flushed", s)
	}
	if n := l.PortStats(1).Cable.Tx.NoCarrier; n != 0 {
		t.Errorf("%d frames were sent to a dead port", n)
	}
}

func TestSwitchTableIsBounded(t *testing.T) {
	l := newLAN(t, wire.SwitchOptions{Ports: 3, TableSize: 10})
	for i := range 15 {
		l.send(t, 1, station(100), station(i))
	}
	if s := l.Stats(); s.Addresses != 10 || s.TableFull != 5 {
		t.Errorf("Stats() = %+v, want 10 addresses, 5 times full", s)
	}
	l.want(t, "known", l.send(t, 0, station(9), station(100)), []int{1})
	l.want(t, "no room", l.send(t, 0, station(10), station(100)), []int{1, 2})
	l.send(t, 2, station(100), station(9)) // those known can still move
	l.wantAt(t, station(9), 2)
}

func TestSwitchAges(t *testing.T) {
	l := newLAN(t, wire.SwitchOptions{Ports: 3, TableSize: 2, Ageing: 5 * time.Minute})
	l.send(t, 1, station(9), station(1))
	l.send(t, 2, station(9), station(2))
	l.clock.Advance(4 * time.Minute)
	l.send(t, 2, station(9), station(2))
	l.clock.Advance(time.Minute)
	l.wantAt(t, station(1), -1)
	l.wantAt(t, station(2), 2)
	l.want(t, "aged", l.send(t, 0, station(1), station(0)), []int{1, 2})
	l.wantAt(t, station(0), 0) // took the place of the one that was too old
	l.clock.Advance(5 * time.Minute)
	l.send(t, 1, station(0), station(2))
	l.wantAt(t, station(2), 1)
	if s, want := l.Stats(), (wire.SwitchStats{Addresses: 2, Learned: 4, Aged: 2}); s != want {
		t.Errorf("Stats() = %+v, want %+v", s, want)
	}
}

// Headers that one receiver of a flooded frame writes into are not another's.
func TestSwitchFloodsCopies(t *testing.T) {
	l := newLAN(t, wire.SwitchOptions{Ports: 4})
	for _, s := range l.sinks {
		s.OnDeliver(func(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
			clear(p.LinkHeader().Slice())
			b, _ := p.Data().PullUp(5)
			clear(b)
		})
	}
	l.want(t, "flooded", l.send(t, 0, station(1), station(0)), []int{1, 2, 3})
}

func TestSwitchPassesGSOWhole(t *testing.T) {
	for _, f := range []linktest.Flow{linktest.Flow4(1), linktest.Flow6(1)} {
		l := newLAN(t, wire.SwitchOptions{Ports: 2})
		big := f.TCP(linktest.Segment{Payload: make([]byte, 65000)})
		p := linktest.GSOPacket(big, 1448)
		var list stack.PacketBufferList
		list.PushBack(p)
		if n, err := l.Port(0).WritePackets(list); n != 1 || err != nil {
			t.Errorf("WritePackets() = %d, %v", n, err)
		}
		p.DecRef()
		got := l.sinks[1].Delivered()
		if len(got) != 1 || len(got[0].Frame) != len(big) || got[0].GSO.MSS != 1448 || !got[0].GSO.NeedsCsum {
			t.Fatalf("%d frames came out", len(got))
		}

		// When a port's cable corrupts, nobody behind the switch may trust
		// checksums any more, and none are left to be completed.
		if err := l.Port(0).SetImpairments(wire.Impairments{Corrupt: 1e-12}); err != nil {
			t.Fatal(err)
		}
		if l.Port(1).Capabilities()&stack.CapabilityRXChecksumOffload != 0 {
			t.Error("port 1 still vouches for checksums")
		}
		q := linktest.GSOPacket(big, 1448)
		list = stack.PacketBufferList{}
		list.PushBack(q)
		l.Port(0).WritePackets(list)
		q.DecRef()
		if d := l.sinks[1].Delivered()[1]; !bytes.Equal(d.Frame, big) || d.GSO.NeedsCsum || d.RXChecksumValidated {
			t.Error("the checksum was not completed")
		}
	}
}

// A frame longer than the device's MTU passes the switch and is dropped at the
// device.
func TestSwitchMTU(t *testing.T) {
	l := newLAN(t, wire.SwitchOptions{Ports: 2})
	l.Port(0).SetMTU(9000)
	linktest.Write(l.Port(0), linktest.Ethernet(station(1), station(0), 0x88b5, make([]byte, 9000)))
	if n := l.Port(1).Stats().Rx.Oversize; n != 1 {
		t.Errorf("Rx.Oversize = %d, want 1", n)
	}
	l.Port(1).SetMTU(9000)
	linktest.Write(l.Port(0), linktest.Ethernet(station(1), station(0), 0x88b5, make([]byte, 9000)))
	if n := len(l.sinks[1].Delivered()); n != 1 {
		t.Errorf("%d delivered, want 1", n)
	}
}

func TestSwitchBadOptions(t *testing.T) {
	for _, tt := range []struct {
		opts wire.SwitchOptions
		want string
	}{
		{wire.SwitchOptions{}, "ports is 0, allowed is 1 to 4095"},
		{wire.SwitchOptions{Ports: 5000}, "ports is 5000"},
		{wire.SwitchOptions{Ports: 1, TableSize: -1}, "table size is -1"},
		{wire.SwitchOptions{Ports: 1, Ageing: -1}, "ageing is -1ns"},
		{wire.SwitchOptions{Ports: 1, Wire: wire.Options{MTU: 1}}, "mtu is 1"},
		{wire.SwitchOptions{Ports: 1, Wire: wire.Options{A: wire.EndOptions{Address: station(1)}}}, "address of end a is set"},
	} {
		if sw, err := wire.NewSwitch(tt.opts); err == nil || sw != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewSwitch(%+v) = %v, want an error with %q", tt.opts, err, tt.want)
		}
	}
}

// Three netstacks talk through a switch, with goroutines and in real time; each
// sees only its own unicast frames.
func TestSwitchTCP(t *testing.T) {
	linktest.CheckGoroutines(t)
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sw.Close)
	var stacks []*stack.Stack
	for i := range 3 {
		stacks = append(stacks, newStack(t, sw.Port(i), byte(i+1)))
	}
	for i := range 3 {
		to := (i + 1) % 3
		client, server := connect(t, stacks[i], stacks[to], byte(to+1), 80)
		transfer(t, client, server, 8<<20)
	}
	for i := range 3 {
		if p, ok := sw.Lookup(sw.Port(i).LinkAddress()); !ok || p != i {
			t.Errorf("Lookup of the device at port %d = %d, %v", i, p, ok)
		}
		if n := sw.Port(i).Stats().Rx.Filtered; n > 20 {
			t.Errorf("port %d: %d frames for others", i, n)
		}
	}
}
