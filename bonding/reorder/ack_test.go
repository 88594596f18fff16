package reorder

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bondstack/link/linktest"
)

// Pure acknowledgements, "A100/5" being number 100 with window 5 on link A, and
// which of them are delivered: those that are not older than what another link
// has delivered.
func TestAcknowledgements(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"in order", "A100/5 B200/5 A300/5", "A100/5 B200/5 A300/5"},
		{"late on another link", "A200/5 B100/5 A300/5 B250/5 B400/5 A350/5", "A200/5 A300/5 B400/5"},
		{"duplicates count", "A100/5 B100/5 A100/5 A100/5", "A100/5 B100/5 A100/5 A100/5"},
		{"a window that is open again", "A100/0 B100/9 A100/0", "A100/0 B100/9"},
		{"a window that is taken back in order", "A100/9 A100/0 B100/9", "A100/9 A100/0 B100/9"},
		{"older on one link: what came before was made up", "A900/5 B100/5 A110/5 B120/5", "A900/5 A110/5 B120/5"},
		{"numbers wrap", "A4294967290/5 B4/5 A4294967295/5 A10/5", "A4294967290/5 B4/5 A10/5"},
		{"of another stream", "A100/5 B3000000000/5 A200/5", "A100/5 B3000000000/5 A200/5"},
	} {
		r := newRig(t, Options{})
		names := strings.Fields(tt.in)
		for id, name := range names {
			r.acknowledge(uint32(id), name)
		}
		var got []string
		for _, id := range r.drain() {
			got = append(got, names[id])
		}
		if want := strings.Fields(tt.want); !slices.Equal(got, want) {
			t.Errorf("%s: delivered %v, want %v", tt.name, got, want)
		}
		if stale := r.counters.Counts().StaleAcks; int(stale) != len(names)-len(got) {
			t.Errorf("%s: %d are counted, want %d", tt.name, stale, len(names)-len(got))
		}
	}
}

func (r *rig) acknowledge(id uint32, text string) {
	var link rune
	var seg linktest.Segment
	if _, err := fmt.Sscanf(text, "%c%d/%d", &link, &seg.Ack, &seg.Window); err != nil {
		r.tb.Fatal(text, err)
	}
	frame := stream4(0).segment(seg)
	if seg.Window == 0 { // which linktest takes for the default
		frame[14+20+14], frame[14+20+15] = 0, 0
	}
	r.give(int(link-'A'), id, frame)
}

// A made-up number does not end a connection: soon the true ones pass.
func TestMadeUpAcknowledgement(t *testing.T) {
	r := newRig(t, Options{})
	r.acknowledge(0, "A1000000/5")
	for i := range 2 * maxStale {
		r.acknowledge(uint32(1+i), fmt.Sprintf("B%d/5", 100+i))
	}
	if got, want := len(r.drain()), 1+maxStale; got != want {
		t.Errorf("%d were delivered, want %d", got, want)
	}
}

// A new connection knows nothing of the one before, and acknowledgements wait
// for no data.
func TestAcknowledgementsOfANewConnection(t *testing.T) {
	r := newRig(t, Options{})
	r.acknowledge(0, "A1000/5")
	r.give(1, 1, stream4(0).kind(0, "syn"))
	r.acknowledge(2, "B10/5")
	r.give(0, 3, stream4(0).piece(3))
	r.acknowledge(4, "A20/5")
	r.give(0, 5, stream4(0).kind(0, "rst"))
	r.acknowledge(6, "B5/5")
	if got, want := r.drain(), []uint32{0, 1, 2, 4, 3, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
}
