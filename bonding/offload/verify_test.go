package offload_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"bondstack/bonding/offload"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// datagram describes a received TCP or UDP packet.
type datagram struct {
	v6        bool
	udp       bool
	ipOptions int     // words of IPv4 options
	ext       []uint8 // types of the IPv6 extension headers
	payload   []byte
	pad       int // bytes behind the IP packet
}

func (d *datagram) proto() tcpip.NetworkProtocolNumber {
	s := spec{v6: d.v6}
	return s.proto()
}

// transportAt is where the transport header starts, from the IP header on.
func (d *datagram) transportAt() int {
	if !d.v6 {
		return header.IPv4MinimumSize + 4*d.ipOptions
	}
	at := header.IPv6MinimumSize
	for _, typ := range d.ext {
		at += len(extension(typ, 0))
	}
	return at
}

// extension makes an IPv6 extension header.
func extension(typ, next uint8) []byte {
	switch header.IPv6ExtensionHeaderIdentifier(typ) {
	case header.IPv6RoutingExtHdrIdentifier:
		// Type 99, no segments left.
		b := make([]byte, 24)
		copy(b, []byte{next, 2, 99, 0})
		return b
	case header.IPv6FragmentExtHdrIdentifier:
		return []byte{next, 0, 0, 0, 1, 2, 3, 4}
	case header.IPv6ExperimentExtHdrIdentifier:
		return []byte{next, 0, 1, 2, 0, 0, 0, 0}
	default:
		return []byte{next, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	}
}

// build returns the packet, from the IP header on, with right checksums.
func (d *datagram) build() []byte {
	s := spec{v6: d.v6}
	src, dst := s.addrs()
	at := d.transportAt()
	number, size := header.TCPProtocolNumber, header.TCPMinimumSize+12
	if d.udp {
		number, size = header.UDPProtocolNumber, header.UDPMinimumSize
	}
	b := make([]byte, at+size, at+size+len(d.payload)+d.pad)
	b = append(b, d.payload...)
	if d.v6 {
		header.IPv6(b).Encode(&header.IPv6Fields{
			PayloadLength: uint16(len(b) - 40), TransportProtocol: number, HopLimit: 64, SrcAddr: src, DstAddr: dst,
		})
		next, x := &b[6], b[40:]
		for _, typ := range d.ext {
			n := copy(x, extension(typ, uint8(number)))
			*next, next, x = typ, &x[0], x[n:]
		}
	} else {
		for i := header.IPv4MinimumSize; i < at; i++ {
			b[i] = 1
		}
		ip := header.IPv4(b)
		ip.Encode(&header.IPv4Fields{TotalLength: uint16(len(b)), ID: 7, TTL: 64, Protocol: uint8(number), SrcAddr: src, DstAddr: dst})
		ip.SetHeaderLength(uint8(at))
		ip.SetChecksum(^ip.CalculateChecksum())
	}
	sum := header.PseudoHeaderChecksum(number, src, dst, uint16(len(b)-at))
	if d.udp {
		u := header.UDP(b[at:])
		u.Encode(&header.UDPFields{SrcPort: 5, DstPort: 6, Length: uint16(len(b) - at)})
		u.SetChecksum(^plusSum(sum, b[at:]))
		if u.Checksum() == 0 {
			u.SetChecksum(0xffff)
		}
	} else {
		h := header.TCP(b[at:])
		h.Encode(&header.TCPFields{SrcPort: 5, DstPort: 6, SeqNum: 7, AckNum: 8, DataOffset: uint8(size), Flags: header.TCPFlagAck})
		h[header.TCPMinimumSize], h[header.TCPMinimumSize+1] = 1, 1
		copy(h[header.TCPMinimumSize+2:], []byte{8, 10})
		h.SetChecksum(^plusSum(sum, b[at:]))
	}
	for range d.pad {
		b = append(b, 0xee)
	}
	return b
}

func plusSum(sum uint16, b []byte) uint16 {
	return plainSum([]byte{byte(sum >> 8), byte(sum)}, b)
}

func randomDatagram(r *rand.Rand, payload int) datagram {
	d := datagram{v6: r.IntN(2) == 0, udp: r.IntN(2) == 0, payload: randomBytes(r, payload)}
	if !d.v6 {
		d.ipOptions = r.IntN(11)
		if r.IntN(2) == 0 {
			d.pad = r.IntN(40)
		}
		return d
	}
	if r.IntN(2) == 0 {
		d.ext = append(d.ext, 0) // hop-by-hop options come first
	}
	for range r.IntN(4) {
		d.ext = append(d.ext, []uint8{43, 44, 60, 253}[r.IntN(4)])
	}
	// netstack counts padding as payload when there are extension headers.
	if len(d.ext) == 0 && r.IntN(2) == 0 {
		d.pad = r.IntN(40)
	}
	return d
}

// verify asks Verify about a packet that lies behind an Ethernet header, and
// checks that the packet stays as it is.
func verify(t *testing.T, proto tcpip.NetworkProtocolNumber, packet []byte, cuts []int) offload.Verdict {
	t.Helper()
	frame := append(make([]byte, 14), packet...)
	if cuts == nil {
		cuts = []int{len(packet)}
	}
	pkt := inbound(frame, append([]int{14}, cuts...), 14)
	defer pkt.DecRef()
	other := pkt.Clone() // so that any pulling up would copy
	defer other.DecRef()
	var v offload.Verdict
	borrowed(t, pkt, func() { v = offload.Verify(proto, pkt) })
	return v
}

// TestVerifyAgainstNetstack damages half of the packets and asks netstack.
func TestVerifyAgainstNetstack(t *testing.T) {
	r := linktest.NewRand(t)
	j := newJudge(t)
	good, bad := 0, 0
	for range 1500 {
		d := randomDatagram(r, r.IntN(1+r.IntN(65000)))
		b := d.build()
		damage(r, &d, b)
		want := offload.Bad
		if j.accepts(d.proto(), b) {
			want = offload.Good
			good++
		} else {
			bad++
		}
		if got := verify(t, d.proto(), b, randomCuts(r, len(b))); got != want {
			t.Fatalf("%+v: verdict %d, netstack has %d, packet %x", d, got, want, b)
		}
	}
	if good < 400 || bad < 400 {
		t.Errorf("%d good and %d bad packets: too few of one", good, bad)
	}
}

// damage changes one or two bytes, in half of all cases, where netstack
// notices nothing but a wrong checksum.
func damage(r *rand.Rand, d *datagram, b []byte) {
	if r.IntN(2) == 0 {
		return
	}
	at := d.transportAt()
	end := len(b) - d.pad
	for range 1 + r.IntN(2) {
		switch i := r.IntN(5); {
		case i == 0 && !d.v6:
			b[[]int{1, 4, 8, 10, 11}[r.IntN(5)]] ^= byte(1 + r.IntN(255))
		case i == 1 && d.udp:
			b[at+6+r.IntN(2)] ^= byte(1 + r.IntN(255))
		case i == 1:
			b[at+4+r.IntN(8)] ^= byte(1 + r.IntN(255))
		case i == 2 && d.pad > 0: // which changes nothing
			b[end+r.IntN(d.pad)] ^= 0xff
		case end > at+40:
			b[at+32+r.IntN(end-at-32)] ^= byte(1 + r.IntN(255))
		}
	}
}

// TestVerifyViews cuts one packet at each place, once and twice.
func TestVerifyViews(t *testing.T) {
	r := linktest.NewRand(t)
	for _, d := range []datagram{
		{payload: randomBytes(r, 21), ipOptions: 1, pad: 3},
		{payload: randomBytes(r, 20), udp: true},
		{payload: randomBytes(r, 20), v6: true, ext: []uint8{0, 60}},
		{payload: randomBytes(r, 21), v6: true, udp: true, ext: []uint8{43}},
	} {
		b := d.build()
		wrong := bytes.Clone(b)
		wrong[d.transportAt()+4]++
		for i := 1; i < len(b)-1; i++ {
			j := 1 + r.IntN(len(b)-i-1)
			for _, cuts := range [][]int{{i, len(b) - i}, {i, j, len(b) - i - j}} {
				if got := verify(t, d.proto(), b, cuts); got != offload.Good {
					t.Fatalf("%+v in views of %v: verdict %d, want good", d, cuts, got)
				}
				if got := verify(t, d.proto(), wrong, cuts); got != offload.Bad && !d.udp {
					t.Fatalf("%+v, damaged, in views of %v: verdict %d, want bad", d, cuts, got)
				}
			}
		}
	}
}

// TestVerifyUnchecked has the packets whose checksums do not count.
func TestVerifyUnchecked(t *testing.T) {
	r := linktest.NewRand(t)
	tcp4 := datagram{payload: randomBytes(r, 100)}
	udp4 := datagram{payload: randomBytes(r, 100), udp: true}
	tcp6 := datagram{payload: randomBytes(r, 100), v6: true}
	udp6 := datagram{payload: randomBytes(r, 100), v6: true, udp: true}
	routed := datagram{payload: randomBytes(r, 100), v6: true, ext: []uint8{43}}
	fragmented := datagram{payload: randomBytes(r, 100), v6: true, ext: []uint8{44}}
	chained := datagram{payload: randomBytes(r, 100), v6: true, ext: bytes.Repeat([]uint8{60}, 15)}
	tooChained := datagram{payload: randomBytes(r, 100), v6: true, ext: bytes.Repeat([]uint8{60}, 16)}
	fix := func(b []byte) {
		binary.BigEndian.PutUint16(b[10:], 0)
		binary.BigEndian.PutUint16(b[10:], ^plainSum(b[:20]))
	}
	for _, c := range []struct {
		name   string
		d      datagram
		change func(b []byte) []byte
		want   offload.Verdict
	}{
		{"tcp4", tcp4, func(b []byte) []byte { return b }, offload.Good},
		{"tcp4 cut short", tcp4, func(b []byte) []byte { return b[:len(b)-1] }, offload.Unchecked},
		{"tcp4 more fragments", tcp4, func(b []byte) []byte { b[6], b[60] = 0x20, 1; fix(b); return b }, offload.Unchecked},
		{"tcp4 later fragment", tcp4, func(b []byte) []byte { b[7], b[60] = 1, 1; fix(b); return b }, offload.Unchecked},
		{"tcp4 fragment, bad header", tcp4, func(b []byte) []byte { b[6] = 0x20; return b }, offload.Bad},
		{"icmp", tcp4, func(b []byte) []byte { b[9] = 1; fix(b); return b }, offload.Unchecked},
		{"icmp, bad header", tcp4, func(b []byte) []byte { b[9] = 1; return b }, offload.Bad},
		{"version", tcp4, func(b []byte) []byte { b[0] = 0x65; fix(b); return b }, offload.Unchecked},
		{"short IHL", tcp4, func(b []byte) []byte { b[0] = 0x44; return b }, offload.Unchecked},
		{"long IHL", tcp4, func(b []byte) []byte { b[0], b[2], b[3] = 0x4f, 0, 59; return b }, offload.Unchecked},
		{"tcp4 of 19 bytes", tcp4, func(b []byte) []byte { b[2], b[3] = 0, 39; fix(b); return b }, offload.Unchecked},
		{"udp4 of 7 bytes", udp4, func(b []byte) []byte { b[2], b[3] = 0, 27; fix(b); return b }, offload.Unchecked},
		{"udp4 no checksum", udp4, func(b []byte) []byte { b[26], b[27], b[50] = 0, 0, 1; return b }, offload.Unchecked},
		{"udp4 length 7", udp4, func(b []byte) []byte { b[24], b[25] = 0, 7; return b }, offload.Unchecked},
		{"udp4 length too long", udp4, func(b []byte) []byte { b[25]++; return b }, offload.Unchecked},
		{"udp6 no checksum", udp6, func(b []byte) []byte { b[46], b[47] = 0, 0; return b }, offload.Bad},
		{"tcp6", tcp6, func(b []byte) []byte { return b }, offload.Good},
		{"tcp6 cut short", tcp6, func(b []byte) []byte { return b[:len(b)-1] }, offload.Unchecked},
		{"tcp6 version", tcp6, func(b []byte) []byte { b[0] = 0x40; return b }, offload.Unchecked},
		{"tcp6 jumbo", tcp6, func(b []byte) []byte { b[4], b[5] = 0, 0; return b }, offload.Unchecked},
		{"icmp6", tcp6, func(b []byte) []byte { b[6] = 58; return b }, offload.Unchecked},
		{"no next header", tcp6, func(b []byte) []byte { b[6] = 59; return b }, offload.Unchecked},
		{"routed", routed, func(b []byte) []byte { return b }, offload.Good},
		{"route to go", routed, func(b []byte) []byte { b[43] = 1; return b }, offload.Unchecked},
		{"extension beyond the packet", routed, func(b []byte) []byte { b[41] = 200; return b }, offload.Unchecked},
		{"extension cut off", routed, func(b []byte) []byte { b[4], b[5] = 0, 5; return b[:45] }, offload.Unchecked},
		{"extension beyond the length", routed, func(b []byte) []byte { b[4], b[5] = 0, 8; return b }, offload.Unchecked},
		{"atomic fragment", fragmented, func(b []byte) []byte { return b }, offload.Good},
		{"first fragment", fragmented, func(b []byte) []byte { b[43] = 1; return b }, offload.Unchecked},
		{"later fragment", fragmented, func(b []byte) []byte { b[42] = 1; return b }, offload.Unchecked},
		{"15 extensions", chained, func(b []byte) []byte { return b }, offload.Good},
		{"16 extensions", tooChained, func(b []byte) []byte { return b }, offload.Unchecked},
	} {
		b := c.change(c.d.build())
		if got := verify(t, c.d.proto(), b, nil); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
	}
	for _, proto := range []tcpip.NetworkProtocolNumber{header.ARPProtocolNumber, 0x8100, 0} {
		if got := verify(t, proto, tcp4.build(), nil); got != offload.Unchecked {
			t.Errorf("ethertype %#x: verdict %d, want unchecked", proto, got)
		}
	}
}

// TestVerifyShort has all packets of 0 to 64 bytes, of zeros and of the start
// of a right packet.
func TestVerifyShort(t *testing.T) {
	r := linktest.NewRand(t)
	for _, d := range []datagram{
		{payload: randomBytes(r, 100)}, {payload: randomBytes(r, 100), v6: true, ext: []uint8{0, 43, 60}},
	} {
		for n := range 65 {
			if got := verify(t, d.proto(), make([]byte, n), nil); got != offload.Unchecked {
				t.Errorf("%d zeros: verdict %d, want unchecked", n, got)
			}
			if got := verify(t, d.proto(), d.build()[:n], nil); got != offload.Unchecked {
				t.Errorf("first %d bytes: verdict %d, want unchecked", n, got)
			}
		}
	}
}

// TestVerifyUDPTrailer has a datagram that ends before its IP packet does: the
// rest is not summed.
func TestVerifyUDPTrailer(t *testing.T) {
	d := datagram{udp: true, payload: []byte("abc")}
	b := append(d.build(), 1, 2, 3)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[10:], 0)
	binary.BigEndian.PutUint16(b[10:], ^plainSum(b[:20]))
	if got := verify(t, d.proto(), b, nil); got != offload.Good {
		t.Errorf("verdict %d, want good", got)
	}
	if j := newJudge(t); !j.accepts(d.proto(), b) {
		t.Error("netstack rejects it")
	}
}

// TestVerifyTagged has the same verdict behind any number of tags, cut anywhere.
func TestVerifyTagged(t *testing.T) {
	r := linktest.NewRand(t)
	for _, d := range []datagram{
		{payload: randomBytes(r, 21), pad: 3},
		{payload: randomBytes(r, 20), v6: true, udp: true},
	} {
		b := d.build()
		wrong := bytes.Clone(b)
		wrong[d.transportAt()+9] ^= 1 // TCP's acknowledgement number, UDP's payload
		var tags []byte               // as they lie behind the first protocol
		for n := 1; n <= 32; n++ {
			front := append(bytes.Clone(tags), 0xe0, byte(n), byte(d.proto()>>8), byte(d.proto()))
			for i := 1; i < len(front)+20; i++ {
				cuts := []int{i, len(front) + len(b) - i}
				if got := verify(t, 0x8100, append(bytes.Clone(front), b...), cuts); got != offload.Good {
					t.Fatalf("%d tags, cut at %d: verdict %d, want good", n, i, got)
				}
				if got := verify(t, 0x88a8, append(bytes.Clone(front), wrong...), cuts); got != offload.Bad {
					t.Fatalf("%d tags, damaged, cut at %d: verdict %d, want bad", n, i, got)
				}
			}
			tags = append(tags, 0, 0, 0x81, 0)
		}
		for _, data := range [][]byte{nil, {0, 1, 8}, {0, 1, 8, 6}, append(tags, append([]byte{0, 1, 8, 0}, b...)...)} {
			if got := verify(t, 0x8100, data, nil); got != offload.Unchecked {
				t.Errorf("%d bytes: verdict %d, want unchecked", len(data), got)
			}
		}
	}
}
