package linktest_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/header/parse"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
)

// Frames written down by hand, with checksums worked out by a separate program.
func TestFrameBytes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{
			name:  "udp4",
			frame: linktest.Flow4(0).UDP([]byte("hi")),
			want: "020000020000" + "020000010000" + "0800" +
				"4500001e00004000401126cd0a0100000a020000" +
				"04000050000a" + "7f1e" + "6869",
		},
		{
			name:  "arp request",
			frame: linktest.Flow4(1).ARPRequest(),
			want: "ffffffffffff" + "020000010001" + "0806" +
				"0001080006040001" + "020000010001" + "0a010001" + "000000000000" + "0a020001",
		},
		{
			name:  "arp reply",
			frame: linktest.Flow4(1).ARPReply(),
			want: "020000020001" + "020000010001" + "0806" +
				"0001080006040002" + "020000010001" + "0a010001" + "020000020001" + "0a020001",
		},
		{
			name:  "vlan",
			frame: linktest.VLAN(linktest.Ethernet("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", 0x88b5, []byte{7}), 0x88a8, 0x6064),
			want:  "020000000001" + "020000000002" + "88a8" + "6064" + "88b5" + "07",
		},
	} {
		if got := hex.EncodeToString(tt.frame); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// A receiver's own verification finds every checksum right.
func TestFrameChecksums(t *testing.T) {
	for n := range 300 {
		for _, f := range []linktest.Flow{linktest.Flow4(n), linktest.Flow6(n), linktest.Flow4(n).Reverse()} {
			payload := bytes.Repeat([]byte{byte(n), 0xfe}, n)[:n]
			verify(t, f.UDP(payload))
			verify(t, f.TCP(linktest.Segment{Seq: uint32(n), Payload: payload, Options: []byte{1, 1, 1, 0}}))
		}
	}
}

func verify(t *testing.T, frame []byte) {
	t.Helper()
	p := linktest.Packet(frame)
	defer p.DecRef()
	net := p.Network()
	size := uint16(p.Data().Size())
	if ip, ok := net.(header.IPv4); ok && !ip.IsChecksumValid() {
		t.Errorf("IPv4 checksum of %x is wrong", frame)
	}
	sum := p.Data().Checksum()
	ok := false
	switch p.TransportProtocolNumber {
	case header.UDPProtocolNumber:
		ok = header.UDP(p.TransportHeader().Slice()).IsChecksumValid(net.SourceAddress(), net.DestinationAddress(), sum)
	case header.TCPProtocolNumber:
		ok = header.TCP(p.TransportHeader().Slice()).IsChecksumValid(net.SourceAddress(), net.DestinationAddress(), sum, size)
	}
	if !ok {
		t.Errorf("transport checksum of %x is wrong", frame)
	}
}

// A UDP checksum that comes out as zero is sent as 0xffff.
func TestUDPChecksumNeverZero(t *testing.T) {
	f := linktest.Flow4(0)
	for i := range 1 << 16 {
		u := linktest.UDP(f.Src, f.Dst, []byte{byte(i >> 8), byte(i)})
		if header.UDP(u).Checksum() == 0 {
			t.Fatalf("payload %04x has checksum 0", i)
		}
	}
}

func TestPacketPushesHeaders(t *testing.T) {
	frame := linktest.Flow6(3).TCP(linktest.Segment{Payload: []byte("abc")})
	p := linktest.Packet(frame)
	defer p.DecRef()
	if got := []int{len(p.LinkHeader().Slice()), len(p.NetworkHeader().Slice()), len(p.TransportHeader().Slice()), p.Data().Size()}; [4]int(got) != [4]int{14, 40, 20, 3} {
		t.Errorf("sizes of link, network, transport, data = %v, want 14, 40, 20, 3", got)
	}
	if p.NetworkProtocolNumber != header.IPv6ProtocolNumber || p.TransportProtocolNumber != header.TCPProtocolNumber {
		t.Errorf("protocols = %d, %d", p.NetworkProtocolNumber, p.TransportProtocolNumber)
	}
	if got := p.EgressRoute.RemoteLinkAddress; got != linktest.Flow6(3).DstMAC {
		t.Errorf("RemoteLinkAddress = %v", got)
	}
	v := p.ToView()
	defer v.Release()
	if !bytes.Equal(v.AsSlice(), frame) {
		t.Errorf("packet is %x, frame was %x", v.AsSlice(), frame)
	}
}

// A GSO packet's checksum is that of the pseudo header; completed, it is that of
// the frame.
func TestGSOPacket(t *testing.T) {
	for _, f := range []linktest.Flow{linktest.Flow4(1), linktest.Flow6(1)} {
		frame := f.TCP(linktest.Segment{Payload: bytes.Repeat([]byte{5}, 40000)})
		want := linktest.Packet(frame)
		p := linktest.GSOPacket(frame, 1448)
		if p.GSOOptions.Type == stack.GSONone || !p.GSOOptions.NeedsCsum || p.GSOOptions.MSS != 1448 {
			t.Errorf("GSOOptions = %+v", p.GSOOptions)
		}
		tcp := header.TCP(p.TransportHeader().Slice())
		sum := ^checksum.Checksum(tcp, p.Data().Checksum())
		if right := header.TCP(want.TransportHeader().Slice()).Checksum(); sum != right {
			t.Errorf("completed checksum = %#x, want %#x", sum, right)
		}
		p.DecRef()
		want.DecRef()
	}
}

// FuzzPacket: any bytes make a packet with the same bytes, and its headers are
// those that gVisor's own parser finds.
func FuzzPacket(f *testing.F) {
	for _, frame := range [][]byte{
		nil, {1}, make([]byte, 13), make([]byte, 14),
		linktest.Flow4(0).UDP([]byte("x")), linktest.Flow6(0).TCP(linktest.Segment{}), linktest.Flow4(0).ARPRequest(),
		linktest.Flow4(0).TCP(linktest.Segment{})[:40], linktest.VLAN(linktest.Flow4(0).UDP(nil), 0x8100, 5),
	} {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		p := linktest.Packet(frame)
		defer p.DecRef()
		v := p.ToView()
		defer v.Release()
		if !bytes.Equal(v.AsSlice(), frame) {
			t.Errorf("packet is %x, frame was %x", v.AsSlice(), frame)
		}
		n := len(p.NetworkHeader().Slice())
		if p.NetworkProtocolNumber != header.IPv4ProtocolNumber || n == 0 {
			return
		}
		in := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame[14:])})
		defer in.DecRef()
		if parse.IPv4(in) && len(in.NetworkHeader().Slice()) != n {
			t.Errorf("network header of %x has %d bytes, gVisor finds %d", frame, n, len(in.NetworkHeader().Slice()))
		}
	})
}
