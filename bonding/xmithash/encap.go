package xmithash

// maxHops bounds how many headers the deep dissector follows behind the first.
// What it has found by then counts.
const maxHops = 15

// A step says where the deep dissector goes next.
type step uint8

const (
	stop    step = iota // the innermost flow is found
	fail                // there is none: hash by layer 2
	starve              // the next header is beyond the bytes at hand
	byType              // on to the header that the EtherType announces
	byProto             // on to the header that the IP protocol announces
)

// A walk is the deep dissector at work. The zero flow (addresses of 0, no
// ports) is what frames such as ARP have.
type walk struct {
	b    []byte
	size int
	l4   bool   // ports are wanted
	typ  uint16 // EtherType of the header at off
	off  int
	flow flow
}

// innermost reads the flow by the last IP header that can be reached through
// tags, PPPoE, GRE, IP in IP and IPv6 extension headers.
func innermost(b []byte, size int, p place, l4 bool) (flow, verdict) {
	w := walk{b: b, size: size, l4: l4, typ: p.l3, off: p.off}
	next := byType
	for hops := 0; hops <= maxHops; hops++ {
		if next == byType {
			next = w.network()
		}
		if next == byProto {
			next = w.transport()
		}
		switch next {
		case stop:
			return w.flow, found
		case fail:
			return w.flow, opaque
		case starve:
			return w.flow, more
		}
	}
	return w.flow, found
}

// lacks reports whether the frame has no n bytes at off at hand, and if so what
// that means to the walk.
func (w *walk) lacks(off, n int) (step, bool) {
	if off+n <= len(w.b) {
		return stop, false
	}
	if off+n <= w.size {
		return starve, true
	}
	return fail, true
}

// network reads the header that the EtherType announces.
func (w *walk) network() step {
	switch w.typ {
	case typeIPv4, typeIPv6:
		return w.ip()
	case typeVLAN, typeSVLAN:
		if s, lacks := w.lacks(w.off, tagSize); lacks {
			return s
		}
		w.typ = be16(w.b[w.off+2:])
		w.off += tagSize
		return byType
	case typePPPoE:
		return w.pppoe()
	case typeARP, typeRARP, typeMPLS, typeMPLSMC:
		return stop
	case typeFCoE:
		s, _ := w.lacks(w.off, 38)
		return s
	case typePTP:
		s, _ := w.lacks(w.off, 34)
		return s
	}
	return fail
}

func (w *walk) ip() step {
	f, v := ipHeader(w.b, w.size, w.typ, w.off)
	switch {
	case v == more:
		return starve
	case v == opaque || w.typ == typeIPv4 && f.l4-f.ip < ipv4Size:
		return fail
	}
	w.flow, w.off = f, int(f.l4)
	if f.proto == protoNone {
		return stop
	}
	return byProto
}

// pppoe reads a session header (RFC 2516, version 1, type 1, code 0) and the
// PPP protocol behind it, which may be compressed to one byte (RFC 1661, 6.5).
func (w *walk) pppoe() step {
	if s, lacks := w.lacks(w.off, 8); lacks {
		return s
	}
	if w.b[w.off] != 0x11 || w.b[w.off+1] != 0 {
		return fail
	}
	proto := be16(w.b[w.off+6:])
	w.off += 8
	if proto&0x0100 != 0 {
		proto >>= 8
		w.off--
	}
	switch {
	case proto == 0x0021:
		w.typ = typeIPv4
		return byType
	case proto == 0x0057:
		w.typ = typeIPv6
		return byType
	case proto&0x0101 == 0x0001: // a PPP protocol, but not one with addresses
		return stop
	}
	return fail
}

// transport reads the header that the IP protocol announces.
func (w *walk) transport() step {
	f := &w.flow
	switch f.proto {
	case protoGRE:
		return w.gre()
	case protoIPv4:
		w.typ = typeIPv4
		return byType
	case protoIPv6:
		w.typ = typeIPv6
		return byType
	case protoHopByHop, protoRouting, protoDestOpts:
		if f.typ == typeIPv6 {
			return w.extension()
		}
		return stop
	case protoFragment:
		if f.typ != typeIPv6 {
			return stop
		}
		s, _ := w.lacks(w.off, 8)
		return s
	}
	return w.leaf()
}

// extension passes an IPv6 extension header (RFC 8200, 4.3 to 4.6).
func (w *walk) extension() step {
	if s, lacks := w.lacks(w.off, 2); lacks {
		return s
	}
	w.flow.proto = int16(w.b[w.off])
	w.off += (int(w.b[w.off+1]) + 1) * 8
	w.flow.l4 = int32(w.off)
	return byProto
}

// leaf reads the ports, or the ICMP identifier, of the innermost header. An
// ICMP error counts by its own addresses here.
func (w *walk) leaf() step {
	f := w.flow
	if !w.l4 {
		return stop
	}
	if f.proto == protoICMP || f.proto == protoICMPv6 {
		switch s, lacks := w.lacks(w.off, icmpSize); {
		case !lacks:
			w.flow = f.withEcho(w.b)
		case s == starve:
			return starve
		}
		return stop
	}
	f, v := f.withPorts(w.b, w.size)
	if v == more {
		return starve
	}
	w.flow = f
	return stop
}
