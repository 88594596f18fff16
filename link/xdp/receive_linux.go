package xdp

import (
	"runtime"
	"sync"

	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// receiveBatch is how many frames are looked at before their places are given
// back.
const receiveBatch = 64

// yieldsBeforeWait is how often a receiver lets other goroutines go first before
// it sleeps. When there are none this is a microsecond or two, less than going to
// sleep costs, and being woken costs whoever sends.
const yieldsBeforeWait = 20

var (
	// errorPause is how long a receiver waits after an error, so that one that
	// stays does not keep a processor busy.
	errorPause = unix.NsecToTimespec(1e6)
	// sendPause is how soon a receiver has the kernel look again at frames that
	// it had no room for.
	sendPause = unix.NsecToTimespec(1e6)
)

// receiver receives on one socket, in a goroutine of its own.
type receiver struct {
	endpoint *Endpoint
	socket   *socket
	// list is what of a batch is to be delivered.
	list stack.PacketBufferList
	// part is the frame that is looked at, as one that is in parts.
	part  [1][]byte
	woken [8]byte
	// partial is whether the last frame had a partial checksum.
	partial bool
}

// newReceiver makes a receiver for a socket.
func newReceiver(e *Endpoint, s *socket) *receiver { return &receiver{endpoint: e, socket: s} }

// run receives until the socket is to end.
func (r *receiver) run(wg *sync.WaitGroup) {
	defer wg.Done()
	for !r.socket.ending.Load() {
		n := min(r.socket.received.filled(), receiveBatch)
		if n == 0 {
			if !r.linger() {
				r.wait()
			}
			continue
		}
		r.dispatch(n)
	}
}

// linger lets other goroutines go first, a few times, and reports whether frames
// have come: no call is needed for these.
func (r *receiver) linger() bool {
	for range yieldsBeforeWait {
		if runtime.Gosched(); r.socket.received.filled() != 0 {
			return true
		}
	}
	return false
}

// wait waits for frames or for the end. It has the kernel look at what it needs
// to be called for: the poll itself is such a call.
func (r *receiver) wait() {
	s := r.socket
	set := [2]unix.PollFd{
		{Fd: int32(s.wakeup), Events: unix.POLLIN},
		{Fd: int32(s.fd), Events: unix.POLLIN},
	}
	var limit *unix.Timespec
	if s.waiting.Load() {
		if s.rest(); s.waiting.Load() {
			limit = &sendPause
		}
	}
	// A plain system call, as in link/packet: the scheduler is not told
	// beforehand.
	unix.Ppoll(set[:], limit, nil)
	if set[0].Revents&unix.POLLIN != 0 {
		unix.Read(s.wakeup, r.woken[:])
	}
	if set[1].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
		// The interface is gone: what stays readable would end each wait.
		r.endpoint.monitor.Wake()
		unix.Ppoll(set[:1], &errorPause, nil)
	}
}

// batchCounts are what a batch adds to the counters.
type batchCounts struct {
	packets, bytes, partial, address, checksum, malformed, unattached uint64
}

// dispatch takes the first n frames out of their places, gives the places back,
// and delivers what is to be delivered.
func (r *receiver) dispatch(n int) {
	var c batchCounts
	s := r.socket
	to := r.endpoint.attached.Load()
	filter := r.endpoint.filter.State()
	first, place := s.received.consumed(), s.fill.produced()
	for i := range uint32(n) {
		d := *s.received.at(first + i)
		frame, begin, ok := s.bytes(d)
		if !ok {
			begin = uint64(i) // never: the kernel made it up
		}
		*s.fill.at(place + i) = begin
		switch {
		case to == nil:
			c.unattached++
		case !ok || len(frame) < header.EthernetMinimumSize:
			c.malformed++
		default:
			if pkt := r.take(frame, filter, &c); pkt != nil {
				r.list.PushBack(pkt)
			}
		}
	}
	s.received.release(n)
	s.fill.publish(n)
	if s.fill.needWakeup() {
		unix.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	}
	r.deliver(to)
	r.endpoint.stats.rx.add(c)
}

// deliver delivers what is on the list, together to who takes lists: what is
// sent on together costs one call.
func (r *receiver) deliver(to *kernel.Attachment) {
	if r.list.Len() == 0 {
		return
	}
	if to.List != nil {
		to.List.DeliverList(r.list)
	} else {
		for _, pkt := range r.list.AsSlice() {
			to.Dispatcher.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
		}
	}
	r.list.Reset()
}

// bytes returns the frame of a descriptor, and where its place begins. It is
// false where that is not in the memory.
func (s *socket) bytes(d unix.XDPDesc) (frame []byte, begin uint64, ok bool) {
	begin = d.Addr &^ uint64(s.frame-1)
	if d.Addr >= uint64(len(s.memory)) || uint64(d.Len) > begin+uint64(s.frame)-d.Addr {
		return nil, 0, false
	}
	return s.memory[d.Addr:][:d.Len:d.Len], begin, true
}

// take makes a packet of a copy of a frame, or drops it.
func (r *receiver) take(frame []byte, filter *kernel.FilterState, c *batchCounts) *stack.PacketBuffer {
	kind, pass := filter.Classify(kernel.MAC(frame[:header.EthernetAddressSize]))
	if !pass {
		c.address++
		return nil
	}
	verdict, gso := r.verify(frame)
	if r.partial {
		c.partial++
	}
	if verdict == vnet.Bad {
		c.checksum++
		return nil
	}
	c.packets++
	c.bytes += uint64(len(frame))
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	kernel.ParseEthernet(pkt)
	pkt.PktType = kind
	pkt.RXChecksumValidated = verdict == vnet.Good
	pkt.GSOOptions = gso
	return pkt
}

// verify verifies the checksums of a frame, and notes whether one is partial.
// Where the last one was, it is tried first that this one is too: then nobody
// sums the frame.
func (r *receiver) verify(frame []byte) (vnet.Verdict, stack.GSO) {
	r.part[0] = frame
	verdict, tried := vnet.Unknown, r.partial
	if !tried {
		if verdict = vnet.Verify(r.part[:], false); verdict != vnet.Bad {
			return verdict, stack.GSO{}
		}
	}
	gso, partial := vnet.Partial(frame)
	r.partial = partial
	switch {
	case partial && r.endpoint.options.RefusePartial:
		return vnet.Bad, gso
	case partial:
		return vnet.Verify(r.part[:], true), gso // the IPv4 header is whole
	case tried:
		return vnet.Verify(r.part[:], false), stack.GSO{}
	}
	return verdict, stack.GSO{}
}

// add adds a batch to the counters. Most batches add to two of them.
func (rx *rxCounters) add(c batchCounts) {
	if c.packets != 0 {
		rx.packets.Add(c.packets)
		rx.bytes.Add(c.bytes)
	}
	if c == (batchCounts{packets: c.packets, bytes: c.bytes}) {
		return
	}
	rx.partial.Add(c.partial)
	rx.address.Add(c.address)
	rx.checksum.Add(c.checksum)
	rx.malformed.Add(c.malformed)
	rx.unattached.Add(c.unattached)
}
