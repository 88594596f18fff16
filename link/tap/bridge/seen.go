package bridge

import (
	"net/netip"
	"sync"
	"time"

	"bondstack/link/internal/kernel"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// maxSeen is how many addresses a bridge remembers to have seen.
	maxSeen = 256
	// seenLasts is how long an address that was seen is believed in.
	seenLasts = 5 * time.Minute
)

// seenTable is who has been seen to speak from which address behind the device.
// Only ARP and neighbour discovery come here, so a lock does.
type seenTable struct {
	clock tcpip.Clock

	// mu guards the following.
	mu     sync.Mutex
	hosts  map[netip.Addr]seenHost
	latest uint64 // number of the last sighting
}

// seenHost is where an address was seen.
type seenHost struct {
	mac    tcpip.LinkAddress
	tags   string // the frame's tags as they were, 4 bytes each
	at     tcpip.MonotonicTime
	number uint64
}

func newSeenTable(clock tcpip.Clock) *seenTable {
	return &seenTable{clock: clock, hosts: map[netip.Addr]seenHost{}}
}

// sighting is that a host speaks from an address.
type sighting struct {
	addr netip.Addr
	mac  tcpip.LinkAddress
	tags string
}

// note remembers a sighting behind the device. Beyond the limit the one that was
// seen longest ago gives way.
func (t *seenTable) note(s sighting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.hosts[s.addr]; !known && len(t.hosts) >= maxSeen {
		oldest := netip.Addr{}
		for a, h := range t.hosts {
			if !oldest.IsValid() || h.number < t.hosts[oldest].number {
				oldest = a
			}
		}
		delete(t.hosts, oldest)
	}
	t.latest++
	t.hosts[s.addr] = seenHost{s.mac, s.tags, t.clock.NowMonotonic(), t.latest}
}

// elsewhere forgets an address that was seen behind the link.
func (t *seenTable) elsewhere(s sighting) { t.forget(s.addr) }

func (t *seenTable) forget(addr netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.hosts, addr)
}

// list returns what is still believed in.
func (t *seenTable) list() []sighting {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.NowMonotonic()
	var list []sighting
	for a, h := range t.hosts {
		if now.Sub(h.at) > seenLasts {
			delete(t.hosts, a)
			continue
		}
		list = append(list, sighting{a, h.mac, h.tags})
	}
	return list
}

// look has f told of the address that a frame's sender speaks from, if it is a
// frame by which hosts tell each other where they are.
func (b *Bridge) look(pkt *stack.PacketBuffer, f func(sighting)) {
	frame := kernel.FirstPiece(pkt)
	if len(frame) < header.EthernetMinimumSize || !mayTell(frame) {
		return
	}
	if s, ok := parseSighting(frame); ok {
		f(s)
	}
}

// mayTell is a first, fast look: most frames are IP, and no ICMPv6.
func mayTell(frame []byte) bool {
	switch frame[12] {
	case 0x08:
		return frame[13] == 0x06
	case 0x86:
		return len(frame) > header.EthernetMinimumSize+6 && frame[header.EthernetMinimumSize+6] == uint8(header.ICMPv6ProtocolNumber)
	case 0x81, 0x88:
		return true
	}
	return false
}

// parseSighting reads ARP, and neighbour solicitations and advertisements. An
// address that is being probed for (0.0.0.0, ::) tells nothing.
func parseSighting(frame []byte) (sighting, bool) {
	protocol, at := payload(frame)
	if at == 0 {
		return sighting{}, false
	}
	s := sighting{
		mac:  tcpip.LinkAddress(frame[6:12]),
		tags: string(frame[header.EthernetMinimumSize-2 : at-2]),
	}
	body := frame[at:]
	switch protocol {
	case header.ARPProtocolNumber:
		arp := header.ARP(body)
		if !arp.IsValid() {
			return s, false
		}
		s.mac = tcpip.LinkAddress(arp.HardwareAddressSender())
		s.addr = netip.AddrFrom4([4]byte(arp.ProtocolAddressSender()))
	case header.IPv6ProtocolNumber:
		ip := header.IPv6(body)
		if len(ip) <= header.IPv6MinimumSize || ip.NextHeader() != uint8(header.ICMPv6ProtocolNumber) {
			return s, false
		}
		switch header.ICMPv6Type(body[header.IPv6MinimumSize]) {
		case header.ICMPv6NeighborSolicit, header.ICMPv6NeighborAdvert:
		default:
			return s, false
		}
		s.addr = netip.AddrFrom16([16]byte(ip.SourceAddressSlice()))
	default:
		return s, false
	}
	good := s.addr.IsValid() && !s.addr.IsUnspecified() && !s.addr.IsMulticast() && !s.addr.IsLoopback()
	return s, good && s.mac[0]&1 == 0
}
