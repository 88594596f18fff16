package bonding_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// pieceSize is the payload of a frame of streamPiece.
const pieceSize = 1000

// streamPiece is the frame with the k-th piece of a TCP stream to the bond.
func (r *rig) streamPiece(k int) []byte {
	f := linktest.Flow4(1)
	f.DstMAC = r.LinkAddress()
	payload := make([]byte, pieceSize)
	payload[0] = byte(k)
	return f.TCP(linktest.Segment{Seq: uint32(k * pieceSize), Payload: payload})
}

// arrive has pieces of a stream come, "0:3" being piece 3 on eth0, and returns
// which were delivered.
func (r *rig) arrive(pieces string) string {
	r.tb.Helper()
	for _, p := range strings.Fields(pieces) {
		var link, k int
		if _, err := fmt.Sscanf(p, "%d:%d", &link, &k); err != nil {
			r.tb.Fatalf("%q: %v", p, err)
		}
		r.links[fmt.Sprintf("eth%d", link)].Inject(r.streamPiece(k))
	}
	return r.delivered()
}

// delivered returns which pieces were delivered since the last call.
func (r *rig) delivered() string {
	var got []string
	for _, d := range r.up.Drain() {
		got = append(got, fmt.Sprint(d.Frame[len(d.Frame)-pieceSize]))
	}
	return strings.Join(got, " ")
}

func (r *rig) wantArrive(pieces, want string) {
	r.tb.Helper()
	if got := r.arrive(pieces); got != want {
		r.tb.Errorf("%s: delivered %q, want %q", pieces, got, want)
	}
}

// newReordering is a bond whose two links have carried piece 0 and 1 of a
// stream.
func newReordering(t *testing.T, o bonding.Options, slaves int) *rig {
	r := newRig(t, o, slaves)
	r.wantArrive("0:0 1:1", "0 1")
	return r
}

// A stream that comes over two links is delivered in order; a loss is passed on
// as soon as both links have gone on; and the status says what was done.
func TestStreamsAreInOrder(t *testing.T) {
	r := newReordering(t, bonding.Options{}, 2)
	r.wantArrive("0:2 0:4 0:6", "2")
	r.wantArrive("1:3", "3 4")
	r.wantArrive("1:5 1:7", "5 6 7")
	r.wantArrive("1:9", "")
	if st := r.Status().Reorder; st == nil || !st.On || st.Frames != 1 || st.Bytes == 0 || st.Flows != 1 {
		t.Errorf("while a frame waits the status is %+v", st)
	}
	r.wantArrive("0:10", "9 10")
	r.wantArrive("0:8", "8") // sent again
	r.wantArrive("0:13", "")
	r.advance(100 * time.Millisecond)
	if got := r.delivered(); got != "13" {
		t.Errorf("after the hold time %q was delivered, want 13", got)
	}
	st := r.Status().Reorder
	if st.Held != 5 || st.Filled != 2 || st.Lost != 2 || st.Expired != 1 || st.Gaps != 2 || st.Late != 1 || st.Frames != 0 {
		t.Errorf("the status is %+v", st)
	}
}

// rx_reorder: auto is on in balance-rr alone, and it may change at any time:
// what is held goes on.
func TestRxReorderOption(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode, AllSlavesActive: true, RxDedup: bonding.DedupOff}, 2)
		for i, tt := range []struct {
			value string
			on    bool
		}{{"auto", m.mode == bonding.BalanceRR}, {"off", false}, {"on", true}, {"off", false}, {"auto", m.mode == bonding.BalanceRR}} {
			r.set("rx_reorder", tt.value)
			k := 10 * i
			r.arrive(fmt.Sprintf("0:%d 1:%d", k, k+1))
			want := fmt.Sprint(k + 3)
			if tt.on {
				want = ""
			}
			r.wantArrive(fmt.Sprintf("0:%d", k+3), want)
			if st := r.Status().Reorder; st != nil && st.On != tt.on || st == nil && tt.on {
				t.Errorf("%s, %s: the status is %+v", m.mode, tt.value, st)
			}
			r.set("rx_reorder", "off")
			if got := r.delivered(); tt.on && got != fmt.Sprint(k+3) {
				t.Errorf("%s: when turned off %q is delivered, want %d", m.mode, got, k+3)
			}
		}
	}
}

// The bounds may be changed at any time, by name and in Options.
func TestRxReorderBounds(t *testing.T) {
	o := bonding.Options{RxReorder: bonding.ReorderOn, RxReorderHold: 500 * time.Microsecond, RxReorderBytes: 1 << 16, RxReorderFlows: 8}
	r := newReordering(t, o, 2)
	for name, want := range map[string]string{"rx_reorder": "on 2", "rx_reorder_hold": "500", "rx_reorder_bytes": "65536", "rx_reorder_flows": "8"} {
		if got, err := r.Option(name); got != want || err != nil {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	r.wantArrive("0:3", "")
	r.advance(2 * time.Millisecond)
	if got := r.delivered(); got != "3" {
		t.Errorf("after 2 ms %q was delivered, want 3", got)
	}
	r.wantArrive("1:4 0:6", "4")
	r.set("rx_reorder_hold", "1000000")
	if got := r.delivered(); got != "6" {
		t.Errorf("at the change %q was delivered, want 6", got)
	}
	r.wantArrive("1:8 0:7", "8 7") // a flow not known begins where it is seen
	r.wantArrive("0:10", "")
	r.advance(4 * time.Second)
	if got := r.delivered(); got != "10" {
		t.Errorf("after 4 s %q was delivered, want 10", got)
	}
	for _, o := range []bonding.Options{{RxReorderHold: -1}, {RxReorderHold: 1}, {RxReorderHold: 2 * time.Second}, {RxReorderHold: 10500}, {RxReorderBytes: 1}, {RxReorderFlows: -1}, {RxReorder: 3}} {
		if _, err := bonding.New(o); err == nil {
			t.Errorf("New(%+v) succeeds", o)
		}
	}
}

// Nothing waits for a link that is released, disabled, or has lost its carrier.
func TestReorderAndLinksThatGo(t *testing.T) {
	for name, leave := range map[string]func(r *rig){
		"released": func(r *rig) { r.do("-eth1") },
		"disabled": func(r *rig) { _ = r.SetSlaveEnabled("eth1", false) },
		"carrier":  func(r *rig) { r.carrier("eth1", false) },
		"polled":   func(r *rig) { r.silently("eth1", false); r.ms(100) },
	} {
		r := newReordering(t, bonding.Options{RxReorderHold: time.Second}, 2)
		r.wantArrive("0:2 0:4 0:6", "2")
		leave(r)
		if got := r.delivered(); got != "4 6" {
			t.Errorf("%s: delivered %q, want 4 6", name, got)
		}
		r.wantArrive("0:8 0:9", "8 9")
		if st := r.Status().Reorder; st.LinkGone != 2 || st.Frames != 0 {
			t.Errorf("%s: the status is %+v", name, st)
		}
	}
	// What a released slave delivered is not lost with it.
	r := newReordering(t, bonding.Options{RxReorderHold: time.Second}, 2)
	r.wantArrive("0:2 0:4", "2")
	r.do("-eth0")
	if got := r.delivered() + r.arrive("1:3"); got != "3 4" {
		t.Errorf("delivered %q, want 3 4", got)
	}
}

// Frames that are held when the NIC goes, or the bond is closed, are counted and
// let go.
func TestReorderAndClose(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"closed":  func(r *rig) { r.Close() },
		"removed": func(r *rig) { r.Attach(nil); r.ms(25) },
	} {
		r := newReordering(t, bonding.Options{}, 2)
		r.wantArrive("0:3 0:5", "")
		end(r)
		if got := r.delivered(); got != "" || r.drops("rx_no_nic") != 2 {
			t.Errorf("%s: delivered %q, %d were dropped, want 2", name, got, r.drops("rx_no_nic"))
		}
	}
}

// A reset is not held up, and acknowledgements are not looked into.
func TestReorderPasses(t *testing.T) {
	r := newReordering(t, bonding.Options{}, 2)
	f := linktest.Flow4(1)
	f.DstMAC = r.LinkAddress()
	r.wantArrive("0:3", "")
	r.links["eth0"].Inject(f.TCP(linktest.Segment{Seq: 9 * pieceSize, Ack: 1}))
	if got := len(r.up.Drain()); got != 1 {
		t.Errorf("%d acknowledgements were delivered, want 1", got)
	}
	r.links["eth0"].Inject(f.TCP(linktest.Segment{Seq: 9 * pieceSize, Flags: header.TCPFlagRst}))
	if got := len(r.up.Drain()); got != 2 {
		t.Errorf("%d frames were delivered, want what was held, and the reset", got)
	}
}

// A frame costs no allocation where it waits, nor where it does not.
func TestReorderAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations are counted without the race detector")
	}
	perFrame := func(o bonding.Options, swap bool) float64 {
		r := newRig(t, o, 2)
		r.Attach(&linktest.Counter{})
		k := 0
		return testing.AllocsPerRun(200, func() {
			order := [2]int{k, k + 1}
			if swap {
				order = [2]int{k + 1, k}
			}
			for link, piece := range order {
				r.links[fmt.Sprintf("eth%d", link)].Inject(r.streamPiece(piece))
			}
			k += 2
		})
	}
	off := perFrame(bonding.Options{RxReorder: bonding.ReorderOff}, false)
	for _, swap := range []bool{false, true} {
		if got := perFrame(bonding.Options{}, swap); got > off {
			t.Errorf("out of order %v: %v allocations for two frames, without the stage %v", swap, got, off)
		}
	}
}
