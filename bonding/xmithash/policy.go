// Package xmithash computes the transmit hash of Linux bonding: the number by
// which the modes balance-xor, 802.3ad and balance-tlb choose a slave for a
// frame (slave = hash mod usable slaves). All six values of xmit_hash_policy
// are here, with Linux's arithmetic as it is on a little-endian machine, so a
// flow takes the slave that it would take on a Linux bond.
//
// A bond resolves its policy once, when it builds a snapshot, and calls the
// result for each frame:
//
//	hash := xmithash.Layer34.Func(xmithash.VLAN)
//	sum, complete := hash(firstBytes, frameSize)
//
// The function neither allocates nor writes. It takes as much of the frame as
// is at hand; where the answer would lie in bytes beyond that, it says so.
// [Explain] gives the same number with every step to it.
//
// Limits. Where Linux already has a flow hash for a packet (a local socket's
// own), encap3+4 uses that one; here the headers are always read. TIPC,
// batman-adv, HSR and PRP frames, which Linux's deep dissector opens, count as
// unknown EtherTypes under the encap policies, so they take the layer-2 hash.
// Where a frame has tags beside the one that counts as beside the frame, see
// [VLAN].
package xmithash

import (
	"fmt"
	"strings"
)

// Policy is a value of the option xmit_hash_policy. The numbers are Linux's,
// and the zero value is Linux's default.
type Policy uint8

// The policies.
const (
	// Layer2 takes the last bytes of the MAC addresses and the EtherType.
	Layer2 Policy = 0
	// Layer34 takes IP addresses and ports; frames that are not IP take
	// Layer2's hash.
	Layer34 Policy = 1
	// Layer23 takes Layer2's hash and the IP addresses.
	Layer23 Policy = 2
	// Encap23 is Layer23 on the innermost IP header of a tunnel.
	Encap23 Policy = 3
	// Encap34 is Layer34 on the innermost IP header of a tunnel.
	Encap34 Policy = 4
	// VLANSrcMAC takes the tag beside the frame and the source MAC address.
	VLANSrcMAC Policy = 5
)

// names holds Linux's names, by number.
var names = [...]string{"layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"}

// String returns Linux's name of the policy, or "Policy(N)" where there is
// none.
func (p Policy) String() string {
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// ParsePolicy returns the policy of a name or a number that Linux accepts for
// xmit_hash_policy. The error names the value and what is allowed.
func ParsePolicy(s string) (Policy, error) {
	for i, name := range names {
		if s == name || s == string(rune('0'+i)) {
			return Policy(i), nil
		}
	}
	return 0, fmt.Errorf("xmit_hash_policy %q is unknown, allowed are %s, or their numbers 0, 1, 2, 3, 4, 5",
		s, strings.Join(names[:], ", "))
}

// Func computes the hash of a frame from its first bytes, an Ethernet header
// in front. size is the size of the whole frame in bytes (a size below
// len(frame) counts as len(frame)). It matters where frame ends early: a header
// that the frame itself cuts short makes Linux fall back to a simpler hash, one
// that is merely not at hand does not.
//
// complete is false where the hash would depend on bytes of the frame beyond
// len(frame): sum is then 0, and the caller asks again with more of the frame.
// With the whole frame at hand complete is always true.
type Func func(frame []byte, size int) (sum uint32, complete bool)

// funcs is resolved by Policy.Func, off the data path.
var funcs = [len(names)][2]Func{
	Layer2:     {VLAN: layer2VLAN, Raw: layer2Raw},
	Layer34:    {VLAN: layer34(VLAN), Raw: layer34(Raw)},
	Layer23:    {VLAN: layer23(VLAN), Raw: layer23(Raw)},
	Encap23:    {VLAN: encap23(VLAN), Raw: encap23(Raw)},
	Encap34:    {VLAN: encap34(VLAN), Raw: encap34(Raw)},
	VLANSrcMAC: {VLAN: vlanSrcMACVLAN, Raw: vlanSrcMACRaw},
}

// Func returns the policy's hash function. It panics on a value that is none
// of the constants: such a value can only come from a program's mistake, as
// ParsePolicy and ParseVia return none.
func (p Policy) Func(via Via) Func {
	if int(p) >= len(funcs) || int(via) >= len(funcs[p]) {
		panic(fmt.Sprintf("xmithash: no function for %v, %v", p, via))
	}
	return funcs[p][via]
}
