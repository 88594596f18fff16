package packet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// fill writes what a kernel would have received into a slot.
func (s *slot) fill(m *message, virtio vnet.Header, frame []byte) {
	virtio.Put(s.virtio[:])
	m.size = uint32(vnet.Size + len(frame))
	m.header.SetControllen(0)
	s.views.Fill(frame)
}

// newTestReceiver is a receiver without a socket.
func newTestReceiver() *receiver {
	e := &Endpoint{options: Options{}.withDefaults()}
	e.filter.SetOwn(kernel.MAC{2})
	r := newReceiver(e, nil)
	for i := range r.slots {
		r.slots[i].prepare(&r.messages[i])
	}
	return r
}

// TestFramesOfEveryLength delivers frames of 0 bytes and up, and received
// messages that are shorter than their virtio header.
func TestFramesOfEveryLength(t *testing.T) {
	r := newTestReceiver()
	defer r.release()
	got := newRecorder()
	r.endpoint.Attach(nil)
	r.endpoint.attached.Store(kernel.NewAttachment(got))
	s, m := &r.slots[0], &r.messages[0]
	for _, protocol := range []uint16{0x800, 0x86dd, 0x8100, 0x806} {
		for size := range 200 {
			b := etherFrame(kernel.Broadcast, protocol, bytes.Repeat([]byte{0x45}, 200))[:size]
			for _, v := range []vnet.Header{{}, {Flags: 1}, {GSOType: vnet.Datagrams, GSOSize: 10}, {GSOType: 0xff}} {
				s.fill(m, v, b)
				r.dispatch(1)
				s.prepare(m)
			}
		}
	}
	for size := range vnet.Size {
		s.fill(m, vnet.Header{}, nil)
		m.size = uint32(size)
		r.dispatch(1)
	}
	stats := r.endpoint.stats.snapshot()
	if total := stats.RXPackets + stats.RXDroppedMalformed + stats.RXDroppedChecksum; total != 4*200*4+vnet.Size {
		t.Errorf("counted %d frames, want %d: %+v", total, 4*200*4+vnet.Size, stats)
	}
	if stats.RXDroppedMalformed < 4*14*4+vnet.Size {
		t.Errorf("malformed %d, want at least %d", stats.RXDroppedMalformed, 4*14*4+vnet.Size)
	}
	for n := len(got.got); n > 0; n-- {
		if b := (<-got.got).frame; len(b) < 14 {
			t.Errorf("delivered %d bytes", len(b))
		}
	}
}

// TestTruncatedFramesAreDropped: a frame that did not fit is not delivered.
func TestTruncatedFramesAreDropped(t *testing.T) {
	r := newTestReceiver()
	defer r.release()
	r.endpoint.attached.Store(kernel.NewAttachment(newRecorder()))
	r.slots[0].fill(&r.messages[0], vnet.Header{}, frame(kernel.Broadcast, "cut"))
	r.messages[0].header.Flags = unix.MSG_TRUNC
	r.dispatch(1)
	if s := r.endpoint.stats.snapshot(); s.RXDroppedOversize != 1 || s.RXPackets != 0 {
		t.Errorf("counters %+v, want one oversize", s)
	}
}

// TestFrameFillsViews takes frames of sizes around the bounds of the views, with
// a tag and without.
func TestFrameFillsViews(t *testing.T) {
	const first = 128 - vnet.Headroom // of the first view
	total := vnet.Room()
	for _, size := range []int{14, first - 5, first - 4, first - 1, first, first + 1, first + 2048, first + 2049, 65535 + 14, total} {
		for _, tagged := range []bool{false, true} {
			var s slot
			var m message
			s.prepare(&m)
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(i * 7)
			}
			s.fill(&m, vnet.Header{}, want)
			if tagged {
				n := putTag(s.control.bytes(), unix.TP_STATUS_VLAN_VALID, 0, 5)
				m.header.SetControllen(n)
				want = append(want[:12:12], append([]byte{0x81, 0, 0, 5}, want[12:]...)...)
			}
			b := s.take(s.frame(size, &m))
			if got := b.Flatten(); !bytes.Equal(got, want) {
				t.Errorf("size %d, tagged %v: took %d bytes that differ from the %d", size, tagged, len(got), len(want))
			}
			b.Release()
			s.prepare(&m)
			s.release()
		}
	}
}

// putTag writes auxiliary data as a control message and returns its length.
func putTag(b []byte, status uint32, protocol, control uint16) int {
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(20)))
	head := unix.CmsgLen(0)
	binary.NativeEndian.PutUint32(b[head-8:], unix.SOL_PACKET)
	binary.NativeEndian.PutUint32(b[head-4:], unix.PACKET_AUXDATA)
	binary.NativeEndian.PutUint32(b[head:], status)
	binary.NativeEndian.PutUint16(b[head+16:], control)
	binary.NativeEndian.PutUint16(b[head+18:], protocol)
	return unix.CmsgLen(20)
}

func TestAuxiliaryTag(t *testing.T) {
	const valid, withProtocol = unix.TP_STATUS_VLAN_VALID, unix.TP_STATUS_VLAN_VALID | unix.TP_STATUS_VLAN_TPID_VALID
	for _, c := range []struct {
		status uint32
		want   vlanTag
		ok     bool
	}{
		{0, vlanTag{}, false},
		{valid, vlanTag{ethertypeVLAN, 7}, true},
		{withProtocol, vlanTag{0x88a8, 7}, true},
	} {
		var b controlBuffer
		n := putTag(b.bytes(), c.status, 0x88a8, 7)
		if got, ok := auxiliaryTag(b.bytes()[:n]); got != c.want || ok != c.ok {
			t.Errorf("status %#x: auxiliaryTag = %+v, %v, want %+v, %v", c.status, got, ok, c.want, c.ok)
		}
		for short := range n {
			if got, ok := auxiliaryTag(b.bytes()[:short]); ok {
				t.Errorf("auxiliaryTag of %d bytes = %+v, true, want false", short, got)
			}
		}
	}
}

// listRecorder keeps how many frames came together.
type listRecorder struct {
	stack.NetworkDispatcher
	lists []int
}

func (l *listRecorder) DeliverList(list stack.PacketBufferList) {
	l.lists = append(l.lists, list.Len())
}

// Frames of a batch are delivered together. A batch that is full of short ones
// makes the next one longer, and long frames make it short again.
func TestBatches(t *testing.T) {
	r := newTestReceiver()
	defer r.release()
	to := &listRecorder{}
	r.endpoint.attached.Store(kernel.NewAttachment(to))
	for _, c := range []struct{ frames, size, limit int }{
		{longBatch - 1, 100, longBatch},
		{longBatch, 100, receiveBatch},
		{3, 100, receiveBatch},
		{3, 10000, longBatch},
		{longBatch, 10000, longBatch},
	} {
		for i := range c.frames {
			r.slots[i].fill(&r.messages[i], vnet.Header{}, etherFrame(kernel.Broadcast, testProtocol, make([]byte, c.size)))
		}
		r.filled = c.frames
		r.dispatch(c.frames)
		if r.limit != c.limit || to.lists[len(to.lists)-1] != c.frames {
			t.Errorf("%d frames of %d bytes came as %d, the next batch has %d, want %d", c.frames, c.size, to.lists[len(to.lists)-1], r.limit, c.limit)
		}
		r.prepare()
	}
}
