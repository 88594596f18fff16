package linktest_test

import (
	"bytes"
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
	"bondstack/link/linktest"
)

func TestNull(t *testing.T) {
	n := linktest.NewNull(linktest.NullOptions{})
	if got, err := linktest.Write(n, []byte{1}, nil, make([]byte, 2000)); got != 3 || err != nil {
		t.Errorf("WritePackets() = %d, %v, want 3, nil", got, err)
	}
	if n.SupportedGSO() != stack.GSONotSupported {
		t.Error("GSO is offered")
	}
	g := linktest.NewNull(linktest.NullOptions{GSO: true, MTU: 9000})
	if g.SupportedGSO() != stack.HostGSOSupported || g.GSOMaxSize() != 65536 || g.MTU() != 9000 {
		t.Errorf("GSO, max, MTU = %v, %d, %d", g.SupportedGSO(), g.GSOMaxSize(), g.MTU())
	}
}

func TestRecorderScript(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	frames := make([][]byte, 8)
	for i := range frames {
		frames[i] = []byte{byte(i)}
	}
	full := &tcpip.ErrNoBufferSpace{}
	r.Script(linktest.WriteStep{Err: full}, linktest.WriteStep{Err: full}, linktest.WriteStep{Take: 3, Err: full}, linktest.WriteStep{Take: 99, Err: full})
	for i, want := range []int{0, 0, 3, 8, 8} {
		n, err := linktest.Write(r, frames...)
		if n != want || (err == nil) != (want == 8) {
			t.Errorf("write %d = %d, %v, want %d taken", i, n, err, want)
		}
	}
	var calls []int
	for _, w := range r.Drain() {
		calls = append(calls, w.Call)
	}
	if want := []int{3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5}; !slices.Equal(calls, want) {
		t.Errorf("calls = %v, want %v", calls, want)
	}
	r.Fail(&tcpip.ErrInvalidEndpointState{})
	if n, err := linktest.Write(r, frames...); n != 0 || !link.Gone(err) {
		t.Errorf("write = %d, %v, want 0 and an error that means gone", n, err)
	}
	r.Fail(nil)
	if n, err := linktest.Write(r, frames[:1]...); n != 1 || err != nil {
		t.Errorf("write = %d, %v, want 1, nil", n, err)
	}
}

// A Recorder's frames are copies: the writer may use its memory again.
func TestRecorderCopies(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{GSO: true})
	frame := linktest.Flow4(0).TCP(linktest.Segment{Payload: make([]byte, 4000)})
	p := linktest.GSOPacket(frame, 1000)
	var list stack.PacketBufferList
	list.PushBack(p)
	r.WritePackets(list)
	clear(p.LinkHeader().Slice())
	p.DecRef()
	w := r.Await(t, 1)[0]
	if !bytes.Equal(w.Frame[:14], frame[:14]) || w.GSO.MSS != 1000 || w.Call != 1 {
		t.Errorf("Written = %x..., %+v, call %d", w.Frame[:14], w.GSO, w.Call)
	}
}

func TestRecorderInject(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	if r.Inject([]byte{1}) {
		t.Error("Inject() = true with nothing attached")
	}
	var sink linktest.Sink
	r.Attach(&sink)
	udp := linktest.Flow4(0).UDP([]byte("x"))
	r.Inject(udp)
	r.InjectWith(linktest.Flow4(0).ARPRequest(), linktest.InjectOptions{RXChecksumValidated: true})
	for n := range 14 {
		r.Inject(make([]byte, n))
	}
	got := sink.Await(t, 16)
	if d := got[0]; d.Protocol != 0x0800 || d.LinkHeader != 14 || !bytes.Equal(d.Frame, udp) || d.RXChecksumValidated || d.PktType != tcpip.PacketOtherHost {
		t.Errorf("first = %+v", d)
	}
	if d := got[1]; d.Protocol != 0x0806 || !d.RXChecksumValidated || d.PktType != tcpip.PacketBroadcast {
		t.Errorf("second = %+v", d)
	}
	for n, d := range got[2:] {
		if d.Protocol != 0 || d.LinkHeader != 0 || len(d.Frame) != n {
			t.Errorf("frame of %d bytes: %+v", n, d)
		}
	}
	r.Attach(nil)
	if r.IsAttached() || r.Inject(udp) {
		t.Error("attached after Attach(nil)")
	}
}

func TestRecorderCalls(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{MTU: 2000, MinMTU: 1000, MaxMTU: 3000})
	var sink linktest.Sink
	r.Attach(&sink)
	r.Attach(nil)
	r.Wait()
	r.Close()
	r.SetMTU(1000)
	r.SetMTU(3001)
	r.SetLinkAddress("\x02\x00\x00\x00\x00\x09")
	r.SetPromiscuous(true)
	r.AddLinkAddress("abcdef")
	r.AddLinkAddress("ghijkl")
	r.RemoveLinkAddress("abcdef")
	r.RemoveLinkAddress("abcdef")
	c := r.Calls()
	if c.Attach != 1 || c.Detach != 1 || c.Wait != 1 || c.Close != 1 || !slices.Equal(c.MTUs, []uint32{1000, 3001}) ||
		len(c.Addresses) != 1 || !slices.Equal(c.Promiscuous, []bool{true}) || len(c.Filter) != 1 || c.Filter["ghijkl"] != 1 {
		t.Errorf("Calls() = %+v", c)
	}
	if r.MTU() != 1000 || r.LinkAddress() != "\x02\x00\x00\x00\x00\x09" {
		t.Errorf("MTU, address = %d, %v", r.MTU(), r.LinkAddress())
	}
	r.AwaitCalls(t, "a close", func(c linktest.Calls) bool { return c.Close == 1 })
}

func TestRecorderState(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	var seen []link.State
	cancel := r.SubscribeLinkState(func() { seen = append(seen, r.LinkState()) })
	r.SetCarrier(false)
	r.SetCarrier(false) // no change
	r.SetState(link.State{Up: true, Carrier: true, Speed: 100})
	r.SetStateSilently(link.State{})
	cancel()
	r.SetCarrier(true)
	want := []link.State{{Up: true, Speed: 10000, Duplex: link.DuplexFull}, {Up: true, Carrier: true, Speed: 100}}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %+v, want %+v", seen, want)
	}
	if n := r.Subscribers(); n != 0 {
		t.Errorf("Subscribers() = %d, want 0", n)
	}
}

func TestPlain(t *testing.T) {
	p := linktest.Plain(linktest.NewRecorder(linktest.RecorderOptions{GSO: true}))
	if _, ok := p.(link.StateEndpoint); ok {
		t.Error("Plain knows its state")
	}
	if _, ok := p.(stack.GSOEndpoint); ok {
		t.Error("Plain offers GSO")
	}
	if link.StateOf(p) != link.AlwaysUp {
		t.Error("StateOf(Plain) is not AlwaysUp")
	}
}

func TestSinkAwaitsOtherGoroutines(t *testing.T) {
	linktest.CheckGoroutines(t)
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	var sink linktest.Sink
	r.Attach(&sink)
	for range 4 {
		go func() {
			for range 100 {
				r.Inject(linktest.Flow4(0).UDP(nil))
				linktest.Write(r, []byte{1})
			}
		}()
	}
	sink.Await(t, 400)
	r.Await(t, 400)
	linktest.CheckPackets(t)
}

// A leak is found, and a released packet is none.
func TestCheckPacketsFindsLeak(t *testing.T) {
	p := linktest.Packet(nil)
	defer p.DecRef()
	if leak := linktest.Leaked(); leak == "" {
		t.Error("a live packet was not found")
	}
}
