package dedup

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var seed = maphash.MakeSeed()

// frame makes a received frame, spread over views of the given sizes, with its
// link header consumed.
func frame(b []byte, cuts ...int) *stack.PacketBuffer {
	var all buffer.Buffer
	at := 0
	for _, n := range append(cuts, len(b)) {
		n = min(n, len(b)-at)
		one := buffer.MakeWithView(buffer.NewViewWithData(b[at : at+n]))
		all.Merge(&one)
		at += n
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: all})
	if len(b) >= 14 {
		pkt.LinkHeader().Consume(14)
	}
	return pkt
}

// keyOf returns the key of a whole frame.
func keyOf(b []byte, cuts ...int) uint64 {
	pkt := frame(b, cuts...)
	defer pkt.DecRef()
	return Key(seed, b[:min(14, len(b))], pkt)
}

// ethernet puts a link header before a packet.
func ethernet(typ uint16, packet []byte) []byte {
	b := []byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x00\x00")
	binary.BigEndian.PutUint16(b[12:], typ)
	return append(b, packet...)
}

// ip4 makes an IPv4 packet with words of options.
func ip4(proto byte, words int, payload []byte) []byte {
	b := make([]byte, 20+4*words)
	b[0], b[8], b[9] = 0x45+byte(words), 64, proto
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(payload)))
	return append(b, payload...)
}

// ip6 makes an IPv6 packet.
func ip6(next byte, payload []byte) []byte {
	b := make([]byte, 40)
	b[0], b[6], b[7] = 0x60, next, 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	return append(b, payload...)
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// samples are frames of all kinds, with payloads of n bytes.
func samples(r *rand.Rand, n int) map[string][]byte {
	tcp := randomBytes(r, 32+n)
	first, later := ip4(6, 0, tcp), ip4(6, 0, tcp)
	first[6], later[7] = 0x20, 9
	return map[string][]byte{
		"tcp4":         ethernet(0x0800, ip4(6, 0, tcp)),
		"tcp4 options": ethernet(0x0800, ip4(6, 10, tcp)),
		"first part":   ethernet(0x0800, first),
		"later part":   ethernet(0x0800, later),
		"udp4":         ethernet(0x0800, ip4(17, 0, randomBytes(r, 8+n))),
		"icmp4":        ethernet(0x0800, ip4(1, 0, randomBytes(r, 8+n))),
		"tcp6":         ethernet(0x86dd, ip6(6, tcp)),
		"udp6":         ethernet(0x86dd, ip6(17, randomBytes(r, 8+n))),
		"extension":    ethernet(0x86dd, ip6(60, tcp)),
		"arp":          ethernet(0x0806, append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, randomBytes(r, 20)...)),
		"vlan":         ethernet(0x8100, append([]byte{0, 5, 8, 0}, ip4(6, 0, tcp)...)),
		"other":        ethernet(0x88cc, randomBytes(r, 50+n)),
	}
}

// TestKeyIgnoresViews spreads frames over views at random.
func TestKeyIgnoresViews(t *testing.T) {
	r := linktest.NewRand(t)
	for range 50 {
		for name, b := range samples(r, r.IntN(3000)) {
			want := keyOf(b)
			for range 5 {
				if got := keyOf(b, 1+r.IntN(200), 1+r.IntN(200), 1+r.IntN(2000)); got != want {
					t.Errorf("%s: key %#x in several views, %#x in one", name, got, want)
				}
			}
		}
	}
}

// TestKeyCovers changes each byte of a frame.
func TestKeyCovers(t *testing.T) {
	r := linktest.NewRand(t)
	const payload = 300
	for name, b := range samples(r, payload) {
		// The TCP checksum and what is behind the first 128 bytes of a TCP
		// packet may change.
		sum, end := -1, len(b)
		switch name {
		case "tcp4":
			sum, end = 14+20+16, 14+128
		case "tcp4 options":
			sum, end = 14+60+16, 14+128
		case "tcp6":
			sum, end = 14+40+16, 14+128
		}
		want := keyOf(b)
		for i := range b {
			c := bytes.Clone(b)
			c[i] ^= 1 << r.IntN(8)
			free := i >= end || sum > 0 && (i == sum || i == sum+1)
			if got := keyOf(c) == want; got != free {
				t.Errorf("%s: byte %d changed: same key %v, want %v", name, i, got, free)
			}
		}
	}
}

// TestKeyLength has frames that differ in length only, and padding.
func TestKeyLength(t *testing.T) {
	zeros := make([]byte, 400)
	seen := map[uint64]string{}
	note := func(name string, key uint64) {
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key] = name
	}
	for n := 150; n < 160; n++ {
		short := ethernet(0x0800, ip4(6, 0, zeros[:n]))
		note("tcp", keyOf(short))
		note("udp", keyOf(ethernet(0x0800, ip4(17, 0, zeros[:n]))))
		note("other", keyOf(ethernet(0x1234, zeros[:n])))
		copy(short[14+2:], "\x00\x00") // no length that could be believed
		note("tcp without length", keyOf(short))
	}
	for name, b := range samples(linktest.NewRand(t), 3) {
		if name == "other" || name == "vlan" {
			continue
		}
		if keyOf(b) != keyOf(append(bytes.Clone(b), 0, 1, 2, 3, 4, 5)) {
			t.Errorf("%s: padding counts", name)
		}
	}
}

// TestKeySeed has keys depend on the seed and on the link header.
func TestKeySeed(t *testing.T) {
	b := ethernet(0x0800, ip4(6, 0, make([]byte, 20)))
	pkt := frame(b)
	defer pkt.DecRef()
	table := New(Options{Seed: seed})
	if table.Key(b[:14], pkt) != keyOf(b) {
		t.Error("a table with the same seed has another key")
	}
	if New(Options{}).Key(b[:14], pkt) == keyOf(b) {
		t.Error("a table with a random seed has the same key")
	}
	if Key(seed, nil, pkt) == keyOf(b) {
		t.Error("no link header: same key")
	}
}

// TestKeyLeavesPacket checks that a packet whose views are shared is not
// touched.
func TestKeyLeavesPacket(t *testing.T) {
	for name, b := range samples(linktest.NewRand(t), 200) {
		pkt := frame(b, 20, 7)
		other := pkt.Clone()
		before := pkt.AsSlices()
		Key(seed, b[:14], pkt)
		after := pkt.AsSlices()
		for i := range after {
			if len(before) != len(after) || &before[i][0] != &after[i][0] {
				t.Errorf("%s: view %d was replaced", name, i)
			}
		}
		other.DecRef()
		pkt.DecRef()
	}
}

// FuzzKey takes any bytes as a frame. Its key must not depend on the views.
func FuzzKey(f *testing.F) {
	for _, b := range samples(rand.New(rand.NewPCG(1, 1)), 50) {
		f.Add(b, uint8(9), uint8(30))
	}
	f.Fuzz(func(t *testing.T, b []byte, x, y uint8) {
		if keyOf(b) != keyOf(b, int(x), int(y)) {
			t.Fatalf("key depends on views of %d and %d bytes", x, y)
		}
	})
}
