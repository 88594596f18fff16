package xmithash

import (
	"math/rand/v2"
	"testing"
)

func choose(p Policy, frame []byte, slaves int) int {
	sum, _ := p.Func(VLAN)(frame, len(frame))
	return int(sum % uint32(slaves))
}

// TestSpread sends 1000 random flows between two hosts over two slaves: each
// gets 40 to 60 %, and a flow's frames all take one.
func TestSpread(t *testing.T) {
	outer, inner := tag(0x88a8, 7), tag(0x8100, 8)
	tests := []struct {
		name string
		v6   bool
		tags [][]byte
	}{
		{"IPv4", false, nil},
		{"IPv6", true, nil},
		{"tagged IPv4", false, [][]byte{inner}},
		{"tagged IPv6", true, [][]byte{inner}},
		{"double-tagged IPv4", false, [][]byte{outer, inner}},
		{"double-tagged IPv6", true, [][]byte{outer, inner}},
	}
	for _, p := range []Policy{Layer34, Encap34} {
		for _, tt := range tests {
			r := rand.New(rand.NewPCG(1, 2))
			var slaves [2]int
			for range 1000 {
				src, dst := flowAddrs(r, tt.v6)
				hdr := ports(1+r.IntN(65535), 1+r.IntN(65535))
				first := choose(p, flowFrame(src, dst, hdr, 100, tt.tags), 2)
				slaves[first]++
				for range 3 {
					f := flowFrame(src, dst, hdr, r.IntN(1400), tt.tags)
					if got := choose(p, f, 2); got != first {
						t.Fatalf("%v, %s: a flow took slaves %d and %d", p, tt.name, first, got)
					}
				}
			}
			if slaves[0] < 400 || slaves[0] > 600 {
				t.Errorf("%v, %s: 1000 flows over 2 slaves: %v, want 400 to 600 each", p, tt.name, slaves)
			}
		}
	}
}

func flowAddrs(r *rand.Rand, v6 bool) (src, dst []byte) {
	n := 4
	src, dst = append([]byte{}, src4...), append([]byte{}, dst4...)
	if v6 {
		n = 16
		src, dst = append([]byte{}, src6...), append([]byte{}, dst6...)
	}
	src[n-1], dst[n-1] = byte(r.Uint32()), byte(r.Uint32())
	src[n-2], dst[n-2] = byte(r.Uint32()), byte(r.Uint32())
	return src, dst
}

func flowFrame(src, dst, hdr []byte, size int, tags [][]byte) []byte {
	data := append(append([]byte{}, hdr...), make([]byte, size)...)
	if len(src) == 4 {
		return ether(ip4Between(src, dst, 6, 0x4000, data), tags...)
	}
	return ether(ip6Between(src, dst, 6, data), tags...)
}

// TestFragments sends every fragment of a datagram: the first, which holds the
// ports, takes the slave of the others.
func TestFragments(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var slaves [2]int
	for range 1000 {
		src, dst := flowAddrs(r, false)
		hdr := ports(r.IntN(65536), r.IntN(65536))
		for _, p := range []Policy{Layer23, Layer34, Encap23, Encap34} {
			first := choose(p, ether(ip4Between(src, dst, 17, 0x2000, hdr)), 2)
			middle := choose(p, ether(ip4Between(src, dst, 17, 0x2000|185, ports(r.IntN(65536), 0))), 2)
			last := choose(p, ether(ip4Between(src, dst, 17, 370, ports(r.IntN(65536), 0))), 2)
			if first != middle || first != last {
				t.Fatalf("%v: a datagram's fragments took slaves %d, %d, %d", p, first, middle, last)
			}
			if p == Layer34 {
				slaves[first]++
			}
		}
	}
	if slaves[0] < 400 || slaves[0] > 600 {
		t.Errorf("fragments of 1000 flows over 2 slaves: %v, want 400 to 600 each", slaves)
	}
}

// TestToggles has the split cases of DPDK's bonding tests (T131, T133, T134):
// of two frames that differ in one thing, each takes its own of two slaves, or
// both the same.
func TestToggles(t *testing.T) {
	dstMAC2 := []byte{0x02, 0, 0, 0, 0, 0xab}
	next4, next6 := addr("10.0.0.6"), addr("2001:db8:1::6")
	vlan := tag(0x8100, 100)
	v4, v6 := ip4(17, 0, ports(1024, 1024)), ip6(17, ports(1024, 1024))
	port4, port6 := ip4(17, 0, ports(1024, 1026)), ip6(17, ports(1024, 1026))
	tests := []struct {
		name   string
		policy Policy
		a, b   []byte
		split  bool
	}{
		{"MAC", Layer2, ether(v4), etherBetween(dstMAC2, srcMAC1, v4), true},
		{"MAC, VLAN", Layer2, ether(v4, vlan), etherBetween(dstMAC2, srcMAC1, v4, vlan), true},
		{"port", Layer2, ether(v4), ether(port4), false},
		{"MAC", Layer23, ether(v4), etherBetween(dstMAC2, srcMAC1, v4), true},
		{"MAC, VLAN", Layer23, ether(v4, vlan), etherBetween(dstMAC2, srcMAC1, v4, vlan), true},
		{"MAC, IPv6", Layer23, ether(v6), etherBetween(dstMAC2, srcMAC1, v6), true},
		{"MAC, VLAN IPv6", Layer23, ether(v6, vlan), etherBetween(dstMAC2, srcMAC1, v6, vlan), true},
		{"address", Layer23, ether(v4), ether(ip4Between(src4, next4, 17, 0, ports(1024, 1024))), true},
		{"address, VLAN", Layer23, ether(v4, vlan), ether(ip4Between(src4, next4, 17, 0, ports(1024, 1024)), vlan), true},
		{"address, IPv6", Layer23, ether(v6), ether(ip6Between(src6, next6, 17, ports(1024, 1024))), true},
		{"address, VLAN IPv6", Layer23, ether(v6, vlan), ether(ip6Between(src6, next6, 17, ports(1024, 1024)), vlan), true},
		{"port", Layer23, ether(v4), ether(port4), false},
		{"MAC", Layer34, ether(v4), etherBetween(dstMAC2, srcMAC1, v4), false},
		{"port", Layer34, ether(v4), ether(port4), true},
		{"port, VLAN", Layer34, ether(v4, vlan), ether(port4, vlan), true},
		{"port, IPv6", Layer34, ether(v6), ether(port6), true},
		{"port, VLAN IPv6", Layer34, ether(v6, vlan), ether(port6, vlan), true},
		{"address", Layer34, ether(v4), ether(ip4Between(src4, next4, 17, 0, ports(1024, 1024))), true},
		{"address, VLAN", Layer34, ether(v4, vlan), ether(ip4Between(src4, next4, 17, 0, ports(1024, 1024)), vlan), true},
		{"address, IPv6", Layer34, ether(v6), ether(ip6Between(src6, next6, 17, ports(1024, 1024))), true},
	}
	for _, tt := range tests {
		a, b := choose(tt.policy, tt.a, 2), choose(tt.policy, tt.b, 2)
		if split := a != b; split != tt.split {
			t.Errorf("%v, %s: slaves %d and %d, want split %v", tt.policy, tt.name, a, b, tt.split)
		}
	}
}
