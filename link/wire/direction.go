package wire

import (
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// burstSize is how many frames go into the queue under one lock. It only has to
// be large enough to make the lock cheap, and small enough for the stack.
const burstSize = 16

// direction is the way to one end: from the writers of the other end, through
// the impairments if there are any, to the queue and the dispatcher.
type direction struct {
	to    *Endpoint
	queue queue
	// impair is nil when no impairment is on.
	impair atomic.Pointer[impairer]
	// held is the impairer, which exists from the first impairment on. It is
	// guarded by cable.mu.
	held *impairer
	seed [2]uint64
}

func (d *direction) init(to *Endpoint, opts *Options, end uint64, inline bool) {
	d.to = to
	d.seed = [2]uint64{opts.Seed, end}
	d.queue.init(opts.QueueFrames, opts.QueueBytes, inline, to.receive)
}

// send takes over frames and returns how many were taken; the references of the
// others are dropped.
func (d *direction) send(frames []*stack.PacketBuffer) int {
	if im := d.impair.Load(); im != nil {
		return im.send(frames)
	}
	return d.queue.push(frames)
}

func (d *direction) close() {
	d.to.cable.mu.Lock()
	im := d.held
	d.to.cable.mu.Unlock()
	dropped := 0
	if im != nil {
		dropped = im.close()
	}
	dropped += d.queue.close()
	d.to.stats.rxClosed.Add(uint64(dropped))
}

// WritePackets implements stack.LinkEndpoint. Each packet is a whole frame with
// its Ethernet header.
//
// It returns how many packets were taken. Those with a fault of their own (too
// short, too long) and those that an impairment or the lack of carrier drops
// count as taken, as on a kernel's interface; each has its counter. The errors
// are ErrNoBufferSpace when the queue is full, ErrInvalidEndpointState when the
// end is down, ErrClosedForSend when it is closed.
func (e *Endpoint) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	list := pkts.AsSlice()
	if w := e.state.word.Load(); w&stateUsable != stateUsable {
		return e.writeUnusable(w, uint64(len(list)))
	}
	done := 0
	for done < len(list) {
		chunk := list[done:min(done+burstSize, len(list))]
		n := e.writeBurst(chunk)
		done += n
		if n < len(chunk) {
			e.stats.txQueueFull.Add(uint64(len(list) - done))
			return done, &tcpip.ErrNoBufferSpace{}
		}
	}
	return done, nil
}

// writeOne sends one packet, or counts why not.
func (e *Endpoint) writeOne(pkt *stack.PacketBuffer) {
	if w := e.state.word.Load(); w&stateUsable != stateUsable {
		e.writeUnusable(w, 1)
	} else if e.writeBurst([]*stack.PacketBuffer{pkt}) == 0 {
		e.stats.txQueueFull.Add(1)
	}
}

// writeUnusable accounts for frames that cannot be sent.
func (e *Endpoint) writeUnusable(state, frames uint64) (int, tcpip.Error) {
	switch {
	case state&stateClosed != 0:
		e.stats.txClosed.Add(frames)
		return 0, &tcpip.ErrClosedForSend{}
	case state&stateUp == 0:
		e.stats.txDown.Add(frames)
		return 0, &tcpip.ErrInvalidEndpointState{}
	default:
		e.stats.txNoCarrier.Add(frames)
		return int(frames), nil
	}
}

// writeBurst sends at most burstSize packets and returns how many were taken,
// those dropped for a fault of their own included.
func (e *Endpoint) writeBurst(pkts []*stack.PacketBuffer) int {
	var frames [burstSize]*stack.PacketBuffer
	var sizes [burstSize]int
	var index [burstSize]int // of the packet that a frame was made from
	n := 0
	for i, pkt := range pkts {
		size := pkt.Size()
		if size < ethernetSize {
			e.stats.txShort.Add(1)
			continue
		}
		f := copyFrame(pkt, size)
		if size > int(e.mtu.Load())+ethernetSize && !e.passes(f, size) {
			f.DecRef()
			e.stats.txOversize.Add(1)
			continue
		}
		frames[n], sizes[n], index[n] = f, size, i
		n++
	}
	if n == 0 {
		return len(pkts)
	}
	taken := e.peer.in.send(frames[:n])
	bytes := 0
	for _, size := range sizes[:taken] {
		bytes += size
	}
	e.stats.txFrames.Add(uint64(taken))
	e.stats.txBytes.Add(uint64(bytes))
	if taken < n {
		return index[taken]
	}
	return len(pkts)
}

// passes reports whether a frame that is longer than this end's MTU may pass all
// the same: because it has VLAN tags, or because it is a GSO frame and both
// ends allow that.
func (e *Endpoint) passes(frame *stack.PacketBuffer, size int) bool {
	if frame.GSOOptions.Type != stack.GSONone {
		return e.cable.gso && size <= gsoMaxSize+ethernetSize+maxTags*vlanTagSize
	}
	return size <= int(e.mtu.Load())+linkSize(frame)
}

// receive delivers frames to the dispatcher and drops the references. It is
// called by one goroutine at a time.
func (e *Endpoint) receive(frames []*stack.PacketBuffer) {
	var count, bytes uint64
	for _, f := range frames {
		size := f.Size()
		if e.deliver(f, size) {
			count++
			bytes += uint64(size)
		}
		f.DecRef()
	}
	e.stats.rxFrames.Add(count)
	e.stats.rxBytes.Add(bytes)
}

// deliver delivers one frame, or counts why not and returns false.
func (e *Endpoint) deliver(f *stack.PacketBuffer, size int) bool {
	d := e.dispatcher.Load()
	if d == nil {
		if d = e.awaitDispatcher(); d == nil {
			e.stats.rxUnattached.Add(1)
			return false
		}
	}
	if w := e.state.word.Load(); w&stateUp == 0 {
		if w&stateClosed != 0 {
			e.stats.rxClosed.Add(1)
		} else {
			e.stats.rxDown.Add(1)
		}
		return false
	}
	if size > int(e.mtu.Load())+ethernetSize && !e.passes(f, size) {
		e.stats.rxOversize.Add(1)
		return false
	}
	if e.unsure.Load() {
		completeChecksum(f)
	} else {
		f.RXChecksumValidated = true
	}
	eth, _ := f.LinkHeader().Consume(ethernetSize)
	kind, ok := e.filter.now.Load().admit(mac(eth))
	if !ok {
		e.stats.rxFiltered.Add(1)
		return false
	}
	f.PktType = kind
	proto := tcpip.NetworkProtocolNumber(etherType(eth))
	f.NetworkProtocolNumber = proto
	(*d).DeliverNetworkPacket(proto, f)
	return true
}
