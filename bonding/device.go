package bonding

import (
	"fmt"

	"bondstack/link"
)

// EnslaveDevice is Enslave for a device of a table of named devices, such as
// stack.Devices. The slave has the device's name, and follows its renaming: a
// primary is matched by name anew, as Linux does it. When the device is deleted
// the slave is released first. Release gives the device back to the table, and
// so does Close, which does not close the endpoint then.
func (b *Bond) EnslaveDevice(table link.DeviceTable, name string, o SlaveOptions) error {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	h := &deviceSlave{bond: b}
	device, err := table.HoldDevice(name, h)
	if err != nil {
		return &SlaveError{"enslave", name, fmt.Sprintf("in bond %s", b.Name()), err}
	}
	h.device = device
	if err := b.enslave(name, device.Endpoint(), o, h); err != nil {
		device.Release()
		return err
	}
	device.Changed() // it has the bond's MTU and address
	return nil
}

// deviceSlave is a slave that is a device of a table.
type deviceSlave struct {
	bond   *Bond
	device link.Device

	// The following are guarded by bond.mu.
	name  string
	slave *slave // nil until it is admitted
}

var (
	_ link.DeviceHolder   = (*deviceSlave)(nil)
	_ link.Named          = (*Bond)(nil)
	_ link.ChangeReporter = (*Bond)(nil)
)

// Name implements link.DeviceHolder.
func (h *deviceSlave) Name() string { return h.bond.Name() }

// SetDeviceName implements link.DeviceHolder. It refuses a name that a slave
// has which is not of the table.
func (h *deviceSlave) SetDeviceName(name string) error {
	var err error
	h.bond.fromAbove(func(now instant) {
		if h.slave == nil || h.slave.released {
			h.name = name
			return
		}
		if other := h.bond.find(name); other != nil && other != h.slave {
			err = &SlaveError{"rename", h.name, fmt.Sprintf("bond %s has a slave %s", h.bond.Name(), name), ErrSlaveExists}
			return
		}
		h.name = name
		h.bond.renameSlave(h.slave, name, now)
	})
	return err
}

// LetGo implements link.DeviceHolder.
func (h *deviceSlave) LetGo() {
	h.bond.configMu.Lock()
	defer h.bond.configMu.Unlock()
	// An error says that it has been released already.
	_ = h.bond.release("", func(s *slave) bool { return s.device == h })
}

// admitted has a slave follow its device's name from here on. The bond's lock
// is held.
func (h *deviceSlave) admitted(s *slave) {
	if h != nil {
		h.slave, s.name = s, h.name
	}
}

// giveBack gives the device of a slave back to its table, if it is one of a
// table. No lock but configMu is held.
func (h *deviceSlave) giveBack() {
	if h != nil {
		h.device.Release()
	}
}

// renameSlave matches the primary by name anew. The name that is configured
// stays, so a slave that has its old name back is the primary again.
func (b *Bond) renameSlave(s *slave, name string, now instant) {
	old := s.name
	s.name = name
	b.emit(Event{Kind: EventRename, Slave: name, From: old, To: name})
	if !b.config.mode.info().primary || b.config.primary == "" {
		return
	}
	switch {
	case s == b.primary:
		b.primary = nil
	case name == b.config.primary:
		b.primary = s
	default:
		return
	}
	b.log(levelInfo, "primary is now %s: slave %s was renamed to %s", b.primary.displayName("none"), old, name)
	b.dirty = true
	b.reselect(now)
}

// SetName changes the name that the status, events and logs show. It implements
// link.Named.
func (b *Bond) SetName(name string) { b.name.Store(&name) }

// SubscribeChanges has f called after each event of the bond but warnings, and
// after each change of its MTU or address. It implements link.ChangeReporter.
func (b *Bond) SubscribeChanges(f func()) (cancel func()) { return b.changeSubs.add(f) }

// tellTables has the tables of the bond and its slaves look at their MTUs and
// addresses. The bond's lock is held.
func (b *Bond) tellTables() {
	b.later(b.changeSubs.call)
	for _, s := range b.slaves {
		if s.device != nil {
			b.later(s.device.device.Changed)
		}
	}
}
