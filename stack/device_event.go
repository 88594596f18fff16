package stack

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/link"
)

// DeviceEventKind is what a DeviceEvent tells of.
type DeviceEventKind string

// The kinds of events.
const (
	DeviceAdded    DeviceEventKind = "added"
	DeviceDeleted  DeviceEventKind = "deleted" // Device is its last state
	DeviceRenamed  DeviceEventKind = "renamed" // Old has the name before
	DeviceAltNames DeviceEventKind = "altnames"
	DeviceUp       DeviceEventKind = "up"
	DeviceDown     DeviceEventKind = "down"
	DeviceHeld     DeviceEventKind = "held"     // it is a bond's slave now
	DeviceReleased DeviceEventKind = "released" // Old has the bond
	DeviceState    DeviceEventKind = "state"    // carrier, speed or duplex: State
	DeviceMTU      DeviceEventKind = "mtu"      // MTU
	DeviceAddress  DeviceEventKind = "address"  // Address
	DeviceBonding  DeviceEventKind = "bonding"  // a bond changed: its status tells
	DeviceLost     DeviceEventKind = "lost"     // Lost events did not fit the queue here
)

// DeviceEvent is one change of a table, or of a device in it.
type DeviceEvent struct {
	Kind DeviceEventKind
	// Version is that of the table after the change, or at the moment of a
	// change that is the device's alone. An event whose version is not greater
	// than that of a table tells nothing that the table does not have.
	Version uint64
	// Device is the device after the change; Old is the one before, where the
	// change was one of the table's.
	Device, Old *Device
	State       link.State
	MTU         uint32
	Address     tcpip.LinkAddress
	Lost        uint64
}

// String returns the event as a line for people.
func (e DeviceEvent) String() string {
	switch e.Kind {
	case DeviceLost:
		return fmt.Sprintf("%d events lost", e.Lost)
	case DeviceRenamed:
		return fmt.Sprintf("%s (index %d) renamed, was %s", e.Device.name, e.Device.index, e.Old.name)
	case DeviceState:
		return fmt.Sprintf("%s (index %d) state: carrier %s", e.Device.name, e.Device.index, onOff(e.State.Carrier))
	case DeviceMTU:
		return fmt.Sprintf("%s (index %d) mtu %d", e.Device.name, e.Device.index, e.MTU)
	case DeviceAddress:
		return fmt.Sprintf("%s (index %d) address %s", e.Device.name, e.Device.index, e.Address)
	}
	return fmt.Sprintf("%s (index %d) %s", e.Device.name, e.Device.index, e.Kind)
}

// DeviceWatch is a queue of a table's events. Each has its own: who is slow
// loses events, is told how many, and slows nobody down.
type DeviceWatch struct {
	devices *Devices
	start   *DeviceTable
	more    chan struct{} // holds a token when there is something to look at

	mu sync.Mutex
	// The following are guarded by mu.
	queue []DeviceEvent // a ring
	first int
	count int
	lost  uint64 // since the last one in the queue
	ended bool
}

// Watch returns the events from now on, in order, in a queue of the given
// length, at least 1. When the queue overflows, everything up to the moment at
// which it was read to its end is lost, and the next event is a DeviceLost that
// says how many: who gets one looks at Devices.Table afresh.
func (d *Devices) Watch(queue int) *DeviceWatch {
	w := &DeviceWatch{devices: d, more: make(chan struct{}, 1), queue: make([]DeviceEvent, max(queue, 1))}
	d.newsMu.Lock()
	defer d.newsMu.Unlock()
	w.start, w.ended = d.Table(), d.closed
	if !w.ended {
		d.watches = append(d.watches, w)
	}
	return w
}

// Table returns the version of the table that the first event is the change of.
func (w *DeviceWatch) Table() *DeviceTable { return w.start }

// Next returns the next event, and waits for one. It returns the context's
// error when that ends first, and one that wraps net.ErrClosed when all events
// up to the watch's end have been returned. It is for one goroutine at a time.
func (w *DeviceWatch) Next(ctx context.Context) (DeviceEvent, error) {
	for {
		if e, ok, ended := w.take(); ok {
			return e, nil
		} else if ended {
			return e, fmt.Errorf("stack: device watch: %w", net.ErrClosed)
		}
		select {
		case <-w.more:
		case <-ctx.Done():
			return DeviceEvent{}, ctx.Err()
		}
	}
}

func (w *DeviceWatch) take() (e DeviceEvent, ok, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.count > 0:
		e, w.queue[w.first] = w.queue[w.first], DeviceEvent{}
		w.first = (w.first + 1) % len(w.queue)
		w.count--
		return e, true, false
	case w.lost > 0:
		e = DeviceEvent{Kind: DeviceLost, Lost: w.lost, Version: w.devices.Table().version}
		w.lost = 0
		return e, true, false
	}
	return e, false, w.ended
}

// Close ends the watch; what is queued can still be read. A second call does
// nothing.
func (w *DeviceWatch) Close() {
	d := w.devices
	d.newsMu.Lock()
	d.watches = slices.DeleteFunc(d.watches, func(other *DeviceWatch) bool { return other == w })
	d.newsMu.Unlock()
	w.end()
}

func (w *DeviceWatch) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.wake()
}

func (w *DeviceWatch) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *DeviceWatch) add(e DeviceEvent) {
	w.mu.Lock()
	if w.lost > 0 || w.count == len(w.queue) {
		w.lost++
	} else {
		w.queue[(w.first+w.count)%len(w.queue)] = e
		w.count++
	}
	w.mu.Unlock()
	w.wake()
}

// send hands an event to every watch. newsMu is held.
func (d *Devices) send(e DeviceEvent) {
	for _, w := range d.watches {
		w.add(e)
	}
}
