package lacp

// runPeriodic runs the periodic transmission machine (IEEE 802.1AX, 6.4.13).
// The period is what the partner asks for. In EXPIRED the partner counts as
// asking for the short one, and a default partner asks for the long one.
func (s *System) runPeriodic(p *port) {
	if !p.cfg.Link.Up || !p.lacpEnabled() || (p.actor.State|p.partner.State)&Activity == 0 {
		s.stopPeriodic(p, "")
		return
	}
	short := p.partner.State.Has(Timeout)
	for {
		switch st := p.state[PeriodicMachine]; {
		case st == NoPeriodic:
			s.periodicTo(p, FastPeriodic, s.now+FastPeriod)
		case st == FastPeriodic && !short:
			s.periodicTo(p, SlowPeriodic, s.now+SlowPeriod)
		case st == SlowPeriodic && short, st != PeriodicTx && p.periodicAt <= s.now:
			s.periodicTo(p, PeriodicTx, Never)
			p.ntt = true
		case st != PeriodicTx:
			return
		case short:
			s.periodicTo(p, FastPeriodic, s.now+FastPeriod)
		default:
			s.periodicTo(p, SlowPeriodic, s.now+SlowPeriod)
		}
	}
}

func (s *System) periodicTo(p *port, to MachineState, at Instant) {
	s.move(p, PeriodicMachine, to, "")
	p.periodicAt = at
}

func (s *System) stopPeriodic(p *port, why string) {
	p.periodicAt = Never
	if p.state[PeriodicMachine] != NoPeriodic {
		s.move(p, PeriodicMachine, NoPeriodic, why)
	}
}

// talking reports whether the port may send at all: the standard silences a
// port in NO_PERIODIC (6.4.16), so one that is passive does not speak first.
func (s *System) talking(p *port) bool { return p.state[PeriodicMachine] != NoPeriodic }
