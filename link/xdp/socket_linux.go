package xdp

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// socket is one AF_XDP socket on one queue of an interface, with memory of its
// own: the first places are for received frames, the others for those to send.
type socket struct {
	fd int
	// wakeup is an eventfd: readable when the receiver is to end or to look at
	// waiting.
	wakeup int
	// ending is set before wakeup is written, for a receiver too busy to wait.
	ending atomic.Bool

	memory []byte
	frame  int
	// zeroCopy is whether the device uses the memory itself.
	zeroCopy bool

	// fill has the places that the kernel may receive into, received the
	// frames; both are the receiver's.
	fill     ring[uint64]
	received ring[unix.XDPDesc]

	// sendMu is held by a sender: a ring has one producer. The kernel itself
	// sends one at a time on a socket, so nothing is lost by it. It guards what
	// follows.
	sendMu    sync.Mutex
	send      ring[unix.XDPDesc]
	completed ring[uint64]
	// free are the places that no frame to send is in.
	free []uint64
	// dead is set when the kernel refused to send from the socket: what is left
	// in its ring must never go out, so that it is not used again.
	dead bool
	// waiting is whether frames may be in the ring that the kernel had no room
	// for when it was last called.
	waiting atomic.Bool

	// countedMu guards counted: what was read last.
	countedMu sync.Mutex
	counted   unix.XDPStatistics
}

// sendShare is what part of the places is beside them to send from: a sender
// has the kernel take its frames at once.
const sendShare = 4

// pages are where the rings of a socket are mapped.
var pages = struct{ received, send, fill, completed int64 }{
	unix.XDP_PGOFF_RX_RING, unix.XDP_PGOFF_TX_RING,
	unix.XDP_UMEM_PGOFF_FILL_RING, unix.XDP_UMEM_PGOFF_COMPLETION_RING,
}

// newSocket makes a socket that is bound to nothing, with n places to receive
// into.
func newSocket(frame, n int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.EAFNOSUPPORT) {
			err = fmt.Errorf("%w: the kernel has no AF_XDP (CONFIG_XDP_SOCKETS): %w", ErrNotSupported, err)
		}
		return nil, fmt.Errorf("open an AF_XDP socket: %w", err)
	}
	s := &socket{fd: fd, wakeup: -1, frame: frame}
	if err := s.prepare(n, n/sendShare); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// prepare makes the memory and the rings, n places to receive into and m to send
// from.
func (s *socket) prepare(n, m int) (err error) {
	if s.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("open an eventfd: %w", err)
	}
	size := (n + m) * s.frame
	s.memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("allocate %d bytes for frames: %w", size, err)
	}
	if err := registerMemory(s.fd, s.memory, s.frame); err != nil {
		return fmt.Errorf("register %d bytes for frames (RLIMIT_MEMLOCK may limit them): %w", size, err)
	}
	for _, r := range []struct{ option, size int }{
		{unix.XDP_UMEM_FILL_RING, n}, {unix.XDP_UMEM_COMPLETION_RING, m}, {unix.XDP_RX_RING, n}, {unix.XDP_TX_RING, m},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, r.option, r.size); err != nil {
			return fmt.Errorf("make a ring of %d: %w", r.size, err)
		}
	}
	if err := s.mapRings(n, m); err != nil {
		return err
	}
	for i := range n {
		*s.fill.at(uint32(i)) = uint64(i * s.frame)
	}
	s.fill.publish(n)
	s.free = make([]uint64, 0, m)
	for i := range m {
		s.free = append(s.free, uint64((n+i)*s.frame))
	}
	return nil
}

// mapRings maps the four rings.
func (s *socket) mapRings(n, m int) error {
	at, err := option[unix.XDPMmapOffsets](s.fd, unix.XDP_MMAP_OFFSETS)
	if err != nil {
		return fmt.Errorf("ask where the rings are: %w", err)
	}
	var errs [4]error
	s.received, errs[0] = mapRing[unix.XDPDesc](s.fd, n, pages.received, at.Rx)
	s.send, errs[1] = mapRing[unix.XDPDesc](s.fd, m, pages.send, at.Tx)
	s.fill, errs[2] = mapRing[uint64](s.fd, n, pages.fill, at.Fr)
	s.completed, errs[3] = mapRing[uint64](s.fd, m, pages.completed, at.Cr)
	return errors.Join(errs[:]...)
}

// The kernel lets go of a queue, and of a program's place, some time after the
// descriptor was closed.
const (
	bindAttempts = 500
	bindPause    = 2 * time.Millisecond
)

// inUse reports whether an error says that somebody has the thing: a queue, or an
// interface's one place for a program, which is in the driver (EBUSY) or in the stack
// (EEXIST, where the other one was wanted).
func inUse(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) }

// insist calls f until it no longer says that the thing is in use, for up to a
// second.
func insist(f func() error) error {
	var err error
	for range bindAttempts {
		if err = f(); !inUse(err) {
			break
		}
		time.Sleep(bindPause)
	}
	return err
}

// bind binds the socket to a queue in one of the modes. The error is the
// kernel's.
func (s *socket) bind(index int32, queue int, mode Mode) error {
	flags := uint16(unix.XDP_USE_NEED_WAKEUP | unix.XDP_COPY)
	if mode == ModeZeroCopy {
		flags = unix.XDP_USE_NEED_WAKEUP | unix.XDP_ZEROCOPY
	}
	err := insist(func() error {
		return unix.Bind(s.fd, &unix.SockaddrXDP{Flags: flags, Ifindex: uint32(index), QueueID: uint32(queue)})
	})
	if err == nil {
		s.zeroCopy = mode == ModeZeroCopy
		// More frames a call than 32, where the kernel lets us say so (6.17).
		budget := uint32(min(sendBudget, len(s.send.entries)))
		setOption(s.fd, unix.XDP_MAX_TX_SKB_BUDGET, &budget)
	}
	return err
}

// sendBudget is how many frames the kernel sends in one call.
const sendBudget = 256

// kernelDrops are frames that the kernel dropped.
type kernelDrops struct {
	// ringFull: the receiver had not looked at those before. noPlace: the fill
	// ring was empty, which is the same but for when it is seen. other: they were
	// longer than a place; with zero-copy, for want of a place too.
	ringFull, noPlace, other uint64
}

// kernelDrops returns what the kernel dropped since it was last asked.
func (s *socket) kernelDrops() kernelDrops {
	s.countedMu.Lock()
	defer s.countedMu.Unlock()
	now, err := option[unix.XDPStatistics](s.fd, unix.XDP_STATISTICS)
	if err != nil {
		return kernelDrops{}
	}
	last := s.counted
	s.counted = now
	d := kernelDrops{ringFull: now.Rx_ring_full - last.Rx_ring_full, other: now.Rx_dropped - last.Rx_dropped}
	if !s.zeroCopy {
		// In copy mode each frame for which there is no place counts in both; a
		// device with zero-copy counts how often it looked in vain.
		d.noPlace = min(d.other, now.Rx_fill_ring_empty_descs-last.Rx_fill_ring_empty_descs)
		d.other -= d.noPlace
	}
	return d
}

// end has the socket's receiver end.
func (s *socket) end() {
	s.ending.Store(true)
	s.wake()
}

// one is what is written to an eventfd: not zero, in any byte order.
var one = [8]byte{0: 1, 7: 1}

// wake has the receiver stop waiting. The eventfd cannot be full.
func (s *socket) wake() { unix.Write(s.wakeup, one[:]) }

// rest has the receiver not look again at what waits in the ring to be sent,
// when nothing does. A sender that is at it knows better.
func (s *socket) rest() {
	if s.sendMu.TryLock() {
		s.waiting.Store(s.send.filled() != 0)
		s.sendMu.Unlock()
	}
}

// close closes the descriptors and gives the memory back. Nobody uses the
// socket any more.
func (s *socket) close() {
	unix.Close(s.fd)
	if s.wakeup >= 0 {
		unix.Close(s.wakeup)
	}
	for _, b := range [][]byte{s.received.mapped, s.send.mapped, s.fill.mapped, s.completed.mapped, s.memory} {
		if b != nil {
			unix.Munmap(b)
		}
	}
}
