package bonding_test

import (
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
)

// monitors returns what the monitors say of a slave: "mii,arp".
func (s *segment) monitors(name string) string {
	m := s.slave(name).Monitors
	return m["mii"] + "," + m["arp"]
}

// Two monitors under one rule. MII sees the carrier at once here, ARP hears
// within 300 ms.
func TestMonitorRule(t *testing.T) {
	for _, tt := range []struct {
		rule    bonding.MonitorRule
		carrier bool // eth0 keeps its carrier
		heard   bool // and what is heard by it
		down    int  // ms until eth0 is down; -1: stays up
		said    string
	}{
		{bonding.MonitorAny, true, true, -1, "up,up"},
		{bonding.MonitorAny, false, true, 0, "down,up"},
		{bonding.MonitorAny, true, false, 300, "up,down"},
		{bonding.MonitorAny, false, false, 0, "down,down"},
		{bonding.MonitorAll, true, true, -1, "up,up"},
		{bonding.MonitorAll, false, true, -1, "down,up"},
		{bonding.MonitorAll, true, false, -1, "up,down"},
		{bonding.MonitorAll, false, false, 300, "down,down"},
	} {
		o := arpAB
		o.MonitorRule = tt.rule
		s := newSegment(t, o, 2)
		s.run(1000)
		if !tt.carrier {
			s.carrier("eth0", false)
		}
		if !tt.heard {
			s.cut["eth0"] = "both"
		}
		took := -1
		for ms := range 1000 {
			if took < 0 && s.slave("eth0").MIIStatus == "down" {
				took = ms
			}
			s.run(1)
		}
		if took != tt.down {
			t.Errorf("%v: carrier %t, heard %t: down after %d ms, want %d", tt.rule, tt.carrier, tt.heard, took, tt.down)
		}
		// Once the slave is a backup, it hears the active one's probes or not.
		if said := s.monitors("eth0"); said != tt.said {
			t.Errorf("%v: carrier %t, heard %t: the monitors say %s, want %s", tt.rule, tt.carrier, tt.heard, said, tt.said)
		}
		if want := map[bool]string{true: "eth1", false: "eth0"}[tt.down >= 0]; s.Status().ActiveSlave != want {
			t.Errorf("%v: carrier %t, heard %t: active is %s", tt.rule, tt.carrier, tt.heard, s.Status().ActiveSlave)
		}
		s.carrier("eth0", true)
		s.cut["eth0"] = ""
		s.run(1000)
		if said := s.monitors("eth0"); said != "up,up" || s.mii() != "up,up" {
			t.Errorf("%v: after recovery the monitors say %s, MII status is %s", tt.rule, said, s.mii())
		}
	}
}

// The delays of miimon hold for its own verdict alone.
func TestMonitorRuleDelays(t *testing.T) {
	o := arpAB
	o.MonitorRule, o.MIIMon, o.DownDelay, o.UpDelay = bonding.MonitorAny, 50*time.Millisecond, 400*time.Millisecond, 500*time.Millisecond
	s := newSegment(t, o, 2)
	s.run(1000)
	s.cut["eth0"] = "both"
	if took := s.runUntil(func() bool { return s.slave("eth0").MIIStatus == "down" }); took != 300 {
		t.Errorf("the ARP monitor takes it down after %d ms, want 300", took)
	}
	s.cut["eth0"] = ""
	s.runUntil(func() bool { return s.mii() == "up,up" })
	s.run(1000)
	s.carrier("eth1", false) // a backup: it hears nothing new of the carrier's loss
	s.run(1)
	if said := s.monitors("eth1"); !strings.HasPrefix(said, "going_down,") {
		t.Errorf("the monitors say %s", said)
	}
	s.carrier("eth1", true)
	s.run(10)
	s.wantMII("a glitch", "up,up")
}

// With all slaves lost by their carriers there is no search among them; the
// first to return serves at once.
func TestMonitorRuleAllLost(t *testing.T) {
	o := arpAB
	o.MonitorRule = bonding.MonitorAny
	s := newSegment(t, o, 2)
	s.run(1000)
	s.carrier("eth0", false)
	s.carrier("eth1", false)
	s.mark()
	s.run(500)
	s.wantProbes("without carrier")
	s.wantMII("without carrier", "down,down")
	s.carrier("eth1", true)
	s.run(500)
	s.wantActive("eth1 is back", "eth1")
	s.carrier("eth0", true)
	s.run(500)
	s.wantMII("both are back", "up,up")
}

// The balanced variant under both rules.
func TestMonitorRuleBalanced(t *testing.T) {
	for rule, want := range map[bonding.MonitorRule]string{bonding.MonitorAny: "up,down", bonding.MonitorAll: "up,up"} {
		s := newSegment(t, bonding.Options{Mode: bonding.BalanceRR, MonitorRule: rule}, 2)
		s.alone = true
		s.run(1000)
		s.cut["eth1"] = "in"
		s.run(500)
		s.wantMII(rule.String()+" with a link cut one way", want)
		s.carrier("eth1", false)
		s.run(10)
		s.wantMII(rule.String()+" and its carrier gone", "up,down")
		s.carrier("eth1", true)
		s.cut["eth1"] = ""
		s.run(500)
		s.wantMII(rule.String()+" after recovery", "up,up")
	}
}
