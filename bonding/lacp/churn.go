package lacp

// runChurn runs the actor's or the partner's churn detection machine (IEEE
// 802.1AX, 6.4.17): a port that is not in sync for a minute has churned, which
// says that the two sides do not agree, without hindering them. state is the
// operational state whose synchronization is watched.
func (s *System) runChurn(p *port, m Machine, at *Instant, state State) {
	sync := state.Has(Synchronization)
	if !p.cfg.Link.Up || !p.lacpEnabled() {
		*at = Never
		if p.state[m] != ChurnMonitor {
			s.move(p, m, ChurnMonitor, "port is not enabled")
		}
		return
	}
	switch st := p.state[m]; {
	case sync && st != NoChurn:
		s.move(p, m, NoChurn, "in sync")
		*at = Never
	case !sync && st == NoChurn:
		s.move(p, m, ChurnMonitor, "sync lost")
		*at = s.now + ChurnTime
	case st == ChurnMonitor && *at == Never:
		*at = s.now + ChurnTime
	case st == ChurnMonitor && *at <= s.now:
		s.move(p, m, Churned, "no sync for 60 s")
		p.churns[m-ActorChurn]++
		*at = Never
	}
}
