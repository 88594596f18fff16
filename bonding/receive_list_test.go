package bonding_test

import (
	"bytes"
	"slices"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// listSink is a Sink that takes lists, and keeps how long they were.
type listSink struct {
	*linktest.Sink
	lists []int
}

func (s *listSink) DeliverList(list stack.PacketBufferList) {
	s.lists = append(s.lists, list.Len())
	for _, pkt := range list.AsSlice() {
		s.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
	}
}

// Of frames that came together the bond's go up together, in their order, to who
// takes lists, and one by one to who does not; each of the others is dropped and
// counted by itself.
func TestReceiveList(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode}, 2)
		bad := r.toBond(4)
		bad[len(bad)-1] ^= 1
		stranger := linktest.Flow4(4).UDP([]byte("for another host"))
		frames := [][]byte{r.toBond(1), stranger, r.toBond(2), bad, broadcastFrame(3), lldp()[:13]}
		want := [][]byte{frames[0], frames[2], frames[4]}
		up := &listSink{Sink: r.up}
		for _, lists := range []bool{false, true} {
			if r.Attach(r.up); lists {
				r.Attach(up)
			}
			r.links["eth0"].InjectList(frames...)
			var got [][]byte
			for _, d := range r.up.Drain() {
				got = append(got, d.Frame)
			}
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%s: delivered %d frames, want %d", m.mode, len(got), len(want))
			}
		}
		lists := []int{3}
		if m.mode == bonding.BalanceRR {
			lists = nil // what restores the order of streams gives them up one by one
		}
		if !slices.Equal(up.lists, lists) {
			t.Errorf("%s: lists of %v frames, want %v", m.mode, up.lists, lists)
		}
		for _, reason := range []string{"rx_other_host", "rx_checksum", "rx_short"} {
			if n := r.drops(reason); n != 2 {
				t.Errorf("%s: %s is %d, want 2", m.mode, reason, n)
			}
		}
	}
}

// A list of which nothing is the bond's goes nowhere.
func TestReceiveEmptyList(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	up := &listSink{Sink: r.up}
	r.Attach(up)
	r.links["eth1"].InjectList(r.toBond(1), r.toBond(2))
	if len(up.lists) != 0 || r.drops("rx_inactive") != 2 {
		t.Errorf("lists of %v frames, %d dropped", up.lists, r.drops("rx_inactive"))
	}
}
