package fd

import (
	"errors"
	"sync"

	"bondstack/link/internal/kernel"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// maxFrame is the longest frame. One byte more tells that it was longer.
const maxFrame = header.EthernetMinimumSize + MaxMTU

// room is a place for one frame and what is before it.
type room [maxPrefix + maxFrame + 1]byte

var rooms = sync.Pool{New: func() any { return new(room) }}

// WritePackets implements stack.LinkEndpoint. Every frame is handed over or
// refused before it returns; it does not block.
//
// It returns how many frames were taken. With an error for which link.Gone is true
// these are the first ones. With any other error some frames were dropped and
// counted: all after the first ones with ErrNoBufferSpace, only those that were at
// fault with ErrMalformedHeader.
func (e *Endpoint) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	e.fdMu.RLock()
	defer e.fdMu.RUnlock()
	r := rooms.Get().(*room)
	defer rooms.Put(r)
	sent, bytes := 0, 0
	defer func() {
		e.stats.txPackets.Add(uint64(sent))
		e.stats.txBytes.Add(uint64(bytes))
	}()
	var result tcpip.Error
	pkts := list.AsSlice()
	for i, pkt := range pkts {
		switch err := e.send(r, pkt); err {
		case nil:
			sent++
			bytes += pkt.Size()
		case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.EINTR:
			e.stats.txFull.Add(uint64(len(pkts) - i))
			return sent, &tcpip.ErrNoBufferSpace{}
		case unix.EPIPE, unix.ECONNREFUSED, unix.ECONNRESET, unix.ENOTCONN:
			e.partLost()
			fallthrough
		case unix.EIO, unix.EBADF, unix.EBADFD, unix.ENETDOWN, unix.ENODEV:
			e.stats.txDown.Add(uint64(len(pkts) - i))
			return sent, &tcpip.ErrInvalidEndpointState{}
		default:
			e.stats.txInvalid.Add(1)
			result = &tcpip.ErrMalformedHeader{}
		}
	}
	return sent, result
}

// partLost has the receiver find the other end gone, which the other end of a
// datagram socket is only when something is sent to it.
func (e *Endpoint) partLost() {
	if !e.refused.Swap(true) {
		e.wake()
	}
}

// send sends one frame. The descriptor is kept open by the caller.
func (e *Endpoint) send(r *room, pkt *stack.PacketBuffer) error {
	switch size := pkt.Size(); {
	case e.fd < 0 || e.lost.Load():
		return unix.EBADF
	case size < header.EthernetMinimumSize || size > maxFrame:
		return unix.EMSGSIZE
	}
	clear(r[:e.prefix])
	n := e.prefix
	views, skip := pkt.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		b := v.AsSlice()
		part := b[min(skip, len(b)):]
		skip -= len(b) - len(part)
		n += copy(r[n:], part)
	}
	if e.kind == Socket {
		return unix.Send(e.fd, r[:n], unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}
	_, err := unix.Write(e.fd, r[:n])
	return err
}

// receive receives until the endpoint ends, or its other end is gone.
func (e *Endpoint) receive() {
	defer e.receiver.Done()
	r := rooms.Get().(*room)
	defer rooms.Put(r)
	for !e.ending.Load() {
		if e.refused.Load() {
			e.lose()
			return
		}
		n, err := unix.Read(e.fd, r[:]) // only closed when this has ended
		switch {
		case err == nil && n == 0 && e.kind == Socket && !e.open():
			e.lose()
			return
		case err == nil:
			e.deliver(r[:n])
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if !e.wait() {
				e.lose()
				return
			}
		default: // ECONNRESET, EBADFD: it stays so
			e.stats.rxErrors.Add(1)
			e.lose()
			return
		}
	}
}

// wait waits for frames, or for the end. It is false when the other end is gone.
func (e *Endpoint) wait() bool {
	set := []unix.PollFd{{Fd: int32(e.wakeup), Events: unix.POLLIN}, {Fd: int32(e.fd), Events: unix.POLLIN}}
	unix.Poll(set, -1)
	return set[1].Revents == 0 || set[1].Revents&unix.POLLIN != 0
}

// open tells an empty message from the end of a socket.
func (e *Endpoint) open() bool {
	set := []unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(set, 0)
	return err == nil && n == 0
}

// deliver makes a packet of what came, and delivers it.
func (e *Endpoint) deliver(b []byte) {
	to := e.attached.Load()
	switch {
	case len(b) < e.prefix+header.EthernetMinimumSize:
		e.stats.rxMalformed.Add(1)
		return
	case len(b) > e.prefix+maxFrame:
		e.stats.rxOversize.Add(1)
		return
	case to == nil:
		e.stats.rxUnattached.Add(1)
		return
	}
	b = b[e.prefix:]
	e.stats.rxPackets.Add(1)
	e.stats.rxBytes.Add(uint64(len(b)))
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
	defer pkt.DecRef()
	kernel.ParseEthernet(pkt)
	pkt.PktType = kernel.PacketType(e.LinkAddress(), tcpip.LinkAddress(pkt.LinkHeader().Slice()[:header.EthernetAddressSize]))
	to.Dispatcher.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
}
