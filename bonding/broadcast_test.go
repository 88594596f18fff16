package bonding_test

import (
	"fmt"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Every frame goes by every slave, in order, in one write a slave (T139). The
// bond's counters count each copy, as in Linux.
func TestBroadcast(t *testing.T) {
	for _, list := range []int{1, 40} {
		r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 4)
		r.numbered(40, list)
		for i := range 4 {
			name := fmt.Sprintf("eth%d", i)
			if calls := r.links[name].Calls().Write; calls != 40/list {
				t.Errorf("%s was written to %d times, want %d", name, calls, 40/list)
			}
			for k, n := range r.numbers(name) {
				if n != k {
					t.Fatalf("%s frame %d has number %d", name, k, n)
				}
			}
			if got := r.slave(name).Counters.TxPackets; got != 40 {
				t.Errorf("%s counts %d frames", name, got)
			}
		}
		if got := r.Status().Counters.TxPackets; got != 160 {
			t.Errorf("the bond counts %d frames, want 160", got)
		}
	}
}

// A slave whose link is down gets no copy (T85).
func TestBroadcastDeadSlave(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 3)
	r.do("eth1 down")
	r.numbered(5, 5)
	if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[5 0 5]" {
		t.Errorf("slaves were given %s", got)
	}
	r.do("eth1 up")
	r.numbered(5, 1)
	if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[5 5 5]" {
		t.Errorf("slaves were given %s", got)
	}
}

// Three slaves do not take 15, 10 and 15 of 40 frames: 30 count as sent, what
// the best slave did, and each slave's own are exact (T140). DPDK gives the last
// 10 back to the caller; a LinkEndpoint cannot, so they are dropped and counted.
func TestBroadcastPartialWrites(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 3)
	full := &tcpip.ErrNoBufferSpace{}
	for i, take := range []int{25, 30, 25} {
		r.links[fmt.Sprintf("eth%d", i)].Script(linktest.WriteStep{Take: take, Err: full}, linktest.WriteStep{Err: full})
	}
	n, err := r.send(40)
	if _, isFull := err.(*tcpip.ErrNoBufferSpace); n != 30 || !isFull {
		t.Errorf("WritePackets() = %d, %v, want 30 and no buffer space", n, err)
	}
	if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[25 30 25]" {
		t.Errorf("slaves were given %s", got)
	}
	for i, want := range []uint64{15, 10, 15} {
		s := r.Status().Slaves[i]
		if got := s.Counters.Drops["tx_no_buffer"]; got != want || s.Counters.TxPackets != 40-want {
			t.Errorf("%s counts %d sent, %d dropped, want %d, %d", s.Name, s.Counters.TxPackets, got, 40-want, want)
		}
	}
}

// It has succeeded where one slave took it.
func TestBroadcastOneIsEnough(t *testing.T) {
	for _, err := range []tcpip.Error{&tcpip.ErrNoBufferSpace{}, &tcpip.ErrInvalidEndpointState{}, &tcpip.ErrMessageTooLong{}} {
		for good := range 3 {
			r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 3)
			for i := range 3 {
				if i != good {
					r.links[fmt.Sprintf("eth%d", i)].Fail(err)
				}
			}
			if n, e := r.send(7); n != 7 || e != nil {
				t.Errorf("%v on all but eth%d: WritePackets() = %d, %v, want 7, nil", err, good, n, e)
			}
			if got := r.Status().Counters.TxDropped; got != 14 {
				t.Errorf("%v: %d copies counted as dropped, want 14", err, got)
			}
		}
	}
}
