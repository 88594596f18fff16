package lacptest

import (
	"fmt"
	"slices"
	"time"

	"bondstack/bonding/lacp"
)

// nextFault has a fault made after a time, and so on.
func (s *bond) nextFault() {
	wait := time.Duration(s.net.Rand.ExpFloat64() * float64(s.o.Every))
	s.net.At(s.net.now+wait, func() {
		if s.over {
			return
		}
		s.inject()
		s.nextFault()
	})
}

// inject makes a random fault, on a random port that has none. Its end is drawn
// too: between a second and ten minutes, short ones being as likely as long
// ones.
func (s *bond) inject() {
	i := s.free()
	if i < 0 {
		return
	}
	faults := [...]struct {
		name string
		make func(i int) (undo func())
	}{
		{"carrier lost", s.carrier}, {"cut one way", s.cutOneWay}, {"cut both ways", s.cutBothWays},
		{"impaired", s.impair}, {"restarted", s.restart}, {"cables swapped", s.swap},
		{"cabled to a stranger", s.stranger}, {"cabled to itself", s.loop}, {"speed changed", s.speed},
		{"removed and added", s.again}, {"settings changed", s.settings}, {"flapping", s.flap},
	}
	f := faults[s.net.Rand.IntN(len(faults))]
	s.result.Faults++
	if s.o.Log != nil {
		s.o.Log(s.net.now, fmt.Sprintf("port %d: %s", i+1, f.name))
	}
	undo := f.make(i)
	if undo == nil {
		return
	}
	s.busy[i] = true
	key := s.undone
	s.undone++
	s.undo[key] = func() { s.busy[i] = false; undo() }
	long := time.Second << s.net.Rand.IntN(10)
	s.net.At(s.net.now+long+time.Duration(s.net.Rand.Int64N(int64(time.Second))), func() { s.heal(key) })
}

func (s *bond) heal(key int) {
	if undo := s.undo[key]; undo != nil {
		delete(s.undo, key)
		if s.o.Log != nil {
			s.o.Log(s.net.now, "a fault ends")
		}
		undo()
	}
}

func (s *bond) healAll() {
	s.over = true
	keys := make([]int, 0, len(s.undo))
	for key := range s.undo {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		s.heal(key)
	}
}

// free is a port without a fault, or -1.
func (s *bond) free() int {
	for range 4 {
		if i := s.net.Rand.IntN(len(s.busy)); !s.busy[i] {
			return i
		}
	}
	return -1
}

func (s *bond) coin() bool { return s.net.Rand.IntN(2) == 0 }

// either is one of the two ends.
func (s *bond) either() (*Node, int) {
	if s.coin() {
		return s.a, 0
	}
	return s.b, 1
}

// home joins port i as it should be. The ports notice or not.
func (s *bond) home(i int, noticed bool) {
	s.join(i, &s.a.Ports[i].Port, &s.b.Ports[i].Port, noticed)
}

func (s *bond) join(i int, a, b *Port, noticed bool) {
	if noticed {
		for _, p := range [...]*Port{a, b} {
			if p.cable != nil {
				p.cable.Pull()
			}
		}
	}
	s.cables[i] = s.net.Join(a, b)
}

func (s *bond) carrier(i int) func() {
	s.cables[i].SetUp(false)
	return func() { s.cables[i].SetUp(true) }
}

func (s *bond) flap(i int) func() {
	for range 10 {
		s.cables[i].SetUp(false)
		s.cables[i].SetUp(true)
	}
	return nil
}

func (s *bond) cutOneWay(i int) func() {
	s.cables[i].Ways[s.net.Rand.IntN(2)].Cut = true
	return func() { s.cables[i].Ways = [2]Way{} }
}

func (s *bond) cutBothWays(i int) func() {
	s.cables[i].Ways = [2]Way{{Cut: true}, {Cut: true}}
	return func() { s.cables[i].Ways = [2]Way{} }
}

func (s *bond) impair(i int) func() {
	r := s.net.Rand
	for w := range s.cables[i].Ways {
		s.cables[i].Ways[w] = Way{Loss: r.Float64() / 2, Duplicate: r.Float64() / 4,
			Delay: time.Duration(r.IntN(200)) * time.Millisecond, Jitter: time.Duration(1+r.IntN(2000)) * time.Millisecond}
	}
	return func() { s.cables[i].Ways = [2]Way{} }
}

func (s *bond) restart(int) func() {
	d, _ := s.either()
	d.Restart(s.coin())
	return nil
}

func (s *bond) again(i int) func() {
	d, _ := s.either()
	d.Again(d.Ports[i])
	return nil
}

// swap crosses the cables of two ports.
func (s *bond) swap(i int) func() {
	j := s.free()
	if j < 0 || j == i {
		return nil
	}
	s.busy[j] = true
	noticed, after := s.coin(), s.coin()
	s.join(i, &s.a.Ports[i].Port, &s.b.Ports[j].Port, noticed)
	s.join(j, &s.a.Ports[j].Port, &s.b.Ports[i].Port, noticed)
	return func() {
		s.busy[j] = false
		s.home(i, after)
		s.home(j, after)
	}
}

// stranger cables one end of a cable to a third system.
func (s *bond) stranger(i int) func() {
	d, _ := s.either()
	s.join(i, &d.Ports[i].Port, &s.c.Ports[i].Port, s.coin())
	after := s.coin()
	return func() { s.home(i, after) }
}

// loop cables two ports of one end to each other; the other end's have nothing.
func (s *bond) loop(i int) func() {
	j := s.free()
	if j < 0 || j == i {
		return nil
	}
	s.busy[j] = true
	d, _ := s.either()
	s.join(i, &d.Ports[i].Port, &d.Ports[j].Port, s.coin())
	after := s.coin()
	return func() {
		s.busy[j] = false
		s.home(i, after)
		s.home(j, after)
	}
}

// speed changes that of one end or of both.
func (s *bond) speed(i int) func() {
	to := lacp.LinkState{Speed: []uint32{0, 1000, 25000}[s.net.Rand.IntN(3)], Half: s.net.Rand.IntN(4) == 0}
	d, _ := s.either()
	d.SetLink(d.Ports[i], to)
	if s.coin() {
		s.a.SetLink(s.a.Ports[i], to)
		s.b.SetLink(s.b.Ports[i], to)
	}
	return func() {
		s.a.SetLink(s.a.Ports[i], lacp.LinkState{Speed: 10000})
		s.b.SetLink(s.b.Ports[i], lacp.LinkState{Speed: 10000})
	}
}

// settings changes those of one end.
func (s *bond) settings(int) func() {
	d, n := s.either()
	c := s.configs[n]
	r := s.net.Rand
	switch r.IntN(4) {
	case 0:
		c.Passive = !c.Passive
	case 1:
		c.Independent = !c.Independent
	case 2:
		c.SystemPriority = uint16(1 + r.IntN(1000))
	case 3:
		c.Select = lacp.Policy(r.IntN(4))
	}
	d.SetConfig(c)
	return func() { d.SetConfig(s.configs[n]) }
}
