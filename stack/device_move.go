package stack

import (
	"fmt"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Move moves a device into another table, as Linux moves one into another
// network namespace, and gives it another name on the way unless that is empty.
// It takes its alternative names along; its index too, where the other table
// has not passed that. Its addresses, routes and neighbours stay behind, and
// sockets bound to it end. Each table changes once. After an error (a name that
// is taken there, a bond that has the device, a veto of the other table's
// guards) the device is where it was, as it was.
func (d *Devices) Move(index tcpip.NICID, to *Devices, name string) (*Device, error) {
	moved, err := d.move(index, to, name)
	if err != nil {
		return nil, fmt.Errorf("stack: move device %d: %w", index, err)
	}
	if d.log.admits() {
		d.log.logger.Info("device moved", "index", int(index), "to_index", int(moved.index), "name", moved.name)
	}
	return moved, nil
}

func (d *Devices) move(index tcpip.NICID, to *Devices, name string) (*Device, error) {
	if d == to {
		return nil, fmt.Errorf("the device is in that table already")
	}
	if name != "" {
		if err := checkDeviceName(name); err != nil {
			return nil, err
		}
	}
	first, second := d, to
	if d.order > to.order {
		first, second = to, d
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	from, into := d.draft(), to.draft()
	moved, err := d.moveLocked(&from, &into, index, to, name)
	if err != nil {
		from.drop()
		into.drop()
	}
	return moved, err
}

// moveLocked is move with the locks of both tables held.
func (d *Devices) moveLocked(from, into *draft, index tcpip.NICID, to *Devices, name string) (*Device, error) {
	for _, table := range []*Devices{d, to} {
		if err := table.open(); err != nil {
			return nil, err
		}
	}
	old, err := from.device(index)
	if err != nil {
		return nil, err
	}
	if old.holder != nil {
		return nil, fmt.Errorf("%w: %s is held by %s", ErrDeviceBusy, old.name, old.holder.Name())
	}
	if name == "" {
		name = old.name
	}
	moved, err := to.take(into, old, name)
	if err != nil {
		return nil, err
	}
	from.remove(old)
	changes := []DeviceChange{{Kind: DeviceAdded, New: moved}}
	if err := to.approve(changes); err != nil {
		return nil, err
	}
	if err := old.port.handOver(moved.port, !old.up); err != nil {
		to.undo(changes)
		return nil, err
	}
	d.publish(from, []DeviceChange{{Kind: DeviceDeleted, Old: old}})
	to.publish(into, changes)
	moved.port.announce(moved)
	return moved, nil
}

// take puts a device of another table into a draft.
func (d *Devices) take(f *draft, old *Device, name string) (*Device, error) {
	wanted := old.index
	if wanted <= d.lastIndex || d.foreignNIC(wanted) {
		wanted = 0
	}
	index, err := d.nextIndex(wanted)
	if err != nil {
		return nil, err
	}
	if name, err = f.pick(name); err != nil {
		return nil, err
	}
	if err := f.claimAll(name, old.altNames, index); err != nil {
		return nil, err
	}
	moved := &Device{index: index, name: name, altNames: slices.Clone(old.altNames), up: old.up,
		port: &devicePort{devices: d, index: index, link: old.port.link}}
	f.put(moved)
	return moved, nil
}

// handOver makes the link a NIC of the other table's stack, if it is one of
// this one's and the other has a stack, and ends the port's ties.
func (p *devicePort) handOver(to *devicePort, down bool) error {
	if p.hasNIC {
		p.detach(p.devices.stack)
		if to.devices.stack != nil {
			if to.options = p.options; to.options != nil {
				options := *p.options
				options.QDisc = nil // it ended with the NIC
				to.options = &options
			}
			if err := to.makeNIC(down); err != nil {
				return p.takeBack(to.options, down, err)
			}
		}
	}
	for _, cancel := range p.cancels {
		cancel()
	}
	p.cancels = nil
	p.endBindings()
	return nil
}

// takeBack makes the NIC again that could not be handed over.
func (p *devicePort) takeBack(options *netstack.NICOptions, down bool, err error) error {
	p.options = options
	if again := p.makeNIC(down); again != nil {
		return fmt.Errorf("%w; and the device has lost its NIC: %w", err, again)
	}
	p.link.SetOnCloseAction(p.linkClosed)
	return fmt.Errorf("%w; the device has lost its addresses", err)
}
