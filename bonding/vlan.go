package bonding

import (
	"fmt"
	"slices"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// maxVLANs bounds how many VLAN devices a bond knows of: all numbers, with both
// kinds of tag.
const maxVLANs = 2 * 4095

// vlanDevice is a VLAN device directly on the bond.
type vlanDevice struct {
	tag link.VLANTag
	// address returns the device's present MAC address; it takes no lock of
	// the bond's.
	address func() tcpip.LinkAddress
}

var _ link.VLANEndpoint = (*Bond)(nil)

// AddVLAN tells of a VLAN device on the bond, for which it sends frames of its
// own. Slaves that want to know are told as well: all of them, or, where one
// refuses, none. It implements link.VLANEndpoint.
func (b *Bond) AddVLAN(tag link.VLANTag, address func() tcpip.LinkAddress) error {
	if err := tag.Validate(); err != nil {
		return fmt.Errorf("bond %s: %w", b.Name(), err)
	}
	var err error
	b.fromAbove(func(instant) {
		switch {
		case slices.ContainsFunc(b.vlans, hasTag(tag)):
			err = fmt.Errorf("bond %s: VLAN %s has a device already", b.Name(), tag)
			return
		case len(b.vlans) >= maxVLANs:
			err = fmt.Errorf("bond %s: VLAN %s is one too many: allowed are %d", b.Name(), tag, maxVLANs)
			return
		}
		v := vlanDevice{tag, address}
		for i, s := range b.slaves {
			if err = s.addVLANs(v); err != nil {
				err = &SlaveError{"set", s.name, err.Error(), ErrInvalid}
				for _, told := range b.slaves[:i] {
					told.removeVLANs(v)
				}
				return
			}
		}
		b.vlans = append(b.vlans, v)
	})
	return err
}

// RemoveVLAN implements link.VLANEndpoint.
func (b *Bond) RemoveVLAN(tag link.VLANTag) {
	b.fromAbove(func(instant) {
		i := slices.IndexFunc(b.vlans, hasTag(tag))
		if i < 0 {
			return
		}
		for _, s := range b.slaves {
			s.removeVLANs(b.vlans[i])
		}
		b.vlans = slices.Delete(b.vlans, i, i+1)
		b.forgetClients(tag)
	})
}

func hasTag(tag link.VLANTag) func(vlanDevice) bool {
	return func(v vlanDevice) bool { return v.tag == tag }
}

// addVLANs tells a slave of VLAN devices above it: all, or, where it refuses
// one, none. The bond's lock is held.
func (s *slave) addVLANs(vlans ...vlanDevice) error {
	ep, ok := s.ep.(link.VLANEndpoint)
	if !ok {
		return nil
	}
	var err error
	s.bond.set(func() {
		for i, v := range vlans {
			if err = ep.AddVLAN(v.tag, v.address); err != nil {
				err = fmt.Errorf("VLAN %s: %w", v.tag, err)
				for _, told := range vlans[:i] {
					ep.RemoveVLAN(told.tag)
				}
				return
			}
		}
	})
	return err
}

// removeVLANs undoes addVLANs.
func (s *slave) removeVLANs(vlans ...vlanDevice) {
	ep, ok := s.ep.(link.VLANEndpoint)
	if !ok {
		return
	}
	s.bond.set(func() {
		for _, v := range vlans {
			ep.RemoveVLAN(v.tag)
		}
	})
}

// tellVLANs tells a slave-to-be of the VLAN devices, and returns those told.
func (b *Bond) tellVLANs(s *slave) (told []vlanDevice, err error) {
	b.control(func(instant) {
		told = slices.Clone(b.vlans)
		err = s.addVLANs(told...)
	})
	if err != nil {
		return nil, &SlaveError{"enslave", s.name, err.Error(), ErrInvalid}
	}
	return told, nil
}

// tellAbove tells a new slave what those above want of all slaves; told are the
// VLAN devices that it knows of. The bond's lock is held.
func (b *Bond) tellAbove(s *slave, told []vlanDevice) {
	if !slices.EqualFunc(told, b.vlans, func(x, y vlanDevice) bool { return x.tag == y.tag }) {
		s.removeVLANs(told...)
		b.warnError(s.addVLANs(b.vlans...))
	}
	b.warnError(s.addAddresses(b.ownAddresses()...))
}

// forgetAbove undoes tellAbove for a slave that has left. The bond's lock is
// held.
func (b *Bond) forgetAbove(s *slave) {
	s.removeVLANs(b.vlans...)
	b.warnError(s.removeAddresses(b.ownAddresses()...))
}
