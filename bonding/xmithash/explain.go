package xmithash

import (
	"fmt"
	"net/netip"
	"strings"
)

// A Step is one line of an Explanation: what is done, and what comes of it.
type Step struct {
	Text  string
	Value uint32
}

// String returns the step as "text = 0xvalue".
func (s Step) String() string { return fmt.Sprintf("%s = %#x", s.Text, s.Value) }

// An Explanation is a hash with the way to it.
type Explanation struct {
	Policy Policy
	Via    Via
	// Notes say how the frame was read.
	Notes []string
	// Steps are the arithmetic, in order. The value of the last is Sum.
	Steps []Step
	// Sum is the hash.
	Sum uint32
	// Slaves is the number of usable slaves, and Slave the one chosen, counted
	// from 0; -1 where there are no slaves to choose from.
	Slaves, Slave int
}

// Explain returns the hash of a whole frame with every step to it, found by the
// code that the policy's Func runs. It panics where Policy.Func does.
func Explain(p Policy, via Via, frame []byte, slaves int) Explanation {
	e := Explanation{Policy: p, Via: via, Slaves: slaves, Slave: -1}
	e.Sum, _ = p.Func(via)(frame, len(frame))
	e.explain(frame)
	if slaves > 0 {
		e.Slave = int(uint64(e.Sum) % uint64(slaves))
	}
	return e
}

// String returns the explanation as lines of text.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %v, via %v\n", e.Policy, e.Via)
	for _, n := range e.Notes {
		fmt.Fprintln(&b, n)
	}
	for _, s := range e.Steps {
		fmt.Fprintln(&b, s)
	}
	if e.Slaves > 0 {
		fmt.Fprintf(&b, "slave = %#x mod %d = %d\n", e.Sum, e.Slaves, e.Slave)
	} else {
		fmt.Fprintln(&b, "no slave to choose from")
	}
	return b.String()
}

func (e *Explanation) note(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

// step adds a step and returns its value.
func (e *Explanation) step(value uint32, format string, args ...any) uint32 {
	e.Steps = append(e.Steps, Step{fmt.Sprintf(format, args...), value})
	return value
}

func (e *Explanation) explain(b []byte) {
	p, v := locate(b, len(b), e.Via)
	if v != found {
		e.note("a frame of %d bytes has no Ethernet header", len(b))
		e.step(0, "h")
		return
	}
	tci := e.tag(b)
	switch e.Policy {
	case Layer2:
		e.layer2(b, p)
	case VLANSrcMAC:
		e.vlanSrcMAC(b, tci)
	case Layer23, Layer34:
		f, v := outermost(b, len(b), p, e.Policy == Layer34)
		e.flow(b, p, f, v)
	default:
		f, v := innermost(b, len(b), p, e.Policy == Encap34)
		e.flow(b, p, f, v)
	}
}

// tag tells of the outer tag and returns what counts as beside the frame.
func (e *Explanation) tag(b []byte) (tci uint32) {
	typ := be16(b[typeAt:])
	if !isTag(typ) {
		return 0
	}
	if _, end, _ := outer(b, len(b)); e.Via == Raw || end == etherSize {
		e.note("the tag %#04x is inside the frame, as its EtherType", typ)
		return 0
	}
	tci = uint32(be16(b[etherSize:]))
	e.note("the tag %#04x is beside the frame: TCI %#04x (priority %d, DEI %d, VLAN %d)",
		typ, tci, tci>>13, tci>>12&1, tci&0xfff)
	return tci
}

func (e *Explanation) layer2(b []byte, p place) uint32 {
	return e.step(layer2(b, p.typ), "L2 = destination MAC[5] %#02x ^ source MAC[5] %#02x ^ EtherType %#04x",
		b[5], b[11], p.typ)
}

func (e *Explanation) vlanSrcMAC(b []byte, tci uint32) {
	e.step(tci^srcMAC(b), "h = TCI %#04x ^ source MAC[0:3] 0x%x ^ source MAC[3:6] 0x%x", tci, b[6:9], b[9:12])
}

// flow tells of the policies on layer 3 and 4.
func (e *Explanation) flow(b []byte, p place, f flow, v verdict) {
	if v != found {
		e.note("no IP flow behind EtherType %#04x at byte %d: the layer-2 hash is taken", p.l3, p.off)
		e.layer2(b, p)
		return
	}
	l34 := e.Policy == Layer34 || e.Policy == Encap34
	var h uint32
	if l34 {
		h = e.word(b, f)
	} else {
		h = e.layer2(b, p)
	}
	h = e.step(h^e.addrs(b, f), "h ^= source ^ destination")
	h = e.step(h^h>>16, "h ^= h >> 16")
	h = e.step(h^h>>8, "h ^= h >> 8")
	if l34 {
		e.step(h>>1, "h >>= 1")
	}
}

// word tells where the port word comes from.
func (e *Explanation) word(b []byte, f flow) uint32 {
	switch {
	case f.at == 0 && f.proto == protoNone:
		return e.step(0, "X = 0, a fragment")
	case f.at == 0:
		return e.step(0, "X = 0, no ports")
	case f.proto == protoICMP || f.proto == protoICMPv6:
		return e.step(f.word, "X = ICMP type %d | code %d << 8 | identifier %#04x << 16, at byte %d",
			b[f.at], b[f.at+1], f.word>>16, f.at)
	case f.proto == 50 || f.proto == 51:
		return e.step(f.word, "X = SPI 0x%x at byte %d, its first byte lowest", b[f.at:f.at+4], f.at)
	}
	return e.step(f.word, "X = source port %d, destination port %d at byte %d, their first byte lowest",
		be16(b[f.at:]), be16(b[f.at+2:]), f.at)
}

// addrs tells of the addresses and returns the XOR of their words.
func (e *Explanation) addrs(b []byte, f flow) uint32 {
	var src, dst []byte
	switch f.typ {
	case typeIPv4:
		src, dst = b[f.ip+12:f.ip+16], b[f.ip+16:f.ip+20]
	case typeIPv6:
		src, dst = b[f.ip+8:f.ip+24], b[f.ip+24:f.ip+40]
	default:
		e.note("the frame counts as one with addresses of 0 and no ports")
		return 0
	}
	return e.addr("source", src) ^ e.addr("destination", dst)
}

func (e *Explanation) addr(name string, a []byte) uint32 {
	ip, _ := netip.AddrFromSlice(a)
	if ip.Is4() {
		return e.step(le32(a), "%s = %v, its first byte lowest", name, ip)
	}
	return e.step(addr6(a), "%s = the four words of %v, XORed", name, ip)
}
