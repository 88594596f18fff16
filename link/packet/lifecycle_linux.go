package packet

import (
	"slices"

	"bondstack/link/internal/kernel"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// openOn opens the interface of an index: sockets and, where asked for, the
// exclusion of the host; and takes over its MTU. It runs in the endpoint's
// namespace, while nothing is open. The link is not up before the monitor has the
// index too.
func (e *Endpoint) openOn(index int32) error {
	mtu := e.ns.Observe(e.name).MTU
	e.interfaceMTU.Store(mtu)
	socks, err := openSockets(index, mtu, e.options)
	if err != nil {
		return err
	}
	var exclusion link.Link
	if e.options.Exclusive {
		if exclusion, err = exclude(index); err != nil {
			closeSockets(socks)
			return err
		}
	}
	e.socketsMu.Lock()
	e.sockets, e.exclusion = socks, exclusion
	e.socketsMu.Unlock()
	e.life.Lock()
	defer e.life.Unlock()
	e.idle = slices.Clone(socks)
	if e.life.Running() {
		e.receiveLocked()
	}
	return nil
}

// receiveLocked starts a receiver for each socket that has none. life's lock is held.
func (e *Endpoint) receiveLocked() {
	for _, s := range e.idle {
		e.receivers.Add(1)
		go newReceiver(e, s).run(&e.receivers)
	}
	e.idle = nil
}

// shut ends the receivers, waits for them and closes what openOn opened. It
// runs in the monitor's goroutine, or after that has ended.
func (e *Endpoint) shut() {
	e.monitor.Bind(0)
	e.life.Lock()
	e.idle = nil // from here on Attach starts no receiver
	e.life.Unlock()

	for _, s := range e.sockets { // only this goroutine changes them
		s.end()
	}
	e.receivers.Wait()

	e.socketsMu.Lock()
	socks, exclusion := e.sockets, e.exclusion
	e.sockets, e.exclusion = nil, nil
	e.socketsMu.Unlock()
	e.countKernelDrops(socks)
	closeSockets(socks)
	if exclusion != nil {
		exclusion.Close()
	}
}

// follow has the endpoint be on the interface of an index, or on none where the
// index is 0. The monitor calls it when the name is that of another interface
// than before.
func (e *Endpoint) follow(index int32) bool {
	e.shut()
	if index == 0 {
		e.life.Lock()
		e.failure = nil
		e.life.Unlock()
		return true
	}
	var facts kernel.Facts
	err := e.ns.Do(func() (err error) {
		if facts, err = kernel.LookUp(e.name); err != nil {
			return err
		}
		return e.openOn(facts.Index)
	})
	e.life.Lock()
	e.failure = err
	e.life.Unlock()
	if err != nil {
		return false
	}
	e.renewHardware()
	e.stats.reopened.Add(1)
	e.monitor.Bind(facts.Index)
	return true
}

// Info returns what is in force at this moment.
func (e *Endpoint) Info() Info {
	e.socketsMu.RLock()
	defer e.socketsMu.RUnlock()
	info := Info{Index: int(e.monitor.Bound()), Queues: e.options.Queues, Exclusive: e.exclusion != nil}
	if len(e.sockets) > 0 {
		fd := e.sockets[0].fd
		info.ReceiveBuffer, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		info.Ring = e.sockets[0].ring != nil
		info.SendBuffer, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	}
	return info
}
