package stack

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// draft is the next version of a table in the making, seen by its maker alone.
// It is published whole, or dropped with no trace.
type draft struct {
	DeviceTable
	edit      trieEdit
	templates templates
	undo      []nameChange // for the templates, should it be dropped
}

type nameChange struct {
	name  string
	taken bool
}

// draft begins a change. The table's lock is held until it is published or
// dropped.
func (d *Devices) draft() draft {
	d.edits++
	return draft{DeviceTable: *d.table.Load(), edit: trieEdit{d.edits, d.hung[:0]}, templates: d.templates}
}

// drop forgets the draft.
func (f *draft) drop() {
	f.edit.drop()
	for i := len(f.undo) - 1; i >= 0; i-- {
		f.templates.note(f.undo[i].name, !f.undo[i].taken)
	}
}

// put adds a device, or takes a newer state of one.
func (f *draft) put(dev *Device) { f.devices.put(uint64(uint32(dev.index)), dev, &f.edit) }

// remove removes a device and its names.
func (f *draft) remove(dev *Device) {
	f.free(dev.name)
	for _, alt := range dev.altNames {
		f.free(alt)
	}
	f.devices.remove(uint64(uint32(dev.index)), &f.edit)
}

// device returns a device of the draft.
func (f *draft) device(index tcpip.NICID) (*Device, error) {
	dev, ok := f.ByIndex(index)
	if !ok {
		return nil, fmt.Errorf("%w: index %d", ErrNoDevice, index)
	}
	return dev, nil
}

// pick returns the name that a valid name or template stands for.
func (f *draft) pick(name string) (string, error) {
	if tpl, ok := parseTemplate(name); ok {
		return f.templates.lowestName(tpl, &f.DeviceTable)
	}
	return name, nil
}

// claim gives a name to a device.
func (f *draft) claim(name string, index tcpip.NICID) error {
	key := nameKey(name)
	head := f.byName.get(key)
	for e := head; e != nil; e = e.next {
		if e.name == name {
			return f.existsError(name, e.index)
		}
	}
	f.byName.put(key, nameEntry{name, index, head}, &f.edit)
	f.note(name, true)
	return nil
}

// claimAll gives a device all its names.
func (f *draft) claimAll(name string, altNames []string, index tcpip.NICID) error {
	err := f.claim(name, index)
	for i := 0; i < len(altNames) && err == nil; i++ {
		err = f.claim(altNames[i], index)
	}
	return err
}

func (f *draft) existsError(name string, index tcpip.NICID) error {
	holder := "a device of this very change"
	if dev, ok := f.ByIndex(index); ok {
		holder = "device " + dev.name
	}
	return fmt.Errorf("%w: %q is taken by %s (index %d)", ErrNameExists, name, holder, index)
}

// free takes back a name that is in the draft.
func (f *draft) free(name string) {
	key := nameKey(name)
	head := f.byName.get(key).without(name)
	if head == nil {
		f.byName.remove(key, &f.edit)
	} else {
		f.byName.put(key, *head, &f.edit)
	}
	f.note(name, false)
}

// without returns the list of names less one.
func (e *nameEntry) without(name string) *nameEntry {
	if e.name == name {
		return e.next
	}
	return &nameEntry{e.name, e.index, e.next.without(name)}
}

func (f *draft) note(name string, taken bool) {
	if len(f.templates) == 0 {
		return
	}
	f.templates.note(name, taken)
	f.undo = append(f.undo, nameChange{name, taken})
}
