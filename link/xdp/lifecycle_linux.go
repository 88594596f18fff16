package xdp

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// opened is what is open on an interface.
type opened struct {
	program *program
	// sockets has one for each receive queue, in order; the first senders of
	// them send.
	sockets []*socket
	senders int
	// membership is a packet socket that keeps the interface promiscuous.
	membership int
	mode       Mode
	reason     string
}

// openOn opens the interface of an index: program, memory and sockets. It runs
// in the endpoint's namespace, while nothing is open. The link is not up before
// the monitor has the index too.
func (e *Endpoint) openOn(index int32) error {
	receive, transmit, known := e.ns.Channels(e.name)
	if !known {
		receive, transmit = maxQueues, 1
	}
	o := opened{membership: -1}
	var err error
	receive = min(max(receive, 1), maxQueues)
	if o.program, o.mode, o.reason, err = attach(index, receive, e.options); err != nil {
		return err
	}
	if err := e.openSockets(&o, index, receive, known); err != nil {
		o.close()
		return err
	}
	o.senders = min(max(transmit, 1), len(o.sockets))
	if o.membership, err = promiscuous(index); err != nil {
		o.close()
		return err
	}
	e.frameMTU.Store(uint32(o.sockets[0].frame - headroom - overhead))

	e.filterMu.Lock()
	defer e.filterMu.Unlock()
	if err := o.program.follow(e.filter.State()); err != nil {
		o.close()
		return err
	}
	for queue, s := range o.sockets {
		if err := o.program.add(queue, s); err != nil {
			o.close()
			return err
		}
	}
	e.openMu.Lock()
	e.open = o
	e.openMu.Unlock()
	e.life.Lock()
	defer e.life.Unlock()
	e.idle = slices.Clone(o.sockets)
	if e.life.Running() {
		e.receiveLocked()
	}
	return nil
}

// maxQueues is how many queues there are at most.
const maxQueues = 256

// openSockets opens a socket for each queue. Where it is not known how many
// there are, the kernel says which is none.
func (e *Endpoint) openSockets(o *opened, index int32, queues int, known bool) error {
	frame := minFrame
	if e.interfaceMTU.Load() > minFrame-headroom-overhead {
		frame = maxFrame
	}
	for queue := range queues {
		s, err := newSocket(frame, e.options.Ring)
		if err != nil {
			return err
		}
		err = o.bind(s, index, queue)
		if errors.Is(err, unix.EINVAL) && queue > 0 && !known {
			s.close()
			return nil
		}
		if err != nil {
			s.close()
			return fmt.Errorf("bind to queue %d: %w", queue, explainBind(err))
		}
		o.sockets = append(o.sockets, s)
	}
	return nil
}

// bind binds a socket in the mode of the others. The first one settles it.
func (o *opened) bind(s *socket, index int32, queue int) error {
	if o.mode != ModeAuto {
		return s.bind(index, queue, o.mode)
	}
	err := s.bind(index, queue, ModeZeroCopy)
	if err == nil {
		o.mode = ModeZeroCopy
		return nil
	}
	o.mode, o.reason = ModeCopy, fmt.Sprintf("the driver has no zero-copy: %v", err)
	return s.bind(index, queue, ModeCopy)
}

// explainBind says what an error of binding means.
func explainBind(err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("another AF_XDP socket has it: %w", err)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w by the driver: %w", ErrNotSupported, err)
	}
	return err
}

// promiscuous has the interface receive frames for all addresses while the
// packet socket returned, which receives nothing, is open.
func promiscuous(index int32) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a packet socket: %w", err)
	}
	for _, kind := range []uint16{unix.PACKET_MR_PROMISC, unix.PACKET_MR_ALLMULTI} {
		m := unix.PacketMreq{Ifindex: index, Type: kind}
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("make the interface promiscuous: %w", err)
		}
	}
	return fd, nil
}

// close closes what is open. Nobody uses it any more. Each part has the kernel
// wait for its other processors, for 10 ms and more: they wait together.
func (o *opened) close() {
	var wg sync.WaitGroup
	if o.program != nil {
		wg.Go(o.program.close)
	}
	for _, s := range o.sockets {
		wg.Go(s.close)
	}
	if o.membership >= 0 {
		wg.Go(func() { unix.Close(o.membership) })
	}
	wg.Wait()
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

	for _, s := range e.open.sockets { // only this goroutine changes them
		s.end()
	}
	e.receivers.Wait()

	e.openMu.Lock()
	o := e.open
	e.open = opened{membership: -1}
	e.openMu.Unlock()
	e.countKernelDrops(o.sockets)
	o.close()
}

// follow has the endpoint be on the interface of an index, or on none where the
// index is 0. The monitor calls it when the name is that of another interface
// than before, and when a sender found the interface down: then the sockets are
// made anew when it is up again, so that what the kernel did not send before
// never goes out late.
func (e *Endpoint) follow(index int32) bool {
	e.shut()
	if index == 0 {
		e.setFailure(nil)
		return true
	}
	o := e.ns.Observe(e.name)
	if !o.Up || o.Index != index {
		e.setFailure(nil)
		return false
	}
	e.interfaceMTU.Store(o.MTU)
	err := e.ns.Do(func() error { return e.openOn(index) })
	e.setFailure(err)
	if err != nil {
		return false
	}
	e.stats.reopened.Add(1)
	e.monitor.Bind(index)
	return true
}

// setFailure sets why the interface could not be opened.
func (e *Endpoint) setFailure(err error) {
	e.life.Lock()
	e.failure = err
	e.life.Unlock()
}

// Info returns what is in force at this moment.
func (e *Endpoint) Info() Info {
	e.openMu.RLock()
	defer e.openMu.RUnlock()
	o := &e.open
	info := Info{
		Index: int(e.monitor.Bound()), Mode: o.mode, Reason: o.reason,
		Queues: len(o.sockets), TransmitQueues: o.senders, Ring: e.options.Ring,
	}
	if len(o.sockets) > 0 {
		info.Frame = o.sockets[0].frame
	}
	return info
}
