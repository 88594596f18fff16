package tap

import (
	"encoding/binary"
	"runtime"
	"sync"

	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// sendAttempts is how often a frame is offered to a kernel that has no
	// memory for it, with a yield between.
	sendAttempts = 4
	// maxVectors is how many pieces of a frame the kernel takes (UIO_MAXIOV).
	maxVectors = 1024
)

// scratch is what a sender needs for one frame. Scratches are reused.
type scratch struct {
	virtio  [vnet.Size]byte
	vectors []unix.Iovec
	// copied is the frame where it had more pieces than the kernel takes.
	copied *buffer.View
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// load describes the packet to the kernel.
func (s *scratch) load(pkt *stack.PacketBuffer) {
	vnet.For(pkt).Put(s.virtio[:])
	s.vectors = vnet.AppendVector(s.vectors, s.virtio[:])
	views, skip := pkt.AsViewList()
	if views.Len() >= maxVectors {
		s.copied = pkt.ToView()
		s.vectors = vnet.AppendVector(s.vectors, s.copied.AsSlice())
		return
	}
	for v := views.Front(); v != nil; v = v.Next() {
		b := v.AsSlice()
		if skip >= len(b) {
			skip -= len(b)
			continue
		}
		s.vectors = vnet.AppendVector(s.vectors, b[skip:])
		skip = 0
	}
}

// unload forgets the packet, so that the scratch keeps no memory of its.
func (s *scratch) unload() {
	clear(s.vectors)
	s.vectors = s.vectors[:0]
	if s.copied != nil {
		s.copied.Release()
		s.copied = nil
	}
}

// WritePackets implements stack.LinkEndpoint. Every frame is handed to the
// kernel or refused before it returns; it does not block.
//
// It returns how many frames the kernel took. With an error for which link.Gone
// is true these are the first ones. With any other error some frames were
// dropped and counted: all after the first ones with ErrNoBufferSpace, only
// those that were at fault with ErrMalformedHeader.
func (e *Endpoint) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	// The lock keeps the queues open, and so their numbers ours, over the
	// system calls. Only closing waits for it.
	e.queuesMu.RLock()
	defer e.queuesMu.RUnlock()
	pkts := list.AsSlice()
	if len(e.queues) == 0 {
		e.stats.tx.down.Add(uint64(len(pkts)))
		return 0, &tcpip.ErrInvalidEndpointState{}
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	sent, bytes := 0, 0
	defer func() {
		e.stats.tx.packets.Add(uint64(sent))
		e.stats.tx.bytes.Add(uint64(bytes))
	}()
	var result tcpip.Error
	for i, pkt := range pkts {
		left := uint64(len(pkts) - i)
		switch e.send(s, pkt) {
		case refusalNone:
			sent++
			bytes += pkt.Size()
		case refusalFull:
			e.stats.tx.noBuffer.Add(left)
			return sent, &tcpip.ErrNoBufferSpace{}
		case refusalDown:
			e.stats.tx.down.Add(left)
			return sent, &tcpip.ErrInvalidEndpointState{}
		default:
			e.stats.tx.invalid.Add(1)
			result = &tcpip.ErrMalformedHeader{}
		}
	}
	return sent, result
}

// send sends one frame.
func (e *Endpoint) send(s *scratch, pkt *stack.PacketBuffer) refusal {
	queue := e.queues[0]
	if n := uint32(len(e.queues)); n > 1 {
		queue = e.queues[flowOf(pkt)%n]
	}
	s.load(pkt)
	defer s.unload()
	for attempt := 1; ; attempt++ {
		_, errno := writeVector(queue.fd, s.vectors)
		why := classify(errno)
		if why != refusalFull || attempt == sendAttempts {
			return why
		}
		runtime.Gosched()
	}
}

// refusal is why the kernel did not take a frame.
type refusal int

const (
	refusalNone refusal = iota
	// refusalInvalid: it is not one that can be sent.
	refusalInvalid
	// refusalFull: there is no memory at this moment.
	refusalFull
	// refusalDown: the device is down (EIO) or gone (EBADFD).
	refusalDown
)

// classify says what an error of sending means.
func classify(errno unix.Errno) refusal {
	switch errno {
	case 0:
		return refusalNone
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.EINTR:
		return refusalFull
	case unix.EIO, unix.EBADFD, unix.EBADF, unix.ENETDOWN, unix.ENODEV, unix.ENXIO:
		return refusalDown
	}
	return refusalInvalid
}

// flowOf returns a number that the packets of a flow have in common. The kernel
// sends a flow by the queue that it last came in by, so this spreads both
// directions.
func flowOf(pkt *stack.PacketBuffer) uint32 {
	if pkt.Hash != 0 {
		return pkt.Hash
	}
	return flowOfBytes(kernel.FirstPiece(pkt))
}

// flowOfBytes is flowOf for the first bytes of a frame: IP addresses, and the
// ports where they are in their usual place.
func flowOfBytes(b []byte) uint32 {
	if len(b) < header.EthernetMinimumSize {
		return 0
	}
	at, size := 0, 0
	switch binary.BigEndian.Uint16(b[12:]) {
	case uint16(header.IPv4ProtocolNumber):
		at, size = header.EthernetMinimumSize+12, 12
	case uint16(header.IPv6ProtocolNumber):
		at, size = header.EthernetMinimumSize+8, 36
	}
	sum := uint32(0)
	for ; size >= 4 && at+4 <= len(b); at, size = at+4, size-4 {
		sum ^= binary.BigEndian.Uint32(b[at:])
	}
	return sum * 0x9e3779b1 >> 16
}
