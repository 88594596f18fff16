package rlb

import (
	"math/rand/v2"
	"testing"
)

// T146: replies to four clients leave by the slaves in turn, each under its
// slave's address.
func TestRepliesInTurn(t *testing.T) {
	r := newRig(t, 2, 8)
	for n := 1; n <= 4; n++ {
		d := r.reply(n)
		want := Decision{Slave: (n - 1) % 2, MAC: macA}
		if want.Slave == 1 {
			want.MAC, want.Rewrite = macB, true
		}
		if d != want {
			t.Errorf("reply %d: %+v, want %+v", n, d, want)
		}
		if again := r.reply(n); again != want {
			t.Errorf("reply %d again: %+v, want %+v", n, again, want)
		}
	}
	r.want("first tick", r.ticks(1), "1:1>4 1:1>4 1:0>3 1:0>3 1:1>2 1:1>2 1:0>1 1:0>1")
	r.want("then", r.ticks(100), "")
}

// An ARP request goes under the bond's address, and those who have another one
// are told two seconds after the last one; its own client once it has answered.
func TestRequests(t *testing.T) {
	r := newRig(t, 2, 8)
	for n := 1; n <= 3; n++ {
		r.reply(n)
	}
	r.ticks(30)
	if d := r.request(4, true); d != (Decision{Slave: 1, MAC: macB}) {
		t.Errorf("request: %+v", d)
	}
	r.want("after a request", r.ticks(20), "")
	r.want("2 s after it", r.ticks(30), "1:1>2 1:1>2")
	if r.answer(4, clientMAC(4)) {
		t.Error("a client's address taken for ours")
	}
	r.want("after the answer", r.ticks(30), "21:1>4 21:1>4")
	r.want("where", r.where(), "1@0 2@1 3@0 4@1")

	// Asked alone, others learn nothing.
	r.request(2, false)
	r.answer(2, clientMAC(2))
	r.want("asked alone", r.ticks(50), "21:1>2 21:1>2")
	// A client that has not answered keeps its place and its address.
	r.request(3, false)
	r.change(func(l *Links) { l.Slaves[0].CanSend = false })
	r.Lost(0)
	r.want("silent client", r.ticks(21), "21:1>3 21:1>3 21:1>1 21:1>1")
}

// Requests every half second do not put off an update for ever.
func TestRequestsDoNotStarveUpdates(t *testing.T) {
	r := newRig(t, 2, 8)
	r.reply(1)
	r.reply(2)
	r.ticks(30)
	told := 0
	for range 40 {
		r.request(9, true)
		if r.ticks(5) != "" {
			told++
		}
	}
	if told < 3 {
		t.Errorf("told %d times in 20 s of requests", told)
	}
}

// A client that changed its address is told at the new one.
func TestClientMoves(t *testing.T) {
	r := newRig(t, 2, 8)
	r.reply(1)
	r.ticks(30)
	r.answer(1, clientMAC(7))
	if c := r.Clients(1)[0]; c.MAC != clientMAC(7) {
		t.Errorf("client has %v", c.MAC)
	}
	r.want("told", r.ticks(30), "21:0>1 21:0>1")
	r.answer(1, clientMAC(7))
	r.want("an answer with nothing new", r.ticks(50), "")
}

// A lost slave's clients go to the others in turn, and are told in four rounds.
func TestLost(t *testing.T) {
	r := newRig(t, 3, 8)
	for n := 1; n <= 6; n++ {
		r.reply(n)
	}
	r.ticks(30)
	r.want("before", r.where(), "1@0 2@1 3@2 4@0 5@1 6@2")
	r.change(func(l *Links) { l.Slaves[2].CanSend = false })
	r.Lost(2)
	r.want("lost", r.where(), "1@0 2@1 3@1 4@0 5@1 6@0")
	r.want("told", r.ticks(100), "21:0>6 21:0>6 21:1>3 21:1>3 42:0>6 42:0>6 42:1>3 42:1>3 63:0>6 63:0>6 63:1>3 63:1>3 84:0>6 84:0>6 84:1>3 84:1>3")
	r.change(func(l *Links) { l.Slaves[2].CanSend = true })
	r.Rebalance()
	r.ticks(1)
	for id := range 3 {
		if n := r.Load(id); n != 2 {
			t.Errorf("slave %d has %d clients after rebalancing", id, n)
		}
	}
}

// Without a slave clients have none; they get one when it comes.
func TestAllLost(t *testing.T) {
	r := newRig(t, 2, 8)
	r.reply(1)
	r.ticks(30)
	r.change(func(l *Links) {
		l.Slaves[0].CanSend, l.Slaves[1].CanSend, l.Active = false, false, NoSlave
	})
	r.Lost(0)
	r.Lost(1)
	r.want("lost", r.where(), "1@-1")
	if d := r.reply(2); d.Slave != NoSlave {
		t.Errorf("reply without slaves: %+v", d)
	}
	r.want("nobody is told", r.ticks(30), "")
	r.change(func(l *Links) { l.Slaves[1].CanSend, l.Active = true, 1 })
	r.Rebalance()
	r.want("told", r.ticks(30), "21:1>1 21:1>1")
}

// A slave that left is forgotten, also as the one chosen last.
func TestLeft(t *testing.T) {
	r := newRig(t, 2, 8)
	r.reply(1)
	r.reply(2)
	r.ticks(30)
	r.change(func(l *Links) { l.Slaves = l.Slaves[:1] })
	r.Lost(1)
	r.want("left", r.where(), "1@0 2@0")
	r.want("told", r.ticks(30), "21:0>2 21:0>2")
}

// Slaves of unequal weight get clients in proportion.
func TestWeights(t *testing.T) {
	r := newRig(t, 3, 1024)
	r.change(func(l *Links) { l.Slaves[0].Weight, l.Slaves[1].Weight, l.Slaves[2].Weight = 1000, 4000, 4000 })
	for n := range 900 {
		r.reply(n)
	}
	for id, want := range []int{100, 400, 400} {
		if got := r.Load(id); got != want {
			t.Errorf("slave %d has %d clients, want %d", id, got, want)
		}
	}
}

// A52: what is not ours is left alone.
func TestOnlyOurs(t *testing.T) {
	r := newRig(t, 2, 8)
	r.reply(1)
	for _, p := range []Packet{
		{Sender: hostB, SenderMAC: clientMAC(3), Target: clientIP(2), TargetMAC: clientMAC(2), senderAt: 22},
		{Request: true, Sender: hostB, SenderMAC: clientMAC(3), Target: clientIP(2), Group: true, senderAt: 22},
		{Request: true, Sender: clientIP(0).Next().Prev(), SenderMAC: MAC{}, Target: clientIP(2), senderAt: 22},
		{Request: true, Sender: netipZero, SenderMAC: macA, Target: hostA, Group: true, senderAt: 22}, // a probe
		{Request: true, Sender: hostA, SenderMAC: macA, Target: hostA, Group: true, senderAt: 22},     // an announcement
		{Sender: hostA, SenderMAC: macA, Target: hostA, TargetMAC: broadcast, Group: true, senderAt: 22},
	} {
		if d := r.Send(&p); d != (Decision{Slave: NoSlave}) {
			t.Errorf("%+v: %+v", p, d)
		}
	}
	if n := r.Stats().Clients; n != 1 {
		t.Errorf("%d clients", n)
	}
}

// Whoever else has our address takes its clients, if it is ours no more.
func TestMoved(t *testing.T) {
	r := newRig(t, 2, 8)
	r.reply(1)
	r.reply(2)
	claim := Packet{Request: true, Group: true, Sender: hostA, SenderMAC: clientMAC(9), Target: clientIP(1)}
	if !r.Receive(&claim) {
		t.Error("claim not seen")
	}
	ours := claim
	ours.SenderMAC = macB
	if r.Receive(&ours) {
		t.Error("our own frame that comes back is a claim")
	}
	claim.Sender = hostB
	if r.Receive(&claim) {
		t.Error("a foreign address claimed")
	}
	r.Forget(hostA, macA)
	r.want("under the same address", r.where(), "1@0 2@1")
	r.Forget(hostA, clientMAC(9))
	r.want("moved", r.where(), "")
}

// T148: clients behind VLANs are told under their tags, and forgotten with the
// VLAN.
func TestTags(t *testing.T) {
	r := newRig(t, 2, 8)
	one, two := Tag{typeSVLN, 1}, Tag{typeVLAN, 2}
	r.reply(1, one, two)
	r.reply(1)
	for _, u := range r.Tick() {
		p, _ := Parse(u.Frame)
		if want := map[int]Tags{0: {one, two}, 1: {}}[u.Slave]; p.Tags != want {
			t.Errorf("update by slave %d has tags %v, want %v", u.Slave, p.Tags, want)
		}
	}
	r.ForgetVLAN(Tag{typeVLAN, 2})
	r.want("inner tag", r.where(), "1@0 1@1")
	r.ForgetVLAN(one)
	r.want("outer tag", r.where(), "1@1")
}

// Random events leave the table in order, and never with more clients than
// allowed.
func TestRandom(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, 3, 16)
		for range 3000 {
			n := rnd.IntN(40)
			switch rnd.IntN(10) {
			case 0, 1:
				r.reply(n)
			case 2:
				r.request(n, rnd.IntN(2) == 0)
			case 3:
				r.answer(n, clientMAC(rnd.IntN(50)))
			case 4:
				id := rnd.IntN(3)
				r.change(func(l *Links) { l.Slaves[id].CanSend = !l.Slaves[id].CanSend })
				if r.l.Slaves[id].CanSend {
					r.Rebalance()
				} else {
					r.Lost(id)
				}
			case 5:
				r.Announce(rnd.IntN(3))
			case 6:
				r.Forget(hostA, MAC{9})
			case 7:
				for range rnd.IntN(100) {
					r.Tick()
				}
			default:
				ip := clientIP(n).As4()
				r.Activity.Mark(ip[:])
				r.Tick()
			}
			check(t, r.Table)
		}
	}
}
