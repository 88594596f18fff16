package lacp

// transmit sends a PDU if there is something to tell (IEEE 802.1AX, 6.4.16),
// and returns when it wants to run again. A PDU over the limit waits, and tells
// the state of the moment in which it is sent, so the last state is never lost.
func (s *System) transmit(p *port) Instant {
	if !p.ntt {
		return Never
	}
	if !s.talking(p) {
		p.ntt = false
		return Never
	}
	if !p.sent.allow(s.now) {
		return p.sent.from()
	}
	s.send(p)
	return Never
}

// send sends a PDU now.
func (s *System) send(p *port) {
	p.ntt = false
	p.sent.note(s.now)
	p.counters.LACPDUTx++
	pdu := PDU{Version: versionSent, Actor: p.actor, Partner: p.partner}
	pdu.emit(&s.frame)
	s.out.Send(p.id, s.frame[:])
}
