package lacp_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"bondstack/bonding/lacp"
)

// hostile are PDUs as a hostile partner makes them: random ones, and ones that
// differ from what the machines want in a little.
func hostile(r *rand.Rand, n int, actor lacp.Info) [][]byte {
	var list [][]byte
	for i := range n {
		if i%4 == 0 {
			b := make([]byte, r.IntN(200))
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			if len(b) > 0 {
				b[0] = byte(r.IntN(4))
			}
			list = append(list, b)
			continue
		}
		p := lacp.PDU{Version: 1, Partner: actor, Actor: lacp.Info{System: lacp.MAC{2, 9, byte(r.IntN(3))},
			Key: uint16(r.IntN(2)), Port: uint16(r.IntN(3)), State: lacp.State(r.Uint32())}}
		if r.IntN(4) == 0 { // says it is the true partner
			p.Actor.System, p.Actor.SystemPriority, p.Actor.Key = macB, 32768, 7
		}
		list = append(list, p.AppendTo(nil))
	}
	return list
}

// Ten thousand PDUs a second on one port, for a minute: the others go on, three
// PDUs a second leave, the data path is left alone.
func TestHostilePartner(t *testing.T) {
	for _, policy := range []lacp.Policy{lacp.Stable, lacp.Bandwidth, lacp.Count, lacp.PortPrio} {
		r := newRig(t, lacp.Config{Fast: true, Select: policy}, 4)
		r.partners[3].Silent = true
		r.RunTo(10 * time.Second)
		rng := rand.New(rand.NewPCG(1, uint64(policy)))
		list := hostile(rng, 1000, r.a.Port(4).Actor)
		rings, sent := r.a.Rings, len(r.partners[3].Heard)+r.partners[3].Markers
		seconds := 60
		if raceEnabled {
			seconds = 6
		}
		for i := range seconds * 1000 {
			for j := range 10 {
				r.a.Sys.Receive(r.Now(), 4, list[(i*10+j)%len(list)])
			}
			r.Run(ms)
			if !working(r.a, 1, 2, 3)() || !r.a.Sys.Carrier() {
				t.Fatalf("%v: the other ports do not work at %v", policy, r.Now())
			}
		}
		if n := len(r.partners[3].Heard) + r.partners[3].Markers - sent; n > 6*(seconds+1) {
			t.Errorf("%v: %d PDUs and marker responses in %d s", policy, n, seconds)
		}
		if n := r.a.Rings - rings; n > 10*seconds {
			t.Errorf("%v: the data path was rebuilt %d times in %d s", policy, n, seconds)
		}
	}
}

// sink is an Output that does nothing.
type sink struct{}

func (sink) Send(lacp.PortID, []byte) {}
func (sink) Changed(lacp.Changes)     {}

// busySystem is one of n ports that all have a partner.
func busySystem(tb testing.TB, n int) (*lacp.System, []byte) {
	s, err := lacp.New(lacp.Config{System: macA}, sink{})
	if err != nil {
		tb.Fatal(err)
	}
	var pdu lacp.PDU
	for i := range n {
		id := lacp.PortID(i + 1)
		if err := s.AddPort(0, lacp.PortConfig{Number: id, Link: lacp.LinkState{Up: true}}); err != nil {
			tb.Fatal(err)
		}
		st, _ := s.Port(id)
		pdu = lacp.PDU{Version: 1, Partner: st.Actor, Actor: lacp.Info{System: macB, Port: uint16(id), State: 0x3f}}
		pdu.Partner.State = 0x3d
		s.Receive(0, id, pdu.AppendTo(nil))
	}
	s.Advance(2 * time.Second)
	s.Receive(2*time.Second, lacp.PortID(n), pdu.AppendTo(nil))
	return s, pdu.AppendTo(nil)
}

// Neither true nor hostile PDUs, nor time, allocate.
func TestMachineAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s, good := busySystem(t, 8)
	bad := hostile(rand.New(rand.NewPCG(1, 1)), 100, lacp.Info{})
	now := 3 * time.Second
	if n := testing.AllocsPerRun(1000, func() {
		now += 10 * time.Millisecond
		s.Receive(now, 8, good)
		for _, b := range bad {
			s.Receive(now, 7, b)
		}
		s.Advance(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReceive(b *testing.B) {
	for _, ports := range []int{2, 8} {
		s, good := busySystem(b, ports)
		bad := hostile(rand.New(rand.NewPCG(1, 1)), 1000, lacp.Info{})
		name := map[int]string{2: "2ports", 8: "8ports"}[ports]
		b.Run("current/"+name, func(b *testing.B) {
			b.ReportAllocs()
			now := 3 * time.Second
			for b.Loop() {
				now += time.Microsecond
				s.Receive(now, lacp.PortID(ports), good)
			}
		})
		b.Run("hostile/"+name, func(b *testing.B) {
			b.ReportAllocs()
			now, i := 3*time.Second, 0
			for b.Loop() {
				now += time.Microsecond
				s.Receive(now, 1, bad[i%len(bad)])
				i++
			}
		})
	}
}
