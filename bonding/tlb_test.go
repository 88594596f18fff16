package bonding_test

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// tlbRig makes a bond in balance-tlb with slaves of the given speeds. It hashes by
// layer2, so that each of linktest's flows has an entry of its own.
func tlbRig(tb testing.TB, o bonding.Options, speeds ...uint32) *rig {
	tb.Helper()
	o.Mode = bonding.BalanceTLB
	r := newRig(tb, o, 0)
	r.own = true
	for i, speed := range speeds {
		r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{},
			linktest.RecorderOptions{State: link.State{Up: true, Carrier: true, Speed: speed, Duplex: link.DuplexFull}})
	}
	r.quiet()
	return r
}

// quiet forgets what was written so far.
func (r *rig) quiet() {
	for _, l := range r.links {
		l.Drain()
	}
}

// source is a slave's own address.
func (r *rig) source(name string) tcpip.LinkAddress {
	r.tb.Helper()
	b, err := parseMAC(r.slave(name).Balance.SourceAddress)
	if err != nil {
		r.tb.Fatal(err)
	}
	return b
}

func parseMAC(text string) (tcpip.LinkAddress, error) {
	var b [6]byte
	_, err := fmt.Sscanf(text, "%02x:%02x:%02x:%02x:%02x:%02x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5])
	return tcpip.LinkAddress(b[:]), err
}

// sources are the slaves' own addresses, in order.
func (r *rig) sources() string {
	var all []string
	for _, s := range r.Status().Slaves {
		all = append(all, s.Name+" "+s.Balance.SourceAddress[12:])
	}
	return strings.Join(all, ", ")
}

// flow is a frame of flow n from the bond's own address.
func (r *rig) flow(n, size int) []byte {
	f := linktest.Flow4(n)
	f.SrcMAC = r.LinkAddress()
	return f.UDP(make([]byte, size))
}

// Must hold 4: of eight unequal flows on two links of unequal speed each link
// carries its part, within 15 %, after two rebalances.
func TestTLBShares(t *testing.T) {
	for _, speeds := range [][]uint32{{1000, 1000}, {1000, 2500}, {10000, 2500}, {25000, 10000}} {
		r := tlbRig(t, bonding.Options{}, speeds...)
		flows := []int{1400, 200, 900, 300, 1200, 500, 1000, 700} // bytes in a frame
		text := ""
		for period := range 4 {
			var sum [2]float64
			for range 100 { // ten seconds
				for n, size := range flows {
					linktest.Write(r, r.flow(n, size))
				}
				for i := range sum {
					for _, w := range data(r.links[fmt.Sprintf("eth%d", i)].Drain()) {
						sum[i] += float64(len(w.Frame))
					}
				}
				r.ms(100)
			}
			share, fair := sum[0]/(sum[0]+sum[1]), float64(speeds[0])/float64(speeds[0]+speeds[1])
			text += fmt.Sprintf(" %.3f", share)
			if period >= 2 && (math.Abs(share/fair-1) > 0.15 || math.Abs((1-share)/(1-fair)-1) > 0.15) {
				t.Errorf("speeds %d: after %d rebalances eth0 carries %.3f, its fair share is %.3f", speeds, period, share, fair)
			}
			if got := r.Status().Balance.Rebalances; got != uint64(period+1) {
				t.Errorf("%d rebalances after %d periods", got, period+1)
			}
		}
		t.Logf("speeds %d: eth0's fair share is %.3f; in periods of 10 s it carried%s", speeds, float64(speeds[0])/float64(speeds[0]+speeds[1]), text)
	}
}

// Every slave carries about the same of many bursts, and nothing once its link
// is down (T142).
func TestTLBBursts(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000, 1000, 1000)
	burst := func(n int) []int {
		for range n {
			var frames [][]byte
			for k := range 20 {
				frames = append(frames, r.flow(k*13, 1000))
			}
			linktest.Write(r, frames...)
		}
		return r.sent("eth0", "eth1", "eth2", "eth3")
	}
	for _, n := range burst(100) {
		if n < 400 || n > 600 {
			t.Errorf("a slave carried %d of 2000 frames", n)
		}
	}
	for i := range 4 {
		r.carrier(fmt.Sprintf("eth%d", i), false)
	}
	if got := fmt.Sprint(burst(3)); got != "[0 0 0 0]" || r.drops("tx_no_slave") != 60 {
		t.Errorf("without links the slaves carried %s, dropped %d", got, r.drops("tx_no_slave"))
	}
}

// Only the active slave receives; the others still send (T143). When it fails,
// the next one receives, and the lost one sends nothing (T145).
func TestTLBReceivesOnActive(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000, 1000, 1000)
	receive := func(when, want string) {
		t.Helper()
		var got []int
		for i := range 4 {
			for range 17 {
				r.links[fmt.Sprintf("eth%d", i)].Inject(r.toBond(1))
				r.links[fmt.Sprintf("eth%d", i)].Inject(linktest.Flow4(3).ARPRequest())
			}
			got = append(got, len(r.up.Drain()))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v frames were delivered, want %s", when, got, want)
		}
	}
	send := func(when, want string) {
		t.Helper()
		r.quiet()
		r.send(84)
		var by []string
		for i, n := range r.sent("eth0", "eth1", "eth2", "eth3") {
			if n > 0 {
				by = append(by, fmt.Sprint(i))
			}
		}
		if got := strings.Join(by, " "); got != want {
			t.Errorf("%s: slaves %s sent, want %s", when, got, want)
		}
	}
	receive("at first", "[34 0 0 0]")
	send("at first", "0 1 2 3")
	for _, what := range []string{"eth1 down", "eth3 down", "eth0 down", "eth1 up", "eth3 up"} {
		r.do(what)
	}
	r.wantActive("eth0 is down", "eth2")
	r.ms(500)
	receive("eth0 is down", "[0 0 34 0]")
	send("eth0 is down", "1 2 3")
	r.set("all_slaves_active", "1")
	receive("all_slaves_active", "[34 34 34 34]")
	r.set("all_slaves_active", "0")
	receive("all_slaves_active off", "[0 0 34 0]")
}

// What is balanced, and what goes by the active slave: the frames of a table, of
// which each is sent once a flow has taken the active slave's place.
func TestTLBBalancesUnicastIP(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000)
	own, foreign := r.LinkAddress(), tcpip.LinkAddress("\x02\x00\x00\x00\x77\x01")
	host := tcpip.LinkAddress("\x02\x00\x00\x00\x88\x01")
	six := func(next uint8, payload ...byte) []byte {
		return linktest.IP(netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2"), next, payload)
	}
	four := linktest.IP(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), 17, make([]byte, 20))
	for _, tt := range []struct {
		about    string
		frame    []byte
		balanced bool
	}{
		{"IPv4", linktest.Ethernet(host, own, 0x0800, four), true},
		{"IPv4 to a group", linktest.Ethernet("\x01\x00\x5e\x00\x00\x01", own, 0x0800, four), false},
		{"IPv4 to all", linktest.Ethernet("\xff\xff\xff\xff\xff\xff", own, 0x0800, four), false},
		{"IPv4 of another host", linktest.Ethernet(host, foreign, 0x0800, four), false},
		{"IPv4 in a VLAN", linktest.VLAN(linktest.Ethernet(host, own, 0x0800, four), 0x8100, 5), true},
		{"IPv4 in two VLANs", linktest.VLAN(linktest.VLAN(linktest.Ethernet(host, own, 0x0800, four), 0x8100, 5), 0x88a8, 6), true},
		{"ARP", linktest.Ethernet(host, own, 0x0806, make([]byte, 28)), false},
		{"another protocol", linktest.Ethernet(host, own, 0x88b5, make([]byte, 60)), false},
		{"UDP on IPv6", linktest.Ethernet(host, own, 0x86dd, six(17, make([]byte, 20)...)), true},
		{"echo on IPv6", linktest.Ethernet(host, own, 0x86dd, six(58, 128, 0, 0, 0)), true},
		{"neighbour solicitation", linktest.Ethernet(host, own, 0x86dd, six(58, 135, 0, 0, 0)), false},
		{"neighbour advertisement", linktest.Ethernet(host, own, 0x86dd, six(58, 136, 0, 0, 0)), false},
		{"neighbour advertisement in a VLAN", linktest.VLAN(linktest.Ethernet(host, own, 0x86dd, six(58, 136, 0, 0, 0)), 0x8100, 5), false},
		{"redirect", linktest.Ethernet(host, own, 0x86dd, six(58, 137, 0, 0, 0)), true},
		{"ICMPv6 cut off", linktest.Ethernet(host, own, 0x86dd, six(58)), false},
		{"IPv6 cut off", linktest.Ethernet(host, own, 0x86dd, make([]byte, 20)), false},
		{"no IPv6 header", linktest.Ethernet(host, own, 0x86dd, nil), false},
		{"a header alone", linktest.Ethernet(host, own, 0x0800, nil), true},
		{"a tag alone", linktest.VLAN(linktest.Ethernet(host, own, 0, nil), 0x8100, 5)[:16], false},
		{"too short", []byte{2, 0, 0, 0, 0, 1, 2, 0}, false},
		{"nothing", nil, false},
	} {
		for _, split := range []int{0, 9, 13, 40} {
			// eth0 carries a great load: what may be balanced goes by eth1.
			r.Attach(nil)
			r.Attach(r.up)
			busy := r.flow(7, 60000)
			busy = busy[:20000]
			for range 3 {
				linktest.Write(r, linktest.Ethernet(host, own, 0x88b5, busy))
			}
			r.ms(10_000)
			r.quiet()
			pkt := packetInPieces(tt.frame, split)
			var list stack.PacketBufferList
			list.PushBack(pkt)
			n, err := r.WritePackets(list)
			if n != 1 || err != nil {
				t.Errorf("%s: WritePackets() = %d, %v", tt.about, n, err)
			}
			v := pkt.ToView()
			if !bytes.Equal(v.AsSlice(), tt.frame) {
				t.Errorf("%s: the caller's packet was changed", tt.about)
			}
			v.Release()
			pkt.DecRef()
			by, want := "eth0", bytes.Clone(tt.frame)
			if tt.balanced {
				by = "eth1"
				copy(want[6:12], r.source("eth1"))
			}
			got := data(r.links[by].Drain())
			if len(got) != 1 || !bytes.Equal(got[0].Frame, want) {
				t.Errorf("%s, split at %d: %s sent %d frames, want one: %x", tt.about, split, by, len(got), want)
			}
		}
	}
}

// packetInPieces is a packet without marked headers whose bytes lie in two pieces.
func packetInPieces(frame []byte, at int) *stack.PacketBuffer {
	at = min(at, len(frame))
	payload := buffer.MakeWithData(frame[:at])
	rest := buffer.MakeWithData(frame[at:])
	payload.Merge(&rest)
	return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: payload})
}

// Frames from other addresses than the bond's leave unchanged and by the active
// slave, which alone can receive the answers (A52).
func TestTLBLeavesOthersAddresses(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000, 1000)
	for n := range 30 {
		frame := linktest.Flow4(n).UDP([]byte("a guest's"))
		linktest.Write(r, frame)
		if got := data(r.links["eth0"].Drain()); len(got) != 1 || !bytes.Equal(got[0].Frame, frame) {
			t.Fatalf("flow %d of another host: the active slave sent %d frames", n, len(got))
		}
	}
}

// Each slave's frames come from its own address, the active one's from the
// bond's; a clone that a packet socket holds is not changed.
func TestTLBRewritesSources(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000, 1000)
	list := linktest.Packets(r.flow(0, 10), r.flow(1, 10), r.flow(2, 10), r.flow(3, 10), r.flow(4, 10), r.flow(5, 10))
	defer list.DecRef()
	var given stack.PacketBufferList
	var clones []*stack.PacketBuffer
	for _, pkt := range list.AsSlice() {
		given.PushBack(pkt)
		clones = append(clones, pkt.Clone())
	}
	r.WritePackets(given)
	for i := range 3 {
		name := fmt.Sprintf("eth%d", i)
		want := macOf(name)
		if i == 0 {
			want = r.LinkAddress()
		}
		sent := data(r.links[name].Drain())
		if len(sent) != 2 || sent[0].Call != sent[1].Call {
			t.Errorf("%s was given %d frames, want two in one call", name, len(sent))
		}
		for _, w := range sent {
			if src := tcpip.LinkAddress(w.Frame[6:12]); src != want {
				t.Errorf("%s sent from %s, want %s", name, src, want)
			}
		}
	}
	for i, c := range clones {
		for _, pkt := range []*stack.PacketBuffer{c, list.AsSlice()[i]} {
			if src := tcpip.LinkAddress(pkt.LinkHeader().Slice()[6:12]); src != r.LinkAddress() {
				t.Errorf("packet %d of the caller comes from %s now", i, src)
			}
		}
		c.DecRef()
	}
}

// GSO packets are cut for a slave without GSO after their source was set, and
// every segment has it.
func TestTLBSegments(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000)
	f := linktest.Flow4(1)
	f.SrcMAC = r.LinkAddress()
	r.send(1) // the active slave has a flow
	r.quiet()
	pkt := linktest.GSOPacket(f.TCP(linktest.Segment{Payload: make([]byte, 30000)}), 1460)
	defer pkt.DecRef()
	var list stack.PacketBufferList
	list.PushBack(pkt)
	if n, err := r.WritePackets(list); n != 1 || err != nil {
		t.Fatalf("WritePackets() = %d, %v", n, err)
	}
	sent := data(r.links["eth1"].Drain())
	for _, w := range sent {
		if src := tcpip.LinkAddress(w.Frame[6:12]); src != macOf("eth1") {
			t.Errorf("a segment comes from %s", src)
		}
	}
	if len(sent) != 21 {
		t.Errorf("eth1 sent %d segments, want 21", len(sent))
	}
}

// Without tlb_dynamic_lb the hash alone picks the slave, and the status shows
// the policy; it may be turned on and off at any time.
func TestTLBStatic(t *testing.T) {
	r := tlbRig(t, bonding.Options{StaticTLB: true}, 1000, 1000)
	proc := func() string {
		var b bytes.Buffer
		st := r.Status()
		if err := st.WriteProc(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if !strings.Contains(proc(), "Transmit Hash Policy: layer2 (0)\n") {
		t.Errorf("/proc shows no policy:\n%s", proc())
	}
	h := xmithash.Layer2.Func(xmithash.VLAN)
	for n := range 20 {
		frame := r.flow(n, 20)
		hash, _ := h(frame, len(frame))
		linktest.Write(r, frame)
		by := fmt.Sprintf("eth%d", hash%2)
		if got := data(r.links[by].Drain()); len(got) != 1 {
			t.Errorf("flow %d: %s sent %d frames", n, by, len(got))
		}
	}
	r.ms(60_000)
	for name, l := range r.links {
		if got := l.Drain(); len(got) != 0 {
			t.Errorf("%s sent %d learning packets", name, len(got))
		}
	}
	r.set("tlb_dynamic_lb", "1")
	if strings.Contains(proc(), "Hash Policy") {
		t.Error("/proc shows the policy of the dynamic mode")
	}
	for range 5 {
		r.send(8)
	}
	if got := fmt.Sprint(r.sent("eth0", "eth1")); got != "[20 20]" {
		t.Errorf("dynamic: slaves sent %s", got)
	}
	r.ms(1000)
	if got := len(r.links["eth1"].Drain()); got != 1 {
		t.Errorf("%d learning packets in a second", got)
	}
	r.set("tlb_dynamic_lb", "0")
	r.ms(5000)
	if got := len(r.links["eth1"].Drain()); got != 0 {
		t.Errorf("%d learning packets with tlb_dynamic_lb off", got)
	}
}

// A link that turns out to be gone while a packet is sent: a balanced flow goes
// by another slave with that one's address, what was the active slave's by who
// takes over, with the bond's.
func TestTLBGoneLink(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000, 1000)
	r.send(3)
	r.quiet()
	r.links["eth1"].Fail(&tcpip.ErrInvalidEndpointState{})
	if n, err := linktest.Write(r, r.flow(1, 10)); n != 1 || err != nil {
		t.Errorf("WritePackets() = %d, %v", n, err)
	}
	got := data(r.links["eth0"].Drain())
	if len(got) != 1 || tcpip.LinkAddress(got[0].Frame[6:12]) != r.LinkAddress() {
		t.Errorf("eth0 sent %d frames in the place of eth1", len(got))
	}
	r.clock.RunImmediatelyScheduledJobs()
	r.quiet()
	r.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
	arp := linktest.ARP(1, r.LinkAddress(), netip.MustParseAddr("10.0.0.1"), "\x00\x00\x00\x00\x00\x00", netip.MustParseAddr("10.0.0.2"))
	if n, err := linktest.Write(r, arp); n != 1 || err != nil {
		t.Errorf("WritePackets() = %d, %v", n, err)
	}
	if got := data(r.links["eth2"].Drain()); len(got) != 1 || !bytes.Equal(got[0].Frame, arp) {
		t.Errorf("eth2 sent %d frames in the place of the active slave", len(got))
	}
	r.clock.RunImmediatelyScheduledJobs()
	r.wantActive("eth0 is gone", "eth2")
}

// A rebalance waits for the tick, and a second, after a slave has come or
// changed; without anything it comes every ten seconds.
func TestTLBRebalanceTimes(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000)
	times := func(d time.Duration) (list []string) {
		start := r.clock.Now()
		was := r.Status().Balance.Rebalances
		for r.clock.Now().Sub(start) < d {
			r.ms(10)
			if now := r.Status().Balance.Rebalances; now != was {
				was = now
				list = append(list, r.clock.Now().Sub(start).String())
			}
		}
		return list
	}
	want := func(when string, got []string, want string) {
		t.Helper()
		if fmt.Sprint(got) != want {
			t.Errorf("%s: rebalances at %s, want %s", when, got, want)
		}
	}
	want("at first", times(25*time.Second), "[1s 11s 21s]")
	r.ms(6030) // 10.03 s into the period that began at 21 s: another has begun
	r.do("eth1 down")
	want("a link is lost", times(time.Second), "[]")
	r.do("eth1 up")
	want("a link is back", times(time.Second), "[70ms]")
	r.do("+eth2")
	want("a slave has come at once after", times(time.Second), "[70ms]")
}

// Frames and their bytes in the status: entries and load of each slave.
func TestTLBStatus(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000)
	r.ms(1000)
	for n := range 6 {
		linktest.Write(r, r.flow(n, 958)) // 1000 bytes each
	}
	r.ms(10_000)
	st := r.Status()
	for _, s := range st.Slaves {
		if s.Balance.Entries != 3 || s.Balance.LoadBytesPerSecond != 300 {
			t.Errorf("%s has %+v, want 3 entries with 300 bytes a second", s.Name, s.Balance)
		}
	}
	if st.Balance == nil || !st.Balance.Dynamic || st.Balance.NextMs != 10_000 {
		t.Errorf("balance is %+v", st.Balance)
	}
	r.Attach(nil)
	if st := r.Status(); st.Balance.NextMs != 0 || st.Slaves[0].Balance.Entries != 0 {
		t.Errorf("without a NIC balance is %+v, %+v", st.Balance, st.Slaves[0].Balance)
	}
}

// A bond of slaves that do not know their speed balances all the same.
func TestTLBUnknownSpeed(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, link.SpeedUnknown, link.SpeedUnknown)
	r.send(20)
	if got := fmt.Sprint(r.sent("eth0", "eth1")); got != "[10 10]" {
		t.Errorf("slaves sent %s", got)
	}
	r = tlbRig(t, bonding.Options{}, 1000, link.SpeedUnknown, 100)
	r.send(21)
	if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[10 10 1]" {
		t.Errorf("slaves of 1000, unknown and 100 Mb/s sent %s", got)
	}
}

// A drained slave's flows go by others at once, and if it was the active one,
// which still receives for a second, the bond's address moves; nothing is lost.
func TestTLBDrain(t *testing.T) {
	r := tlbRig(t, bonding.Options{}, 1000, 1000, 1000)
	r.send(30)
	r.quiet()
	if err := r.Drain("eth0"); err != nil {
		t.Fatal(err)
	}
	r.wantActive("eth0 is drained", "eth1")
	r.wantLearning("eth0 is drained", "eth1 ee:00")
	r.send(30)
	if got := r.sent("eth0", "eth1", "eth2"); got[0] != 0 || got[1] < 10 || got[2] < 10 {
		t.Errorf("eth0 is drained: slaves sent %v", got)
	}
	for _, tt := range []struct {
		wait int
		want string
	}{{0, "[1 1 0]"}, {1001, "[0 1 0]"}} {
		r.ms(tt.wait)
		var got []int
		for i := range 3 {
			r.links[fmt.Sprintf("eth%d", i)].Inject(r.toBond(1))
			got = append(got, len(r.up.Drain()))
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%d ms after the drain slaves receive %v, want %s", tt.wait, got, tt.want)
		}
	}
	if err := r.Undrain("eth0"); err != nil {
		t.Fatal(err)
	}
	r.ms(20_000)
	r.quiet()
	r.send(30)
	r.ms(10_000)
	r.quiet()
	r.send(30)
	if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[10 10 10]" {
		t.Errorf("eth0 is back: slaves sent %s", got)
	}
	if got := r.Status().Counters.TxDropped; got != 0 {
		t.Errorf("%d frames were dropped", got)
	}
}
