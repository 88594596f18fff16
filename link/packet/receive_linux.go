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

// yieldsBeforeWait is how often a receiver lets other goroutines go first before
// it has the kernel put its thread to sleep: they may well acknowledge what
// makes the sender send more.
const yieldsBeforeWait = 4

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
	yields := 0
	for !r.socket.ending.Load() {
		r.prepare()
		n, errno := receiveMessages(r.socket.fd, r.messages[:r.limit])
		switch errno {
		case 0:
			r.filled, yields = n, 0
			r.dispatch(n)
		case unix.EAGAIN:
			if yields++; yields <= yieldsBeforeWait {
				runtime.Gosched()
				continue
			}
			yields = 0
			r.wait(nil)
		case unix.EINTR:
		default:
			// The interface went down (ENETDOWN), once: it is received from
			// again by itself when it comes up.
			r.endpoint.stats.rx.errors.Add(1)
			r.endpoint.monitor.Wake()
			r.wait(&errorPause)
		}
	}
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
// waits for the end only, since an error would end the wait at once.
func (r *receiver) wait(limit *unix.Timespec) {
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
	packets, bytes, address, checksum, malformed, oversize, unattached uint64
}

// dispatch delivers the first n frames.
func (r *receiver) dispatch(n int) {
	var c batchCounts
	to := r.endpoint.attached.Load()
	filter := r.endpoint.filter.State()
	for i := range n {
		if to == nil {
			c.unattached++
			continue
		}
		r.deliver(&r.slots[i], &r.messages[i], to, filter, &c)
	}
	if r.list.Len() > 0 {
		to.list.DeliverList(r.list)
		r.list.Reset()
	}
	switch {
	case c.bytes > longFrame*c.packets:
		r.limit = longBatch
	case n == r.limit:
		r.limit = receiveBatch
	}
	r.endpoint.stats.rx.add(c)
}

// deliver delivers one frame, or drops it.
func (r *receiver) deliver(s *slot, m *message, to *attachment, filter *kernel.FilterState, c *batchCounts) {
	size := int(m.size) - vnet.Size
	switch {
	case m.header.Flags&unix.MSG_TRUNC != 0:
		c.oversize++
		return
	case size < header.EthernetMinimumSize:
		c.malformed++
		return
	}
	parts := s.frame(size, m)
	virtio := s.header()
	kind, pass := filter.Classify(kernel.MAC(parts[0][:header.EthernetAddressSize]))
	if !pass {
		c.address++
		return
	}
	verdict := vnet.Verify(parts, virtio.Vouched())
	if verdict == vnet.Bad {
		c.checksum++
		return
	}
	if virtio.GSOType == vnet.Datagrams {
		whole := slices.Concat(parts...)
		if !vnet.SplitDatagrams(whole, int(virtio.GSOSize), func(b []byte) {
			r.hand(buffer.MakeWithData(b), vnet.Header{}, kind, verdict, to, c)
		}) {
			c.malformed++
		}
		return
	}
	r.hand(s.take(parts), virtio, kind, verdict, to, c)
}

// hand makes a packet of a frame and delivers it, or puts it on the list.
func (r *receiver) hand(frame buffer.Buffer, virtio vnet.Header, kind tcpip.PacketType, v vnet.Verdict, to *attachment, c *batchCounts) {
	c.packets++
	c.bytes += uint64(frame.Size())
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: frame})
	kernel.ParseEthernet(pkt)
	pkt.PktType = kind
	pkt.RXChecksumValidated = v == vnet.Good
	pkt.GSOOptions = virtio.GSOOptions(header.EthernetMinimumSize)
	if to.list != nil {
		r.list.PushBack(pkt)
		return
	}
	to.dispatcher.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
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
}
