package packet

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// macAddress is an Ethernet address as a value that can be a map key.
type macAddress [header.EthernetAddressSize]byte

// broadcastAddress is the address of all stations.
var broadcastAddress = macAddress{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// filterState is one state of an addressFilter. It is never changed: a change
// publishes another one.
type filterState struct {
	own macAddress
	// ownAddress is own as gVisor has it.
	ownAddress  tcpip.LinkAddress
	more        map[macAddress]struct{}
	promiscuous bool
}

// addressFilter decides by its destination whether a received frame is let
// through. Receivers read it without a lock.
type addressFilter struct {
	state atomic.Pointer[filterState]
	// mu serialises changes.
	mu sync.Mutex
}

// change publishes the state that f made of a copy of the present one.
func (f *addressFilter) change(edit func(*filterState)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := filterState{}
	if now := f.state.Load(); now != nil {
		next = *now
		next.more = maps.Clone(now.more)
	}
	edit(&next)
	f.state.Store(&next)
}

// setOwn makes an address the endpoint's own.
func (f *addressFilter) setOwn(mac macAddress) {
	f.change(func(s *filterState) {
		s.own, s.ownAddress = mac, tcpip.LinkAddress(mac[:])
	})
}

// classify says what kind of address a frame's destination is, and whether the
// frame is let through.
func (s *filterState) classify(dst macAddress) (tcpip.PacketType, bool) {
	switch {
	case dst == s.own:
		return tcpip.PacketHost, true
	case dst == broadcastAddress:
		return tcpip.PacketBroadcast, true
	case dst[0]&1 != 0:
		return tcpip.PacketMulticast, true
	}
	if _, ok := s.more[dst]; ok {
		return tcpip.PacketHost, true
	}
	return tcpip.PacketOtherHost, s.promiscuous
}

// parseMAC checks that an address is one of a single station.
func parseMAC(addr tcpip.LinkAddress) (macAddress, error) {
	if len(addr) != header.EthernetAddressSize {
		return macAddress{}, fmt.Errorf("link address %q has %d bytes: an ethernet address has 6", string(addr), len(addr))
	}
	mac := macAddress([]byte(addr))
	if mac[0]&1 != 0 {
		return mac, fmt.Errorf("link address %s is a group address: want that of one station", addr)
	}
	return mac, nil
}
