package tap

import (
	"slices"

	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// receiveBatch is how many frames are delivered together at most: 45 segments of
// 1,448 bytes fit the packet that they may be joined to.
const receiveBatch = 64

// reserveSize is how much memory a receiver keeps for frames to come.
const reserveSize = 2 << 20

// errorPause is how long a receiver waits after an error, so that one that
// stays does not keep a processor busy.
var errorPause = unix.NsecToTimespec(1e6)

// receiver receives on one queue, in a goroutine of its own.
type receiver struct {
	endpoint *Endpoint
	queue    *queue
	virtio   [vnet.Size]byte
	views    vnet.Views
	vectors  [1 + vnet.MaxVectors]unix.Iovec
	// list is what is delivered together.
	list stack.PacketBufferList
}

// batchCounts are what a batch adds to the counters.
type batchCounts struct {
	packets, bytes, checksum, malformed, oversize, unattached uint64
}

// run receives until the queue is to end, or the device is gone.
func (r *receiver) run() {
	defer r.endpoint.receivers.Done()
	r.views.Reserve = vnet.NewReserve(reserveSize)
	defer r.views.Reserve.Release()
	defer r.views.Release()
	for !r.queue.ending.Load() {
		switch errno := r.receive(); errno {
		case 0, unix.EINTR:
		case unix.EAGAIN:
			r.wait(nil)
		case unix.EBADFD:
			r.endpoint.lost()
			return
		default:
			r.endpoint.stats.rx.errors.Add(1)
			r.wait(&errorPause)
		}
	}
}

// receive receives what there is, up to a batch, and delivers it.
func (r *receiver) receive() (errno unix.Errno) {
	e := r.endpoint
	var c batchCounts
	to := e.attached.Load()
	for range receiveBatch {
		vectors := r.views.Prepare(vnet.AppendVector(r.vectors[:0], r.virtio[:]))
		var n int
		if n, errno = readVector(r.queue.fd, vectors); errno != 0 {
			break
		}
		if to == nil {
			c.unattached++
			continue
		}
		r.take(n-vnet.Size, to, &c)
	}
	if r.list.Len() > 0 {
		to.List.DeliverList(r.list)
		r.list.Reset()
	}
	e.stats.rx.add(c)
	return errno
}

// wait waits for frames or errors of the queue, or for the end. With a limit it
// waits for the end only, since an error would end the wait at once.
func (r *receiver) wait(limit *unix.Timespec) {
	set := []unix.PollFd{
		{Fd: int32(r.queue.wakeup), Events: unix.POLLIN},
		{Fd: int32(r.queue.fd), Events: unix.POLLIN},
	}
	if limit != nil {
		set = set[:1]
	}
	unix.Ppoll(set, limit, nil)
}

// take makes a packet of the frame of a size that is in the views, or drops it.
func (r *receiver) take(size int, to *kernel.Attachment, c *batchCounts) {
	switch {
	case size < header.EthernetMinimumSize:
		c.malformed++
		return
	case size >= vnet.Room():
		c.oversize++
		return
	}
	virtio, _ := vnet.Parse(r.virtio[:]) // it has the size
	parts := r.views.Frame(size, false)
	valid := virtio.Vouched()
	if !r.endpoint.options.PassChecksums {
		verdict := vnet.Verify(parts, valid)
		if verdict == vnet.Bad {
			c.checksum++
			return
		}
		valid = verdict == vnet.Good
	}
	if virtio.GSOType == vnet.Datagrams {
		whole := slices.Concat(parts...)
		if !vnet.SplitDatagrams(whole, int(virtio.GSOSize), func(b []byte) {
			r.hand(buffer.MakeWithData(b), vnet.Header{}, true, to, c)
		}) {
			c.malformed++
		}
		return
	}
	r.hand(r.views.Take(parts), virtio, valid, to, c)
}

// hand makes a packet of a frame and delivers it, or puts it on the list.
func (r *receiver) hand(frame buffer.Buffer, virtio vnet.Header, valid bool, to *kernel.Attachment, c *batchCounts) {
	c.packets++
	c.bytes += uint64(frame.Size())
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: frame})
	kernel.ParseEthernet(pkt)
	pkt.PktType = kernel.PacketType(r.endpoint.LinkAddress(), tcpip.LinkAddress(pkt.LinkHeader().Slice()[:header.EthernetAddressSize]))
	pkt.RXChecksumValidated = valid
	pkt.GSOOptions = virtio.GSOOptions(header.EthernetMinimumSize)
	if to.List != nil {
		r.list.PushBack(pkt)
		return
	}
	to.Dispatcher.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
	pkt.DecRef()
}

// add adds a batch to the counters.
func (rx *rxCounters) add(c batchCounts) {
	if c.packets != 0 {
		rx.packets.Add(c.packets)
		rx.bytes.Add(c.bytes)
	}
	if c == (batchCounts{packets: c.packets, bytes: c.bytes}) {
		return
	}
	rx.checksum.Add(c.checksum)
	rx.malformed.Add(c.malformed)
	rx.oversize.Add(c.oversize)
	rx.unattached.Add(c.unattached)
}
