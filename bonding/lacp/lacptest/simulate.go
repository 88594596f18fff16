package lacptest

import (
	"fmt"
	"time"

	"bondstack/bonding/lacp"
)

// The bounds that Simulate holds a bond to.
const (
	// ConvergeBound is how long after the last fault all ports must work for
	// good. The slowest way: a side that was cabled to itself listens for 90 s,
	// or one notices only after 90 s that it was cut off; then one that has
	// given up its partner speaks each 30 s, and one that is told something new
	// waits 2 s; PDUs over the limit wait 1 s.
	ConvergeBound = lacp.LongTimeout + lacp.SlowPeriod + 2*lacp.AggregateWait + 5*time.Second
	// AgreeBound is how long two ends may send data in aggregators that are
	// not each other's: the long timeout, and the way of the last PDU.
	AgreeBound = lacp.LongTimeout + 5*time.Second
	// AgreeBoundFast is the same where both want a PDU each second; a PDU can
	// be on its way for more than two.
	AgreeBoundFast = lacp.ShortTimeout + 3*time.Second
)

// Simulation says what Simulate does. The zero value is ten hours with a fault
// each 20 minutes.
type Simulation struct {
	Faults time.Duration              // for how long there are faults; 0 is 10 h
	Every  time.Duration              // mean time between faults; 0 is 20 min
	Look   func(*lacp.System)         // called for each System at its end, if not nil
	Log    func(lacp.Instant, string) // called for each fault, if not nil
}

// Result is how a simulation went.
type Result struct {
	Ports     int
	Fast      bool
	Faults    int           // that were made
	PDUs      uint64        // that were sent
	Worst     time.Duration // longest disagreement of two ends
	Converged time.Duration // from the last fault until the last change
	Problems  []string      // what must not be; none is good
}

// Simulate runs one bond of 2 to 8 ports, both ends of it, from a seed: it has
// faults for a while, then none, and has to converge. All is the same again
// with the same seed. One bond in ten, of the seeds that end in 0, is fast.
func Simulate(seed uint64, o Simulation) Result {
	if o.Faults == 0 {
		o.Faults = 10 * time.Hour
	}
	if o.Every == 0 {
		o.Every = 20 * time.Minute
	}
	s := newBond(seed, o)
	s.nextFault()
	s.net.RunTo(o.Faults)
	s.healAll()
	healed := s.net.now
	s.net.RunTo(healed + ConvergeBound)
	if !s.converged() {
		s.problem("not converged %v after the last fault: %s", ConvergeBound, s.why())
	}
	s.result.Converged = max(0, s.a.Rang-healed, s.b.Rang-healed)
	s.net.Run(5 * time.Minute)
	if max(s.a.Rang, s.b.Rang) > healed+ConvergeBound {
		s.problem("changed after it had converged: %s", s.why())
	}
	s.finish()
	return s.result
}

// bond is a bond under simulation: a and b, whose ports are joined in order,
// and a stranger, to whom ports are cabled by mistake.
type bond struct {
	o       Simulation
	net     *Net
	a, b, c *Node
	cables  []*Cable // that of the ports i of a and b, if they are joined
	busy    []bool   // port i has a fault
	undo    map[int]func()
	undone  int
	configs [2]lacp.Config
	over    bool // no more faults
	result  Result
}

func newBond(seed uint64, o Simulation) *bond {
	n := NewNet(seed)
	s := &bond{o: o, net: n, undo: map[int]func(){}}
	s.result.Ports = 2 + n.Rand.IntN(7)
	s.result.Fast = seed%10 == 0
	n.Bound = AgreeBound
	if s.result.Fast {
		n.Bound = AgreeBoundFast
	}
	if n.Rand.IntN(2) == 0 {
		n.Late = 20 * time.Millisecond
	}
	passive := n.Rand.IntN(10) // one of two may be, not both
	for i := range s.configs {
		s.configs[i] = lacp.Config{
			System: lacp.MAC{2, 0, 0, 0, byte(seed), byte(i + 1)}, Fast: s.result.Fast, Passive: passive == i,
			Independent: n.Rand.IntN(3) == 0, Select: lacp.Policy(n.Rand.IntN(4)), Strict: n.Rand.IntN(4) == 0,
		}
	}
	s.a, s.b = n.NewNode("a", s.configs[0]), n.NewNode("b", s.configs[1])
	s.c = n.NewNode("c", lacp.Config{System: lacp.MAC{2, 0, 0, 0, byte(seed), 3}, Fast: s.result.Fast})
	for _, d := range []*Node{s.a, s.b, s.c} {
		d.arcs = o.Look
	}
	for range s.result.Ports {
		s.cables = append(s.cables, n.Join(s.a.AddPort(lacp.LinkState{Speed: 10000}), s.b.AddPort(lacp.LinkState{Speed: 10000})))
		s.c.AddPort(lacp.LinkState{Speed: 10000})
	}
	s.busy = make([]bool, s.result.Ports)
	return s
}

func (s *bond) converged() bool {
	for _, d := range []*Node{s.a, s.b} {
		for _, p := range d.Ports {
			if _, sends := d.Sys.Data(p.ID); !sends {
				return false
			}
		}
		for _, p := range d.Ports {
			if d.Port(p.ID).Fallback {
				return false
			}
		}
		if !d.Sys.Carrier() {
			return false
		}
	}
	return true
}

// why tells what hinders the ports that do not work.
func (s *bond) why() string {
	text := ""
	for _, d := range []*Node{s.a, s.b} {
		for _, p := range d.Ports {
			if _, sends := d.Sys.Data(p.ID); !sends {
				e, _ := d.Sys.Explain(s.net.now, p.ID)
				text += fmt.Sprintf("\n%s: %v", d.Name, e)
			}
		}
	}
	return text
}

func (s *bond) problem(format string, args ...any) {
	s.result.Problems = append(s.result.Problems, fmt.Sprintf(format, args...))
}

func (s *bond) finish() {
	s.net.Finish()
	s.result.Problems = append(s.result.Problems, s.net.Faults()...)
	s.result.PDUs, s.result.Worst = s.net.PDUs, s.net.Worst
	if s.o.Look != nil {
		for _, d := range []*Node{s.a, s.b, s.c} {
			s.o.Look(d.Sys)
		}
	}
}
