package xmithash

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// The addresses of the test frames, those of the specification's table.
var (
	dstMAC  = []byte{0x02, 0, 0, 0, 0, 0xaa}
	srcMAC1 = []byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}
	src4    = addr("192.168.1.10")
	dst4    = addr("10.0.0.5")
	src6    = addr("2001:db8::10")
	dst6    = addr("2001:db8:1::5")
)

func addr(s string) []byte { return netip.MustParseAddr(s).AsSlice() }

func u16(v int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }

// A payload is what an EtherType announces.
type payload struct {
	typ  int
	data []byte
}

// ether makes a frame of at least 60 bytes, with tags from the outside in.
func ether(p payload, tags ...[]byte) []byte { return etherBetween(dstMAC, srcMAC1, p, tags...) }

func etherBetween(dst, src []byte, p payload, tags ...[]byte) []byte {
	f := slices.Concat(dst, src, slices.Concat(tags...), u16(p.typ), p.data)
	return append(f, make([]byte, max(0, 60-len(f)))...)
}

func tag(tpid, tci int) []byte { return slices.Concat(u16(tpid), u16(tci)) }

// ports makes the first 8 bytes of TCP, UDP and the like.
func ports(src, dst int) []byte { return slices.Concat(u16(src), u16(dst), make([]byte, 4)) }

func ip4(proto, frag int, data []byte) payload { return ip4Between(src4, dst4, proto, frag, data) }

func ip4Between(src, dst []byte, proto, frag int, data []byte) payload {
	return payload{0x0800, slices.Concat([]byte{0x45, 0}, u16(20+len(data)), []byte{0, 0}, u16(frag),
		[]byte{64, byte(proto), 0, 0}, src, dst, data)}
}

func ip6(proto int, data []byte) payload { return ip6Between(src6, dst6, proto, data) }

func ip6Between(src, dst []byte, proto int, data []byte) payload {
	return payload{0x86dd, slices.Concat([]byte{0x60, 0, 0, 0}, u16(len(data)), []byte{byte(proto), 64}, src, dst, data)}
}

func icmpEcho(typ, code, id int) []byte {
	return slices.Concat([]byte{byte(typ), byte(code), 0, 0}, u16(id), []byte{0, 1}, make([]byte, 16))
}

func arp(sender, target []byte) payload {
	return payload{0x0806, slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, 1}, srcMAC1, sender, make([]byte, 6), target)}
}
