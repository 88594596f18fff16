package xmithash

import "encoding/binary"

// Sizes and places in an Ethernet frame.
const (
	etherSize = 14 // destination, source, EtherType
	tagSize   = 4
	typeAt    = 12
)

// maxTags is how many tags Linux skips at most to find where the network
// header of a frame begins (it gives up at the 8th).
const maxTags = 7

// A verdict is how the search for what a policy hashes ended.
type verdict uint8

const (
	found  verdict = iota // it is there
	opaque                // it is not: hash by layer 2
	more                  // it would be beyond the bytes at hand
)

// beyond is the verdict on a header that ends at byte end, which is beyond the
// bytes at hand, of a frame of size bytes.
func beyond(end, size int) verdict {
	if end <= size {
		return more
	}
	return opaque
}

func be16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

func isTag(etherType uint16) bool { return etherType == typeVLAN || etherType == typeSVLAN }

// A place is where the network header of a frame is.
type place struct {
	typ uint16 // EtherType as the bond sees it, which the layer-2 hash takes
	l3  uint16 // EtherType by which the network header is read
	off int    // where the network header begins
}

// locate finds the network header of a frame. The verdict is opaque where even
// the Ethernet header is cut short.
func locate(b []byte, size int, via Via) (place, verdict) {
	if len(b) < etherSize {
		return place{}, beyond(etherSize, size)
	}
	typ := be16(b[typeAt:])
	if !isTag(typ) {
		return place{typ, typ, etherSize}, found
	}
	return locateTagged(b, size, typ, via)
}

func locateTagged(b []byte, size int, typ uint16, via Via) (place, verdict) {
	p := place{typ, typ, etherSize}
	if via == VLAN {
		typ, off, v := outer(b, size)
		if v != found || !isTag(typ) {
			return place{typ, typ, off}, v
		}
		p = place{typ, typ, off}
	}
	inner, off, v := skipTags(b, size, p.off)
	switch {
	case v == more:
		return p, more
	case v == opaque:
		return p, found // the deep dissector may walk the tags one by one
	case via == Raw:
		// Linux has moved the network header behind the tags but still goes by
		// the outer tag's type.
		return place{p.typ, p.typ, off}, found
	}
	return place{p.typ, inner, off}, found
}

// outer reads a tag that counts as beside the frame: the EtherType behind it
// and where that ends. A tag that the frame cuts short is none. b holds an
// Ethernet header.
func outer(b []byte, size int) (typ uint16, end int, v verdict) {
	typ = be16(b[typeAt:])
	if !isTag(typ) {
		return typ, etherSize, found
	}
	if len(b) >= etherSize+tagSize {
		return be16(b[typeAt+tagSize:]), etherSize + tagSize, found
	}
	if size >= etherSize+tagSize {
		return 0, 0, more
	}
	return typ, etherSize, found
}

// skipTags follows tags, the first of which begins at off, to the EtherType
// behind the last and where that ends. It is opaque where the frame ends before
// that or has too many tags.
func skipTags(b []byte, size, off int) (typ uint16, end int, v verdict) {
	for range maxTags {
		if len(b) < off+tagSize {
			return 0, 0, beyond(off+tagSize, size)
		}
		typ = be16(b[off+2:])
		off += tagSize
		if !isTag(typ) {
			return typ, off, found
		}
	}
	return 0, 0, opaque
}

// layer2 is the layer-2 hash of a frame whose Ethernet header is in b.
func layer2(b []byte, typ uint16) uint32 { return uint32(b[5]^b[11]) ^ uint32(typ) }

func layer2Raw(b []byte, size int) (uint32, bool) {
	if len(b) < etherSize {
		return 0, size < etherSize
	}
	return layer2(b, be16(b[typeAt:])), true
}

func layer2VLAN(b []byte, size int) (uint32, bool) {
	if len(b) < etherSize {
		return 0, size < etherSize
	}
	typ := be16(b[typeAt:])
	if isTag(typ) {
		var v verdict
		if typ, _, v = outer(b, size); v == more {
			return 0, false
		}
	}
	return layer2(b, typ), true
}

// srcMAC is the XOR of the two halves of the source address, each a number of
// 24 bits in wire order. b holds an Ethernet header.
func srcMAC(b []byte) uint32 {
	hi := uint32(b[6])<<16 | uint32(b[7])<<8 | uint32(b[8])
	lo := uint32(b[9])<<16 | uint32(b[10])<<8 | uint32(b[11])
	return hi ^ lo
}

func vlanSrcMACRaw(b []byte, size int) (uint32, bool) {
	if len(b) < etherSize {
		return 0, size < etherSize
	}
	return srcMAC(b), true
}

func vlanSrcMACVLAN(b []byte, size int) (uint32, bool) {
	if len(b) < etherSize {
		return 0, size < etherSize
	}
	_, end, v := outer(b, size)
	if v == more {
		return 0, false
	}
	if end == etherSize {
		return srcMAC(b), true
	}
	return srcMAC(b) ^ uint32(be16(b[etherSize:])), true
}
