package stack

import (
	"fmt"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Add adds a device. It is in the table with its NIC fully made, or not at all:
// after an error the link is as it was, and still the caller's. The error wraps
// one of ErrInvalidName, ErrNameExists, ErrTableFull, ErrIndex, ErrDeviceBusy,
// ErrVetoed, or says what gVisor refused.
func (d *Devices) Add(n NewDevice) (*Device, error) {
	list, err := d.AddAll([]NewDevice{n})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// AddAll adds several devices as one change: all of them or, after an error,
// none. Templates are given numbers in the order of the list.
func (d *Devices) AddAll(list []NewDevice) ([]*Device, error) {
	for i := range list {
		if err := list[i].check(d.stack != nil); err != nil {
			return nil, fmt.Errorf("stack: add device: %w", err)
		}
	}
	d.mu.Lock()
	added, err := d.add(list)
	d.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("stack: add device: %w", err)
	}
	if d.log.admits() {
		d.log.logger.Info("devices added", "count", len(added), "names", listNames(added))
	}
	return added, nil
}

// check checks what can be known without the table.
func (n *NewDevice) check(hasStack bool) error {
	if err := checkDeviceName(n.Name); err != nil {
		return err
	}
	for _, alt := range n.AltNames {
		if err := checkAltName(alt); err != nil {
			return err
		}
	}
	switch {
	case n.Index < 0:
		return fmt.Errorf("%s: %w: %d is negative", n.Name, ErrIndex, n.Index)
	case n.NIC != nil && n.NIC.Name != "":
		return fmt.Errorf("%s: NIC.Name is %q, it must be empty: the table has the name", n.Name, n.NIC.Name)
	case n.Link == nil && hasStack:
		return fmt.Errorf("%s: the link is nil", n.Name)
	case n.Link != nil && n.Link.IsAttached():
		return fmt.Errorf("%s: %w: the link is attached to a NIC or a bond already", n.Name, ErrDeviceBusy)
	}
	return nil
}

// add is AddAll with mu held.
func (d *Devices) add(list []NewDevice) ([]*Device, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	f := d.draft()
	added := make([]*Device, 0, len(list))
	changes := make([]DeviceChange, 0, len(list))
	fail := func(err error) ([]*Device, error) {
		f.drop()
		for _, dev := range added {
			dev.port.discard()
		}
		return nil, err
	}
	for i := range list {
		dev, err := d.addOne(&f, &list[i])
		if err != nil {
			return fail(fmt.Errorf("%s: %w", list[i].Name, err))
		}
		added = append(added, dev)
		changes = append(changes, DeviceChange{Kind: DeviceAdded, New: dev})
	}
	if err := d.approve(changes); err != nil {
		return fail(err)
	}
	if len(added) > 0 {
		d.publish(&f, changes)
	}
	for _, dev := range added {
		dev.port.announce(dev)
	}
	return added, nil
}

// addOne puts a device into a draft, and makes its NIC.
func (d *Devices) addOne(f *draft, n *NewDevice) (*Device, error) {
	index, err := d.nextIndex(n.Index)
	if err != nil {
		return nil, err
	}
	name, err := f.pick(n.Name)
	if err != nil {
		return nil, err
	}
	if err := f.claimAll(name, n.AltNames, index); err != nil {
		return nil, err
	}
	both := new(struct { // one allocation, since most devices keep their first state
		port devicePort
		dev  Device
	})
	dev := &both.dev
	both.port.devices, both.port.index, both.port.link = d, index, n.Link
	dev.index, dev.name, dev.up, dev.port = index, name, !n.Down, &both.port
	if len(n.AltNames) > 0 {
		dev.altNames = slices.Clone(n.AltNames)
	}
	if d.stack != nil && !n.Unattached {
		if n.NIC != nil {
			options := *n.NIC
			dev.port.options = &options
		}
		if err := dev.port.makeNIC(n.Down); err != nil {
			return nil, err
		}
	}
	f.put(dev)
	return dev, nil
}

// nextIndex returns the index that is asked for, or the next one. None is used
// twice: references to a deleted device may be anywhere.
func (d *Devices) nextIndex(wanted tcpip.NICID) (tcpip.NICID, error) {
	const greatest = 1<<31 - 1
	switch {
	case wanted != 0 && wanted <= d.lastIndex:
		return 0, fmt.Errorf("%w: %d is or was in use, allowed are %d to %d", ErrIndex, wanted, d.lastIndex+1, greatest)
	case wanted != 0 && d.foreignNIC(wanted):
		return 0, fmt.Errorf("%w: the stack has a NIC %d that is not of this table", ErrIndex, wanted)
	case wanted != 0:
		d.lastIndex = wanted
		return wanted, nil
	}
	for d.lastIndex < greatest {
		d.lastIndex++
		if !d.foreignNIC(d.lastIndex) {
			return d.lastIndex, nil
		}
	}
	return 0, fmt.Errorf("%w: every index up to %d has been used", ErrTableFull, greatest)
}

// foreignNIC reports whether somebody else gave the stack a NIC of an index
// that the table has not used.
func (d *Devices) foreignNIC(index tcpip.NICID) bool { return d.stack != nil && d.stack.HasNIC(index) }

// makeNIC makes the port's link a NIC of its table's stack.
func (p *devicePort) makeNIC(down bool) error {
	if p.link.IsAttached() { // by an earlier one of the same batch
		return fmt.Errorf("%w: the link is attached to a NIC or a bond already", ErrDeviceBusy)
	}
	var opts netstack.NICOptions
	if p.options != nil {
		opts = *p.options
	}
	opts.Disabled = down
	s := p.devices.stack
	p.hasNIC, p.attached.LinkEndpoint = true, p.link
	p.attached.keep.Store(false)
	if err := s.CreateNICWithOptions(p.index, &p.attached, opts); err != nil {
		p.detach(s)
		return fmt.Errorf("making NIC %d: %w", p.index, errorOf(err))
	}
	return nil
}

// listNames returns the names of devices for a log line: some of them.
func listNames(list []*Device) []string {
	const some = 3
	names := make([]string, 0, some)
	for _, dev := range list[:min(some, len(list))] {
		names = append(names, dev.name)
	}
	if len(list) > some {
		names = append(names, "...")
	}
	return names
}
