package stack_test

import (
	"slices"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

// recorder is a link that keeps a copy of each frame that is sent, and asks for
// announcements when the test says so.
type recorder struct {
	netstack.LinkEndpoint
	// loop has each frame to a group come back, as over a switch with two
	// ports to the same host (or an AF_PACKET socket that hears itself).
	loop    bool
	looping sync.WaitGroup

	mu sync.Mutex
	// The following are guarded by mu.
	frames     [][]byte
	dispatcher netstack.NetworkDispatcher
	notify     func()
	resend     func()
	closed     bool
}

var (
	_ netstack.LinkEndpoint = (*recorder)(nil)
	_ link.Notifier         = (*recorder)(nil)

	_ link.MembershipNotifier = (*recorder)(nil)
)

func (r *recorder) Attach(d netstack.NetworkDispatcher) {
	r.mu.Lock()
	r.dispatcher = d
	r.mu.Unlock()
	r.LinkEndpoint.Attach(d)
}

func (r *recorder) WritePackets(pkts netstack.PacketBufferList) (int, tcpip.Error) {
	for _, pkt := range pkts.AsSlice() {
		view := pkt.ToView()
		frame := slices.Clone(view.AsSlice())
		view.Release()
		r.mu.Lock()
		r.frames = append(r.frames, frame)
		d := r.dispatcher
		r.mu.Unlock()
		if r.loop && d != nil && frame[0]&1 != 0 {
			back := netstack.NewPacketBuffer(netstack.PacketBufferOptions{Payload: pkt.ToBuffer()})
			r.ParseHeader(back)
			back.PktType = tcpip.PacketMulticast
			// Not from within the write: the writer has locks.
			proto := pkt.NetworkProtocolNumber
			r.looping.Go(func() {
				d.DeliverNetworkPacket(proto, back)
				back.DecRef()
			})
		}
	}
	return r.LinkEndpoint.WritePackets(pkts)
}

func (r *recorder) SubscribeNotifyPeers(f func()) (cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notify = f
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notify = nil
	}
}

func (r *recorder) SubscribeResendMemberships(f func()) (cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resend = f
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.resend = nil
	}
}

func (r *recorder) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.LinkEndpoint.Close()
	r.looping.Wait()
}

// take returns the frames since the last take.
func (r *recorder) take() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	frames := r.frames
	r.frames = nil
	return frames
}

// subscriber returns what was subscribed, nil when nothing is.
func (r *recorder) subscriber() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.notify
}

// deliver has the stack receive a packet that came to a group.
func (r *recorder) deliver(proto tcpip.NetworkProtocolNumber, packet []byte) {
	pkt := netstack.NewPacketBuffer(netstack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
	defer pkt.DecRef()
	pkt.PktType = tcpip.PacketMulticast
	r.mu.Lock()
	d := r.dispatcher
	r.mu.Unlock()
	d.DeliverNetworkPacket(proto, pkt)
}
