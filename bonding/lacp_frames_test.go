package bonding_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/lacp"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Slow-protocol frames of every length from 0 to 200 behind the header, of
// every subtype of interest, on every slave: none panics, what is short is
// counted as illegal, what is of another subtype goes on as an ordinary frame,
// and the ports work on.
func TestLACPMalformed(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	r.agree()
	rnd := rand.New(rand.NewPCG(3, 3))
	short, unknown, markers := 0, 0, 0
	before := r.Status()
	for n := range 201 {
		for _, subtype := range []byte{lacp.SubtypeLACP, lacp.SubtypeMarker, 0, 3, 10, 255} {
			payload := make([]byte, n)
			for i := range payload {
				payload[i] = byte(rnd.Uint32())
			}
			if n > 0 {
				payload[0] = subtype
			}
			switch {
			case n < lacp.PDUSize:
				short += 2
			case subtype == lacp.SubtypeMarker:
				markers += 2
			case subtype != lacp.SubtypeLACP:
				unknown += 2
			default:
				continue // a partner that says what it likes: another test
			}
			for _, name := range []string{"eth0", "eth1"} {
				r.links[name].Inject(slow(payload))
			}
			r.ms(20) // less than a flood
		}
	}
	st := r.Status()
	was, c := before.LACP.Counters, st.LACP.Counters
	if got := c.IllegalRx - was.IllegalRx; got != uint64(short) {
		t.Errorf("%d frames were illegal, want %d", got, short)
	}
	if got := c.UnknownRx - was.UnknownRx; got != uint64(unknown) {
		t.Errorf("%d frames were of unknown subtypes, want %d", got, unknown)
	}
	if got := c.MarkerRx + c.MarkerUnknownRx + c.MarkerRespRx; got != uint64(markers) {
		t.Errorf("%d markers, want %d", got, markers)
	}
	if n := st.Counters.Drops["rx_control_flood"]; n != 0 {
		t.Errorf("%d frames were taken for a flood", n)
	}
	if got := len(r.up.Delivered()); got != short+unknown {
		t.Errorf("%d frames went on, want %d", got, short+unknown)
	}
	r.wantDistributing("after it all", "eth0,eth1")
}

// A marker is answered at once on the port it came by, and not given to those
// above; no other slow-protocol frame is answered.
func TestLACPMarker(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	r.agree()
	var answers [][]byte
	for _, name := range []string{"eth0", "eth1"} {
		r.partners[name].speak(0)
		r.links[name].Drain()
	}
	m := lacp.Marker{Version: 1, Type: lacp.MarkerInformation, Port: 2, System: partnerSystem, ID: 77}
	request := m.AppendTo(nil)
	r.links["eth1"].Inject(slow(request))
	for _, w := range r.links["eth1"].Drain() {
		answers = append(answers, w.Frame)
	}
	if len(answers) != 1 || len(r.links["eth0"].Drain()) != 0 || len(r.up.Delivered()) != 0 {
		t.Fatalf("%d answers, want one on the same slave", len(answers))
	}
	request[2] = lacp.MarkerResponse
	if !bytes.Equal(answers[0][14:], request) || !bytes.Equal(answers[0][6:12], []byte(macOf("eth1"))) {
		t.Errorf("the answer is %x", answers[0])
	}
	if c := r.port("eth1").Counters; c.MarkerRx != 1 || c.MarkerRespTx != 1 {
		t.Errorf("counters %+v", c)
	}
}

// The counters are of PDUs, per port and in sum, and a released slave's stay in
// the sum.
func TestLACPCounters(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast"})
	r.agree()
	var sum uint64
	for name, p := range r.partners {
		p.speak(0)
		if got := r.port(name).Counters.LACPDUTx; got != uint64(len(p.heard)) {
			t.Errorf("%s: %d PDUs are counted as sent, %d came", name, got, len(p.heard))
		}
		sum += r.port(name).Counters.LACPDURx
	}
	total := r.Status().LACP.Counters
	if total.LACPDURx != sum || sum == 0 {
		t.Errorf("the bond counts %d PDUs received, its ports %d", total.LACPDURx, sum)
	}
	if err := r.Release("eth0"); err != nil {
		t.Fatal(err)
	}
	if now := r.Status().LACP.Counters; now.LACPDURx != total.LACPDURx || now.LACPDUTx != total.LACPDUTx+1 {
		t.Errorf("after a release the counters are %+v, were %+v", now, total)
	}
}

// hostile is a PDU of random content that is well formed.
func hostile(rnd *rand.Rand) []byte {
	b := make([]byte, lacp.PDUSize)
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rnd.Uint64())
	}
	b[0] = lacp.SubtypeLACP
	if rnd.IntN(4) == 0 {
		b[0] = lacp.SubtypeMarker
	}
	return slow(b)
}

// A partner that sends 10,000 random PDUs a second on one slave changes nothing
// on the others, is counted, and costs a bounded amount of memory.
func TestLACPHostilePartner(t *testing.T) {
	r := newLACPRig(t, 3, map[string]string{"lacp_rate": "fast", "xmit_hash_policy": "layer3+4"})
	r.agree()
	r.partners["eth0"].speak(0)
	before := map[string][]bonding.LACPChange{}
	for _, name := range []string{"eth1", "eth2"} {
		before[name] = r.changesOf(name)
	}
	rnd := rand.New(rand.NewPCG(1, 9))
	flood := func(d time.Duration) {
		for ; d > 0; d -= time.Millisecond {
			for range 10 {
				r.links["eth0"].Inject(hostile(rnd))
			}
			if st := r.Status(); st.Slaves[1].State != "active" || st.Slaves[2].State != "active" || !st.Carrier {
				t.Fatalf("the other slaves are %s and %s, carrier is %v", st.Slaves[1].State, st.Slaves[2].State, st.Carrier)
			}
			r.ms(1)
		}
		r.told()
		for _, p := range r.partners {
			p.link.Drain()
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	flood(time.Second)
	start := heap()
	flood(4 * time.Second)
	if grown := int64(heap()) - int64(start); grown > 1<<20 {
		t.Errorf("40,000 hostile PDUs left %d bytes", grown)
	}
	for name, was := range before {
		now := r.changesOf(name)
		if fmt.Sprint(times(now)) != fmt.Sprint(times(was)) {
			t.Errorf("%s changed: %+v", name, now[len(was):])
		}
	}
	s := r.slave("eth0")
	if n := s.Counters.Drops["rx_control_flood"]; n < 49000 {
		t.Errorf("%d of 50,000 frames were dropped as a flood", n)
	}
	if n := r.partners["eth0"].mostInASecond(); n > 3 {
		t.Errorf("the port under attack sent %d PDUs in a second", n)
	}
}

// BenchmarkLACPHostilePDU is what one PDU of a partner that sends 10,000 a
// second costs: 160 of them are looked at, the others are dropped. It reports
// the share of a CPU too that such a partner takes.
func BenchmarkLACPHostilePDU(b *testing.B) {
	r := newLACPRig(b, 3, map[string]string{"lacp_rate": "fast"})
	r.agree()
	rnd := rand.New(rand.NewPCG(1, 9))
	frames := make([]*stack.PacketBuffer, 1024)
	for i := range frames {
		frames[i] = received(hostile(rnd))
	}
	defer func() {
		for _, f := range frames {
			f.DecRef()
		}
	}()
	for _, p := range r.partners {
		p.link.OnWrite(nil)
	}
	d := dispatcherOf(b, r)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f := frames[i%len(frames)].Clone()
		d.DeliverNetworkPacket(lacp.EtherType, f)
		f.DecRef()
		if i%100 == 0 { // what the ports say in time is part of the cost
			r.ms(10)
		}
		if i%10000 == 0 {
			b.StopTimer()
			for _, p := range r.partners {
				p.link.Drain()
			}
			r.told()
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)*10000/1e9*100, "%CPU-at-10k/s")
}

// received is a packet as a link delivers it.
func received(frame []byte) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	pkt.RXChecksumValidated = true
	return pkt
}

// tap is a link that hands out its dispatcher.
type tap struct {
	*linktest.Null
	dispatcher stack.NetworkDispatcher
}

func (t *tap) Attach(d stack.NetworkDispatcher) {
	t.Null.Attach(d)
	t.dispatcher = d
}

// dispatcherOf is what eth0 of a rig delivers to: that of a slave that takes its
// place.
func dispatcherOf(tb testing.TB, r *lacpRig) stack.NetworkDispatcher {
	tb.Helper()
	l := &tap{Null: linktest.NewNull(linktest.NullOptions{Address: macOf("eth8")})}
	if err := r.Enslave("eth8", l, bonding.SlaveOptions{}); err != nil {
		tb.Fatal(err)
	}
	return l.dispatcher
}

// receiver returns a bond in a mode whose slave, in use, delivers to what is
// returned, with a data frame for it.
func receiver(tb testing.TB, mode bonding.Mode) (stack.NetworkDispatcher, *stack.PacketBuffer) {
	tb.Helper()
	r := newDownRig(tb, bonding.Options{Mode: mode}, 0)
	l := &tap{Null: linktest.NewNull(linktest.NullOptions{Address: macOf("eth0")})}
	if err := r.Enslave("eth0", l, bonding.SlaveOptions{}); err != nil {
		tb.Fatal(err)
	}
	r.Attach(discard{})
	run(r.clock, 4*time.Second) // 802.3ad: the fallback
	if s := r.slave("eth0"); !s.Receives {
		tb.Fatalf("in %v the slave does not receive: %+v", mode, s)
	}
	f := linktest.Flow4(1)
	f.DstMAC = r.LinkAddress()
	pkt := received(f.TCP(linktest.Segment{Payload: make([]byte, 1400)}))
	tb.Cleanup(pkt.DecRef)
	return l.dispatcher, pkt
}

type discard struct{ stack.NetworkDispatcher }

func (discard) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, _ *stack.PacketBuffer) {}

// BenchmarkReceive is the cost of a data frame through the bond's receive check.
func BenchmarkReceive(b *testing.B) {
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.IEEE8023AD} {
		b.Run(mode.String(), func(b *testing.B) {
			d, pkt := receiver(b, mode)
			b.ReportAllocs()
			for b.Loop() {
				d.DeliverNetworkPacket(header.IPv4ProtocolNumber, pkt)
			}
		})
	}
}

func TestLACPReceiveDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d, pkt := receiver(t, bonding.IEEE8023AD)
	if n := testing.AllocsPerRun(1000, func() { d.DeliverNetworkPacket(header.IPv4ProtocolNumber, pkt) }); n > 0 {
		t.Errorf("a data frame costs %v allocations", n)
	}
}
