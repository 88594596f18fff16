package xmithash

import (
	"slices"
	"strings"
	"testing"
)

// TestTable has the sums that were worked out from the description of Linux's
// arithmetic; slave counts of 3 and 5 were also run on Linux.
func TestTable(t *testing.T) {
	tests := []struct {
		name   string
		policy Policy
		frame  []byte
		want   uint32
	}{
		{"IPv4", Layer2, ether(ip4(6, 0, ports(1, 2))), 0x8ff},
		{"IPv6", Layer2, ether(ip6(6, ports(1, 2))), 0x8622},
		{"ARP", Layer2, ether(arp(src4, dst4)), 0x8f9},
		{"IPv4", Layer23, ether(ip4(6, 0, ports(1, 2))), 0x0f0eae9b},
		{"TCP 40000 80", Layer34, ether(ip4(6, 0, ports(40000, 80))), 0x2faf5b70},
		{"TCP 40001 80", Layer34, ether(ip4(6, 0, ports(40001, 80))), 0x2faf5bf0},
		{"TCP 80 40000", Layer34, ether(ip4(6, 0, ports(80, 40000))), 0x27e91570},
		{"first fragment", Layer34, ether(ip4(17, 0x2000, ports(40000, 80))), 0x07875336},
		{"later fragment", Layer34, ether(ip4(17, 0x0010, ports(40000, 80))), 0x07875336},
		{"ICMP echo", Layer34, ether(ip4(1, 0, icmpEcho(8, 0, 0x1234))), 0x0e944021},
		{"ICMP echo, identifier 0", Layer34, ether(ip4(1, 0, icmpEcho(8, 0, 0))), 0x0787d3b2},
		{"IPv6", Layer23, ether(ip6(6, ports(1, 2))), 0x151592b0},
		{"IPv6 TCP 40000 443", Layer34, ether(ip6(6, ports(40000, 443))), 0x5757f739},
		{"no tag", VLANSrcMAC, ether(ip4(6, 0, ports(1, 2))), 0x315577},
		{"VLAN 100", VLANSrcMAC, ether(ip4(6, 0, ports(1, 2)), tag(0x8100, 100)), 0x315513},
		{"VLAN 100, priority 5", VLANSrcMAC, ether(ip4(6, 0, ports(1, 2)), tag(0x8100, 5<<13|100)), 0x31f513},
	}
	for _, tt := range tests {
		got, complete := tt.policy.Func(VLAN)(tt.frame, len(tt.frame))
		if got != tt.want || !complete {
			t.Errorf("%v, %s: %#x, %v, want %#x", tt.policy, tt.name, got, complete, tt.want)
		}
	}
}

// TestSame has frames that must hash alike under a policy.
func TestSame(t *testing.T) {
	tcp := ports(40000, 80)
	plain := ether(ip4(6, 0, tcp))
	tests := []struct {
		name   string
		policy Policy
		via    Via
		a, b   []byte
	}{
		{"a tag beside the frame", Layer34, VLAN, plain, ether(ip4(6, 0, tcp), tag(0x8100, 7))},
		{"a tag beside the frame", Layer2, VLAN, plain, ether(ip4(6, 0, tcp), tag(0x8100, 7))},
		{"two tags", Layer34, VLAN, plain, ether(ip4(6, 0, tcp), tag(0x88a8, 7), tag(0x8100, 8))},
		{"two tags", Encap34, VLAN, plain, ether(ip4(6, 0, tcp), tag(0x88a8, 7), tag(0x8100, 8))},
		{"eight tags", Layer34, VLAN, plain, ether(ip4(6, 0, tcp), slices.Repeat(tag(0x8100, 8), 8))},
		{"IP in IP", Encap34, VLAN, plain, ether(ip4Between(dst4, dst4, 4, 0, ip4(6, 0, tcp).data))},
		{"GRE", Encap34, VLAN, plain, ether(ip4Between(dst4, dst4, 47, 0, slices.Concat([]byte{0, 0, 8, 0}, ip4(6, 0, tcp).data)))},
		{"GRE, all fields", Encap34, VLAN, plain, ether(ip4Between(dst4, dst4, 47, 0,
			slices.Concat([]byte{0xb0, 0, 8, 0}, make([]byte, 12), ip4(6, 0, tcp).data)))},
		{"a tagged Ethernet frame in GRE", Encap34, VLAN, plain, ether(ip6(47,
			slices.Concat([]byte{0, 0, 0x65, 0x58}, ether(ip4(6, 0, tcp), tag(0x8100, 8)))))},
		{"PPTP", Encap34, VLAN, plain, ether(ip4Between(dst4, dst4, 47, 0,
			slices.Concat([]byte{0x30, 0x81, 0x88, 0x0b}, make([]byte, 12), []byte{0xff, 3, 0, 0x21}, ip4(6, 0, tcp).data)))},
		{"PPPoE", Encap34, VLAN, plain, ether(payload{0x8864, slices.Concat([]byte{0x11, 0, 0, 1, 0, 30, 0, 0x21}, ip4(6, 0, tcp).data)})},
		{"PPPoE, short protocol", Encap34, VLAN, plain, ether(payload{0x8864, slices.Concat([]byte{0x11, 0, 0, 1, 0, 30, 0x21}, ip4(6, 0, tcp).data)})},
		{"options and routing", Encap34, VLAN, ether(ip6(6, tcp)), ether(ip6(0,
			slices.Concat([]byte{43, 0, 0, 0, 0, 0, 0, 0}, []byte{60, 1}, make([]byte, 14), []byte{6, 0, 0, 0, 0, 0, 0, 0}, tcp)))},
		{"fragments in a tunnel", Encap34, VLAN, ether(ip4(6, 0x2000, tcp)), ether(ip4(4, 0, ip4(6, 0x10, ports(1, 2)).data))},
		{"GRE with routing", Encap34, VLAN, ether(ip4(89, 0, tcp)), ether(ip4(47, 0, slices.Concat([]byte{0x40, 0, 8, 0}, ip4(6, 0, tcp).data)))},
		{"GRE of version 2", Encap34, VLAN, ether(ip4(89, 0, tcp)), ether(ip4(47, 0, slices.Concat([]byte{0, 2, 8, 0}, ip4(6, 0, tcp).data)))},
		{"the packet that an ICMPv6 error quotes", Layer34, VLAN, ether(ip6(17, tcp)), ether(ip6Between(dst6, dst6, 58,
			slices.Concat([]byte{3, 0, 0, 0, 0, 0, 0, 0}, ip6(17, tcp).data)))},
		{"ICMPv6 errors end with type 4", Layer34, VLAN, ether(ip6(89, tcp)), ether(ip6(58,
			slices.Concat([]byte{5, 0, 0, 0, 0, 0, 0, 0}, ip6Between(dst6, dst6, 17, tcp).data)))},
		{"not an identifier", Layer34, VLAN, ether(ip4(1, 0, icmpEcho(9, 0, 1))), ether(ip4(1, 0, icmpEcho(10, 0, 2)))},
		{"a tag inside", Layer34, Raw, ether(ip4(6, 0, tcp), tag(0x8100, 7)), ether(ip6(6, ports(1, 2)), tag(0x8100, 8))},
		{"a tag inside", VLANSrcMAC, Raw, plain, ether(ip4(6, 0, tcp), tag(0x8100, 7))},
	}
	for _, tt := range tests {
		hash := tt.policy.Func(tt.via)
		a, _ := hash(tt.a, len(tt.a))
		b, _ := hash(tt.b, len(tt.b))
		if a != b {
			t.Errorf("%v, %v, %s: %#x and %#x, want the same", tt.policy, tt.via, tt.name, a, b)
		}
	}
}

// TestLayer2Choice has frames that must take the layer-2 hash.
func TestLayer2Choice(t *testing.T) {
	packet := ip4(6, 0, ports(40000, 80)).data
	fakeARP := payload{0x0806, packet}
	tests := []struct {
		name   string
		policy Policy
		frame  []byte
	}{
		{"ARP that looks like IP", Layer34, ether(fakeARP)},
		{"ARP that looks like IP", Layer23, ether(fakeARP)},
		{"ARP", Layer34, ether(arp(src4, dst4))},
		{"unknown type", Encap34, ether(payload{0x9000, packet})},
		{"a length", Layer34, ether(payload{46, packet})},
		{"IPv4 cut short", Layer34, ether(payload{0x0800, packet})[:33]},
		{"IPv6 cut short", Layer23, ether(ip6(6, nil))[:53]},
		{"quoted packet cut short", Layer34, ether(ip4(1, 0, append([]byte{3, 1, 0, 0, 0, 0, 0, 0}, packet...)))[:61]},
		{"quoted packet cut short", Layer23, ether(ip4(1, 0, append([]byte{3, 1, 0, 0, 0, 0, 0, 0}, packet...)))[:61]},
		{"header length of 16", Encap34, func() []byte { f := ether(ip4(6, 0, packet)); f[14] = 0x44; return f }()},
		{"PPPoE of a wrong version", Encap34, ether(payload{0x8864, append([]byte{0x21, 0, 0, 1, 0, 30, 0, 0x21}, packet...)})},
		{"unknown type in GRE", Encap34, ether(ip4(47, 0, append([]byte{0, 0, 0x90, 0}, packet...)))},
		{"LCP in PPTP", Encap34, ether(ip4(47, 0, append([]byte{0x20, 0x01, 0x88, 0x0b, 0, 0, 0, 0, 0xff, 3, 0xc0, 0x21}, packet...)))},
	}
	for _, tt := range tests {
		want, _ := Layer2.Func(VLAN)(tt.frame, len(tt.frame))
		got, complete := tt.policy.Func(VLAN)(tt.frame, len(tt.frame))
		if got != want || !complete {
			t.Errorf("%v, %s: %#x, %v, want layer 2's %#x", tt.policy, tt.name, got, complete, want)
		}
	}
}

// TestNoAddresses has frames that the deep dissector takes for a flow without
// addresses: encap3+4 always sends them by the first slave.
func TestNoAddresses(t *testing.T) {
	for name, p := range map[string]payload{
		"ARP": arp(src4, dst4), "RARP": {0x8035, nil}, "MPLS": {0x8847, nil}, "MPLS multicast": {0x8848, nil},
		"PTP": {0x88f7, nil}, "FCoE": {0x8906, nil}, "PPPoE LCP": {0x8864, []byte{0x11, 0, 0, 1, 0, 2, 0xc0, 0x21}},
	} {
		if got, _ := Encap34.Func(VLAN)(ether(p), 60); got != 0 {
			t.Errorf("encap3+4, %s: %#x, want 0", name, got)
		}
		l2, _ := Layer2.Func(VLAN)(ether(p), 60)
		if got, _ := Encap23.Func(VLAN)(ether(p), 60); got != fold(l2) {
			t.Errorf("encap2+3, %s: %#x, want %#x", name, got, fold(l2))
		}
	}
}

// TestHopsAreBounded nests more IP headers than the deep dissector follows.
func TestHopsAreBounded(t *testing.T) {
	p := ip4(6, 0, ports(40000, 80))
	nest := func(n int) []byte {
		p := p
		for range n {
			p = ip4Between(dst4, dst4, 4, 0, p.data)
		}
		return ether(p)
	}
	plain, _ := Encap34.Func(VLAN)(nest(0), 60)
	deepest := nest(maxHops)
	if got, _ := Encap34.Func(VLAN)(deepest, len(deepest)); got != plain {
		t.Errorf("%d hops: %#x, want %#x", maxHops, got, plain)
	}
	deeper := nest(maxHops + 1)
	if got, _ := Encap34.Func(VLAN)(deeper, len(deeper)); got != 0 { // dst4 ^ dst4, no ports
		t.Errorf("%d hops: %#x, want 0, by the addresses found so far", maxHops+1, got)
	}
}

func TestShortFrames(t *testing.T) {
	full := ether(ip4(6, 0, ports(40000, 80)), tag(0x8100, 100))
	for p := range Policy(len(names)) {
		for _, via := range []Via{VLAN, Raw} {
			for n := range 14 {
				if sum, complete := p.Func(via)(full[:n], n); sum != 0 || !complete {
					t.Errorf("%v, %v, a frame of %d bytes: %#x, %v, want 0, true", p, via, n, sum, complete)
				}
			}
			// A size that is less than what is at hand means all of it.
			want, _ := p.Func(via)(full, len(full))
			if got, complete := p.Func(via)(full, 0); got != want || !complete {
				t.Errorf("%v, %v, size 0: %#x, %v, want %#x, true", p, via, got, complete, want)
			}
		}
	}
	// A tag that the frame cuts short is no tag.
	for n := 14; n < 18; n++ {
		want := uint32(0xaa^0x55) ^ 0x8100
		if got, _ := Layer34.Func(VLAN)(full[:n], n); got != want {
			t.Errorf("layer3+4, a tag cut at byte %d: %#x, want %#x", n, got, want)
		}
		if got, _ := VLANSrcMAC.Func(VLAN)(full[:n], n); got != 0x315577 {
			t.Errorf("vlan+srcmac, a tag cut at byte %d: %#x, want 0x315577", n, got)
		}
	}
}

// TestPolicyNames is DPDK's policy api case (T130): what is set is what is
// read, and a wrong value is refused.
func TestPolicyNames(t *testing.T) {
	for i, name := range []string{"layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"} {
		for _, s := range []string{name, string(rune('0' + i))} {
			p, err := ParsePolicy(s)
			if err != nil || p != Policy(i) || p.String() != name {
				t.Errorf("ParsePolicy(%q) = %v, %v, want %s", s, p, err, name)
			}
		}
	}
	for _, s := range []string{"", "6", "-1", "00", "layer4", "Layer2", "layer2 ", "layer23"} {
		_, err := ParsePolicy(s)
		if err == nil {
			t.Errorf("ParsePolicy(%q): no error", s)
			continue
		}
		for _, want := range []string{"xmit_hash_policy", `"` + s + `"`, "layer2+3", "vlan+srcmac"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("ParsePolicy(%q): error %q does not name %s", s, err, want)
			}
		}
	}
	if got := Policy(9).String(); got != "Policy(9)" {
		t.Errorf("Policy(9).String() = %q", got)
	}
}

func TestViaNames(t *testing.T) {
	for _, v := range []Via{VLAN, Raw} {
		if got, err := ParseVia(v.String()); got != v || err != nil {
			t.Errorf("ParseVia(%q) = %v, %v", v.String(), got, err)
		}
	}
	if _, err := ParseVia("tap"); err == nil || !strings.Contains(err.Error(), `"tap"`) {
		t.Errorf("ParseVia(tap): error %v does not name the value", err)
	}
}

func TestNoSuchFunc(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Policy(6).Func did not panic")
		}
	}()
	Policy(6).Func(VLAN)
}
