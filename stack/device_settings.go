package stack

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/link"
)

// SetUp sets a device administratively up or down. A NIC that is down neither
// sends nor receives. A device in that state already succeeds and does nothing.
func (d *Devices) SetUp(index tcpip.NICID, up bool) error {
	err := d.changeDevice(index, func(_ *draft, dev *Device) (DeviceEventKind, error) {
		if dev.up == up {
			return "", nil
		}
		dev.up = up
		if up {
			return DeviceUp, dev.port.enable()
		}
		return DeviceDown, dev.port.disable()
	})
	if err != nil {
		return fmt.Errorf("stack: set device %s: %w", map[bool]string{true: "up", false: "down"}[up], err)
	}
	return nil
}

func (p *devicePort) enable() error {
	if !p.hasNIC {
		return nil
	}
	if err := p.devices.stack.EnableNIC(p.index); err != nil {
		return errorOf(err)
	}
	return nil
}

func (p *devicePort) disable() error {
	if !p.hasNIC {
		return nil
	}
	if err := p.devices.stack.DisableNIC(p.index); err != nil {
		return errorOf(err)
	}
	return nil
}

// SetMTU sets the MTU of a device's link. The error names what the link allows,
// or its bond, which sets it for all its slaves.
func (d *Devices) SetMTU(index tcpip.NICID, mtu uint32) error {
	err := d.changeLink(index, func(p *devicePort) error {
		old := p.link.MTU()
		p.link.SetMTU(mtu)
		if got := p.link.MTU(); got != mtu {
			p.link.SetMTU(old)
			allowed := ""
			if r, ok := p.link.(link.MTUEndpoint); ok {
				least, greatest := r.MTURange()
				allowed = fmt.Sprintf(", allowed are %d to %d", least, greatest)
			}
			return fmt.Errorf("the link does not take it%s", allowed)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("stack: set MTU of device %d to %d: %w", index, mtu, err)
	}
	return nil
}

// SetAddress sets the link address of a device's link. The error names its
// bond, which sets it for all its slaves, or says that the link refuses.
func (d *Devices) SetAddress(index tcpip.NICID, address tcpip.LinkAddress) error {
	err := d.changeLink(index, func(p *devicePort) error {
		old := p.link.LinkAddress()
		p.link.SetLinkAddress(address)
		if p.link.LinkAddress() != address {
			p.link.SetLinkAddress(old)
			return fmt.Errorf("the link keeps %s", old)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("stack: set address of device %d to %s: %w", index, address, err)
	}
	return nil
}

// changeLink changes the link of a device that nobody holds. No lock is held: a
// bond waits here for who enslaves or releases a device of this table.
func (d *Devices) changeLink(index tcpip.NICID, change func(*devicePort) error) error {
	dev, ok := d.ByIndex(index)
	switch {
	case !ok:
		return fmt.Errorf("%w: index %d", ErrNoDevice, index)
	case dev.port.link == nil:
		return fmt.Errorf("%s has no link", dev.name)
	case dev.holder != nil:
		return fmt.Errorf("%w: %s is held by %s", ErrDeviceBusy, dev.name, dev.holder.Name())
	}
	if err := change(dev.port); err != nil {
		return err
	}
	dev.port.look()
	return nil
}
