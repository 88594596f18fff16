package bonding

import (
	"fmt"
	"math"
)

// FlowShare is how many of the flows that a bond sends change their slave.
type FlowShare struct {
	// Moved is the share, 0 to 1; nil where no flow is bound to a slave.
	Moved *float64 `json:"moved"`
	// Method is how it was found: hash (counted over the values of the hash),
	// rehash (the policy is another, so by the slaves' shares), active (all or
	// none), load (flows are placed by load: those of slaves that go) or none.
	Method string `json:"method"`
}

// String says it in words.
func (f FlowShare) String() string {
	switch {
	case f.Moved == nil:
		return "no flow is bound to a slave, or all are placed anew"
	case f.Method == "load":
		return fmt.Sprintf("about %.1f %% of the flows move at once; later the load decides", *f.Moved*100)
	default:
		return fmt.Sprintf("%.1f %% of the flows move", *f.Moved*100)
	}
}

// hashes is over how many values of the hash flows are counted: consecutive
// ones, which both maps spread evenly.
const hashes = 1 << 18

// moved compares two spreads. It needs no lock.
func (sp *spreading) moved(to *spreading) FlowShare {
	if sp.config.mode != to.config.mode {
		return FlowShare{Method: "none"}
	}
	share := func(method string, v float64) FlowShare {
		v = math.Round(v*1e4) / 1e4
		return FlowShare{&v, method}
	}
	switch m := sp.config.mode; {
	case m == ActiveBackup:
		if sp.active != to.active {
			return share("active", 1)
		}
		return share("active", 0)
	case m == BalanceRR, m == Broadcast:
		return FlowShare{Method: "none"}
	case len(sp.usable) == 0:
		return share("hash", 0) // nothing was sent that could move
	case len(to.usable) == 0:
		return share("hash", 1)
	case m == BalanceALB, m == BalanceTLB && (!sp.config.tlbStatic || !to.config.tlbStatic):
		return share("load", sp.gone(to))
	case sp.config.policy != to.config.policy:
		return share("rehash", 1-sp.meets(to))
	}
	moved := 0
	for h := range uint32(hashes) {
		if sp.pick(h) != to.pick(h) {
			moved++
		}
	}
	return share("hash", float64(moved)/hashes)
}

func (sp *spreading) pick(hash uint32) *slave {
	if sp.table != nil {
		return sp.usable[sp.table.Index(hash)]
	}
	return sp.usable[hash%uint32(len(sp.usable))]
}

// gone is the share of slaves that send no more.
func (sp *spreading) gone(to *spreading) float64 {
	stay := map[*slave]bool{}
	for _, s := range to.usable {
		stay[s] = true
	}
	n := 0
	for _, s := range sp.usable {
		if !stay[s] {
			n++
		}
	}
	return float64(n) / float64(len(sp.usable))
}

// meets is how often two hashes that know nothing of each other pick the same
// slave.
func (sp *spreading) meets(to *spreading) float64 {
	was, is := sp.shares(), to.shares()
	sum := 0.0
	for s, p := range was {
		sum += p * is[s]
	}
	return sum
}

func (sp *spreading) shares() map[*slave]float64 {
	m := map[*slave]float64{}
	for h := range uint32(hashes) {
		m[sp.pick(h)]++
	}
	for s := range m {
		m[s] /= hashes
	}
	return m
}
