package xdp

import (
	"encoding/binary"
	"fmt"

	"bondstack/link/internal/kernel"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// keyOf is an address as the program looks it up: its bytes, and two of zero.
func keyOf(mac kernel.MAC) uint64 {
	var b [8]byte
	copy(b[:], mac[:])
	return binary.NativeEndian.Uint64(b[:])
}

// LinkAddress implements stack.LinkEndpoint. It is the interface's own until
// SetLinkAddress.
func (e *Endpoint) LinkAddress() tcpip.LinkAddress { return e.filter.State().Own() }

// SetLinkAddress implements stack.LinkEndpoint: unicast frames for the address
// are let through, and for the one before no more. The interface keeps its
// address. What is not the address of one station changes nothing.
func (e *Endpoint) SetLinkAddress(addr tcpip.LinkAddress) {
	mac, err := kernel.ParseMAC(addr)
	if err != nil {
		return
	}
	e.change(func() error { e.filter.SetOwn(mac); return nil })
}

// SetPromiscuous implements link.FilterEndpoint. With ShareOthers the host gets
// no frames while it is on.
func (e *Endpoint) SetPromiscuous(on bool) error {
	return e.change(func() error { e.filter.SetPromiscuous(on); return nil })
}

// AddLinkAddress implements link.FilterEndpoint. The error says that addr is
// not the address of one station, or that the program has no room for it.
func (e *Endpoint) AddLinkAddress(addr tcpip.LinkAddress) error {
	return e.change(func() error { return e.filter.Add(addr) })
}

// RemoveLinkAddress implements link.FilterEndpoint. The error says that addr is
// not the address of one station.
func (e *Endpoint) RemoveLinkAddress(addr tcpip.LinkAddress) error {
	return e.change(func() error { return e.filter.Remove(addr) })
}

// change makes a change to the filter and has the program follow it.
func (e *Endpoint) change(edit func() error) error {
	e.filterMu.Lock()
	defer e.filterMu.Unlock()
	err := edit()
	if err == nil {
		e.openMu.RLock()
		defer e.openMu.RUnlock()
		if p := e.open.program; p != nil {
			err = p.follow(e.filter.State())
		}
	}
	if err != nil {
		return fmt.Errorf("xdp: interface %q: %w", e.name, err)
	}
	return nil
}
