package lacp

import (
	"fmt"
	"time"
)

// Explanation says in words what a port does.
type Explanation struct {
	Port   PortID
	Sends  bool   // it distributes, or carries data as the fallback
	State  string // what it does, in a sentence
	Remedy string // what would make it distribute, empty if it does
}

// String returns the explanation in a line.
func (e Explanation) String() string {
	text := fmt.Sprintf("port %d %s", e.Port, e.State)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Explain tells why a port is or is not distributing, and what would make it.
// now is for what is a matter of time. It returns false if there is no such
// port.
func (s *System) Explain(now Instant, id PortID) (Explanation, bool) {
	p := s.port(id)
	if p == nil {
		return Explanation{}, false
	}
	e := Explanation{Port: id, Sends: p.transmit}
	for _, reason := range [...]func(*port, Instant) (string, string){
		s.explainSending, s.explainLink, s.explainDrain, s.explainPartner, s.explainAggregator, s.explainMux,
	} {
		if e.State, e.Remedy = reason(p, now); e.State != "" {
			break
		}
	}
	return e, true
}

func (s *System) explainSending(p *port, _ Instant) (state, remedy string) {
	switch {
	case p.fallback:
		return "carries all data without a partner (fallback), since no partner is heard on any port",
			"it distributes by LACP once a partner speaks"
	case p.transmit:
		return fmt.Sprintf("distributes: it is in sync with port %d of partner %v, in the active aggregator %d",
			p.partner.Port, p.partner.System, p.agg.id), ""
	}
	return "", ""
}

func (s *System) explainLink(p *port, now Instant) (state, remedy string) {
	switch {
	case !p.cfg.Link.Up:
		return "does not distribute: its link is down", "the link has to come up"
	case p.looped:
		return fmt.Sprintf("does not distribute: it hears PDUs of its own system %v, so there is a loop", s.cfg.System),
			fmt.Sprintf("cable it to a partner; it is tried again when nothing of the kind was heard for %v (%v from now), or when its link was down",
				LoopTime, left(p.loopUntil, now))
	case !p.lacpEnabled():
		return "does not distribute: its link is half duplex, on which LACP does not run", "the link has to be full duplex"
	}
	return "", ""
}

func (s *System) explainPartner(p *port, now Instant) (state, remedy string) {
	speak := "the partner has to send LACPDUs on this link"
	if s.cfg.Passive {
		speak = "the partner has to speak first, as this side is passive (lacp_active off)"
	}
	switch st := p.state[ReceiveMachine]; {
	case st == DefaultedState:
		return "does not distribute: no partner is heard (DEFAULTED)", speak
	case st == ExpiredState && p.partner.heard():
		return fmt.Sprintf("does not distribute: partner %v fell silent %v ago (EXPIRED)", p.partner.System, left(now, p.lastRx)),
			fmt.Sprintf("%s; it is given up in %v", speak, left(p.currentUntil, now))
	case st == ExpiredState:
		return "does not distribute: no LACPDU was received since the link came up (EXPIRED)", speak
	}
	return "", ""
}

func (s *System) explainAggregator(p *port, _ Instant) (state, remedy string) {
	if p.state[SelectionLogic] != Standby || s.active == nil {
		return "", ""
	}
	a, b := p.agg, s.active
	what := "partner"
	if a.partner.System == b.partner.System && a.partner.Key == b.partner.Key {
		what = "speed or user key"
	} else if a.partner.System == b.partner.System {
		what = "key of the partner"
	}
	return fmt.Sprintf("does not distribute: its aggregator %d (key %d, partner %v key %d) is not the active one, which is %d (key %d, partner %v key %d)",
			a.id, a.key, a.partner.System, a.partner.Key, b.id, b.key, b.partner.System, b.partner.Key),
		fmt.Sprintf("ports work together with the same key and the same partner with the same key, and here the %s differs; or aggregator %d has to win by ad_select %v",
			what, a.id, s.cfg.Select)
}

func (s *System) explainMux(p *port, now Instant) (state, remedy string) {
	switch p.state[MuxMachine] {
	case Waiting:
		if p.waitUntil > now {
			return "does not distribute yet: it waits for other ports to attach together (WAITING)",
				fmt.Sprintf("it attaches in %v", left(p.waitUntil, now))
		}
		return "does not distribute yet: it waits for a port of its aggregator that came up after it (WAITING)",
			fmt.Sprintf("it attaches within %v", AggregateWait)
	case Attached:
		return s.explainSync(p, now)
	case CollectingState:
		return "collects and does not distribute: the partner does not collect, and control is independent (coupled_control off)",
			"the partner has to set its collecting bit"
	}
	return "does not distribute: it is " + MuxMachine.StateName(p.state[MuxMachine]), "wait"
}

// explainSync tells why the partner does not count as in sync.
func (s *System) explainSync(p *port, now Instant) (state, remedy string) {
	who := fmt.Sprintf("port %d of partner %v", p.partner.Port, p.partner.System)
	switch {
	case p.partner.State.Has(Synchronization):
		return "does not distribute: the partner's sync flickers, and data starts three times a second at most",
			fmt.Sprintf("it distributes in %v", left(p.starts.from(), now))
	case p.claimed.Has(Aggregation) && !p.view.sameEnd(&p.actor):
		return fmt.Sprintf("does not distribute: %s takes this port for %s, and it is %s", who, end(&p.view), end(&p.actor)),
			"the partner has to receive our PDUs: look for a link that is cut one way, or for a third system on it"
	}
	return fmt.Sprintf("does not distribute: %s is not in sync: it has not put its port into an aggregator", who),
		"look at the partner: the port has to be in the same channel as those that work, with the same speed and key"
}

// end describes one end of a link.
func end(i *Info) string {
	return fmt.Sprintf("system %v priority %d, key %d, port %d priority %d", i.System, i.SystemPriority, i.Key, i.Port, i.PortPriority)
}

// left is the time from b to a, for people.
func left(a, b Instant) time.Duration { return max(0, a-b).Round(time.Millisecond) }
