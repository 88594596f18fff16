package bonding_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

var policies = []xmithash.Policy{xmithash.Layer2, xmithash.Layer34, xmithash.Layer23, xmithash.Encap23, xmithash.Encap34, xmithash.VLANSrcMAC}

// addPort returns an address with a port that differs in the given bits.
func addPort(a netip.AddrPort, bits uint16) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr(), a.Port()^bits)
}

// randomFlow is a frame of a random kind and flow.
func randomFlow(rnd *rand.Rand) []byte {
	f := linktest.Flow4(rnd.IntN(1 << 16))
	if rnd.IntN(2) == 0 {
		f = linktest.Flow6(rnd.IntN(1 << 16))
	}
	f.DstMAC = linktest.Flow4(rnd.IntN(1 << 16)).DstMAC
	payload := make([]byte, rnd.IntN(60))
	var frame []byte
	switch rnd.IntN(5) {
	case 0:
		frame = f.TCP(linktest.Segment{Payload: payload})
	case 1:
		frame = f.IP(uint8(rnd.IntN(256)), payload)
	case 2:
		frame = linktest.Flow4(rnd.IntN(1 << 16)).ARPRequest()
	default:
		frame = f.UDP(payload)
	}
	if rnd.IntN(4) == 0 {
		frame = linktest.VLAN(frame, linktest.EtherTypeVLAN, uint16(rnd.IntN(1<<16)))
	}
	return frame
}

// hashSlave is which of n slaves Linux's hash picks.
func hashSlave(p xmithash.Policy, frame []byte, n int) int {
	sum, _ := p.Func(xmithash.VLAN)(frame, len(frame))
	return int(sum % uint32(n))
}

// Each frame goes by the slave that the hash picks among those that are usable,
// be it alone or in a list, and in the order of the list.
func TestXORFollowsTheHash(t *testing.T) {
	for _, policy := range policies {
		rnd := rand.New(rand.NewPCG(uint64(policy), 7))
		r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: policy}, 5)
		for _, dead := range []string{"", "eth1", "eth4", "eth0"} {
			if dead != "" {
				r.carrier(dead, false)
			}
			var usable []string
			for _, s := range r.Status().Slaves {
				if s.MIIStatus == "up" {
					usable = append(usable, s.Name)
				}
			}
			want := map[string][]string{}
			var frames [][]byte
			for range 200 {
				frame := randomFlow(rnd)
				frames = append(frames, frame)
				name := usable[hashSlave(policy, frame, len(usable))]
				want[name] = append(want[name], string(frame))
			}
			for _, list := range []int{1, 7, 200} {
				for i := 0; i < len(frames); i += list {
					linktest.Write(r, frames[i:min(i+list, len(frames))]...)
				}
				for name, l := range r.links {
					got := l.Drain()
					if len(got) != len(want[name]) {
						t.Fatalf("%s without %q, lists of %d: %s was given %d frames, want %d", policy, dead, list, name, len(got), len(want[name]))
					}
					for i, w := range got {
						if string(w.Frame) != want[name][i] {
							t.Fatalf("%s without %q, lists of %d: %s frame %d is %x, want %x", policy, dead, list, name, i, w.Frame, want[name][i])
						}
					}
				}
			}
		}
	}
}

// The policy may change at any time and takes effect with the next packet
// (T130).
func TestXORPolicyChanges(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR}, 4)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		policy := policies[rnd.IntN(len(policies))]
		r.set("xmit_hash_policy", policy.String())
		frame := randomFlow(rnd)
		linktest.Write(r, frame)
		want := fmt.Sprintf("eth%d", hashSlave(policy, frame, 4))
		for name, l := range r.links {
			if n := len(l.Drain()); (n == 1) != (name == want) {
				t.Errorf("%s: %s was given %d frames, want them on %s", policy, name, n, want)
			}
		}
	}
}

// Bursts to two peers, or of two flows, split as a whole (T73, T131 to T134,
// T194), and all of one flow stay on one slave.
func TestXORSplits(t *testing.T) {
	base := linktest.Flow4(0)
	other := func(change func(*linktest.Flow)) linktest.Flow {
		f := base
		change(&f)
		return f
	}
	mac := other(func(f *linktest.Flow) { f.DstMAC = tcpip.LinkAddress([]byte{2, 0, 0, 2, 0, 1}) })
	ip := other(func(f *linktest.Flow) { f.Dst = linktest.Flow4(1).Dst })
	port := other(func(f *linktest.Flow) { f.Src = linktest.Flow4(0).Src; f.Dst = addPort(f.Dst, 1<<1) })
	six := linktest.Flow6(0)
	six1 := six
	six1.Dst = addPort(six.Dst, 1<<1)
	for _, tt := range []struct {
		policy xmithash.Policy
		a, b   linktest.Flow
		split  bool
	}{
		{xmithash.Layer2, base, base, false},
		{xmithash.Layer2, base, mac, true},
		{xmithash.Layer2, base, ip, false},
		{xmithash.Layer2, base, port, false},
		{xmithash.Layer23, base, mac, true},
		{xmithash.Layer23, base, ip, true},
		{xmithash.Layer23, base, port, false},
		{xmithash.Layer34, base, mac, false},
		{xmithash.Layer34, base, port, true},
		{xmithash.Layer34, six, six1, true},
	} {
		for _, tagged := range []bool{false, true} {
			r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: tt.policy}, 2)
			var frames [][]byte
			for i, f := range []linktest.Flow{tt.a, tt.b} {
				for range []int{10, 15}[i] {
					frame := f.UDP([]byte("x"))
					if tagged {
						frame = linktest.VLAN(frame, linktest.EtherTypeVLAN, 100)
					}
					frames = append(frames, frame)
				}
			}
			linktest.Write(r, frames...)
			got := r.sent("eth0", "eth1")
			if split := got[0] != 0 && got[1] != 0; split != tt.split || got[0]+got[1] != 25 || split && got[0] != 10 && got[0] != 15 {
				t.Errorf("%s, tagged %t: %v, want split %t", tt.policy, tagged, got, tt.split)
			}
		}
	}
}

// Links go and come while bursts go out (T137). DPDK's slave that is down then
// receives nothing; in Linux and here, a slave of these modes whose link is down
// is not deaf, its link is silent.
func TestXORLinkChange(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR}, 4)
	burst := func(mac byte, want string) {
		t.Helper()
		f := linktest.Flow4(0)
		f.DstMAC = tcpip.LinkAddress([]byte{2, 0, 0, 2, 0, mac})
		var frames [][]byte
		for range 21 {
			frames = append(frames, f.UDP([]byte("x")))
		}
		linktest.Write(r, frames...)
		if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2", "eth3")); got != want {
			t.Errorf("burst to %d went to %s, want %s", mac, got, want)
		}
	}
	r.do("eth1 down")
	r.do("eth3 down")
	burst(0, "[21 0 0 0]")
	burst(1, "[0 0 21 0]")
	r.do("eth2 down")
	burst(0, "[21 0 0 0]")
	burst(1, "[21 0 0 0]")
	r.do("eth0 down")
	burst(0, "[0 0 0 0]")
	for _, name := range []string{"eth1", "eth2", "eth3"} {
		r.do(name + " up")
	}
	for _, name := range []string{"eth0", "eth1", "eth2", "eth3"} {
		for i := range 21 {
			r.links[name].Inject(r.toBond(i))
		}
	}
	if got := len(r.up.Drain()); got != 84 {
		t.Errorf("%d frames were delivered, want 4 x 21", got)
	}
}

// How a packet's bytes lie in memory does not change its hash: split in two at
// every place, or with a header in each of several pieces.
func TestXORHashesSplitPackets(t *testing.T) {
	for _, policy := range policies {
		r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: policy}, 7)
		for _, frame := range [][]byte{
			linktest.Flow4(77).UDP([]byte("split")), linktest.Flow6(78).TCP(linktest.Segment{Payload: []byte("split")}),
			linktest.VLAN(linktest.Flow4(79).UDP(nil), linktest.EtherTypeVLAN, 5), linktest.Flow4(80).ARPRequest(),
		} {
			want := fmt.Sprintf("eth%d", hashSlave(policy, frame, 7))
			for at := range len(frame) + 1 {
				for second := at; second <= len(frame); second += 9 {
					list := stack.PacketBufferList{}
					list.PushBack(splitPacket(frame, at, second))
					r.WritePackets(list)
					list.DecRef()
					if got := r.links[want].Drain(); len(got) != 1 || string(got[0].Frame) != string(frame) {
						t.Errorf("%s: frame %x split at %d and %d did not go by %s", policy, frame, at, second, want)
					}
				}
			}
		}
	}
}

// splitPacket returns a packet whose bytes lie in three pieces.
func splitPacket(frame []byte, first, second int) *stack.PacketBuffer {
	var data buffer.Buffer
	for _, piece := range [][]byte{frame[:first], frame[first:second], frame[second:]} {
		if len(piece) > 0 {
			data.Append(buffer.NewViewWithData(piece))
		}
	}
	return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: data})
}
