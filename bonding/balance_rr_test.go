package bonding_test

import (
	"fmt"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

// numbered writes n frames, in lists of the given length, whose last bytes are
// their numbers.
func (r *rig) numbered(n, list int) {
	r.tb.Helper()
	for first := 0; first < n; first += list {
		var frames [][]byte
		for i := first; i < min(first+list, n); i++ {
			frames = append(frames, linktest.Flow4(1).UDP([]byte{byte(i)}))
		}
		if took, err := linktest.Write(r, frames...); took != len(frames) || err != nil {
			r.tb.Fatalf("WritePackets() = %d, %v, want %d", took, err, len(frames))
		}
	}
}

// numbers drains a link and returns the numbers of its frames.
func (r *rig) numbers(name string) []int {
	list := []int{}
	for _, w := range r.links[name].Drain() {
		list = append(list, int(w.Frame[len(w.Frame)-1]))
	}
	return list
}

// Which slave gets which packet, for each packets_per_slave. As in Linux the
// turn is counted before it is used, so the first packet goes to the second
// slave, and the first turn is one packet short.
func TestRoundRobinOrder(t *testing.T) {
	for _, tt := range []struct {
		perSlave, slaves int
		want             []string
	}{
		{1, 1, []string{"[0 1 2 3 4 5 6 7 8 9]"}},
		{1, 2, []string{"[1 3 5 7 9]", "[0 2 4 6 8]"}},
		{1, 3, []string{"[2 5 8]", "[0 3 6 9]", "[1 4 7]"}},
		{2, 2, []string{"[0 3 4 7 8]", "[1 2 5 6 9]"}},
		{3, 2, []string{"[0 1 5 6 7]", "[2 3 4 8 9]"}},
		{3, 3, []string{"[0 1 8 9]", "[2 3 4]", "[5 6 7]"}},
		{65535, 2, []string{"[0 1 2 3 4 5 6 7 8 9]", "[]"}},
	} {
		for _, list := range []int{1, 3, 10} {
			r := newRig(t, bonding.Options{PacketsPerSlave: tt.perSlave}, tt.slaves)
			r.numbered(10, list)
			for i, want := range tt.want {
				if got := fmt.Sprint(r.numbers(fmt.Sprintf("eth%d", i))); got != want {
					t.Errorf("packets_per_slave %d, lists of %d: eth%d was given %s, want %s", tt.perSlave, list, i, got, want)
				}
			}
		}
	}
}

// packets_per_slave 0 is random: a source of random numbers decides.
func TestRoundRobinRandom(t *testing.T) {
	r := newRig(t, bonding.Options{PacketsPerSlave: -1}, 3)
	r.numbered(3000, 100)
	for _, n := range r.sent("eth0", "eth1", "eth2") {
		if n < 900 || n > 1100 {
			t.Errorf("a slave was given %d of 3000 packets, want about 1000", n)
		}
	}
	var next uint64
	r = newRig(t, bonding.Options{PacketsPerSlave: -1, Rand: func() uint64 { return next }}, 3)
	for next = range 6 {
		r.numbered(1, 1)
		if got, want := fmt.Sprint(r.sent("eth0", "eth1", "eth2")), [...]string{"[1 0 0]", "[0 1 0]", "[0 0 1]"}[next%3]; got != want {
			t.Errorf("random number %d: slaves were given %s, want %s", next, got, want)
		}
	}
}

// A dead slave's share goes whole to the next one that lives (T121, T85).
func TestRoundRobinDeadSlave(t *testing.T) {
	for _, tt := range []struct {
		dead []string
		want string
	}{
		{nil, "[5 5 5 5]"},
		{[]string{"eth1"}, "[5 0 10 5]"},
		{[]string{"eth3"}, "[10 5 5 0]"}, // wraps
		{[]string{"eth1", "eth3"}, "[10 0 10 0]"},
		{[]string{"eth0", "eth1", "eth2"}, "[0 0 0 20]"},
		{[]string{"eth1", "eth2", "eth3"}, "[20 0 0 0]"},
	} {
		for _, silent := range []bool{true, false} {
			for _, list := range []int{1, 20} {
				r := newRig(t, bonding.Options{}, 4)
				for _, name := range tt.dead {
					if silent {
						r.silently(name, false)
					} else {
						r.carrier(name, false)
					}
				}
				if silent {
					r.ms(100)
				}
				r.numbered(20, list)
				if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2", "eth3")); got != tt.want {
					t.Errorf("without %v slaves were given %s, want %s", tt.dead, got, tt.want)
				}
				for _, name := range tt.dead {
					r.carrier(name, true)
					r.silently(name, true)
				}
				r.ms(100)
				r.numbered(20, list)
				if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2", "eth3")); got != "[5 5 5 5]" {
					t.Errorf("with all back slaves were given %s", got)
				}
			}
		}
	}
}

// The turn goes on over changes of the slaves.
func TestRoundRobinTurnOutlivesSlaves(t *testing.T) {
	r := newRig(t, bonding.Options{}, 2)
	r.numbered(1, 1) // turn 1
	r.do("+eth2")
	r.sent("eth0", "eth1", "eth2")
	r.numbered(1, 1) // turn 2 of 3
	if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[0 0 1]" {
		t.Errorf("with a third slave the second turn went to %s", got)
	}
	r.do("-eth1")
	r.numbered(3, 1) // turns 3, 4 and 5 of 2
	if got := fmt.Sprint(r.sent("eth0", "eth2")); got != "[1 2]" {
		t.Errorf("with two slaves turns 3 to 5 went to %s", got)
	}
}

// IGMP goes by one slave, so that a snooping switch sees a group on one port,
// and takes no turn. MLD does not: Linux has no exception for IPv6.
func TestRoundRobinIGMP(t *testing.T) {
	igmp := linktest.Flow4(1).IP(2, []byte{0x16, 0, 0, 0, 224, 0, 0, 5})
	udp := linktest.Flow4(1).UDP([]byte{1})
	for _, perSlave := range []int{-1, 1, 3} {
		r := newRig(t, bonding.Options{PacketsPerSlave: perSlave}, 3)
		for range 20 {
			linktest.Write(r, igmp)
		}
		linktest.Write(r, igmp, igmp, igmp)
		if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[23 0 0]" {
			t.Errorf("packets_per_slave %d: IGMP went to %s", perSlave, got)
		}
		r.carrier("eth0", false)
		linktest.Write(r, igmp)
		linktest.Write(r, igmp)
		if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[0 2 0]" {
			t.Errorf("packets_per_slave %d: without eth0 IGMP went to %s", perSlave, got)
		}
		r.carrier("eth0", true) // the switch has learned the group on the other
		linktest.Write(r, igmp)
		if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[0 1 0]" {
			t.Errorf("packets_per_slave %d: with eth0 back IGMP went to %s", perSlave, got)
		}
	}
	r := newRig(t, bonding.Options{}, 2)
	linktest.Write(r, udp, igmp, udp, igmp, udp, igmp, udp)
	if got := fmt.Sprint(r.sent("eth0", "eth1")); got != "[5 2]" {
		t.Errorf("UDP among IGMP went to %s, want the turns 1, 0, 1, 0 and 3 IGMP on eth0", got)
	}
	mld := linktest.Flow6(1).IP(58, []byte{143, 0, 0, 0, 0, 0, 0, 0})
	linktest.Write(r, mld)
	linktest.Write(r, mld)
	if got := fmt.Sprint(r.sent("eth0", "eth1")); got != "[1 1]" {
		t.Errorf("MLD went to %s", got)
	}
}

// A list becomes one write a slave, in the order of the list (T70).
func TestRoundRobinWritesOnceASlave(t *testing.T) {
	r := newRig(t, bonding.Options{}, 4)
	r.numbered(100, 100)
	for i := range 4 {
		name := fmt.Sprintf("eth%d", i)
		if calls := r.links[name].Calls().Write; calls != 1 {
			t.Errorf("%s was written to %d times for one list", name, calls)
		}
		list := r.numbers(name)
		if len(list) != 25 {
			t.Errorf("%s was given %d of 100", name, len(list))
		}
		for k := 1; k < len(list); k++ {
			if list[k] != list[k-1]+4 {
				t.Errorf("%s was given %v", name, list)
				break
			}
		}
	}
}
