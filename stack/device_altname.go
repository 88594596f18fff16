package stack

import (
	"fmt"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// AddAltName gives a device an alternative name, 1 to 127 bytes, under which it
// is found as well. The error wraps ErrNoDevice, ErrInvalidName or
// ErrNameExists.
func (d *Devices) AddAltName(index tcpip.NICID, alt string) error {
	err := checkAltName(alt)
	if err == nil {
		err = d.changeAltNames(index, alt, func(f *draft, dev *Device) error {
			dev.altNames = append(slices.Clip(dev.altNames), alt)
			return f.claim(alt, index)
		})
	}
	if err != nil {
		return fmt.Errorf("stack: add alternative name: %w", err)
	}
	return nil
}

// DeleteAltName takes an alternative name from a device. The error wraps
// ErrNoDevice, also when the device has no such alternative name.
func (d *Devices) DeleteAltName(index tcpip.NICID, alt string) error {
	err := d.changeAltNames(index, alt, func(f *draft, dev *Device) error {
		i := slices.Index(dev.altNames, alt)
		if i < 0 {
			return fmt.Errorf("%w: %s has no alternative name %q", ErrNoDevice, dev.name, alt)
		}
		dev.altNames = slices.Concat(dev.altNames[:i], dev.altNames[i+1:])
		f.free(alt)
		return nil
	})
	if err != nil {
		return fmt.Errorf("stack: delete alternative name: %w", err)
	}
	return nil
}

func (d *Devices) changeAltNames(index tcpip.NICID, alt string, change func(*draft, *Device) error) error {
	err := d.changeDevice(index, func(f *draft, dev *Device) (DeviceEventKind, error) {
		return DeviceAltNames, change(f, dev)
	})
	if err == nil && d.log.admits() {
		d.log.logger.Info("alternative names changed", "index", int(index), "name", alt)
	}
	return err
}

// changeDevice publishes a changed copy of a device as one change. An empty
// kind means that there is nothing to change.
func (d *Devices) changeDevice(index tcpip.NICID, change func(*draft, *Device) (DeviceEventKind, error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return err
	}
	f := d.draft()
	old, err := f.device(index)
	if err != nil {
		f.drop()
		return err
	}
	changed := *old
	kind, err := change(&f, &changed)
	if err != nil || kind == "" {
		f.drop()
		return err
	}
	f.put(&changed)
	d.publish(&f, []DeviceChange{{Kind: kind, Old: old, New: &changed}})
	return nil
}
