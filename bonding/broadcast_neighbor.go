package bonding

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writer returns the function that sends packets by the mode and its options.
func (c *config) writer() writeFunc {
	if c.mode == IEEE8023AD && c.lacp.broadcastNeighbor {
		return writeBroadcastNeighbor
	}
	return c.mode.writer()
}

// writeBroadcastNeighbor sends what resolves addresses (ARP, neighbour
// solicitations and advertisements) by every port that distributes, and all else
// by the hash. It is for partners that are several switches which do not tell
// each other what they learn.
func writeBroadcastNeighbor(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	list := pkts.AsSlice()
	neighbors := 0
	for _, pkt := range list {
		if isNeighbor(pkt) {
			neighbors++
		}
	}
	switch {
	case neighbors == 0 || len(s.usable) == 0:
		return writeBalanceXOR(s, pkts, stripe)
	case neighbors == len(list):
		return s.copyTo(s.usable, pkts, stripe)
	}
	return s.writeMixed(pkts, stripe)
}

// writeMixed sends a list of which some go by every port.
func (s *snapshot) writeMixed(pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	sp := splitPool.Get().(*split)
	defer splitPool.Put(sp)
	for _, pkt := range pkts.AsSlice() {
		if isNeighbor(pkt) {
			sp.add(nil, pkt)
		} else {
			sp.add(s.usable[0], pkt) // any: it stands for those of the hash
		}
	}
	sent := 0
	var firstErr tcpip.Error
	for i := range sp.used {
		p := &sp.parts[i]
		var n int
		var err tcpip.Error
		if p.to == nil {
			n, err = s.copyTo(s.usable, p.list, stripe)
		} else {
			n, err = writeBalanceXOR(s, p.list, stripe)
		}
		sent += n
		if firstErr == nil {
			firstErr = err
		}
		p.to = nil
		empty(&p.list)
	}
	sp.used = 0
	return sent, firstErr
}

// isNeighbor reports whether a packet resolves addresses. Most packets are known
// by their marks, without a look at the frame.
func isNeighbor(pkt *stack.PacketBuffer) bool {
	if pkt.NetworkProtocolNumber == header.IPv4ProtocolNumber ||
		pkt.TransportProtocolNumber == header.TCPProtocolNumber ||
		pkt.TransportProtocolNumber == header.UDPProtocolNumber {
		return false
	}
	first := firstBytes(pkt)
	if len(first) >= neighborBytes {
		return isNeighborFrame(first)
	}
	var gathered [neighborBytes]byte
	return isNeighborFrame(gathered[:gather(pkt, gathered[:])])
}

// neighborBytes is how much of a frame isNeighborFrame looks at: a tagged one
// as far as the type of ICMPv6.
const neighborBytes = ethernetHeader + vlanTagSize + header.IPv6MinimumSize + 1

const vlanTagSize = 4

// isNeighborFrame reports whether a frame is ARP, or one of the two kinds of
// ICMPv6 that Linux means, without extension headers before it. One tag is
// skipped: Linux keeps that of a VLAN device beside the frame.
func isNeighborFrame(frame []byte) bool {
	if len(frame) < ethernetHeader {
		return false
	}
	kind, rest := header.Ethernet(frame).Type(), frame[ethernetHeader:]
	if (kind == etherTypeVLAN || kind == etherTypeQinQ) && len(rest) >= vlanTagSize {
		kind, rest = tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(rest[2:])), rest[vlanTagSize:]
	}
	switch {
	case kind == header.ARPProtocolNumber:
		return true
	case kind != header.IPv6ProtocolNumber, len(rest) <= header.IPv6MinimumSize,
		header.IPv6(rest).NextHeader() != uint8(header.ICMPv6ProtocolNumber):
		return false
	}
	message := header.ICMPv6Type(rest[header.IPv6MinimumSize])
	return message == header.ICMPv6NeighborSolicit || message == header.ICMPv6NeighborAdvert
}

// The EtherTypes of 802.1Q and 802.1ad tags.
const (
	etherTypeVLAN tcpip.NetworkProtocolNumber = 0x8100
	etherTypeQinQ tcpip.NetworkProtocolNumber = 0x88a8
)
