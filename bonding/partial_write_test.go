package bonding_test

import (
	"fmt"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// A slave that lacks room: what it took counts as sent, the rest is tried as
// long as the attempts move forward, then dropped and counted. Nobody waits, and
// the other slaves are not concerned (A31, T116).
func TestPartialWrites(t *testing.T) {
	full := &tcpip.ErrNoBufferSpace{}
	some := func(n int) linktest.WriteStep { return linktest.WriteStep{Take: n, Err: full} }
	for _, tt := range []struct {
		about string
		steps []linktest.WriteStep
		took  int
		calls int
	}{
		{"all", nil, 8, 1},
		{"none", []linktest.WriteStep{some(0)}, 0, 1},
		{"some, then none", []linktest.WriteStep{some(3), some(0)}, 3, 2},
		{"some, then the rest", []linktest.WriteStep{some(3)}, 8, 2},
		{"one at a time", []linktest.WriteStep{some(1), some(1), some(1), some(1), some(1), some(1), some(1)}, 8, 8},
		{"one at a time, then none", []linktest.WriteStep{some(1), some(1), some(0)}, 2, 3},
		{"short without an error", []linktest.WriteStep{{Take: 5}, {Take: 0}}, 5, 2},
	} {
		for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceXOR} {
			r := newRig(t, bonding.Options{Mode: mode}, 2)
			r.links["eth0"].Script(tt.steps...)
			began := r.clock.NowMonotonic()
			n, err := r.send(8)
			if n != tt.took || (err == nil) != (n == 8) {
				t.Errorf("%s, %s: WritePackets() = %d, %v, want %d", mode, tt.about, n, err, tt.took)
			}
			if calls := r.links["eth0"].Calls().Write; calls != tt.calls {
				t.Errorf("%s, %s: %d writes to the slave, want %d", mode, tt.about, calls, tt.calls)
			}
			c := r.slave("eth0").Counters
			if c.TxPackets != uint64(tt.took) || c.Drops["tx_no_buffer"] != uint64(8-tt.took) || c.TxDropped != uint64(8-tt.took) {
				t.Errorf("%s, %s: counters are %+v", mode, tt.about, c)
			}
			for i, w := range r.links["eth0"].Drain() {
				if int(w.Frame[len(w.Frame)-1]) != i {
					t.Errorf("%s, %s: frame %d is number %d", mode, tt.about, i, w.Frame[len(w.Frame)-1])
				}
			}
			if r.clock.NowMonotonic() != began {
				t.Errorf("%s, %s: time passed", mode, tt.about)
			}
		}
	}
}

// Full five times, then room for 3 of 8, then for all: each batch ends by itself,
// and the slave is used again as soon as it takes something (A31).
func TestFullForAWhile(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	full := linktest.WriteStep{Err: &tcpip.ErrNoBufferSpace{}}
	r.links["eth0"].Script(full, full, full, full, full, linktest.WriteStep{Take: 3, Err: full.Err}, full)
	var took []int
	for range 7 {
		n, _ := r.send(8)
		took = append(took, n)
	}
	if got := fmt.Sprint(took); got != "[0 0 0 0 0 3 8]" || r.drops("tx_no_buffer") != 5*8+5 {
		t.Errorf("batches of 8 took %s, dropped %d", got, r.drops("tx_no_buffer"))
	}
	r.wantMII("full is not down", "up,up")
}

// In a list that is spread, one slave's lack of room is its own.
func TestPartialWriteOfASpreadList(t *testing.T) {
	full := &tcpip.ErrNoBufferSpace{}
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR} {
		r := newRig(t, bonding.Options{Mode: mode, XmitHashPolicy: xmithash.Layer34}, 2)
		r.send(64)
		share := r.sent("eth0", "eth1")
		r.links["eth1"].Script(linktest.WriteStep{Take: 10, Err: full}, linktest.WriteStep{Err: full})
		n, err := r.send(64)
		if _, isFull := err.(*tcpip.ErrNoBufferSpace); n != share[0]+10 || !isFull {
			t.Errorf("%s: WritePackets() = %d, %v, want %d and no buffer space", mode, n, err, share[0]+10)
		}
		want := fmt.Sprint([]int{share[0], 10})
		if got := fmt.Sprint(r.sent("eth0", "eth1")); got != want || r.drops("tx_no_buffer") != uint64(share[1]-10) {
			t.Errorf("%s: slaves were given %s, want %s, and %d were dropped", mode, got, want, r.drops("tx_no_buffer"))
		}
	}
}

// No slave is there: nothing is taken, each frame is counted, and there is no
// error, as in Linux (T115).
func TestNoSlave(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode}, 4)
		for i := range 4 {
			r.carrier(fmt.Sprintf("eth%d", i), false)
		}
		for i, list := range []int{1, 39} {
			if n, err := r.send(list); n != 0 || err != nil {
				t.Errorf("%s: WritePackets() = %d, %v, want 0, nil", m.mode, n, err)
			}
			if got, want := r.drops("tx_no_slave"), uint64([]int{1, 40}[i]); got != want {
				t.Errorf("%s: tx_no_slave is %d, want %d", m.mode, got, want)
			}
		}
		if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2", "eth3")); got != "[0 0 0 0]" {
			t.Errorf("%s: slaves were given %s", m.mode, got)
		}
		empty := newRig(t, bonding.Options{Mode: m.mode}, 0)
		if n, err := empty.send(3); n != 0 || err != nil || empty.drops("tx_no_slave") != 3 {
			t.Errorf("%s without slaves: WritePackets() = %d, %v", m.mode, n, err)
		}
		if n, err := linktest.Write(r); n != 0 || err != nil {
			t.Errorf("%s: WritePackets() of nothing = %d, %v", m.mode, n, err)
		}
	}
}

// Everything goes by the active slave, whole lists whole (T74, T124).
func TestActiveBackupTransmits(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, DownDelay: time.Second}, 3)
	r.numbered(100, 50)
	if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[100 0 0]" || r.links["eth0"].Calls().Write != 2 {
		t.Errorf("slaves were given %s in %d writes", got, r.links["eth0"].Calls().Write)
	}
}
