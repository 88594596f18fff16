package rlb

import (
	"net/netip"
	"runtime"
	"testing"
)

var netipZero = netip.AddrFrom4([4]byte{})

// talk has the host send packets to client n.
func (r *rig) talk(n int) {
	ip := clientIP(n).As4()
	r.Activity.Mark(ip[:])
}

// Must hold 6: a million made-up clients take no place of one that is talked
// with, nor memory.
func TestFlood(t *testing.T) {
	const clients, flood, pace = 8, 1_000_000, 1000
	r := newRig(t, 2, DefaultMaxClients)
	for n := range clients {
		r.reply(n)
		r.talk(n)
	}
	r.ticks(10)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	empty := heap()
	var most uint64
	frames := 0
	for i := range flood {
		r.reply(1000 + i)
		if i%pace == 0 { // 10,000 a second
			frames += len(r.Tick())
		}
		if i%(10*pace) == 0 {
			for n := range clients {
				r.talk(n)
			}
		}
		if i%(flood/8) == flood/16 {
			most = max(most, heap())
		}
	}
	check(t, r.Table)
	st := r.Stats()
	t.Logf("%d made-up clients: table %+v, %d updates, heap at most %d KiB above that before", flood, st, frames, (most-min(most, empty))/1024)
	if st.Clients > DefaultMaxClients || most > empty+4<<20 {
		t.Errorf("%d clients, %d bytes more than before", st.Clients, most-empty)
	}
	for n := range clients {
		if r.clients[key{ours: hostA, theirs: clientIP(n)}] == nil {
			t.Errorf("client %d has lost its place", n)
		}
	}
	told := map[netip.Addr]bool{}
	r.change(func(l *Links) { l.Slaves[1].CanSend = false })
	r.Lost(1)
	for range 60 {
		for _, u := range r.Tick() {
			p, _ := Parse(u.Frame)
			told[p.Target] = true
		}
	}
	for n := 1; n < clients; n += 2 {
		if !told[clientIP(n)] {
			t.Errorf("client %d is not told of its slave's loss", n)
		}
	}
}

// Who finds no room is not balanced, until somebody has been idle: a stranger
// for 5 s, a client for 5 minutes. Who makes room is told the bond's address.
func TestRoom(t *testing.T) {
	r := newRig(t, 2, 3)
	for n := 1; n <= 3; n++ {
		r.reply(n)
	}
	r.ticks(9)
	r.talk(2)
	r.ticks(1)
	if d := r.reply(4); d != (Decision{Slave: NoSlave}) {
		t.Errorf("full table: %+v", d)
	}
	r.ticks(39)
	if d := r.reply(4); d.Slave != NoSlave {
		t.Errorf("full table after 4.9 s: %+v", d)
	}
	r.ticks(1)
	r.reply(4)
	r.reply(5)
	r.want("strangers made room", r.where(), "2@1 4@1 5@0")
	r.want("they are told", r.ticks(50), "21:0>5 21:0>5 21:1>4 21:1>4")
	r.reply(4)
	r.reply(5)
	r.ticks(2900)
	r.reply(4)
	r.reply(5)
	if d := r.reply(6); d.Slave != NoSlave {
		t.Errorf("full table of clients: %+v", d)
	}
	r.ticks(20)
	r.reply(6)
	r.want("an idle client made room", r.where(), "4@1 5@0 6@1")
	r.want("and is told", r.ticks(1), "1:0>2 1:0>2")
	if st := r.Stats(); st != (Stats{Clients: 3, Max: 3, Refused: 3, Evicted: 3}) {
		t.Errorf("stats %+v", st)
	}
}
