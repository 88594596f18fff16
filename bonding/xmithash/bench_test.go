package xmithash

import "testing"

func benchFrames() map[string][]byte {
	tcp := ip4(6, 0x4000, append(ports(40000, 80), make([]byte, 1400)...))
	return map[string][]byte{
		"ip4-tcp":        ether(tcp),
		"ip6-tcp":        ether(ip6(6, append(ports(40000, 80), make([]byte, 1400)...))),
		"vlan-ip4-tcp":   ether(tcp, tag(0x8100, 100)),
		"ip4-in-ip4-tcp": ether(ip4(4, 0, tcp.data)),
		"arp":            ether(arp(src4, dst4)),
	}
}

// BenchmarkHash hashes one frame of each kind by each policy, as the data path
// does: by the function that was looked up once.
func BenchmarkHash(b *testing.B) {
	frames := benchFrames()
	for p := range Policy(len(names)) {
		b.Run(p.String(), func(b *testing.B) {
			hash := p.Func(VLAN)
			for _, kind := range []string{"ip4-tcp", "ip6-tcp", "vlan-ip4-tcp", "ip4-in-ip4-tcp", "arp"} {
				frame := frames[kind]
				b.Run(kind, func(b *testing.B) {
					b.ReportAllocs()
					var sum uint32
					for b.Loop() {
						s, _ := hash(frame, len(frame))
						sum ^= s
					}
					sink = sum
				})
			}
		})
	}
}

var sink uint32

func TestAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for kind, frame := range benchFrames() {
		for p := range Policy(len(names)) {
			for _, via := range []Via{VLAN, Raw} {
				hash := p.Func(via)
				if n := testing.AllocsPerRun(100, func() { sink, _ = hash(frame, len(frame)) }); n != 0 {
					t.Errorf("%v, %v, %s: %v allocations, want 0", p, via, kind, n)
				}
			}
		}
	}
}
