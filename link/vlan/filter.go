package vlan

import (
	"errors"
	"fmt"
	"slices"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// asked is what the base's filter has been asked for, on behalf of those above.
// Links count no uses, so it does. It is changed with filterMu held, and mu where
// the table reads it.
type asked struct {
	addresses   map[tcpip.LinkAddress]*askedAddress
	promiscuous int // how many want it
}

type askedAddress struct {
	uses int
	// all is whether the base is promiscuous for the address's sake, as it
	// would not take it.
	all bool
}

// filtered returns the base's filter, if it has one.
func (t *Trunk) filtered() (link.FilterEndpoint, bool) {
	f, ok := t.base.(link.FilterEndpoint)
	return f, ok
}

// wantAddress has the base let frames for an address through: as one more of its
// addresses, or, where it refuses that, all. filterMu is held.
func (t *Trunk) wantAddress(addr tcpip.LinkAddress) error {
	if a := t.asked.addresses[addr]; a != nil {
		a.uses++
		return nil
	}
	a := &askedAddress{uses: 1}
	if f, ok := t.filtered(); ok {
		if err := f.AddLinkAddress(addr); err != nil {
			if more := t.wantAll(); more != nil {
				return fmt.Errorf("vlan: link does not receive for %s: %w", addr, errors.Join(err, more))
			}
			a.all = true
		}
	}
	t.asked.addresses[addr] = a
	return nil
}

// dropAddress undoes wantAddress. filterMu is held.
func (t *Trunk) dropAddress(addr tcpip.LinkAddress) {
	a := t.asked.addresses[addr]
	if a == nil {
		return
	}
	if a.uses--; a.uses > 0 {
		return
	}
	delete(t.asked.addresses, addr)
	if a.all {
		t.dropAll()
	} else if f, ok := t.filtered(); ok {
		_ = f.RemoveLinkAddress(addr) // an error leaves it as it is
	}
}

// wantAll has the base let all frames through. filterMu is held.
func (t *Trunk) wantAll() error {
	if f, ok := t.filtered(); ok && t.asked.promiscuous == 0 {
		if err := f.SetPromiscuous(true); err != nil {
			return err
		}
	}
	t.change(func() { t.asked.promiscuous++ })
	return nil
}

// dropAll undoes wantAll. filterMu is held.
func (t *Trunk) dropAll() {
	t.mu.Lock()
	t.asked.promiscuous--
	last := t.asked.promiscuous == 0
	t.publish()
	t.mu.Unlock()
	if f, ok := t.filtered(); ok && last {
		_ = f.SetPromiscuous(false) // an error leaves it as it is
	}
}

// setPromiscuous is SetPromiscuous of what is above.
func (t *Trunk) setPromiscuous(u *upper, on bool) error {
	t.filterMu.Lock()
	defer t.filterMu.Unlock()
	switch {
	case u.promiscuous == on:
		return nil
	case on:
		if err := t.wantAll(); err != nil {
			return err
		}
	default:
		t.dropAll()
	}
	t.change(func() { u.promiscuous = on })
	return nil
}

// addAddress is AddLinkAddress of what is above.
func (t *Trunk) addAddress(u *upper, addr tcpip.LinkAddress) error {
	if err := checkAddress(addr); err != nil {
		return fmt.Errorf("vlan: %w", err)
	}
	t.filterMu.Lock()
	defer t.filterMu.Unlock()
	if slices.Contains(u.more, addr) {
		return nil
	}
	if err := t.wantAddress(addr); err != nil {
		return err
	}
	t.change(func() { u.more = append(slices.Clone(u.more), addr) })
	return nil
}

// removeAddress is RemoveLinkAddress of what is above.
func (t *Trunk) removeAddress(u *upper, addr tcpip.LinkAddress) {
	t.filterMu.Lock()
	defer t.filterMu.Unlock()
	i := slices.Index(u.more, addr)
	if i < 0 {
		return
	}
	t.change(func() { u.more = slices.Delete(slices.Clone(u.more), i, i+1) })
	t.dropAddress(addr)
}

// forget has the base no longer filter for a device that has left.
func (t *Trunk) forget(d *Device) {
	t.filterMu.Lock()
	defer t.filterMu.Unlock()
	t.mu.Lock()
	u := d.upper
	d.upper.own, d.upper.more, d.upper.promiscuous = "", nil, false
	t.mu.Unlock()
	if u.own != "" {
		t.dropAddress(u.own)
	}
	for _, addr := range u.more {
		t.dropAddress(addr)
	}
	if u.promiscuous {
		t.dropAll()
	}
}

// ChangeLinkAddress gives the device an address of its own, for which the link
// receives from then on, or, with an empty one, the link's present address, also
// when that changes. An error leaves the address as it is.
func (d *Device) ChangeLinkAddress(addr tcpip.LinkAddress) error {
	t := d.trunk
	t.filterMu.Lock()
	defer t.filterMu.Unlock()
	if d.closed.Load() {
		return fmt.Errorf("vlan: VLAN %s: the device is closed", d.tag)
	}
	if addr != "" {
		err := checkAddress(addr)
		if err == nil {
			err = t.wantAddress(addr)
		}
		if err != nil {
			return fmt.Errorf("vlan: VLAN %s: %w", d.tag, err)
		}
	}
	old := d.upper.own
	t.change(func() { d.upper.own = addr })
	if addr == "" {
		d.own.Store(nil)
	} else {
		d.own.Store(&addr)
	}
	if old != "" {
		t.dropAddress(old)
	}
	return nil
}

// SetPromiscuous has the device deliver unicast frames of its VLAN for any
// address. It implements link.FilterEndpoint.
func (d *Device) SetPromiscuous(on bool) error { return d.trunk.setPromiscuous(&d.upper, on) }

// AddLinkAddress implements link.FilterEndpoint.
func (d *Device) AddLinkAddress(addr tcpip.LinkAddress) error {
	return d.trunk.addAddress(&d.upper, addr)
}

// RemoveLinkAddress implements link.FilterEndpoint.
func (d *Device) RemoveLinkAddress(addr tcpip.LinkAddress) error {
	d.trunk.removeAddress(&d.upper, addr)
	return nil
}

// SetPromiscuous has the trunk deliver unicast frames without a tag for any
// address. It implements link.FilterEndpoint.
func (t *Trunk) SetPromiscuous(on bool) error { return t.setPromiscuous(&t.upper, on) }

// AddLinkAddress implements link.FilterEndpoint.
func (t *Trunk) AddLinkAddress(addr tcpip.LinkAddress) error { return t.addAddress(&t.upper, addr) }

// RemoveLinkAddress implements link.FilterEndpoint.
func (t *Trunk) RemoveLinkAddress(addr tcpip.LinkAddress) error {
	t.removeAddress(&t.upper, addr)
	return nil
}
