package stack

import (
	"fmt"
	"slices"
)

// DeviceChange is a change of a table that guards are asked about: an added
// device (Old is nil) or a renamed one.
type DeviceChange struct {
	Kind     DeviceEventKind
	Old, New *Device
}

// device is the device after the change, or its last state.
func (c *DeviceChange) device() *Device {
	if c.New == nil {
		return c.Old
	}
	return c.New
}

// DeviceGuard is asked before a device is added or renamed, and may prevent it.
// What is deleted is deleted: nobody is asked. A guard is called with the
// writers' lock held, and sees the table as it was before: it may read it, but
// not change it.
type DeviceGuard interface {
	// Approve returns an error to prevent the change, and with it every other
	// change of the same batch. The error is in the one that the writer gets.
	Approve(DeviceChange) error
	// Undo tells that a change that the guard had approved does not take place
	// after all.
	Undo(DeviceChange)
}

type guardEntry struct{ DeviceGuard }

// AddGuard has a guard asked about each change from now on, after those that
// were added before, until remove is called. Undo comes in reverse order.
func (d *Devices) AddGuard(g DeviceGuard) (remove func()) {
	entry := &guardEntry{g}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.guards = append(d.guards, entry)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.guards = slices.DeleteFunc(d.guards, func(e *guardEntry) bool { return e == entry })
	}
}

// approve asks about all changes of a draft. mu is held.
func (d *Devices) approve(changes []DeviceChange) error {
	for i := range changes {
		if err := d.approveOne(&changes[i]); err != nil {
			d.undo(changes[:i])
			return err
		}
	}
	return nil
}

// undo takes back the approval of changes.
func (d *Devices) undo(changes []DeviceChange) {
	for i := len(changes) - 1; i >= 0; i-- {
		d.undoOne(&changes[i], len(d.guards))
	}
}

// approveOne asks the device's holder first, then the guards.
func (d *Devices) approveOne(c *DeviceChange) error {
	if c.Kind == DeviceRenamed && c.New.holder != nil {
		if err := c.New.holder.SetDeviceName(c.New.name); err != nil {
			return fmt.Errorf("%w by %s, which holds the device: %w", ErrVetoed, c.New.Holder(), err)
		}
	}
	for i, g := range d.guards {
		if err := g.Approve(*c); err != nil {
			d.undoOne(c, i)
			return fmt.Errorf("%w: %w", ErrVetoed, err)
		}
	}
	return nil
}

// undoOne takes back the approval of the first guards and of the holder.
func (d *Devices) undoOne(c *DeviceChange, guards int) {
	for i := guards - 1; i >= 0; i-- {
		d.guards[i].Undo(*c)
	}
	if c.Kind == DeviceRenamed && c.New.holder != nil {
		// The holder had this name a moment ago, and nobody else has it now.
		_ = c.New.holder.SetDeviceName(c.Old.name)
	}
}
