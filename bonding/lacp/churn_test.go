package lacp_test

import (
	"strings"
	"testing"
	"time"

	"bondstack/bonding/lacp"
)

// Case A58: none as soon as there is sync, churned after 60 s without, and none
// again at once.
func TestPartnerChurn(t *testing.T) {
	r := newRig(t, lacp.Config{}, 1)
	p := r.partners[0]
	p.Actor.State &^= lacp.Synchronization
	r.RunTo(time.Second)
	r.want(1, lacp.PartnerChurn, "PARTNER_CHURN_MONITOR")
	p.Actor.State |= lacp.Synchronization
	p.Say()
	r.Run(0)
	r.want(1, lacp.PartnerChurn, "NO_PARTNER_CHURN")
	r.RunTo(10 * time.Second)
	r.want(1, lacp.ActorChurn, "NO_ACTOR_CHURN")

	p.Actor.State &^= lacp.Synchronization
	p.Say()
	r.Run(0)
	lost := r.Now()
	r.want(1, lacp.PartnerChurn, "PARTNER_CHURN_MONITOR")
	r.RunTo(lost + 60*time.Second - 1)
	r.want(1, lacp.PartnerChurn, "PARTNER_CHURN_MONITOR")
	r.RunTo(lost + 60*time.Second)
	r.want(1, lacp.PartnerChurn, "PARTNER_CHURN")
	if st := r.a.Port(1); st.PartnerCount != 1 || st.ActorCount != 0 || lacp.ChurnName(st.PartnerChurn) != "churned" {
		t.Errorf("churned %d and %d times", st.PartnerCount, st.ActorCount)
	}
	p.Actor.State |= lacp.Synchronization
	p.Say()
	r.Run(0)
	r.want(1, lacp.PartnerChurn, "NO_PARTNER_CHURN")
	if got := lacp.ChurnName(r.a.Port(1).PartnerChurn); got != "none" {
		t.Errorf("shown as %q", got)
	}
}

// A port that stands by churns, and stops at once when its aggregator is
// active, or its link is down.
func TestActorChurn(t *testing.T) {
	r := newRig(t, lacp.Config{}, 3)
	r.partners[1].Actor.System = macC
	r.partners[2].Actor.System = lacp.MAC{2, 1}
	r.RunTo(59 * time.Second)
	r.want(2, lacp.ActorChurn, "ACTOR_CHURN_MONITOR")
	r.RunTo(61 * time.Second)
	r.want(2, lacp.ActorChurn, "ACTOR_CHURN")
	r.want(3, lacp.ActorChurn, "ACTOR_CHURN")
	r.partners[2].Silent = true
	r.RunTo(5 * time.Minute)
	r.want(3, lacp.PartnerChurn, "PARTNER_CHURN")
	r.a.Ports[2].Cable().SetUp(false)
	r.want(3, lacp.ActorChurn, "ACTOR_CHURN_MONITOR")
	r.want(3, lacp.PartnerChurn, "PARTNER_CHURN_MONITOR")
	r.RunTo(10 * time.Minute)
	r.want(3, lacp.ActorChurn, "ACTOR_CHURN_MONITOR")
	r.a.Ports[0].Cable().SetUp(false)
	r.Run(ms)
	r.want(2, lacp.ActorChurn, "NO_ACTOR_CHURN")
}

// explain checks that the explanation of a port has the words.
func (r *rig) explain(id lacp.PortID, words ...string) {
	r.t.Helper()
	e, ok := r.a.Sys.Explain(r.Now(), id)
	if !ok {
		r.t.Fatalf("no explanation of port %d", id)
	}
	text := e.String()
	for _, w := range words {
		if !strings.Contains(text, w) {
			r.t.Errorf("at %v: %q has no %q", r.Now(), text, w)
		}
	}
	if _, sends := r.a.Sys.Data(id); sends != e.Sends {
		r.t.Errorf("at %v: %q, and sends is %v", r.Now(), text, sends)
	}
}

// Every reason not to distribute is told, with its remedy.
func TestExplain(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 2)
	p := r.partners[0]
	p.Silent = true
	r.Run(500 * ms)
	r.explain(1, "EXPIRED", "no LACPDU", "partner has to send")
	r.explain(2, "WAITING", "attaches in 1.5s")
	r.Run(500 * ms)
	p.Silent = false
	p.Say()
	r.RunTo(10 * time.Second)
	r.explain(1, "port 1 distributes", "port 1 of partner 02:00:00:00:00:0b", "active aggregator 2")

	p.Actor.State &^= lacp.Synchronization
	p.Say()
	r.Run(0)
	r.explain(1, "not in sync", "look at the partner")
	p.Actor.State |= lacp.Synchronization
	p.Stubborn = true
	p.Say()
	r.Run(0)
	r.explain(1, "takes this port for system 00:00:00:00:00:00", "cut one way")
	p.Stubborn = false
	for range 8 {
		p.Actor.State ^= lacp.Synchronization
		p.Say()
		r.Run(ms)
	}
	r.explain(1, "flickers", "distributes in")
	r.Run(3 * time.Second)

	p.Silent = true
	r.Run(4 * time.Second)
	r.explain(1, "fell silent", "EXPIRED", "given up in")
	r.Run(4 * time.Second)
	r.explain(1, "DEFAULTED", "partner has to send")
	c := r.a.Config()
	c.Passive, c.Independent = true, true
	r.a.SetConfig(c)
	r.explain(1, "passive", "speak first")
	p.Silent = false
	p.Actor.State &^= lacp.Collecting
	p.Say()
	r.Run(3 * time.Second)
	r.explain(1, "collects", "collecting bit")

	p.Actor.System = macC
	p.Say()
	r.Run(ms)
	r.explain(1, "not the active one", "the partner differs", "ad_select stable")
	p.Actor.System, p.Actor.Key = macB, 8
	p.Say()
	r.Run(ms)
	r.explain(1, "the key of the partner differs")
	p.Actor.Key = 7
	r.a.SetLink(r.a.Ports[0], oneG)
	p.Say()
	r.Run(ms)
	r.explain(1, "the speed or user key differs")

	half := oneG
	half.Half = true
	r.a.SetLink(r.a.Ports[0], half)
	r.explain(1, "half duplex", "full duplex")
	r.a.SetLink(r.a.Ports[0], tenG)
	own := lacp.PDU{Version: 1, Actor: r.a.Port(2).Actor}
	r.a.Sys.Receive(r.Now(), 1, own.AppendTo(nil))
	r.explain(1, "own system", "loop", "1m30s from now")
	r.a.Ports[0].Cable().SetUp(false)
	r.explain(1, "link is down", "come up")
	if _, ok := r.a.Sys.Explain(r.Now(), 9); ok {
		t.Error("a port that is not there has an explanation")
	}

	alone := newRig(t, lacp.Config{}, 1)
	alone.partners[0].Silent = true
	alone.Run(10 * time.Second)
	alone.explain(1, "without a partner", "once a partner speaks")

	later := newRig(t, lacp.Config{}, 2)
	later.a.Ports[1].Cable().SetUp(false)
	later.RunTo(time.Second)
	later.a.Ports[0].Cable().SetUp(false)
	later.a.Ports[0].Cable().SetUp(true)
	later.Run(1900 * ms)
	later.a.Ports[1].Cable().SetUp(true)
	later.Run(500 * ms)
	later.explain(1, "came up after it", "within 2s")
}

// The ring: what happened last, with its cause, bounded, each port its own.
func TestEvents(t *testing.T) {
	r := newRig(t, lacp.Config{Fast: true}, 2)
	r.RunTo(10 * time.Second)
	r.partners[0].Silent = true
	r.RunTo(20 * time.Second)
	var lines []string
	for _, e := range r.a.Sys.Events() {
		if e.At > 10*time.Second {
			lines = append(lines, e.At.String()+" "+e.String())
		}
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"13s port 1: receive CURRENT -> EXPIRED (time: no LACPDU in time)",
		"13s port 1: mux COLLECTING_DISTRIBUTING -> ATTACHED (time: partner is not in sync)",
		"16s port 1: receive EXPIRED -> DEFAULTED (time: no LACPDU for 3 s more)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	quiet := len(r.a.Sys.Events())
	for range 1000 {
		r.a.Ports[0].Cable().SetUp(false)
		r.a.Ports[0].Cable().SetUp(true)
	}
	events := r.a.Sys.Events()
	if len(events) > 3*32 || len(events) < 32 {
		t.Errorf("%d events, %d before", len(events), quiet)
	}
	others := 0
	for i, e := range events {
		if i > 0 && e.At < events[i-1].At {
			t.Error("events are not in order")
		}
		if e.Port == 2 && e.Machine == lacp.MuxMachine {
			others++
		}
	}
	if others == 0 {
		t.Error("the port that flaps pushed out what the other did")
	}
}
