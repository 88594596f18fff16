package stack

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// DeviceRename is a device and the name that it is to have.
type DeviceRename struct {
	Index tcpip.NICID
	// Name is as in NewDevice; a number that is the device's own counts as
	// taken.
	Name string
}

// Rename gives a device another name, up and busy as it may be. Its present
// name does nothing. The error wraps ErrNoDevice, ErrInvalidName,
// ErrNameExists, ErrTableFull or ErrVetoed, and nothing has changed.
func (d *Devices) Rename(index tcpip.NICID, name string) error {
	return d.RenameAll([]DeviceRename{{index, name}})
}

// RenameAll renames several devices as one change: all of them or, after an
// error, none. The names need to be free only after the whole change, so two
// devices can swap theirs. No device may be in the list twice.
func (d *Devices) RenameAll(list []DeviceRename) error {
	for i := range list {
		if err := checkDeviceName(list[i].Name); err != nil {
			return fmt.Errorf("stack: rename device %d: %w", list[i].Index, err)
		}
	}
	d.mu.Lock()
	changes, err := d.rename(list)
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("stack: rename device %w", err)
	}
	if len(changes) > 0 && d.log.admits() {
		c := changes[0]
		d.log.logger.Info("devices renamed", "count", len(changes), "index", int(c.New.index), "from", c.Old.name, "to", c.New.name)
	}
	return nil
}

// rename is RenameAll with mu held. The error begins with the device.
func (d *Devices) rename(list []DeviceRename) ([]DeviceChange, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	f := d.draft()
	changes := make([]DeviceChange, 0, len(list))
	fail := func(dev string, err error) ([]DeviceChange, error) {
		f.drop()
		return nil, fmt.Errorf("%s: %w", dev, err)
	}
	for _, r := range list {
		c, err := d.renameOne(&f, r)
		if err != nil {
			return fail(fmt.Sprint(r.Index), err)
		}
		if c.New != nil {
			changes = append(changes, c)
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	for i := range changes {
		f.free(changes[i].Old.name)
	}
	for i := range changes {
		if err := f.claim(changes[i].New.name, changes[i].New.index); err != nil {
			return fail(changes[i].Old.name, err)
		}
	}
	if err := d.approve(changes); err != nil {
		return fail(changes[0].Old.name, err)
	}
	d.publish(&f, changes)
	for i := range changes {
		if dev := changes[i].New; dev.port.named != nil {
			dev.port.named.SetName(dev.name)
		}
	}
	return changes, nil
}

// renameOne puts the renamed device into the draft; New is nil where there is
// nothing to change. Names are exchanged later, those of templates excepted:
// the next template has to see them.
func (d *Devices) renameOne(f *draft, r DeviceRename) (c DeviceChange, err error) {
	old, err := f.device(r.Index)
	if err != nil {
		return c, err
	}
	if now, _ := d.ByIndex(r.Index); now != old {
		return c, fmt.Errorf("the device is in the list twice")
	}
	if old.name == r.Name {
		return c, nil
	}
	renamed := *old
	if renamed.name, err = f.pick(r.Name); err != nil {
		return c, err
	}
	if renamed.name != r.Name {
		f.note(renamed.name, true)
	}
	f.put(&renamed)
	return DeviceChange{Kind: DeviceRenamed, Old: old, New: &renamed}, nil
}
