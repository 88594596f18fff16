package xmithash

import (
	"encoding/binary"
	"slices"
	"strings"
)

// This is the hash once more, slow and obvious: whole frames only, each header
// a slice that is eaten from the front, addresses kept as bytes, recursion for
// nesting. It shares no code with the package.

type oracleFlow struct {
	src, dst []byte
	x        []byte // the 4 bytes of the port word, or nil
}

func oracle(policy string, vlanBeside bool, frame []byte) uint32 {
	if len(frame) < 14 {
		return 0
	}
	beside, rest := []byte{0, 0}, frame[12:] // rest begins with an EtherType
	if vlanBeside && oracleTag(rest) && len(rest) >= 6 {
		beside, rest = rest[2:4], rest[4:]
	}
	l2 := uint32(frame[5]) ^ uint32(frame[11]) ^ oracleNumber(rest[:2])
	if policy == "vlan+srcmac" {
		return oracleNumber(frame[6:9]) ^ oracleNumber(frame[9:12]) ^ oracleNumber(beside)
	}
	if policy == "layer2" {
		return l2
	}
	typ, body := rest[:2], rest[2:]
	bare := rest
	for n := 0; oracleTag(bare) && len(bare) >= 6 && n < 8; n++ {
		bare = bare[4:]
	}
	if !oracleTag(bare) {
		body = bare[2:]
		if vlanBeside {
			typ = bare[:2]
		}
	}
	var f *oracleFlow
	if strings.HasPrefix(policy, "encap") {
		f = oracleDeep(typ, body, oracleFlow{}, 16)
	} else {
		f = oraclePlain(typ, body, true)
	}
	if f == nil {
		return l2
	}
	h := l2
	if strings.HasSuffix(policy, "3+4") {
		h = oracleWords(f.x)
	}
	h ^= oracleWords(f.src) ^ oracleWords(f.dst)
	h ^= h >> 16
	h ^= h >> 8
	if strings.HasSuffix(policy, "3+4") {
		h >>= 1
	}
	return h
}

func oracleTag(b []byte) bool {
	return len(b) >= 2 && (string(b[:2]) == "\x81\x00" || string(b[:2]) == "\x88\xa8")
}

func oracleNumber(b []byte) (n uint32) {
	for _, c := range b {
		n = n<<8 | uint32(c)
	}
	return n
}

func oracleWords(b []byte) (x uint32) {
	for w := range slices.Chunk(b, 4) {
		x ^= binary.LittleEndian.Uint32(w)
	}
	return x
}

// oracleIP splits an IP packet; proto is -1 for an IPv4 fragment. after is nil
// where the header's own length runs beyond the frame.
func oracleIP(typ, b []byte) (f *oracleFlow, proto int, after []byte) {
	switch string(typ) {
	case "\x08\x00":
		if len(b) < 20 {
			return nil, 0, nil
		}
		proto = int(b[9])
		if oracleNumber(b[6:8])&0x2000 != 0 || oracleNumber(b[6:8])&0x1fff != 0 {
			proto = -1
		}
		return &oracleFlow{src: b[12:16], dst: b[16:20]}, proto, b[min(len(b), int(b[0]%16)*4):]
	case "\x86\xdd":
		if len(b) < 40 {
			return nil, 0, nil
		}
		return &oracleFlow{src: b[8:24], dst: b[24:40]}, int(b[6]), b[40:]
	}
	return nil, 0, nil
}

func oraclePorts(proto int, b []byte) []byte {
	if proto == 51 {
		b = b[min(4, len(b)):]
	}
	if slices.Contains([]int{6, 17, 33, 50, 51, 132, 136}, proto) && len(b) >= 4 {
		return b[:4]
	}
	return nil
}

func oracleEcho(b []byte) []byte {
	if len(b) < 8 || !slices.Contains([]byte{0, 8, 13, 14, 128, 129}, b[0]) {
		return nil
	}
	if b[4] == 0 && b[5] == 0 {
		return []byte{b[0], b[1], 1, 0}
	}
	return []byte{b[0], b[1], b[5], b[4]}
}

func oraclePlain(typ, b []byte, quotes bool) *oracleFlow {
	f, proto, after := oracleIP(typ, b)
	if f == nil {
		return nil
	}
	f.x = oraclePorts(proto, after)
	if quotes && (proto == 1 || proto == 58) && len(after) >= 8 {
		errors := []byte{3, 4, 5, 11, 12}
		if proto == 58 {
			errors = []byte{1, 2, 3, 4}
		}
		if slices.Contains(errors, after[0]) {
			return oraclePlain(typ, after[8:], false)
		}
		f.x = oracleEcho(after)
	}
	return f
}

// oracleDeep follows the EtherType typ; left counts the headers that may still
// be opened, this one included.
func oracleDeep(typ, b []byte, last oracleFlow, left int) *oracleFlow {
	if left == 0 {
		return &last
	}
	switch string(typ) {
	case "\x81\x00", "\x88\xa8":
		if len(b) < 4 {
			return nil
		}
		return oracleDeep(b[2:4], b[4:], last, left-1)
	case "\x88\x64":
		if len(b) < 8 || b[0] != 0x11 || b[1] != 0 {
			return nil
		}
		ppp, after := b[6:8], b[8:]
		if ppp[0]&1 == 1 {
			ppp, after = []byte{0, ppp[0]}, b[7:]
		}
		if t := oraclePPP(ppp); t != nil {
			return oracleDeep(t, after, last, left-1)
		}
		if ppp[0]&1 == 0 && ppp[1]&1 == 1 {
			return &last
		}
		return nil
	case "\x08\x06", "\x80\x35", "\x88\x47", "\x88\x48":
		return &last
	case "\x89\x06":
		return oracleIf(len(b) >= 38, last)
	case "\x88\xf7":
		return oracleIf(len(b) >= 34, last)
	}
	f, proto, after := oracleIP(typ, b)
	if f == nil || typ[0] == 8 && b[0]%16 < 5 {
		return nil
	}
	if proto == -1 {
		return f
	}
	return oracleUpper(string(typ) == "\x86\xdd", proto, after, *f, left)
}

func oracleIf(ok bool, f oracleFlow) *oracleFlow {
	if !ok {
		return nil
	}
	return &f
}

func oraclePPP(proto []byte) []byte {
	switch string(proto) {
	case "\x00\x21":
		return []byte{0x08, 0x00}
	case "\x00\x57":
		return []byte{0x86, 0xdd}
	}
	return nil
}

func oracleUpper(v6 bool, proto int, b []byte, f oracleFlow, left int) *oracleFlow {
	if left == 0 {
		return &f
	}
	switch {
	case proto == 4:
		return oracleDeep([]byte{0x08, 0x00}, b, f, left-1)
	case proto == 41:
		return oracleDeep([]byte{0x86, 0xdd}, b, f, left-1)
	case proto == 47:
		return oracleGRE(b, f, left)
	case v6 && (proto == 0 || proto == 43 || proto == 60):
		if len(b) < 2 {
			return nil
		}
		return oracleUpper(v6, int(b[0]), b[min(len(b), int(b[1])*8+8):], f, left-1)
	case v6 && proto == 44:
		return oracleIf(len(b) >= 8, f)
	case proto == 1 || proto == 58:
		f.x = oracleEcho(b)
	default:
		f.x = oraclePorts(proto, b)
	}
	return &f
}

func oracleGRE(b []byte, f oracleFlow, left int) *oracleFlow {
	if len(b) < 4 {
		return nil
	}
	flags, typ := b[0], b[2:4]
	version := b[1] & 7
	ppp := string(typ) == "\x88\x0b"
	if flags&0x40 != 0 || version > 1 || version == 1 && !(ppp && flags&0x20 != 0) {
		return &f
	}
	skip := 4
	if flags&0x80 != 0 {
		skip += 4
	}
	if flags&0x20 != 0 {
		skip += 4
		if len(b) < skip {
			return nil
		}
	}
	if flags&0x10 != 0 {
		skip += 4
	}
	if version == 1 && b[1]&0x80 != 0 {
		skip += 4
	}
	b = b[min(skip, len(b)):]
	switch {
	case version == 1:
		if len(b) < 4 || oraclePPP(b[2:4]) == nil {
			return nil
		}
		return oracleDeep(oraclePPP(b[2:4]), b[4:], f, left-1)
	case string(typ) == "\x65\x58":
		if len(b) < 14 {
			return nil
		}
		return oracleDeep(b[12:14], b[14:], f, left-1)
	}
	return oracleDeep(typ, b, f, left-1)
}
