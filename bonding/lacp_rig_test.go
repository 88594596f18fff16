package bonding_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/lacp"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// lacpRig is a rig in 802.3ad whose links have scripted partners.
type lacpRig struct {
	*rig
	partners map[string]*scripted
}

// newLACPRig makes a bond with n slaves that a NIC has. The partners are silent
// until they are told to speak.
func newLACPRig(tb testing.TB, n int, options map[string]string) *lacpRig {
	tb.Helper()
	r := &lacpRig{newDownRig(tb, bonding.Options{Mode: bonding.IEEE8023AD}, 0), map[string]*scripted{}}
	if err := r.SetOptions(options); err != nil {
		tb.Fatalf("SetOptions(%v) = %v", options, err)
	}
	for i := range n {
		r.add(fmt.Sprintf("eth%d", i), linktest.RecorderOptions{})
	}
	r.attach()
	return r
}

// add enslaves a link with a partner: port N+1 of one system, for ethN.
func (r *lacpRig) add(name string, o linktest.RecorderOptions) *scripted {
	r.tb.Helper()
	p := &scripted{clock: r.clock, actor: lacp.Info{SystemPriority: 65534, System: partnerSystem, Key: 7,
		PortPriority: 65535, Port: uint16(name[len(name)-1]-'0') + 1, State: agreeing}}
	r.partners[name] = p
	if o.Address == "" {
		o.Address = macOf(name)
	}
	p.link = linktest.NewRecorder(o)
	p.link.OnWrite(p.hear)
	r.links[name] = p.link
	if err := r.Enslave(name, p.link, bonding.SlaveOptions{}); err != nil {
		r.tb.Fatalf("Enslave(%s) = %v", name, err)
	}
	return p
}

// agree has all partners speak and answer, and waits until the ports work.
func (r *lacpRig) agree() {
	r.tb.Helper()
	r.clock.RunImmediatelyScheduledJobs()                       // may speak with the partners
	for _, name := range slices.Sorted(maps.Keys(r.partners)) { // who speaks first has the active aggregator
		r.partners[name].speak(time.Second)
	}
	run(r.clock, 3*time.Second)
	for name, s := range r.partners {
		if st := r.slave(name); st.State != "active" {
			r.tb.Fatalf("%s does not distribute with partner %+v: %s", name, s.actor, st.LACP.Explanation)
		}
	}
}

// port is LACP's part of a slave's status.
func (r *lacpRig) port(name string) *bonding.LACPPort {
	r.tb.Helper()
	return r.slave(name).LACP
}

// changesOf returns the changes of a slave.
func (r *lacpRig) changesOf(name string) []bonding.LACPChange {
	r.tb.Helper()
	e, err := r.ExplainLACP()
	if err != nil {
		r.tb.Fatal(err)
	}
	var list []bonding.LACPChange
	for _, c := range e.Changes {
		if c.Slave == name {
			list = append(list, c)
		}
	}
	return list
}

var partnerSystem = lacp.MAC{2, 0, 0, 0, 0xff, 1}

// agreeing is the state of a partner that is content.
const agreeing = lacp.Activity | lacp.Timeout | lacp.Aggregation | lacp.Synchronization | lacp.Collecting | lacp.Distributing

// scripted is a LACP partner at the far end of a Recorder. All runs on the
// goroutine that moves the clock.
type scripted struct {
	link  *linktest.Recorder
	clock *faketime.ManualClock
	actor lacp.Info
	// talking has it answer each PDU, and speak every so often; 0 is not.
	every time.Duration
	// reflects has it send back what it hears.
	reflects bool
	heard    []heardPDU
	data     int // frames of other kinds
	timer    tcpip.Timer
}

type heardPDU struct {
	at     time.Duration
	source tcpip.LinkAddress
	lacp.PDU
}

// now is the time since the clock's beginning.
func (p *scripted) now() time.Duration { return p.clock.NowMonotonic().Sub(tcpip.MonotonicTime{}) }

// hear takes what the bond writes.
func (p *scripted) hear(list stack.PacketBufferList) {
	for _, pkt := range list.AsSlice() {
		v := pkt.ToView()
		frame := append([]byte{}, v.AsSlice()...)
		v.Release()
		if frame[12] != 0x88 || frame[13] != 0x09 {
			p.data++
			continue
		}
		pdu, err := lacp.Parse(frame[14:])
		if err != nil {
			continue // a marker
		}
		p.heard = append(p.heard, heardPDU{p.now(), tcpip.LinkAddress(frame[6:12]), pdu})
		switch {
		case p.reflects:
			p.link.Inject(frame)
		case p.every > 0:
			p.say()
		}
	}
}

// speak has it talk from now on, or not with 0.
func (p *scripted) speak(every time.Duration) {
	p.every = every
	if p.timer != nil {
		p.timer.Stop()
	}
	if every == 0 {
		return
	}
	p.say()
	p.timer = p.clock.AfterFunc(every, func() { p.speak(p.every) })
}

// say sends a PDU: what it is, and what it heard last.
func (p *scripted) say() {
	pdu := lacp.PDU{Version: 1, Actor: p.actor}
	if n := len(p.heard); n > 0 {
		pdu.Partner = p.heard[n-1].Actor
	}
	p.link.Inject(slow(pdu.AppendTo(nil)))
}

// slow makes a slow-protocol frame of a PDU.
func slow(pdu []byte) []byte {
	return linktest.Ethernet(tcpip.LinkAddress(lacp.Group[:]), "\x02\x00\x00\x00\xff\x77", lacp.EtherType, pdu)
}

// last is the last PDU that it heard.
func (p *scripted) last(tb testing.TB) heardPDU {
	tb.Helper()
	if len(p.heard) == 0 {
		tb.Fatal("no PDU was heard")
	}
	return p.heard[len(p.heard)-1]
}

// mostInASecond returns the greatest number of PDUs in any second.
func (p *scripted) mostInASecond() int {
	most := 0
	for i := range p.heard {
		n := 0
		for _, h := range p.heard[i:] {
			if h.at-p.heard[i].at < time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
