package stack

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// DeviceBinding is a socket that is bound to a device: it sends and receives
// there alone (SO_BINDTODEVICE). It is bound to the index, so it stays bound
// when the device is renamed. When the device is deleted or moved, the socket
// is aborted, and Err says why.
type DeviceBinding struct {
	port *devicePort
	ep   tcpip.Endpoint
	gone chan struct{}
}

// Bind binds an endpoint of the table's gVisor stack to a device. It is done
// before the endpoint is bound to a port or connected. The error wraps
// ErrNoDevice when the device has been deleted, or has no NIC.
func (d *Devices) Bind(ep tcpip.Endpoint, index tcpip.NICID) (*DeviceBinding, error) {
	dev, ok := d.ByIndex(index)
	switch {
	case !ok:
		return nil, fmt.Errorf("stack: bind to device: %w: index %d", ErrNoDevice, index)
	case !dev.HasNIC():
		return nil, fmt.Errorf("stack: bind to device: %w: %s has no NIC", ErrNoDevice, dev.name)
	}
	if err := ep.SocketOptions().SetBindToDevice(int32(index)); err != nil {
		return nil, fmt.Errorf("stack: bind to device: %s: %w", dev.name, errorOf(err))
	}
	b := &DeviceBinding{port: dev.port, ep: ep, gone: make(chan struct{})}
	d.newsMu.Lock()
	defer d.newsMu.Unlock()
	if _, ok := d.ByIndex(index); !ok {
		return nil, fmt.Errorf("stack: bind to device: %w: %s was deleted", ErrNoDevice, dev.name)
	}
	if b.port.bindings == nil {
		b.port.bindings = make(map[*DeviceBinding]struct{})
	}
	b.port.bindings[b] = struct{}{}
	return b, nil
}

// Device returns the device as it is now, or the error that Err returns.
func (b *DeviceBinding) Device() (*Device, error) {
	if dev, ok := b.port.devices.ByIndex(b.port.index); ok {
		return dev, nil
	}
	return nil, fmt.Errorf("%w: the device of index %d was deleted", ErrNoDevice, b.port.index)
}

// Gone returns a channel that is closed when the device was deleted and the
// socket has been aborted for it.
func (b *DeviceBinding) Gone() <-chan struct{} { return b.gone }

// Err returns nil while the device exists, and then an error that wraps
// ErrNoDevice: it is why calls on the socket fail.
func (b *DeviceBinding) Err() error {
	_, err := b.Device()
	return err
}

// Close ends the watch over the socket; the socket's own Close does not. The
// socket stays as it is.
func (b *DeviceBinding) Close() {
	d := b.port.devices
	d.newsMu.Lock()
	defer d.newsMu.Unlock()
	delete(b.port.bindings, b)
}

// endBindings aborts the sockets that are bound to a device that is gone.
func (p *devicePort) endBindings() {
	d := p.devices
	d.newsMu.Lock()
	bindings := p.bindings
	p.bindings = nil
	d.newsMu.Unlock()
	for b := range bindings {
		b.ep.Abort()
		close(b.gone)
	}
}
