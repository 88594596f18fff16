package linktest_test

import (
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
)

// BenchmarkNull is what to subtract from a benchmark on a Null.
func BenchmarkNull(b *testing.B) {
	b.ReportAllocs()
	var ep stack.LinkEndpoint = linktest.NewNull(linktest.NullOptions{})
	list := linktest.Packets(frames(32)...)
	defer list.DecRef()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ep.WritePackets(list)
		}
	})
}

func frames(n int) [][]byte {
	var f [][]byte
	for i := range n {
		f = append(f, linktest.Flow4(i).UDP(make([]byte, 64)))
	}
	return f
}

// A write to a Null allocates nothing.
func TestNullAllocates(t *testing.T) {
	var ep stack.LinkEndpoint = linktest.NewNull(linktest.NullOptions{})
	list := linktest.Packets(frames(32)...)
	defer list.DecRef()
	if n := testing.AllocsPerRun(100, func() { ep.WritePackets(list) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A netstack's NIC works on the links here.
func TestAddParseHeader(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: int(r.MaxHeaderLength())})
	defer p.DecRef()
	p.EgressRoute.RemoteLinkAddress = "\x02\x00\x00\x00\x00\x07"
	p.NetworkProtocolNumber = linktest.EtherTypeARP
	r.AddHeader(p)
	want := linktest.Ethernet("\x02\x00\x00\x00\x00\x07", linktest.DefaultAddress, linktest.EtherTypeARP, nil)
	if got := p.LinkHeader().Slice(); string(got) != string(want) {
		t.Errorf("header = %x, want %x", got, want)
	}
	in := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: p.ToBuffer()})
	defer in.DecRef()
	if !r.ParseHeader(in) || len(in.LinkHeader().Slice()) != 14 {
		t.Error("ParseHeader() does not take what AddHeader made")
	}
}

// OnWrite sees a call before anything is recorded, and may hold it.
func TestOnWriteHolds(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	inside, gate := make(chan struct{}), make(chan struct{})
	r.OnWrite(func(pkts stack.PacketBufferList) {
		if pkts.Len() != 2 {
			t.Errorf("%d packets, want 2", pkts.Len())
		}
		close(inside)
		<-gate
	})
	go linktest.Write(r, []byte{1}, []byte{2})
	<-inside
	if n := len(r.Written()); n != 0 {
		t.Errorf("%d frames recorded while the call is held", n)
	}
	r.OnWrite(nil)
	close(gate)
	r.Await(t, 2)
}

func TestCounter(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	var c linktest.Counter
	r.Attach(&c)
	r.Inject(make([]byte, 60))
	r.Inject(make([]byte, 3))
	if c.Packets.Load() != 2 || c.Bytes.Load() != 63 {
		t.Errorf("counted %d packets, %d bytes, want 2, 63", c.Packets.Load(), c.Bytes.Load())
	}
}
