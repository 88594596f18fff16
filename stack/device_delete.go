package stack

import (
	"fmt"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Delete deletes a device: look-ups fail from here on, its bond lets go of it,
// its addresses, routes and neighbours go, sockets bound to it end, and its
// link is closed. Delete returns when no goroutine of the link is left, so it
// must not be called from one. The error wraps ErrNoDevice.
func (d *Devices) Delete(index tcpip.NICID) error { return d.DeleteAll([]tcpip.NICID{index}) }

// DeleteAll deletes several devices as one change: all of them or, if one does
// not exist or is in the list twice, none. Waiting is done once for all.
func (d *Devices) DeleteAll(list []tcpip.NICID) error {
	d.mu.Lock()
	err := d.open()
	var ports []*devicePort
	if err == nil {
		ports, err = d.removeLocked(list)
	}
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("stack: delete device: %w", err)
	}
	d.tearDown(ports)
	if len(list) > 0 && d.log.admits() {
		d.log.logger.Info("devices deleted", "count", len(list), "index", int(list[0]))
	}
	return nil
}

// removeLocked publishes a table without the devices. mu is held.
func (d *Devices) removeLocked(list []tcpip.NICID) ([]*devicePort, error) {
	f := d.draft()
	ports := make([]*devicePort, 0, len(list))
	changes := make([]DeviceChange, 0, len(list))
	for _, index := range list {
		dev, err := f.device(index)
		if err != nil {
			f.drop()
			return nil, err
		}
		f.remove(dev)
		dev.port.holder = dev.holder
		ports = append(ports, dev.port)
		changes = append(changes, DeviceChange{Kind: DeviceDeleted, Old: dev})
	}
	if len(list) > 0 {
		d.publish(&f, changes)
	}
	return ports, nil
}

// tearDown ends what was behind deleted devices. No lock is held: links wait
// here for their goroutines, which may be in the stack or in calls of the table.
func (d *Devices) tearDown(ports []*devicePort) {
	for _, p := range ports {
		p.leave()
	}
	if d.stack != nil && len(ports) > 1 {
		d.removeRoutes(ports)
	}
	for _, p := range ports {
		p.close()
	}
	for _, p := range ports {
		if p.link != nil {
			p.link.Wait()
		}
	}
}

// removeRoutes removes the routes of many NICs in one pass. RemoveNIC makes one
// pass for each NIC, over what is left then.
func (d *Devices) removeRoutes(ports []*devicePort) {
	gone := make([]tcpip.NICID, len(ports))
	for i, p := range ports {
		gone[i] = p.index
	}
	slices.Sort(gone)
	d.stack.RemoveRoutes(func(r tcpip.Route) bool {
		_, found := slices.BinarySearch(gone, r.NIC)
		return found
	})
}

// leave ends the port's ties to others than the stack.
func (p *devicePort) leave() {
	for _, cancel := range p.cancels {
		cancel()
	}
	if p.link != nil {
		p.link.SetOnCloseAction(nil)
	}
	if p.holder != nil {
		p.holder.LetGo()
	}
	p.endBindings()
}

// close removes the NIC and closes the link.
func (p *devicePort) close() {
	switch {
	case p.hasNIC:
		if p.devices.stack.RemoveNIC(p.index) != nil {
			p.link.Close() // somebody removed the NIC already
		}
	case p.link != nil:
		p.link.Close()
	}
}
