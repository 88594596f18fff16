package xmithash

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExplainVectors checks that the steps of an explanation lead to the sum
// that the data path has.
func TestExplainVectors(t *testing.T) {
	for _, v := range loadVectors(t) {
		for p := range Policy(len(names)) {
			e := Explain(p, v.via, v.frame, v.Slaves)
			want, _ := p.Func(v.via)(v.frame, len(v.frame))
			if last := e.Steps[len(e.Steps)-1].Value; e.Sum != want || last != want || e.Slave != int(want%uint32(v.Slaves)) {
				t.Fatalf("line %d: %v: sum %#x, slave %d, last step %#x, want %#x\n%v", v.line, p, e.Sum, e.Slave, last, want, e)
			}
		}
	}
}

func TestExplainText(t *testing.T) {
	tcp, echo := ip4(6, 0, ports(40000, 80)), ip6(58, icmpEcho(128, 0, 0))
	tests := []struct {
		name   string
		policy Policy
		via    Via
		frame  []byte
		want   string
	}{
		{"TCP", Layer34, VLAN, ether(tcp, tag(0x8100, 5<<13|100)), `
policy layer3+4, via vlan
the tag 0x8100 is beside the frame: TCI 0xa064 (priority 5, DEI 0, VLAN 100)
X = source port 40000, destination port 80 at byte 38, their first byte lowest = 0x5000409c
source = 192.168.1.10, its first byte lowest = 0xa01a8c0
destination = 10.0.0.5, its first byte lowest = 0x500000a
h ^= source ^ destination = 0x5f01e856
h ^= h >> 16 = 0x5f01b757
h ^= h >> 8 = 0x5f5eb6e0
h >>= 1 = 0x2faf5b70
slave = 0x2faf5b70 mod 3 = 2
`},
		{"echo", Layer34, VLAN, ether(echo), `
policy layer3+4, via vlan
X = ICMP type 128 | code 0 << 8 | identifier 0x0001 << 16, at byte 54 = 0x10080
source = the four words of 2001:db8::10, XORed = 0xa80d0120
destination = the four words of 2001:db8:1::5, XORed = 0xbd0d0020
h ^= source ^ destination = 0x15010180
h ^= h >> 16 = 0x15011481
h ^= h >> 8 = 0x15141595
h >>= 1 = 0xa8a0aca
slave = 0xa8a0aca mod 3 = 0
`},
		{"tag inside", Layer23, Raw, ether(tcp, tag(0x8100, 100)), `
policy layer2+3, via raw
the tag 0x8100 is inside the frame, as its EtherType
no IP flow behind EtherType 0x8100 at byte 18: the layer-2 hash is taken
L2 = destination MAC[5] 0xaa ^ source MAC[5] 0x55 ^ EtherType 0x8100 = 0x81ff
slave = 0x81ff mod 3 = 0
`},
		{"source MAC", VLANSrcMAC, VLAN, ether(tcp, tag(0x8100, 100)), `
policy vlan+srcmac, via vlan
the tag 0x8100 is beside the frame: TCI 0x0064 (priority 0, DEI 0, VLAN 100)
h = TCI 0x0064 ^ source MAC[0:3] 0x021122 ^ source MAC[3:6] 0x334455 = 0x315513
slave = 0x315513 mod 3 = 0
`},
	}
	for _, tt := range tests {
		got := Explain(tt.policy, tt.via, tt.frame, 3).String()
		if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestExplainOddities(t *testing.T) {
	for name, tt := range map[string]struct {
		policy Policy
		frame  []byte
		slaves int
		want   string
	}{
		"empty":     {Layer34, nil, 2, "a frame of 0 bytes has no Ethernet header"},
		"no slaves": {Layer2, ether(ip4(6, 0, nil)), 0, "no slave to choose from"},
		"fragment":  {Layer34, ether(ip4(6, 0x2000, ports(1, 2))), 2, "X = 0, a fragment"},
		"SPI":       {Encap34, ether(ip4(50, 0, ports(1, 2))), 2, "X = SPI 0x00010002 at byte 34"},
		"ARP":       {Encap34, ether(arp(src4, dst4)), 2, "addresses of 0 and no ports"},
		"OSPF":      {Layer34, ether(ip4(89, 0, nil)), 2, "X = 0, no ports"},
	} {
		if got := Explain(tt.policy, VLAN, tt.frame, tt.slaves).String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q does not say %q", name, got, tt.want)
		}
	}
	if got := Explain(Layer2, VLAN, nil, 0).Slave; got != -1 {
		t.Errorf("slave of 0 slaves = %d, want -1", got)
	}
}
