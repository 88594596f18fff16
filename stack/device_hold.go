package stack

import (
	"fmt"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

// HoldDevice gives a device to a bond, which then has its link as a slave. It
// implements link.DeviceTable. The device must have been added Unattached. The
// error wraps ErrNoDevice or ErrDeviceBusy, or is the holder's.
func (d *Devices) HoldDevice(name string, holder link.DeviceHolder) (link.Device, error) {
	dev, ok := d.ByName(name)
	if !ok {
		return nil, fmt.Errorf("stack: hold device: %w: %q", ErrNoDevice, name)
	}
	err := d.changeDevice(dev.index, func(_ *draft, dev *Device) (DeviceEventKind, error) {
		if err := dev.mayHold(); err != nil {
			return "", fmt.Errorf("%w: %s %w", ErrDeviceBusy, dev.name, err)
		}
		dev.holder = holder
		return DeviceHeld, holder.SetDeviceName(dev.name)
	})
	if err != nil {
		return nil, fmt.Errorf("stack: hold device: %w", err)
	}
	return &heldDevice{dev.port, holder}, nil
}

// mayHold returns why nobody may have the device.
func (dev *Device) mayHold() error {
	switch {
	case dev.port.link == nil:
		return fmt.Errorf("has no link")
	case dev.port.hasNIC:
		return fmt.Errorf("is a NIC of the stack: add it with Unattached")
	case dev.holder != nil:
		return fmt.Errorf("is held by %s", dev.holder.Name())
	case dev.port.link.IsAttached():
		return fmt.Errorf("is attached to a NIC or a bond outside the table")
	}
	return nil
}

// heldDevice is a device as its holder sees it.
type heldDevice struct {
	port   *devicePort
	holder link.DeviceHolder
}

var _ link.Device = (*heldDevice)(nil)

// Endpoint implements link.Device.
func (h *heldDevice) Endpoint() netstack.LinkEndpoint { return h.port.link }

// Changed implements link.Device.
func (h *heldDevice) Changed() { h.port.look() }

// Release implements link.Device.
func (h *heldDevice) Release() {
	err := h.port.devices.changeDevice(h.port.index, func(_ *draft, dev *Device) (DeviceEventKind, error) {
		if dev.holder != h.holder {
			return "", nil // released already
		}
		dev.holder = nil
		return DeviceReleased, nil
	})
	if err == nil { // otherwise the device is deleted
		h.port.look()
	}
}
