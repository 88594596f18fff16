// Package flowspec reads flows as people write them, and makes the first bytes of
// their frames:
//
//	tcp:10.0.0.2:4000-10.0.0.1:80
//	udp:[fd00::2]:4000-[fd00::1]:53
//	icmp:10.0.0.2-10.0.0.1
package flowspec

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Flow is who speaks to whom by what.
type Flow struct {
	// Protocol is IP's number: 6, 17, 1 or 58.
	Protocol uint8
	// From and To are both IPv4 or both IPv6. The ports of ICMP are 0.
	From, To netip.AddrPort
}

const forms = "allowed are tcp:IP:PORT-IP:PORT, udp:IP:PORT-IP:PORT and icmp:IP-IP, with IPv6 addresses in brackets before a port"

// Parse reads a flow. The error names what is wrong and what is allowed.
func Parse(text string) (Flow, error) {
	protocol, ends, _ := strings.Cut(text, ":")
	from, to, ok := strings.Cut(ends, "-")
	if !ok {
		return Flow{}, fmt.Errorf("flow %q: %s", text, forms)
	}
	parse := netip.ParseAddrPort
	if protocol == "icmp" {
		parse = func(s string) (netip.AddrPort, error) {
			a, err := netip.ParseAddr(strings.Trim(s, "[]"))
			return netip.AddrPortFrom(a, 0), err
		}
	}
	number, ok := map[string]uint8{"tcp": 6, "udp": 17, "icmp": 1}[protocol]
	f := Flow{Protocol: number}
	var err, err2 error
	f.From, err = parse(from)
	f.To, err2 = parse(to)
	switch {
	case !ok, err != nil, err2 != nil:
		return Flow{}, fmt.Errorf("flow %q: %s", text, forms)
	case f.From.Addr().Zone() != "" || f.To.Addr().Zone() != "":
		return Flow{}, fmt.Errorf("flow %q: addresses have no zone here", text)
	case f.From.Addr().Is4() != f.To.Addr().Is4():
		return Flow{}, fmt.Errorf("flow %q: one end is IPv4 and the other IPv6", text)
	}
	if protocol == "icmp" && f.To.Addr().Is6() {
		f.Protocol = 58
	}
	return f, nil
}

// Frame returns the flow's headers in an Ethernet frame: what hashes look at. vlan is
// 0 for no tag.
func (f Flow) Frame(from, to tcpip.LinkAddress, vlan uint16) []byte {
	frame := make([]byte, 12, 80)
	copy(frame, to)
	copy(frame[6:], from)
	if vlan != 0 {
		frame = binary.BigEndian.AppendUint16(frame, 0x8100)
		frame = binary.BigEndian.AppendUint16(frame, vlan)
	}
	transport := make([]byte, 20)
	binary.BigEndian.PutUint16(transport, f.From.Port())
	binary.BigEndian.PutUint16(transport[2:], f.To.Port())
	switch f.Protocol {
	case 1:
		transport[0] = byte(header.ICMPv4Echo)
	case 58:
		transport[0] = byte(header.ICMPv6EchoRequest)
	}
	src, dst := tcpip.AddrFromSlice(f.From.Addr().AsSlice()), tcpip.AddrFromSlice(f.To.Addr().AsSlice())
	if f.From.Addr().Is4() {
		frame = binary.BigEndian.AppendUint16(frame, uint16(header.IPv4ProtocolNumber))
		ip := header.IPv4(make([]byte, header.IPv4MinimumSize))
		ip.Encode(&header.IPv4Fields{TotalLength: header.IPv4MinimumSize + uint16(len(transport)), TTL: 64, Protocol: f.Protocol, SrcAddr: src, DstAddr: dst})
		return append(append(frame, ip...), transport...)
	}
	frame = binary.BigEndian.AppendUint16(frame, uint16(header.IPv6ProtocolNumber))
	ip := header.IPv6(make([]byte, header.IPv6MinimumSize))
	ip.Encode(&header.IPv6Fields{PayloadLength: uint16(len(transport)), TransportProtocol: tcpip.TransportProtocolNumber(f.Protocol), HopLimit: 64, SrcAddr: src, DstAddr: dst})
	return append(append(frame, ip...), transport...)
}
