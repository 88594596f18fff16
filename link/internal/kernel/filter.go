package kernel

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// MAC is an Ethernet address as a value that can be a map key.
type MAC [header.EthernetAddressSize]byte

// Broadcast is the address of all stations.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// FilterState is one state of an AddressFilter. It is never changed: a change
// publishes another one.
type FilterState struct {
	own MAC
	// ownAddress is own as gVisor has it.
	ownAddress  tcpip.LinkAddress
	more        map[MAC]struct{}
	promiscuous bool
}

// Own returns the endpoint's own address.
func (s *FilterState) Own() tcpip.LinkAddress { return s.ownAddress }

// Addresses returns the endpoint's own address and those added, and whether
// frames for all others pass too.
func (s *FilterState) Addresses() (unicast []MAC, promiscuous bool) {
	unicast = append(unicast, s.own)
	for mac := range s.more {
		unicast = append(unicast, mac)
	}
	return unicast, s.promiscuous
}

// Classify says what kind of address a frame's destination is, and whether the
// frame is let through.
func (s *FilterState) Classify(dst MAC) (tcpip.PacketType, bool) {
	switch {
	case dst == s.own:
		return tcpip.PacketHost, true
	case dst == Broadcast:
		return tcpip.PacketBroadcast, true
	case dst[0]&1 != 0:
		return tcpip.PacketMulticast, true
	}
	if _, ok := s.more[dst]; ok {
		return tcpip.PacketHost, true
	}
	return tcpip.PacketOtherHost, s.promiscuous
}

// AddressFilter decides by its destination whether a received frame is let
// through. Receivers read it without a lock. The zero value has the zero
// address for its own.
type AddressFilter struct {
	state atomic.Pointer[FilterState]
	// mu serialises changes.
	mu sync.Mutex
}

// State returns the present state.
func (f *AddressFilter) State() *FilterState { return f.state.Load() }

// change publishes the state that f made of a copy of the present one.
func (f *AddressFilter) change(edit func(*FilterState)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := FilterState{}
	if now := f.state.Load(); now != nil {
		next = *now
		next.more = maps.Clone(now.more)
	}
	edit(&next)
	f.state.Store(&next)
}

// SetOwn makes an address the endpoint's own.
func (f *AddressFilter) SetOwn(mac MAC) {
	f.change(func(s *FilterState) {
		s.own, s.ownAddress = mac, tcpip.LinkAddress(mac[:])
	})
}

// SetPromiscuous lets frames for all addresses through, or no more.
func (f *AddressFilter) SetPromiscuous(on bool) {
	f.change(func(s *FilterState) { s.promiscuous = on })
}

// Add lets frames for an address through as well. The error says that addr is
// not the address of one station.
func (f *AddressFilter) Add(addr tcpip.LinkAddress) error {
	mac, err := ParseMAC(addr)
	if err != nil {
		return err
	}
	f.change(func(s *FilterState) {
		if s.more == nil {
			s.more = map[MAC]struct{}{}
		}
		s.more[mac] = struct{}{}
	})
	return nil
}

// Remove undoes Add. The error is as there.
func (f *AddressFilter) Remove(addr tcpip.LinkAddress) error {
	mac, err := ParseMAC(addr)
	if err != nil {
		return err
	}
	f.change(func(s *FilterState) { delete(s.more, mac) })
	return nil
}

// ParseMAC checks that an address is one of a single station.
func ParseMAC(addr tcpip.LinkAddress) (MAC, error) {
	if len(addr) != header.EthernetAddressSize {
		return MAC{}, fmt.Errorf("link address %q has %d bytes: an ethernet address has 6", string(addr), len(addr))
	}
	mac := MAC([]byte(addr))
	if mac[0]&1 != 0 {
		return mac, fmt.Errorf("link address %s is a group address: want that of one station", addr)
	}
	return mac, nil
}
