package rlb

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

var (
	macA  = MAC{2, 0, 0, 0, 0, 0xa}
	macB  = MAC{2, 0, 0, 0, 0, 0xb}
	macC  = MAC{2, 0, 0, 0, 0, 0xc}
	hostA = netip.MustParseAddr("10.0.0.1")
	hostB = netip.MustParseAddr("10.0.0.2")
	host6 = netip.MustParseAddr("fd00::1")
)

// rig is a table with slaves 0, 1, 2 of the addresses A, B, C; 0 is active.
type rig struct {
	*Table
	t *testing.T
	l Links
}

func newRig(t *testing.T, slaves, clients int) *rig {
	r := &rig{Table: New(clients), t: t}
	r.l = Links{Active: 0, Bond: macA}
	for i := range slaves {
		r.l.Slaves = append(r.l.Slaves, Slave{ID: i, MAC: MAC{2, 0, 0, 0, 0, 0xa + byte(i)}, Weight: 1000, CanSend: true})
	}
	r.SetLinks(r.l)
	t.Cleanup(func() { check(t, r.Table) })
	return r
}

// change changes the links.
func (r *rig) change(f func(*Links)) {
	r.l.Slaves = append([]Slave(nil), r.l.Slaves...)
	f(&r.l)
	r.SetLinks(r.l)
}

// client n has the address 10.0.x.y, and a MAC address to match.
func clientIP(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(1 + n>>16), byte(n >> 8), byte(n)})
}
func clientMAC(n int) MAC { return MAC{4, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)} }

// reply has the host answer client n.
func (r *rig) reply(n int, tags ...Tag) Decision {
	p := Packet{Sender: hostA, SenderMAC: r.l.Bond, Target: clientIP(n), TargetMAC: clientMAC(n), senderAt: 22}
	copy(p.Tags[:], tags)
	return r.Send(&p)
}

// request has the host ask for client n, everybody or the client alone.
func (r *rig) request(n int, group bool) Decision {
	return r.Send(&Packet{Request: true, Group: group, Sender: hostA, SenderMAC: r.l.Bond, Target: clientIP(n), senderAt: 22})
}

// answer is client n's reply.
func (r *rig) answer(n int, mac MAC) bool {
	return r.Receive(&Packet{Sender: clientIP(n), SenderMAC: mac, Target: hostA, TargetMAC: r.l.Bond})
}

// ticks advances and returns the updates, as "tick:slave>client" with the tick
// counted from 1.
func (r *rig) ticks(n int) string {
	var told []string
	for i := range n {
		for _, u := range r.Tick() {
			p, ok := Parse(u.Frame)
			switch s := r.slave(u.Slave); {
			case !ok || p.Request || p.Sender != hostA:
				r.t.Errorf("update % x", u.Frame)
			case s.MAC != p.SenderMAC || MAC(u.Frame[6:]) != s.MAC || MAC(u.Frame) != p.TargetMAC:
				r.t.Errorf("update by %v under %v: % x", s.MAC, p.SenderMAC, u.Frame)
			}
			ip := p.Target.As4()
			told = append(told, fmt.Sprintf("%d:%d>%d", i+1, u.Slave, ip[3]))
		}
	}
	return strings.Join(told, " ")
}

func (r *rig) want(when, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// where returns the slave of each client, the oldest first.
func (r *rig) where() string {
	var list []string
	for _, c := range r.Clients(1 << 20) {
		ip := c.Theirs.As4()
		list = append([]string{fmt.Sprintf("%d@%d", ip[3], c.Slave)}, list...)
	}
	return strings.Join(list, " ")
}

// check holds the table against what must be true of it at any time.
func check(t testing.TB, tb *Table) {
	t.Helper()
	n, loads, ours := 0, make([]int, len(tb.links.Slaves)), map[netip.Addr]int{}
	var newer *client
	for c := tb.newest; c != nil; c = c.older {
		n++
		ours[c.ours]++
		if c.newer != newer || tb.clients[c.key] != c {
			t.Fatalf("client %v is linked wrongly", c.key)
		}
		newer = c
		for i := range tb.links.Slaves {
			if tb.links.Slaves[i].ID == c.slave {
				loads[i]++
			}
		}
		if c.tell && !tb.pending {
			t.Fatalf("client %v has to be told, and nobody does", c.key)
		}
	}
	if n != len(tb.clients) || n > tb.max || len(ours) != len(tb.ours) || tb.delay > longestDelay || tb.delay < 0 {
		t.Fatalf("%d clients listed, %d known, %d allowed; %d and %d own addresses; delay %d", n, len(tb.clients), tb.max, len(ours), len(tb.ours), tb.delay)
	}
	for a, k := range ours {
		if tb.ours[a].clients != k {
			t.Fatalf("%d clients of %v, counted %d", k, a, tb.ours[a].clients)
		}
	}
	for i := range loads {
		if loads[i] != tb.loads[i] {
			t.Fatalf("slave %d has %d clients, counted %d", i, loads[i], tb.loads[i])
		}
	}
}
