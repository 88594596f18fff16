package tap

import (
	"testing"

	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// lists is attached in place of a NIC, and counts what comes as lists.
type lists struct {
	linktest.Counter
	frames int
	bytes  int
}

func (l *lists) DeliverList(list stack.PacketBufferList) {
	l.frames += list.Len()
	for _, pkt := range list.AsSlice() {
		l.bytes += pkt.Size()
	}
}

// FuzzTake has a receiver find any bytes behind any virtio header: each is
// counted once, as delivered or with the reason why not, and no buffer is lost.
func FuzzTake(f *testing.F) {
	f.Add([]byte{1, 1, 66, 0, 100, 0, 34, 0, 16, 0}, linktest.Flow4(1).TCP(linktest.Segment{Payload: make([]byte, 300)}), true, false)
	f.Add([]byte{1, 5, 42, 0, 10, 0, 34, 0, 6, 0}, linktest.Flow6(1).UDP(make([]byte, 300)), false, true)
	f.Add(make([]byte, 10), []byte{1, 2, 3}, false, false)
	f.Fuzz(func(t *testing.T, head, frame []byte, pass, asList bool) {
		e := &Endpoint{options: Options{PassChecksums: pass}}
		address := linktest.DefaultAddress
		e.address.Store(&address)
		r := &receiver{endpoint: e}
		defer r.views.Release()
		to := &kernel.Attachment{Dispatcher: &linktest.Counter{}}
		if asList {
			to.List = &lists{}
		}
		var c batchCounts
		r.views.Prepare(r.vectors[:0])
		r.views.Fill(frame)
		copy(r.virtio[:], head)
		r.take(len(frame), to, &c)
		r.list.Reset()
		v, _ := vnet.Parse(r.virtio[:])
		total := c.packets + c.checksum + c.malformed + c.oversize
		if total == 0 || total > 1 && v.GSOType != vnet.Datagrams {
			t.Errorf("%d bytes counted as %+v", len(frame), c)
		}
	})
}

func FuzzFlowOfBytes(f *testing.F) {
	f.Add(linktest.Flow4(1).UDP([]byte{1}))
	f.Add(linktest.Flow6(1).UDP([]byte{1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 14 {
			if got := flowOfBytes(b); got != 0 {
				t.Errorf("flowOfBytes of %d bytes = %d", len(b), got)
			}
		}
		flowOfBytes(b)
	})
}

// Flows are spread, and the packets of one stay together.
func TestFlowsAreSpread(t *testing.T) {
	for _, flow := range []func(int) linktest.Flow{linktest.Flow4, linktest.Flow6} {
		var queues [4]int
		for i := range 400 {
			a := flowOfBytes(flow(i).UDP([]byte("a")))
			if b := flowOfBytes(flow(i).UDP([]byte("another"))); a != b {
				t.Fatalf("flow %d has %d and %d", i, a, b)
			}
			queues[a%4]++
		}
		for i, n := range queues {
			if n < 50 {
				t.Errorf("queue %d has %d of 400 flows: %v", i, n, queues)
			}
		}
	}
}

var _ stack.NetworkDispatcher = (*lists)(nil)
