package bonding_test

import (
	"fmt"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// In broadcast each frame comes on every slave, and is delivered once: when it
// first comes, whichever slave that is.
func TestCopiesAreDiscarded(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 3)
	for i := range 100 {
		for k := range 3 {
			r.links[fmt.Sprintf("eth%d", (i+k)%3)].Inject(r.host(i))
		}
	}
	if got := len(r.up.Drain()); got != 100 || r.drops("rx_copy") != 200 || r.Status().Counters.RxDropped != 0 {
		t.Errorf("%d were delivered, rx_copy is %d, want 100, 200", got, r.drops("rx_copy"))
	}
	// One slave runs ahead of another.
	for _, name := range []string{"eth0", "eth2", "eth1"} {
		for i := range 100 {
			r.links[name].Inject(r.host(1000 + i))
		}
	}
	if got := len(r.up.Drain()); got != 100 {
		t.Errorf("%d were delivered, want 100", got)
	}
}

// What was sent twice is delivered twice, and what one slave lost comes by
// another.
func TestRepetitionsAreNoCopies(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 2)
	for range 5 {
		r.links["eth0"].Inject(r.host(1))
	}
	for range 5 {
		r.links["eth1"].Inject(r.host(1))
	}
	if got := len(r.up.Drain()); got != 5 {
		t.Errorf("a frame sent 5 times on 2 slaves was delivered %d times", got)
	}
	for i := range 100 {
		if i%3 != 0 {
			r.links["eth0"].Inject(r.host(100 + i))
		}
		if i%5 != 0 {
			r.links["eth1"].Inject(r.host(100 + i))
		}
	}
	if got, want := len(r.up.Drain()), 100-7; got != want { // both lost each 15th
		t.Errorf("%d were delivered, want %d", got, want)
	}
}

// A damaged frame does not make its good copy one too many.
func TestDamagedFrameIsNoCopy(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 2)
	f := linktest.Flow4(1)
	f.DstMAC = r.LinkAddress()
	good := f.TCP(linktest.Segment{Payload: []byte("good")})
	bad := append([]byte{}, good...)
	bad[len(bad)-1] ^= 1
	r.links["eth0"].Inject(bad)
	r.links["eth1"].Inject(good)
	if got := r.up.Drain(); len(got) != 1 || string(got[0].Frame) != string(good) || r.drops("rx_checksum") != 1 {
		t.Errorf("delivered %v, rx_checksum %d", got, r.drops("rx_checksum"))
	}
}

// rx_dedup: auto is on in broadcast alone, off is Linux's behaviour, and it may
// change at any time.
func TestRxDedupOption(t *testing.T) {
	for _, m := range recoveryModes {
		for _, tt := range []struct {
			value string
			on    bool
		}{{"auto", m.mode == bonding.Broadcast}, {"off", false}, {"on", true}, {"off", false}, {"auto", m.mode == bonding.Broadcast}} {
			r := newRig(t, bonding.Options{Mode: m.mode, AllSlavesActive: true}, 2)
			r.set("rx_dedup", tt.value)
			for _, name := range []string{"eth0", "eth1"} {
				r.links[name].Inject(r.host(1))
			}
			want := 2
			if tt.on {
				want = 1
			}
			if got := len(r.up.Drain()); got != want {
				t.Errorf("%s, rx_dedup %s: delivered %d times, want %d", m.mode, tt.value, got, want)
			}
		}
	}
}

// A slave that joins, or takes the place of one that left, has nothing to make
// up for.
func TestCopiesAndMembership(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 2)
	for range 3 {
		r.links["eth0"].Inject(r.host(1))
	}
	r.do("-eth1")
	r.do("+eth2")
	for range 3 {
		r.links["eth2"].Inject(r.host(1))
	}
	if got := len(r.up.Drain()); got != 3 {
		t.Errorf("delivered %d times, want 3", got)
	}
	// Nor does it inherit what the one before it had delivered: its first is a
	// copy of eth0's first, not a fourth.
	for _, name := range []string{"eth0", "eth2", "eth0", "eth2", "eth0", "eth2"} {
		r.links[name].Inject(r.host(5))
	}
	r.up.Drain()
	r.do("-eth2")
	r.do("+eth3")
	r.links["eth3"].Inject(r.host(5))
	if got := len(r.up.Drain()); got != 0 {
		t.Error("a copy on a slave in the place of another was delivered")
	}
	r.do("-eth3")
	r.do("+eth2")
	// A copy that comes after its time counts as new: the other slave may have
	// lost a later frame that is equal.
	r.links["eth0"].Inject(r.host(9))
	r.ms(10_000)
	r.links["eth2"].Inject(r.host(9))
	if got := len(r.up.Drain()); got != 2 {
		t.Errorf("ten seconds apart, delivered %d times, want 2", got)
	}
}

// Up to sixteen slaves are told apart. The frames of those beyond pass as new:
// they are not lost.
func TestCopiesOfManySlaves(t *testing.T) {
	for _, tt := range []struct{ slaves, want int }{{16, 1}, {18, 3}} {
		r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 0)
		var links []*linktest.Recorder
		for i := range tt.slaves {
			links = append(links, r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{}, linktest.RecorderOptions{}))
		}
		for _, l := range links {
			l.Inject(r.host(1))
		}
		if got := len(r.up.Drain()); got != tt.want {
			t.Errorf("%d copies: delivered %d times, want %d", tt.slaves, got, tt.want)
		}
	}
}
