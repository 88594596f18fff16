package packet

import (
	"fmt"
	"net"
	"sync"

	"bondstack/link/internal/kernel"

	"github.com/vishvananda/netlink"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// hardware is what an endpoint does to the address of the kernel's interface.
type hardware struct {
	// mu guards the following, and is held over the change itself.
	mu sync.Mutex
	// original is the address that the interface had when the endpoint was
	// made; wanted the one it is to have, if changed.
	original, wanted kernel.MAC
	changed          bool
	// failure is why the last change failed.
	failure error
}

// LinkAddress implements stack.LinkEndpoint. It is the interface's own until
// SetLinkAddress.
func (e *Endpoint) LinkAddress() tcpip.LinkAddress { return e.filter.State().Own() }

// SetLinkAddress implements stack.LinkEndpoint: unicast frames for the address
// are let through, and for the one before no more. The interface keeps its
// address, unless Options.SetHardwareAddress; Warnings tells when it could not
// be changed. What is not the address of one station changes nothing.
func (e *Endpoint) SetLinkAddress(addr tcpip.LinkAddress) {
	mac, err := kernel.ParseMAC(addr)
	if err != nil {
		return
	}
	e.filter.SetOwn(mac)
	if !e.options.SetHardwareAddress {
		return
	}
	h := &e.hardware
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted, h.changed = mac, mac != h.original
	h.failure = e.setHardware(mac)
}

// setHardware changes the address of the interface.
func (e *Endpoint) setHardware(mac kernel.MAC) error {
	return e.ns.Do(func() error {
		found, err := netlink.LinkByName(e.name)
		if err == nil {
			err = netlink.LinkSetHardwareAddr(found, mac[:])
		}
		if err != nil {
			return fmt.Errorf("set the address of interface %q to %s: %w", e.name, net.HardwareAddr(mac[:]), err)
		}
		return nil
	})
}

// renewHardware gives the address to an interface that came back.
func (e *Endpoint) renewHardware() {
	h := &e.hardware
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed {
		h.failure = e.setHardware(h.wanted)
	}
}

// restoreHardware gives the interface the address back that it had. Where it is
// gone there is nothing to restore.
func (e *Endpoint) restoreHardware() {
	h := &e.hardware
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed {
		h.changed = false
		h.failure = e.setHardware(h.original)
	}
}

// SetPromiscuous implements link.FilterEndpoint.
func (e *Endpoint) SetPromiscuous(on bool) error {
	e.filter.SetPromiscuous(on)
	return nil
}

// AddLinkAddress implements link.FilterEndpoint. The error says that addr is
// not the address of one station.
func (e *Endpoint) AddLinkAddress(addr tcpip.LinkAddress) error { return e.named(e.filter.Add(addr)) }

// RemoveLinkAddress implements link.FilterEndpoint. The error says that addr is
// not the address of one station.
func (e *Endpoint) RemoveLinkAddress(addr tcpip.LinkAddress) error {
	return e.named(e.filter.Remove(addr))
}

// named names the interface in an error, if it is one.
func (e *Endpoint) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("packet: interface %q: %w", e.name, err)
}
