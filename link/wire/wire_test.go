package wire_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/wire"
)

func TestDelivers(t *testing.T) {
	linktest.CheckGoroutines(t)
	a, b := newWire(t, wire.Options{B: wire.EndOptions{Address: linktest.Flow4(0).DstMAC}})
	var sink linktest.Sink
	b.Attach(&sink)
	frames := [][]byte{
		linktest.Flow4(0).UDP([]byte("x")),
		linktest.Flow4(0).ARPRequest(),
		linktest.Flow6(0).TCP(linktest.Segment{Payload: make([]byte, 1400)}),
		make([]byte, 14),
		linktest.Ethernet("\x01\x00\x5e\x00\x00\x01", "\x02\x00\x00\x00\x00\x01", 0x88b5, make([]byte, 1500)),
	}
	frames[3][0] = 1
	if n, err := linktest.Write(a, frames...); n != 5 || err != nil {
		t.Fatalf("WritePackets() = %d, %v", n, err)
	}
	got := sink.Await(t, 5)
	protocols := []tcpip.NetworkProtocolNumber{0x0800, 0x0806, 0x86dd, 0, 0x88b5}
	types := []tcpip.PacketType{tcpip.PacketHost, tcpip.PacketBroadcast, tcpip.PacketHost, tcpip.PacketMulticast, tcpip.PacketMulticast}
	for i, d := range got {
		if !bytes.Equal(d.Frame, frames[i]) || d.Protocol != protocols[i] || d.PktType != types[i] || d.LinkHeader != 14 || !d.RXChecksumValidated {
			t.Errorf("frame %d: delivered %+v, want protocol %#x, type %v, %x", i, d, protocols[i], types[i], frames[i])
		}
	}
	b.Close() // so that the counters are final
	want := uint64(len(slices.Concat(frames...)))
	if s := a.Stats(); s.TxFrames != 5 || s.TxBytes != want || s.Tx != (wire.TxDrops{}) {
		t.Errorf("sender's Stats() = %+v, want 5 frames, %d bytes", s, want)
	}
	if s := b.Stats(); s.RxFrames != 5 || s.RxBytes != want || s.Rx != (wire.RxDrops{}) {
		t.Errorf("receiver's Stats() = %+v, want 5 frames, %d bytes", s, want)
	}
}

// Neither side sees what the other writes into its headers.
func TestHeadersAreOwn(t *testing.T) {
	x := newBench(t, wire.Options{})
	frame := linktest.Flow4(0).TCP(linktest.Segment{Payload: bytes.Repeat([]byte{7}, 1000)})
	p := linktest.Packet(frame)
	defer p.DecRef()
	var kept *stack.PacketBuffer
	x.sink.OnDeliver(func(_ tcpip.NetworkProtocolNumber, in *stack.PacketBuffer) { kept = in.IncRef() })
	var list stack.PacketBufferList
	list.PushBack(p)
	if n, err := x.a.WritePackets(list); n != 1 || err != nil {
		t.Fatalf("WritePackets() = %d, %v", n, err)
	}
	defer kept.DecRef()
	clear(p.LinkHeader().Slice())
	clear(p.NetworkHeader().Slice())
	clear(p.TransportHeader().Slice())
	v := kept.ToView()
	if !bytes.Equal(v.AsSlice(), frame) {
		t.Error("the receiver sees what the sender wrote later")
	}
	v.Release()
	h, _ := kept.Data().PullUp(20 + 20)
	clear(h)
	for i, c := range slices.Concat(p.NetworkHeader().Slice(), p.TransportHeader().Slice()) {
		if c != 0 {
			t.Fatalf("byte %d of the sender's headers is %d", i, c)
		}
	}
	if got := p.Data().AsRange().ToSlice(); !bytes.Equal(got, bytes.Repeat([]byte{7}, 1000)) {
		t.Error("the sender's payload has changed")
	}
}

func TestShortFrames(t *testing.T) {
	x := newBench(t, wire.Options{})
	for n := range 64 {
		x.write(t, make([]byte, n))
	}
	if got := len(x.sink.Delivered()); got != 64-14 {
		t.Errorf("%d frames delivered, want %d", got, 64-14)
	}
	if s := x.a.Stats(); s.Tx.Short != 14 || s.TxFrames != 50 {
		t.Errorf("Stats() = %+v, want 14 short, 50 sent", s)
	}
}

// Frames keep their order around one that is dropped for a fault of its own, and
// the count of frames taken is right when the queue is full behind it.
func TestBadFrameAmongGood(t *testing.T) {
	x := newBench(t, wire.Options{})
	x.write(t, frame(1), nil, frame(2), make([]byte, 1515), frame(3))
	if got := numbers(x.sink.Delivered()); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("delivered %v, want 1, 2, 3", got)
	}
	if s := x.a.Stats().Tx; s.Short != 1 || s.Oversize != 1 {
		t.Errorf("drops = %+v", s)
	}
}

func TestMTU(t *testing.T) {
	x := newBench(t, wire.Options{MTU: 1000})
	ether := func(n int) []byte {
		return linktest.Ethernet("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", 0x88b5, make([]byte, n))
	}
	double := func(n int) []byte { return linktest.VLAN(linktest.VLAN(ether(n), 0x8100, 1), 0x88a8, 1) }
	x.write(t, ether(1000), linktest.VLAN(ether(1000), 0x8100, 1), linktest.VLAN(ether(1000), 0x88a8, 1), double(1000))
	if n := len(x.sink.Drain()); n != 4 {
		t.Errorf("%d of 4 frames of the MTU delivered", n)
	}
	x.write(t, ether(1001), linktest.VLAN(ether(1001), 0x8100, 1), ether(1004), double(1001), linktest.VLAN(double(1000), 0x8100, 1))
	if n := x.a.Stats().Tx.Oversize; n != 5 || len(x.sink.Drain()) != 0 {
		t.Errorf("%d oversize frames dropped, want 5", n)
	}
	x.a.SetMTU(2000)
	x.write(t, ether(1001))
	if n := x.b.Stats().Rx.Oversize; n != 1 || len(x.sink.Drain()) != 0 {
		t.Errorf("%d frames dropped by the receiver, want 1", n)
	}
	x.b.SetMTU(2000)
	x.write(t, ether(2000))
	if n := len(x.sink.Drain()); n != 1 {
		t.Error("frame of the new MTU not delivered")
	}
	for _, mtu := range []uint32{0, 67, 65522, 1 << 31} {
		if x.a.SetMTU(mtu); x.a.MTU() != 2000 {
			t.Errorf("SetMTU(%d) was not ignored", mtu)
		}
	}
	for _, mtu := range []uint32{68, 65521} {
		if x.a.SetMTU(mtu); x.a.MTU() != mtu {
			t.Errorf("SetMTU(%d) was ignored", mtu)
		}
	}
	if least, greatest := x.a.MTURange(); least != 68 || greatest != 65521 {
		t.Errorf("MTURange() = %d, %d", least, greatest)
	}
}

func TestGSO(t *testing.T) {
	big := linktest.Flow4(0).TCP(linktest.Segment{Payload: make([]byte, 65000)})
	for _, tt := range []struct {
		opts   wire.Options
		offers bool
	}{
		{wire.Options{}, true},
		{wire.Options{DisableGSO: true}, false},
		{wire.Options{A: wire.EndOptions{DisableGSO: true}}, false},
		{wire.Options{B: wire.EndOptions{DisableGSO: true}}, false},
	} {
		x := newBench(t, tt.opts)
		for _, e := range []*wire.Endpoint{x.a, x.b} {
			if got := e.SupportedGSO() == stack.HostGSOSupported; got != tt.offers || (e.GSOMaxSize() == 65536) != tt.offers {
				t.Errorf("%+v: SupportedGSO() = %v, GSOMaxSize() = %d", tt.opts, e.SupportedGSO(), e.GSOMaxSize())
			}
		}
		var list stack.PacketBufferList
		p := linktest.GSOPacket(big, 1448)
		list.PushBack(p)
		if n, err := x.a.WritePackets(list); n != 1 || err != nil {
			t.Errorf("WritePackets() = %d, %v", n, err)
		}
		p.DecRef()
		got := x.sink.Delivered()
		if (len(got) == 1) != tt.offers {
			t.Errorf("%+v: %d delivered", tt.opts, len(got))
		}
		if tt.offers && (len(got[0].Frame) != len(big) || got[0].GSO.MSS != 1448 || !got[0].GSO.NeedsCsum) {
			t.Errorf("delivered %d bytes, %+v", len(got[0].Frame), got[0].GSO)
		}
		if n := x.a.Stats().Tx.Oversize; (n == 1) == tt.offers {
			t.Errorf("%d oversize", n)
		}
	}
}

func TestEndpointFacts(t *testing.T) {
	a, b := newWire(t, wire.Options{A: wire.EndOptions{Address: "\x02\x00\x00\x00\x00\x0a"}})
	if a.MaxHeaderLength() != 14 || a.ARPHardwareType() != header.ARPHardwareEther || a.MTU() != 1500 {
		t.Errorf("MaxHeaderLength, ARPHardwareType, MTU = %d, %d, %d", a.MaxHeaderLength(), a.ARPHardwareType(), a.MTU())
	}
	if got, want := a.Capabilities(), stack.CapabilityResolutionRequired|stack.CapabilityRXChecksumOffload; got != want {
		t.Errorf("Capabilities() = %#x, want %#x", got, want)
	}
	if a.LinkAddress() != "\x02\x00\x00\x00\x00\x0a" {
		t.Errorf("LinkAddress() = %v", a.LinkAddress())
	}
	if r := b.LinkAddress(); len(r) != 6 || r[0]&3 != 2 {
		t.Errorf("random LinkAddress() = %v, want six bytes, local, unicast", r)
	}
	a.Wait() // must not block before Close
	var _ link.StateEndpoint = a
}

func TestAddHeader(t *testing.T) {
	a, _ := newWire(t, wire.Options{})
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: 14})
	defer p.DecRef()
	p.EgressRoute.RemoteLinkAddress = "\x02\x00\x00\x00\x00\x01"
	p.EgressRoute.LocalLinkAddress = "\x02\x00\x00\x00\x00\x02"
	p.NetworkProtocolNumber = header.IPv6ProtocolNumber
	a.SetLinkAddress("\x02\x00\x00\x00\x00\x03")
	a.AddHeader(p)
	if got, want := p.LinkHeader().Slice(), []byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x03\x86\xdd"); !bytes.Equal(got, want) {
		t.Errorf("header = %x, want %x", got, want)
	}
}

func TestParseHeader(t *testing.T) {
	a, _ := newWire(t, wire.Options{})
	for _, n := range []int{0, 13, 14, 15} {
		p := rawPacket(make([]byte, n))
		if got := a.ParseHeader(p); got != (n >= 14) {
			t.Errorf("ParseHeader() of %d bytes = %v", n, got)
		}
		p.DecRef()
	}
}

func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		opts wire.Options
		want string
	}{
		{wire.Options{MTU: 67}, "mtu is 67, allowed is 68 to 65521"},
		{wire.Options{MTU: 65522}, "mtu is 65522"},
		{wire.Options{QueueFrames: -1}, "queue frames is -1"},
		{wire.Options{QueueBytes: -2}, "queue bytes is -2"},
		{wire.Options{Speed: 10, Duplex: 7}, "duplex is 7"},
		{wire.Options{A: wire.EndOptions{Address: "abc"}}, "address of end a is 616263"},
		{wire.Options{B: wire.EndOptions{Address: "\x01bcdef"}}, "address of end b"},
		{wire.Options{B: wire.EndOptions{Address: "\x00\x00\x00\x00\x00\x00"}}, "address of end b"},
		{wire.Options{B: wire.EndOptions{Impairments: wire.Impairments{Loss: 1.5}}}, "end b: wire: loss is 1.5, allowed is 0 to 1"},
		{wire.Options{MTU: 1, QueueFrames: -1}, "queue frames is -1"},
	} {
		a, b, err := wire.New(tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) || a != nil || b != nil {
			t.Errorf("New(%+v) = %v, want an error with %q", tt.opts, err, tt.want)
		}
	}
}
