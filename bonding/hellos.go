package bonding

import (
	"sync"
	"sync/atomic"
	"time"

	"bondstack/bonding/echo"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// hellos is probe_interval of a bond: the monitor of package echo, its timer, and
// its frames. It has a lock and a timer of its own, since a hello that comes late
// looks like a failure at the other end, and the bond's lock may be held over a
// slow setter of an endpoint. Bond.mu is taken before mu, never after.
type hellos struct {
	bond *Bond

	mu      sync.Mutex
	monitor *echo.Monitor // nil: stopped
	ports   map[echo.PortID]*helloPort
	timer   tcpip.Timer
	out     []helloFrame // what the monitor wants sent
}

// helloPort is a slave as a port of the monitor.
type helloPort struct {
	slave   *slave
	source  tcpip.LinkAddress // of its hellos
	random  tcpip.LinkAddress // a source that nobody else has
	verdict echo.Verdict      // as the bond was told
}

// helloFrame is a hello on its way out.
type helloFrame struct {
	slave *slave
	frame []byte
}

// helloSlave is what a slave keeps for its hellos.
type helloSlave struct {
	limit controlLimiter
	busy  atomic.Bool // one is being written
}

var _ echo.Output = (*hellos)(nil)

// maxProbeInterval is the greatest value of probe_interval, in milliseconds.
const maxProbeInterval = 60000

// helloGroup48 is the destination of hellos, packed.
var helloGroup48 = mac48([]byte(echo.Group))

func (s *slave) portID() echo.PortID { return echo.PortID(s.slot + 1) }

// updateHellos starts and ends the hellos with the bond and the option, tells the
// monitor of the slaves, and takes over what it says of them.
func (b *Bond) updateHellos(now instant) {
	c := echo.Config{Interval: b.config.probeInterval, Missed: int(b.config.probeMissedMax)}
	want := c.Interval > 0 && b.dispatcher != nil && !b.closed
	if h := b.hellos; h != nil && (!want || h.config != c) {
		b.stopHellos(now)
	}
	if want && b.hellos == nil {
		b.startHellos(c)
	}
	if b.hellos != nil {
		b.hellos.syncPorts(now)
		b.takeHelloVerdicts(now)
	}
}

// helloSet is the hellos of a bond with the settings that they were made for.
type helloSet struct {
	*hellos
	config echo.Config // without a system
}

func (b *Bond) startHellos(c echo.Config) {
	h := &hellos{bond: b, ports: map[echo.PortID]*helloPort{}}
	with := c
	with.System = b.options.Rand() | 1
	m, err := echo.New(with, h)
	if err != nil {
		b.warn("probe_interval does not start: %v", err) // the options were checked when they were set
		return
	}
	h.monitor = m
	b.hellos, b.dirty = &helloSet{h, c}, true
	for _, s := range b.slaves {
		s.verdicts[monitorProbe] = noOpinion
	}
	h.mu.Lock()
	h.timer = b.clock.AfterFunc(0, h.tick)
	h.mu.Unlock()
}

// stopHellos says farewell on every port.
func (b *Bond) stopHellos(now instant) {
	h := b.hellos
	h.mu.Lock()
	for id := range h.ports {
		h.monitor.RemovePort(time.Duration(now), id)
	}
	h.monitor = nil
	h.timer.Stop()
	h.sendLater()
	h.mu.Unlock()
	b.hellos, b.dirty = nil, true
	for _, s := range b.slaves {
		s.verdicts[monitorProbe] = noOpinion
		if b.config.monitors() == 0 && s.link == linkDown && s.usable() {
			b.propose(s, linkUp, now) // nobody else will find it up
		}
	}
}

// syncPorts tells the monitor of slaves that came, left, or have another link.
func (h *hellos) syncPorts(now instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := time.Duration(now)
	for id, p := range h.ports {
		if p.slave.released {
			h.monitor.RemovePort(at, id)
			delete(h.ports, id)
		}
	}
	for _, s := range h.bond.slaves {
		id := s.portID()
		p := h.ports[id]
		if p == nil {
			p = &helloPort{slave: s, random: randomAddress(h.bond.options.Rand)}
			h.ports[id] = p
			h.monitor.AddPort(at, id, h.bond.options.Rand()|1)
		}
		p.source = h.bond.helloSource(s, p.random)
		// Another monitor takes its time to give up a link without a carrier. On
		// their own, hellos know at once that nothing can be heard there.
		waits := s.link != linkDown && h.bond.config.period() != 0
		h.monitor.SetLink(at, id, !s.disabled && (s.state.Usable() || waits))
	}
	h.sendLater()
}

// helloSource is the address that a slave's hellos come from. It must not be the
// bond's on a slave that is not to receive for the bond: a switch would learn it
// there.
func (b *Bond) helloSource(s *slave, random tcpip.LinkAddress) tcpip.LinkAddress {
	switch {
	case s.mac != b.mac:
		return s.mac
	case s == b.active || !b.config.mode.info().primary:
		return b.mac
	case s.permMAC != b.mac && checkAddress(s.permMAC) == nil:
		return s.permMAC
	}
	return random
}

// takeHelloVerdicts judges the slaves by what the monitor says. Who is disabled
// by hand, or was found gone by a write, is not judged.
func (b *Bond) takeHelloVerdicts(now instant) {
	for _, s := range b.slaves {
		verdict, heard := b.hellos.verdictOf(s)
		says := noOpinion
		switch {
		case s.disabled || s.goneUntil != 0:
			continue
		case verdict.Down():
			says = linkDown
		case verdict == echo.Alive:
			says = linkUp
		}
		if says == s.verdicts[monitorProbe] {
			continue
		}
		if says == linkDown && s.usable() {
			s.loss.at = heard
		}
		b.judge(s, monitorProbe, says, now)
	}
}

// verdictOf returns what the monitor says of a slave, and when it last heard
// anything.
func (h *hellos) verdictOf(s *slave) (echo.Verdict, instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.ports[s.portID()]
	p.verdict = h.monitor.Verdict(s.portID())
	return p.verdict, instant(h.monitor.HeardAt(s.portID()))
}

// tick is the timer: it sends the hellos that are due, and looks who is missed.
func (h *hellos) tick() {
	h.mu.Lock()
	if h.monitor == nil {
		h.mu.Unlock()
		return
	}
	now := h.bond.now()
	h.monitor.Advance(time.Duration(now))
	next := now.add(h.monitor.Config().Interval)
	if at, ok := h.monitor.Deadline(); ok {
		next = instant(at)
	}
	h.timer = h.bond.clock.AfterFunc(time.Duration(max(next-now, 1)), h.tick)
	out, news := h.out, h.news()
	h.out = nil
	h.mu.Unlock()
	h.write(out)
	if news {
		h.bond.control(func(instant) {})
	}
}

// news reports whether the monitor says other things than the bond was told.
func (h *hellos) news() bool {
	for id, p := range h.ports {
		if h.monitor.Verdict(id) != p.verdict {
			return true
		}
	}
	return false
}

// Received implements echo.Output.
func (h *hellos) Received(id echo.PortID) uint64 {
	return h.ports[id].slave.counters.frames()
}

// Send implements echo.Output. A hello is padded to the least size of a frame.
func (h *hellos) Send(id echo.PortID, pdu []byte) {
	p := h.ports[id]
	frame := make([]byte, max(ethernetHeader+len(pdu), 60))
	header.Ethernet(frame).Encode(&header.EthernetFields{SrcAddr: p.source, DstAddr: echo.Group, Type: echo.EtherType})
	copy(frame[ethernetHeader:], pdu)
	h.out = append(h.out, helloFrame{p.slave, frame})
}

// sendLater has what is to be sent written when Bond.mu, which is held, is free.
func (h *hellos) sendLater() {
	if out := h.out; len(out) > 0 {
		h.out = nil
		h.bond.later(func() { h.write(out) })
	}
}

// helloTries is how often a hello is tried, a millisecond apart, on a slave that
// has no room.
const helloTries = 4

func (h *hellos) write(out []helloFrame) {
	for _, f := range out {
		f.slave.sendHello(f.frame, helloTries)
	}
}

// sendHello writes a hello. While the one before it is stuck in the slave's
// endpoint, it is left out.
func (s *slave) sendHello(frame []byte, tries int) {
	if !s.hello.busy.CompareAndSwap(false, true) {
		return
	}
	defer s.hello.busy.Store(false)
	switch err := s.writeControl(frame); {
	case err == nil:
	case tries > 1 && dropReasonOf(err) == dropTxNoBuffer:
		s.bond.clock.AfterFunc(controlWait, func() { s.sendHello(frame, tries-1) })
	default:
		s.counters.drop(dropReasonOf(err), 1)
	}
}

// receive takes in a frame of a slave that may be a hello, and reports whether it
// was one.
func (h *hellos) receive(s *slave, eth []byte, pkt *stack.PacketBuffer) (consumed bool) {
	if mac48(eth) != helloGroup48 {
		return false
	}
	now := h.bond.now()
	if !s.hello.limit.allow(now, helloFrames) {
		s.counters.drop(dropRxControlFlood, 1)
		return true
	}
	payload, ok := pkt.Data().PullUp(min(pkt.Data().Size(), echo.MaxSize))
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.monitor == nil || h.ports[s.portID()] == nil || h.ports[s.portID()].slave != s {
		return false
	}
	if h.monitor.Receive(time.Duration(now), s.portID(), payload) != nil {
		return false
	}
	if h.news() {
		// Not here: who delivers may hold locks of a stack.
		h.bond.clock.AfterFunc(0, func() { h.bond.control(func(instant) {}) })
	}
	return true
}

// helloFrames is how many hellos of a slave are listened to in 100 ms: those of
// eight peers each millisecond.
const helloFrames = 800
