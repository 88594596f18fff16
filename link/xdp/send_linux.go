package xdp

import (
	"runtime"
	"sync/atomic"

	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// sendAttempts is how often a kernel that has no room is called again, with a
// yield between: enough for a queue that is just being drained, and far below a
// millisecond.
const sendAttempts = 4

// WritePackets implements stack.LinkEndpoint. Every frame is copied to where
// the kernel takes it from, or refused, before it returns; it does not block.
// Senders on one queue wait for each other while their frames are copied and
// the kernel is called.
//
// It returns how many frames were taken. With an error for which link.Gone is
// true these are the first ones, and the rest may be sent by another link. With
// any other error some frames were dropped and counted: all after the first ones
// with ErrNoBufferSpace, only those that were at fault with ErrMessageTooLong.
func (e *Endpoint) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	// The lock keeps the sockets open over the system call. Only an opening or
	// closing waits for it.
	e.openMu.RLock()
	defer e.openMu.RUnlock()
	pkts := list.AsSlice()
	sent := 0
	var result tcpip.Error
	for len(pkts) > 0 {
		s, n := e.batch(pkts)
		if s == nil {
			e.stats.tx.down.Add(uint64(len(pkts)))
			return sent, &tcpip.ErrInvalidEndpointState{}
		}
		o := e.send(s, pkts[:n])
		sent += o.sent
		if o.err != nil {
			result = o.err
		}
		pkts = pkts[n:]
		if o.refused != nil {
			o.refused.Add(uint64(len(pkts)))
			break
		}
	}
	return sent, result
}

// batch returns the socket that the first packets go out by, nil where there is
// none, and how many go together.
func (e *Endpoint) batch(pkts []*stack.PacketBuffer) (s *socket, n int) {
	senders := uint32(e.open.senders)
	switch senders {
	case 0:
		return nil, 0
	case 1:
		return e.open.sockets[0], len(pkts)
	}
	first := pkts[0].Hash % senders
	for n = 1; n < len(pkts) && pkts[n].Hash%senders == first; n++ {
	}
	return e.open.sockets[first], n
}

// outcome is what became of a batch.
type outcome struct {
	sent int
	err  tcpip.Error
	// refused, if not nil, says that the frames after the batch are not to be
	// tried, and where they count.
	refused *atomic.Uint64
}

// send sends packets by a socket.
func (e *Endpoint) send(s *socket, pkts []*stack.PacketBuffer) outcome {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	if s.dead {
		e.leave()
		e.stats.tx.down.Add(uint64(len(pkts)))
		return outcome{err: &tcpip.ErrInvalidEndpointState{}, refused: &e.stats.tx.down}
	}
	var o outcome
	limit := min(int(e.interfaceMTU.Load())+overhead, s.frame)
	for at := 0; at < len(pkts); {
		l := s.load(pkts[at:], limit)
		if l.looked == 0 {
			e.stats.tx.noBuffer.Add(uint64(len(pkts) - at))
			o.err, o.refused = &tcpip.ErrNoBufferSpace{}, &e.stats.tx.noBuffer
			return o
		}
		if l.invalid > 0 {
			e.stats.tx.invalid.Add(uint64(l.invalid))
			o.err = &tcpip.ErrMessageTooLong{}
		}
		at += l.looked
		taken, down := e.push(s, l.loaded)
		o.sent += taken
		e.stats.tx.packets.Add(uint64(taken))
		if down {
			e.stats.tx.down.Add(uint64(len(pkts) - at + l.loaded - taken))
			o.err, o.refused = &tcpip.ErrInvalidEndpointState{}, &e.stats.tx.down
			return o
		}
		e.stats.tx.bytes.Add(uint64(l.bytes))
	}
	return o
}

// loading is what load did: it looked at the first packets, and put those that
// are not invalid into the ring.
type loading struct{ looked, loaded, invalid, bytes int }

// load copies packets to free places, as many as there are, and puts them into
// the ring, where the kernel does not see them yet.
func (s *socket) load(pkts []*stack.PacketBuffer, limit int) loading {
	var l loading
	s.reclaim()
	room := min(len(s.free), s.send.room())
	next := s.send.produced()
	for _, pkt := range pkts {
		size := pkt.Size()
		if size > limit || size < header.EthernetMinimumSize {
			l.looked++
			l.invalid++
			continue
		}
		if l.loaded == room {
			break
		}
		l.looked++
		place := s.free[len(s.free)-1]
		if !fill(s.memory[place:][:size], pkt) {
			l.invalid++
			continue
		}
		s.free = s.free[:len(s.free)-1]
		*s.send.at(next + uint32(l.loaded)) = unix.XDPDesc{Addr: place, Len: uint32(size)}
		l.loaded++
		l.bytes += size
	}
	return l
}

// fill writes a packet to b, which has its size, and completes its checksum
// where it asks for that. It is false where the packet asks for what cannot be.
func fill(b []byte, pkt *stack.PacketBuffer) bool {
	views, skip := pkt.AsViewList()
	to := b
	for v := views.Front(); v != nil; v = v.Next() {
		piece := v.AsSlice()
		if skip >= len(piece) {
			skip -= len(piece)
			continue
		}
		to = to[copy(to, piece[skip:]):]
		skip = 0
	}
	if !pkt.GSOOptions.NeedsCsum {
		return true
	}
	linkLen := len(pkt.LinkHeader().Slice())
	if linkLen == 0 {
		linkLen = header.EthernetMinimumSize
	}
	return vnet.Complete(b, linkLen, pkt.GSOOptions)
}

// reclaim takes the places back whose frames have gone.
func (s *socket) reclaim() {
	n := s.completed.filled()
	first := s.completed.consumed()
	for i := range uint32(n) {
		place := *s.completed.at(first + i)
		if place < uint64(len(s.memory)) && len(s.free) < cap(s.free) {
			s.free = append(s.free, place&^uint64(s.frame-1))
		}
	}
	s.completed.release(n)
}

// push makes n frames in the ring the kernel's, and has it send. taken is how
// many it took, all unless the link is down. Frames that it has no room for
// stay in the ring: the next call takes them, or the receiver's.
func (e *Endpoint) push(s *socket, n int) (taken int, down bool) {
	before := s.send.filled()
	s.send.publish(n)
	result := e.call(s)
	switch result {
	case callDone:
		if s.waiting.Load() {
			s.waiting.Store(false)
		}
		return n, false
	case callFull:
		if !s.waiting.Swap(true) {
			s.wake()
		}
		return n, false
	}
	left := min(s.send.filled(), before+n)
	s.bury()
	e.leave()
	return max(n-left, 0), true
}

// bury ends all sending by the socket, which is to be made anew. Nothing that
// is left in the ring may go out later, when the frames have gone out by another
// link or are too old, and until the socket is closed a poll would still send
// it: so the frames get places that there are not, which the kernel skips.
func (s *socket) bury() {
	s.dead = true
	first := s.send.consumed()
	for i := range uint32(s.send.filled()) {
		atomic.StoreUint64(&s.send.at(first+i).Addr, ^uint64(s.frame-1))
	}
}

// leave takes the link down until its sockets have been made anew.
func (e *Endpoint) leave() {
	if e.monitor.Bound() != 0 {
		e.monitor.Bind(0)
		e.monitor.Wake()
	}
}

// callResult is what came of having the kernel send.
type callResult int

const (
	callDone callResult = iota
	// callFull: it has no room for all of it at this moment.
	callFull
	// callDown: the interface is down or gone.
	callDown
)

// call has the kernel send what is in the ring.
func (e *Endpoint) call(s *socket) callResult {
	if !s.send.needWakeup() {
		return callDone
	}
	failed := 0
	for failed < sendAttempts {
		consumed := s.send.consumed()
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return callDone
		case unix.EBUSY:
			// The driver dropped one that the kernel took: its queue is full, or
			// it has no carrier. The rest wait for another call.
			e.stats.tx.device.Add(1)
			e.monitor.Suspect()
		case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.EINTR:
			if s.send.consumed() != consumed {
				failed = 0
				continue
			}
			failed++
			runtime.Gosched()
		default:
			return callDown
		}
	}
	return callFull
}
