package sandbox

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Taken is the error of an address that another host has.
type Taken struct {
	Addr netip.Addr
	// By is the other's Ethernet address.
	By tcpip.LinkAddress
}

// Error tells both.
func (t Taken) Error() string {
	return fmt.Sprintf("address %s is in use: the host with the Ethernet address %s has it", t.Addr, t.By)
}

// probe returns the frame that asks whether anybody has an address: an ARP probe
// (RFC 5227, section 2.1.1), or a neighbour solicitation from nobody (RFC 4862,
// section 5.4.2).
func probe(own tcpip.LinkAddress, addr netip.Addr) []byte {
	if addr.Is4() {
		arp := header.ARP(make([]byte, header.ARPSize))
		arp.SetIPv4OverEthernet()
		arp.SetOp(header.ARPRequest)
		copy(arp.HardwareAddressSender(), own)
		copy(arp.ProtocolAddressTarget(), addr.AsSlice())
		return append(ethernet(header.EthernetBroadcastAddress, own, header.ARPProtocolNumber), arp...)
	}
	target := tcpip.AddrFrom16(addr.As16())
	group := header.SolicitedNodeAddr(target)
	icmp := header.ICMPv6(make([]byte, header.ICMPv6NeighborSolicitMinimumSize))
	icmp.SetType(header.ICMPv6NeighborSolicit)
	header.NDPNeighborSolicit(icmp.MessageBody()).SetTargetAddress(target)
	icmp.SetChecksum(^checksum.Checksum(icmp, header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, header.IPv6Any, group, uint16(len(icmp)))))
	ip := header.IPv6(make([]byte, header.IPv6MinimumSize))
	ip.Encode(&header.IPv6Fields{
		PayloadLength: uint16(len(icmp)), TransportProtocol: header.ICMPv6ProtocolNumber,
		HopLimit: header.NDPHopLimit, SrcAddr: header.IPv6Any, DstAddr: group,
	})
	frame := ethernet(header.EthernetAddressFromMulticastIPv6Address(group), own, header.IPv6ProtocolNumber)
	return append(append(frame, ip...), icmp...)
}

// ethernet returns the header of a frame.
func ethernet(to, from tcpip.LinkAddress, protocol tcpip.NetworkProtocolNumber) []byte {
	return binary.BigEndian.AppendUint16([]byte(string(to)+string(from)), uint16(protocol))
}

// claim reads from a frame which address its sender has, or is about to take.
// ok is false for all other frames.
func claim(frame []byte) (t Taken, ok bool) {
	if len(frame) < header.EthernetMinimumSize {
		return t, false
	}
	ethernet, rest := header.Ethernet(frame), frame[header.EthernetMinimumSize:]
	switch ethernet.Type() {
	case header.ARPProtocolNumber:
		return claimOfARP(rest)
	case header.IPv6ProtocolNumber:
		t.By = ethernet.SourceAddress()
		t.Addr, ok = claimOfNDP(rest)
	}
	return t, ok
}

func claimOfARP(b []byte) (t Taken, ok bool) {
	arp := header.ARP(b)
	if !arp.IsValid() {
		return t, false
	}
	t.By = tcpip.LinkAddress(arp.HardwareAddressSender())
	t.Addr, _ = netip.AddrFromSlice(arp.ProtocolAddressSender())
	if t.Addr.IsUnspecified() && arp.Op() == header.ARPRequest { // another's probe
		t.Addr, _ = netip.AddrFromSlice(arp.ProtocolAddressTarget())
	}
	return t, !t.Addr.IsUnspecified()
}

func claimOfNDP(b []byte) (addr netip.Addr, ok bool) {
	ip := header.IPv6(b)
	if len(b) < header.IPv6MinimumSize || ip.NextHeader() != uint8(header.ICMPv6ProtocolNumber) || ip.HopLimit() != header.NDPHopLimit {
		return addr, false
	}
	icmp := header.ICMPv6(b[header.IPv6MinimumSize:])
	if len(icmp) < header.ICMPv6NeighborSolicitMinimumSize {
		return addr, false
	}
	switch icmp.Type() {
	case header.ICMPv6NeighborAdvert:
	case header.ICMPv6NeighborSolicit:
		if ip.SourceAddress() != header.IPv6Any {
			return addr, false
		}
	default:
		return addr, false
	}
	// The target is at the same place in both.
	return netip.AddrFrom16(header.NDPNeighborAdvert(icmp.MessageBody()).TargetAddress().As16()), true
}
