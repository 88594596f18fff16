package packet

import (
	"runtime"
	"slices"
	"sync"

	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// receiveBatch is how many frames one call receives at most: with 1,448 bytes of
// payload, 45 segments fit the packet that a receiver of lists may join them to.
const receiveBatch = 64

// longBatch is how many there are at first, and again where they have more than
// longFrame bytes on average. More of those would not stay in a cache until they
// are delivered, and each slot that is in use holds 64 KiB.
const (
	longBatch = 16
	longFrame = 4 << 10
)

// How often a receiver lets other goroutines go first before it has the kernel put
// its thread to sleep: they may well acknowledge what makes the sender send more,
// and it is the sender's processor that pays for waking it. Looking into a ring
// costs next to nothing, and a system call collects some frames meanwhile.
const (
	yieldsBeforeWait     = 4
	ringYieldsBeforeWait = 60
)

const (
	// reserveSize is how much memory the receivers of an endpoint keep for
	// frames to come: what the windows of a few fast connections hold.
	reserveSize = 16 << 20
	// leastReserve is what each of many receivers keeps of it: twice what waits
	// for frames in its slots.
	leastReserve = 2 << 20
)

// errorPause is how long a receiver waits after an error, so that one that
// stays does not keep a processor busy.
var errorPause = unix.NsecToTimespec(1e6)

// receiver receives on one socket, in a goroutine of its own.
type receiver struct {
	endpoint *Endpoint
	socket   *socket
	slots    [receiveBatch]slot
	messages [receiveBatch]message
	// limit is how many frames the next batch may have, ready how many slots
	// have been prepared once, and filled how many the last batch used.
	limit, ready, filled int
	// inPlace is the frame of a ring that is looked at.
	inPlace ringFrame
	// list is what is delivered together.
	list stack.PacketBufferList
	// reserve lends the memory of long frames.
	reserve *vnet.Reserve
}

// newReceiver makes a receiver for a socket.
func newReceiver(e *Endpoint, s *socket) *receiver {
	r := &receiver{endpoint: e, socket: s, limit: longBatch, reserve: vnet.NewReserve(max(reserveSize/e.options.Queues, leastReserve))}
	for i := range r.slots {
		r.slots[i].views.Reserve = r.reserve
	}
	return r
}

// run receives until the socket is to end.
func (r *receiver) run(wg *sync.WaitGroup) {
	defer wg.Done()
	defer r.release()
	yields, most := 0, yieldsBeforeWait
	if r.socket.ring != nil {
		most = ringYieldsBeforeWait
	}
	for !r.socket.ending.Load() {
		switch errno := r.receive(); errno {
		case 0:
			yields = 0
		case unix.EAGAIN:
			if yields++; yields <= most {
				runtime.Gosched()
				continue
			}
			yields = 0
			if r.wait(nil) {
				r.failed()
			}
		case unix.EINTR:
		default:
			r.failed()
		}
	}
}

// failed notes an error of the socket. The interface went down (ENETDOWN), once:
// it is received from again by itself when it comes up.
func (r *receiver) failed() {
	r.endpoint.stats.rx.errors.Add(1)
	r.endpoint.monitor.Wake()
	r.wait(&errorPause)
}

// receive receives a batch and delivers it: EAGAIN where there is no frame.
func (r *receiver) receive() unix.Errno {
	if r.socket.ring != nil {
		return r.receiveRing(r.socket.ring)
	}
	r.prepare()
	n, errno := receiveMessages(r.socket.fd, r.messages[:r.limit])
	if errno == 0 {
		r.filled = n
		r.dispatch(n)
	}
	return errno
}

// receiveRing is receive from a ring.
func (r *receiver) receiveRing(g *ring) unix.Errno {
	b := r.begin()
	passed, errno := r.takePlaces(g, &b)
	r.end(&b)
	if passed > 0 && errno == unix.EAGAIN {
		return 0
	}
	return errno
}

// takePlaces takes frames out of their places, and returns how many these were:
// EAGAIN where the next one has none yet. It takes what comes meanwhile too, until
// the batch is not right for it any more.
func (r *receiver) takePlaces(g *ring, b *batch) (passed int, errno unix.Errno) {
	for passed < receiveBatch && errno == 0 {
		p := g.at(0)
		status := p.status()
		n := 1
		switch {
		case status&unix.TP_STATUS_USER == 0:
			return passed, unix.EAGAIN
		case r.changed(b):
			return passed, 0
		case status&unix.TP_STATUS_COPY != 0:
			n, errno = r.receiveCopies(g, b)
		case p.header().Snaplen < p.header().Len:
			b.kernel++ // the queue had no room for it
		case b.to == nil:
			b.unattached++
		case !r.inPlace.read(p):
			b.malformed++
		default:
			r.deliver(&r.inPlace, r.inPlace.parts[:], r.inPlace.virtio, b)
		}
		g.pass(n)
		passed += n
	}
	return passed, errno
}

// receiveCopies receives the frames that the next places say are in the socket's
// queue, and returns how many places these were.
func (r *receiver) receiveCopies(g *ring, b *batch) (n int, errno unix.Errno) {
	const queued = unix.TP_STATUS_USER | unix.TP_STATUS_COPY
	for n = 1; n < longBatch && g.at(n).status()&queued == queued && !r.changed(b); n++ {
	}
	r.prepare()
	got, errno := receiveMessages(r.socket.fd, r.messages[:n])
	if errno == unix.EAGAIN {
		// Not one of them is there: so that their places do not stay.
		b.kernel += uint64(n)
		return n, 0
	}
	if errno != 0 {
		return 0, errno
	}
	r.filled = got
	for i := range got {
		r.deliverSlot(&r.slots[i], &r.messages[i], b)
	}
	return got, 0
}

// prepare makes the slots ready for a batch.
func (r *receiver) prepare() {
	for i := range r.filled {
		r.slots[i].prepare(&r.messages[i])
	}
	r.filled = 0
	for ; r.ready < r.limit; r.ready++ {
		r.slots[r.ready].prepare(&r.messages[r.ready])
	}
}

// wait waits for frames or errors of the socket, or for the end. With a limit it
// waits for the end only, since an error would end the wait at once. It reports
// whether the socket has an error that a ring does not tell.
func (r *receiver) wait(limit *unix.Timespec) (failed bool) {
	set := []unix.PollFd{
		{Fd: int32(r.socket.wakeup), Events: unix.POLLIN},
		{Fd: int32(r.socket.fd), Events: unix.POLLIN},
	}
	if limit != nil {
		set = set[:1]
	}
	// A plain system call: telling the scheduler beforehand that it will block
	// cost a third of the rate of one sending stream, which waits for single
	// acknowledgements here.
	unix.Ppoll(set, limit, nil)
	if r.socket.ring == nil || set[len(set)-1].Revents&unix.POLLERR == 0 {
		return false
	}
	// Nobody receives from the socket, to be told.
	errno, _ := unix.GetsockoptInt(r.socket.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	return errno != 0
}

// release gives the views back.
func (r *receiver) release() {
	for i := range r.slots {
		r.slots[i].release()
	}
	r.reserve.Release()
}

// batchCounts are what a batch adds to the counters.
type batchCounts struct {
	packets, bytes, address, checksum, malformed, oversize, unattached, kernel uint64
}

// batch is what is received together.
type batch struct {
	batchCounts
	to     *kernel.Attachment
	filter *kernel.FilterState
}

// begin begins a batch.
func (r *receiver) begin() batch {
	return batch{to: r.endpoint.attached.Load(), filter: r.endpoint.filter.State()}
}

// changed reports whether frames that came after the batch began are to go
// elsewhere, or are for other addresses.
func (r *receiver) changed(b *batch) bool {
	return r.endpoint.attached.Load() != b.to || r.endpoint.filter.State() != b.filter
}

// end delivers what is on the list, and counts.
func (r *receiver) end(b *batch) {
	if r.list.Len() > 0 {
		b.to.List.DeliverList(r.list)
		r.list.Reset()
	}
	r.endpoint.stats.rx.add(b.batchCounts)
}

// dispatch delivers the first n frames.
func (r *receiver) dispatch(n int) {
	b := r.begin()
	for i := range n {
		r.deliverSlot(&r.slots[i], &r.messages[i], &b)
	}
	switch {
	case b.bytes > longFrame*b.packets:
		r.limit = longBatch
	case n == r.limit:
		r.limit = receiveBatch
	}
	r.end(&b)
}

// deliverSlot delivers the frame of a slot, or drops it.
func (r *receiver) deliverSlot(s *slot, m *message, b *batch) {
	size := int(m.size) - vnet.Size
	switch {
	case b.to == nil:
		b.unattached++
	case m.header.Flags&unix.MSG_TRUNC != 0:
		b.oversize++
	case size < header.EthernetMinimumSize:
		b.malformed++
	default:
		parts := s.frame(size, m)
		r.deliver(s, parts, s.header(), b)
	}
}

// place is where a received frame is.
type place interface {
	// take takes the frame of parts out.
	take(parts [][]byte) buffer.Buffer
}

// deliver delivers one frame, or drops it.
func (r *receiver) deliver(at place, parts [][]byte, virtio vnet.Header, b *batch) {
	kind, pass := b.filter.Classify(kernel.MAC(parts[0][:header.EthernetAddressSize]))
	if !pass {
		b.address++
		return
	}
	verdict := vnet.Verify(parts, virtio.Vouched())
	if verdict == vnet.Bad {
		b.checksum++
		return
	}
	if virtio.GSOType == vnet.Datagrams {
		whole := slices.Concat(parts...)
		if !vnet.SplitDatagrams(whole, int(virtio.GSOSize), func(datagram []byte) {
			r.hand(buffer.MakeWithData(datagram), vnet.Header{}, kind, verdict, b)
		}) {
			b.malformed++
		}
		return
	}
	r.hand(at.take(parts), virtio, kind, verdict, b)
}

// hand makes a packet of a frame and delivers it, or puts it on the list.
func (r *receiver) hand(frame buffer.Buffer, virtio vnet.Header, kind tcpip.PacketType, v vnet.Verdict, b *batch) {
	b.packets++
	b.bytes += uint64(frame.Size())
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: frame})
	kernel.ParseEthernet(pkt)
	pkt.PktType = kind
	pkt.RXChecksumValidated = v == vnet.Good
	pkt.GSOOptions = virtio.GSOOptions(header.EthernetMinimumSize)
	if b.to.List != nil {
		r.list.PushBack(pkt)
		return
	}
	b.to.Dispatcher.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
	pkt.DecRef()
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
	rx.address.Add(c.address)
	rx.checksum.Add(c.checksum)
	rx.malformed.Add(c.malformed)
	rx.oversize.Add(c.oversize)
	rx.unattached.Add(c.unattached)
	rx.kernel.Add(c.kernel)
}
