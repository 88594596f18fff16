package xmithash

// Flags of a GRE header (RFC 2784, RFC 2890, RFC 2637).
const (
	greChecksum = 0x8000
	greRouting  = 0x4000
	greKey      = 0x2000
	greSequence = 0x1000
	greAck      = 0x0080
	greVersion  = 0x0007
)

// gre opens a GRE header of version 0, or of version 1 as PPTP uses it. Any
// other one is the end of the walk, by the addresses around it.
func (w *walk) gre() step {
	if s, lacks := w.lacks(w.off, 4); lacks {
		return s
	}
	flags, typ := be16(w.b[w.off:]), be16(w.b[w.off+2:])
	version := flags & greVersion
	switch {
	case flags&greRouting != 0, version > 1,
		version == 1 && (typ != typePPP || flags&greKey == 0):
		return stop
	}
	off := w.off + 4
	if flags&greChecksum != 0 {
		off += 4
	}
	if flags&greKey != 0 {
		if s, lacks := w.lacks(off, 4); lacks {
			return s
		}
		off += 4
	}
	if flags&greSequence != 0 {
		off += 4
	}
	w.typ, w.off = typ, off
	if version == 1 {
		return w.pptp(flags)
	}
	if typ == typeTEB {
		return w.bridged()
	}
	return byType
}

// bridged passes the Ethernet header of a frame in GRE.
func (w *walk) bridged() step {
	if s, lacks := w.lacks(w.off, etherSize); lacks {
		return s
	}
	w.typ = be16(w.b[w.off+typeAt:])
	w.off += etherSize
	return byType
}

// pptp passes the PPP header, address and control bytes included, behind GRE
// version 1. Anything but IP in it is nothing that the walk knows.
func (w *walk) pptp(flags uint16) step {
	if flags&greAck != 0 {
		w.off += 4
	}
	if s, lacks := w.lacks(w.off, 4); lacks {
		return s
	}
	switch be16(w.b[w.off+2:]) {
	case 0x0021:
		w.typ = typeIPv4
	case 0x0057:
		w.typ = typeIPv6
	default:
		return fail
	}
	w.off += 4
	return byType
}
