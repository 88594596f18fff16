package lacp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"bondstack/bonding/lacp"
)

// spy is an Output that checks what must always hold.
type spy struct {
	t     testing.TB
	s     *lacp.System
	now   lacp.Instant
	parts bool
	sent  map[lacp.PortID][]lacp.Instant
	total int
	rings int
}

func (y *spy) Send(id lacp.PortID, pdu []byte) {
	y.total++
	if len(pdu) != lacp.PDUSize {
		y.t.Fatalf("sent %d octets", len(pdu))
	}
	if pdu[0] == lacp.SubtypeMarker || y.parts {
		return
	}
	at := append(y.sent[id], y.now)
	if n := len(at); n > 3 {
		if d := at[n-1] - at[n-4]; d <= time.Second {
			y.t.Fatalf("port %d sent four PDUs in %v", id, d)
		}
		at = at[1:]
	}
	y.sent[id] = at
}

func (y *spy) Changed(lacp.Changes) { y.rings++ }

// check looks at a System between events.
func (y *spy) check() {
	st := y.s.Status()
	if at, ok := y.s.Deadline(); ok && at <= y.now {
		y.t.Fatalf("deadline %v is not after %v", at, y.now)
	}
	groups := map[uint16]lacp.PortStatus{}
	sending := uint16(0)
	for _, p := range st.Ports {
		if takes, sends := y.s.Data(p.Number); takes != p.Takes || sends != p.Sends {
			y.t.Fatalf("Data and status differ for %+v", p)
		}
		if p.Sends && !p.Takes || (p.Takes && (!p.Link.Up || p.Looped || p.Aggregator != y.s.Active())) {
			y.t.Fatalf("port carries data: %+v", p)
		}
		if p.Takes && !p.Fallback && (!p.Heard || !p.Partner.State.Has(lacp.Synchronization) || p.Receive != lacp.Current) {
			y.t.Fatalf("port carries data without a partner in sync: %+v", p)
		}
		if p.Fallback && st.Config.Strict {
			y.t.Fatalf("fallback though strict: %+v", p)
		}
		if p.Sends {
			sending = p.Aggregator
		}
		if p.Mux > lacp.Waiting && p.Selection != lacp.Selected {
			y.t.Fatalf("attached and not selected: %+v", p)
		}
		if p.Selection == lacp.Unselected {
			continue
		}
		if o, ok := groups[p.Aggregator]; ok {
			same := o.Actor.Key == p.Actor.Key && o.Partner.System == p.Partner.System && o.Partner.Key == p.Partner.Key &&
				o.Partner.SystemPriority == p.Partner.SystemPriority && p.Heard
			if !same {
				y.t.Fatalf("in one aggregator: %+v and %+v", o, p)
			}
		}
		groups[p.Aggregator] = p
		if e, ok := y.s.Explain(y.now, p.Number); !ok || e.State == "" || e.Sends != p.Sends {
			y.t.Fatalf("explanation %+v of %+v", e, p)
		}
	}
	if sending != 0 && sending != y.s.Active() {
		y.t.Fatalf("aggregator %d sends, %d is active", sending, y.s.Active())
	}
	if len(y.s.Events()) > 32*(len(st.Ports)+1) {
		y.t.Fatal("too many events")
	}
}

// play runs a System through what the octets say: PDUs near to true ones and
// far from them, links, settings, ports, and time.
func play(t testing.TB, script []byte) {
	next := func() byte {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return b
	}
	y := &spy{t: t, sent: map[lacp.PortID][]lacp.Instant{}}
	flags := next()
	c := lacp.Config{System: macA, Fast: flags&1 != 0, Passive: flags&2 != 0, Independent: flags&4 != 0,
		Strict: flags&8 != 0, Select: lacp.Policy(flags >> 4 & 3), MinLinks: uint32(flags >> 6)}
	s, err := lacp.New(c, y)
	if err != nil {
		t.Fatal(err)
	}
	y.s = s
	for len(script) > 0 {
		id := lacp.PortID(next()%4 + 1)
		switch op := next(); op % 10 {
		case 0:
			y.now += time.Duration(next()) * 10 * time.Millisecond
			s.Advance(y.now)
		case 1:
			y.now += time.Duration(next()) * time.Second
			s.Advance(y.now)
		case 2:
			b := next()
			_ = s.LinkChanged(y.now, id, lacp.LinkState{Up: b&3 != 0, Speed: uint32(b>>2&3) * 1000, Half: b&0xf0 == 0xf0})
		case 3:
			_ = s.AddPort(y.now, lacp.PortConfig{Number: id, Priority: uint16(next()), UserKey: uint16(next() & 1), Link: lacp.LinkState{Up: true, Speed: 1000}})
		case 4:
			if next()&7 == 0 {
				y.parts = true
				_ = s.RemovePort(y.now, id)
				y.parts = false
				delete(y.sent, id)
			}
		case 5:
			b := next()
			c.Fast, c.Passive, c.Independent, c.Strict = b&1 != 0, b&2 != 0, b&4 != 0, b&8 != 0
			c.SystemPriority = uint16(b >> 6)
			if err := s.SetConfig(y.now, c); err != nil {
				t.Fatal(err)
			}
			_ = s.SetPortPriority(y.now, id, uint16(b>>4))
		case 6:
			n := min(len(script), int(next()))
			n = min(n, len(script))
			s.Receive(y.now, id, script[:n])
			script = script[n:]
		default:
			st, _ := s.Port(id)
			b, state := next(), next()
			pdu := lacp.PDU{Version: 1, Partner: st.Actor, Actor: lacp.Info{SystemPriority: 1,
				System: []lacp.MAC{macB, macB, macC, {}, macA}[b%5], Key: uint16(b >> 7), Port: uint16(id), State: lacp.State(state)}}
			pdu.Partner.Key ^= uint16(b >> 6 & 1)
			s.Receive(y.now, id, pdu.AppendTo(nil))
		}
		// Timers that are due run before anything else is looked at.
		s.Advance(y.now)
		y.check()
	}
	for _, a := range s.StrayArcs() {
		t.Fatalf("arc %v is not listed", a)
	}
}

func FuzzMachine(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(randomScript(seed, 400))
	}
	f.Fuzz(func(t *testing.T, script []byte) { play(t, script) })
}

func randomScript(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 9))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// What the fuzzer would take long to find: long random scripts.
func TestRandomScripts(t *testing.T) {
	n := 400
	if raceEnabled {
		n = 60
	}
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { play(t, randomScript(seed+1000, 4000)) })
	}
}
