package packet

import (
	"runtime"
	"sync"
	"sync/atomic"

	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// sendBatch is how many frames one call sends at most.
	sendBatch = 64
	// sendAttempts is how often a frame is offered to a kernel that has no
	// room for it, with a yield between: enough for a queue that is just being
	// drained, and far below a millisecond.
	sendAttempts = 4
	// maxVectors is how many pieces of a frame the kernel takes (UIO_MAXIOV).
	maxVectors = 1024
)

// scratch is what a sender needs for one batch. Scratches are reused.
type scratch struct {
	messages [sendBatch]message
	virtio   [sendBatch][vnet.Size]byte
	sizes    [sendBatch]int
	vectors  []unix.Iovec
	// starts are where in vectors each frame begins: the pointers are set when
	// vectors has stopped growing.
	starts [sendBatch + 1]int
	// copies are the frames that had more pieces than the kernel takes.
	copies []*buffer.View
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// load describes the packets, at most sendBatch of them, to the kernel.
func (s *scratch) load(pkts []*stack.PacketBuffer) {
	for i, pkt := range pkts {
		vnet.For(pkt).Put(s.virtio[i][:])
		s.starts[i] = len(s.vectors)
		s.sizes[i] = pkt.Size()
		s.vectors = vnet.AppendVector(s.vectors, s.virtio[i][:])
		s.appendPacket(pkt)
	}
	s.starts[len(pkts)] = len(s.vectors)
	for i := range pkts {
		m := &s.messages[i]
		m.header.Iov = &s.vectors[s.starts[i]]
		m.header.SetIovlen(s.starts[i+1] - s.starts[i])
	}
}

// appendPacket appends the pieces of a packet to the vectors.
func (s *scratch) appendPacket(pkt *stack.PacketBuffer) {
	views, skip := pkt.AsViewList()
	if views.Len() >= maxVectors {
		v := pkt.ToView()
		s.copies = append(s.copies, v)
		s.vectors = vnet.AppendVector(s.vectors, v.AsSlice())
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

// unload forgets the packets, so that the scratch keeps no memory of theirs.
func (s *scratch) unload() {
	clear(s.vectors)
	s.vectors = s.vectors[:0]
	for _, v := range s.copies {
		v.Release()
	}
	clear(s.copies)
	s.copies = s.copies[:0]
}

// WritePackets implements stack.LinkEndpoint. Every frame is handed to the
// kernel or refused before it returns; it does not block.
//
// It returns how many frames the kernel took. With an error for which link.Gone
// is true these are the first ones, and the rest may be sent by another link.
// With any other error some frames were dropped and counted: all after the
// first ones with ErrNoBufferSpace, only those that were at fault with
// ErrMessageTooLong and ErrMalformedHeader.
func (e *Endpoint) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	// The lock keeps the sockets open, and so their numbers ours, over the
	// system call. Only an opening or closing waits for it.
	e.socketsMu.RLock()
	defer e.socketsMu.RUnlock()
	pkts := list.AsSlice()
	if len(e.sockets) == 0 {
		e.stats.tx.down.Add(uint64(len(pkts)))
		return 0, &tcpip.ErrInvalidEndpointState{}
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	sent := 0
	var result tcpip.Error
	for len(pkts) > 0 {
		queue, n := e.batch(pkts)
		s.load(pkts[:n])
		o := e.send(e.sockets[queue].fd, s, n)
		s.unload()
		pkts = pkts[n:]
		sent += o.sent
		if o.err != nil {
			result = o.err
		}
		if o.refused != nil {
			o.refused.Add(uint64(len(pkts)))
			break
		}
	}
	return sent, result
}

// batch returns the socket that the first packets go out by, and how many go
// together.
func (e *Endpoint) batch(pkts []*stack.PacketBuffer) (queue, n int) {
	limit := min(len(pkts), sendBatch)
	queues := uint32(len(e.sockets))
	if queues == 1 {
		return 0, limit
	}
	first := pkts[0].Hash % queues
	for n = 1; n < limit && pkts[n].Hash%queues == first; n++ {
	}
	return int(first), n
}

// outcome is what became of a batch.
type outcome struct {
	sent int
	err  tcpip.Error
	// refused, if not nil, says that the frames after the batch are not to be
	// tried, and where they count.
	refused *atomic.Uint64
}

// send sends the first n frames that are loaded.
func (e *Endpoint) send(fd int, s *scratch, n int) outcome {
	tx := &e.stats.tx
	var o outcome
	failed := 0
	for at := 0; at < n; {
		k, errno := sendMessages(fd, s.messages[at:n])
		if errno == 0 {
			e.countSent(s.sizes[at : at+k])
			at, o.sent, failed = at+k, o.sent+k, 0
			continue
		}
		failed++
		switch classify(errno) {
		case refusalFull:
			if failed < sendAttempts {
				runtime.Gosched()
				continue
			}
			tx.noBuffer.Add(uint64(n - at))
			o.err, o.refused = &tcpip.ErrNoBufferSpace{}, &tx.noBuffer
			return o
		case refusalDown:
			// The socket may still hold an error from when the interface was
			// down for a moment; it is told once.
			if failed < 2 {
				continue
			}
			tx.down.Add(uint64(n - at))
			e.monitor.Suspect()
			o.err, o.refused = &tcpip.ErrInvalidEndpointState{}, &tx.down
			return o
		case refusalTooLong:
			o.err = &tcpip.ErrMessageTooLong{}
		default:
			o.err = &tcpip.ErrMalformedHeader{}
		}
		tx.invalid.Add(1)
		at, failed = at+1, 0
	}
	return o
}

// countSent counts frames that the kernel took.
func (e *Endpoint) countSent(sizes []int) {
	bytes := 0
	for _, size := range sizes {
		bytes += size
	}
	e.stats.tx.packets.Add(uint64(len(sizes)))
	e.stats.tx.bytes.Add(uint64(bytes))
}

// refusal is why the kernel did not take a frame.
type refusal int

const (
	// refusalInvalid: it is not one that can be sent.
	refusalInvalid refusal = iota
	// refusalTooLong: it is longer than the interface's MTU.
	refusalTooLong
	// refusalFull: there is no room at this moment.
	refusalFull
	// refusalDown: the interface is down or gone.
	refusalDown
)

// classify says what an error of sending means.
func classify(errno unix.Errno) refusal {
	switch errno {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.EINTR:
		return refusalFull
	case unix.ENETDOWN, unix.ENXIO, unix.ENODEV, unix.EBADF:
		return refusalDown
	case unix.EMSGSIZE:
		return refusalTooLong
	}
	return refusalInvalid
}
