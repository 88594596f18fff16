package wire

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/link"
)

var _ link.FilterEndpoint = (*Endpoint)(nil)

// filter is an end's address and which frames it lets through. The receiver
// reads an immutable snapshot.
type filter struct {
	now atomic.Pointer[filterSnapshot]
	// mu orders changes.
	mu sync.Mutex
}

// filterSnapshot is never changed once it is published.
type filterSnapshot struct {
	address     tcpip.LinkAddress
	own         uint64              // address, as mac makes it
	more        map[uint64]struct{} // further addresses
	promiscuous bool
}

func (f *filter) init(address tcpip.LinkAddress, promiscuous bool) {
	f.now.Store(&filterSnapshot{address: address, own: mac([]byte(address)), promiscuous: promiscuous})
}

// update publishes a copy of the snapshot that change has changed.
func (f *filter) update(change func(*filterSnapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := *f.now.Load()
	s.more = maps.Clone(s.more)
	change(&s)
	f.now.Store(&s)
}

// admit reports whether a frame for dst is let through, and what it is to this
// end.
func (s *filterSnapshot) admit(dst uint64) (tcpip.PacketType, bool) {
	switch {
	case dst == s.own:
		return tcpip.PacketHost, true
	case dst == broadcast:
		return tcpip.PacketBroadcast, true
	case dst&groupBit != 0:
		return tcpip.PacketMulticast, true
	}
	if _, ok := s.more[dst]; ok {
		return tcpip.PacketHost, true
	}
	return tcpip.PacketOtherHost, s.promiscuous
}

// LinkAddress implements stack.LinkEndpoint.
func (e *Endpoint) LinkAddress() tcpip.LinkAddress { return e.filter.now.Load().address }

// SetLinkAddress implements stack.LinkEndpoint. The new address is in force at
// once, both for AddHeader and for the filter. What is not six bytes, zero, or a
// group address is ignored: read back with LinkAddress.
func (e *Endpoint) SetLinkAddress(addr tcpip.LinkAddress) {
	if !validAddress(addr) {
		return
	}
	e.filter.update(func(s *filterSnapshot) { s.address, s.own = addr, mac([]byte(addr)) })
}

// SetPromiscuous implements link.FilterEndpoint. It never fails.
func (e *Endpoint) SetPromiscuous(on bool) error {
	e.filter.update(func(s *filterSnapshot) { s.promiscuous = on })
	return nil
}

// AddLinkAddress implements link.FilterEndpoint. Group addresses need not be
// added: they are always let through, and adding one does nothing.
func (e *Endpoint) AddLinkAddress(addr tcpip.LinkAddress) error {
	if len(addr) != 6 {
		return fmt.Errorf("wire: address to add is %v, allowed are six bytes", addr)
	}
	e.filter.update(func(s *filterSnapshot) {
		if s.more == nil {
			s.more = make(map[uint64]struct{})
		}
		s.more[mac([]byte(addr))] = struct{}{}
	})
	return nil
}

// RemoveLinkAddress implements link.FilterEndpoint.
func (e *Endpoint) RemoveLinkAddress(addr tcpip.LinkAddress) error {
	if len(addr) != 6 {
		return fmt.Errorf("wire: address to remove is %v, allowed are six bytes", addr)
	}
	e.filter.update(func(s *filterSnapshot) { delete(s.more, mac([]byte(addr))) })
	return nil
}
