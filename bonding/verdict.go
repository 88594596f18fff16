package bonding

import (
	"strconv"
	"strings"
)

// MonitorRule is what becomes of a slave when several monitors judge its link.
type MonitorRule uint8

// The values of monitor_rule, which Linux does not have.
const (
	// MonitorExclusive has setting miimon end the ARP monitor, and setting
	// arp_interval end the MII monitor, as in Linux.
	MonitorExclusive MonitorRule = 0
	// MonitorAny takes a slave for down when any of its monitors does.
	MonitorAny MonitorRule = 1
	// MonitorAll takes a slave for down when all of its monitors do.
	MonitorAll MonitorRule = 2
)

var monitorRuleNames = []string{"exclusive", "any", "all"}

// String returns "exclusive", "any" or "all".
func (r MonitorRule) String() string { return nameOf(monitorRuleNames, uint64(r)) }

// monitor is one of those who judge the slaves' links.
//
// A monitor of its own kind plugs in so: it has a row here, b.monitors says when
// it is on, and it runs by the bond's timer (arm, timerFired), with the lock
// held. What it finds of one slave it tells by b.judge; one that judges all at
// once in a pass asks b.view for what it said last, tells by b.say, and hands
// what say returned to b.commit. It never sets slave.link. A slave for which it
// has no opinion (nobody answers at the other end) it gives the verdict noOpinion.
type monitor uint8

const (
	monitorMII   monitor = iota // miimon: what the link itself says
	monitorARP                  // arp_interval: whether targets are heard
	monitorProbe                // probe_interval: whether another bond hears us, and is heard
	numMonitors
)

var monitorNames = [numMonitors]string{"mii", "arp", "probe"}

// noOpinion is the verdict of a monitor that cannot tell.
const noOpinion linkState = 0xff

// verdicts are what each monitor says of one slave's link, in the states of the
// link itself: a monitor may have delays of its own.
type verdicts [numMonitors]linkState

// all has every monitor say the same: what was decided over their heads.
func (v *verdicts) all(l linkState) {
	for i := range v {
		v[i] = l
	}
}

// begin has every monitor begin with a link as it is. Delays of the MII monitor
// are its own: the others have found no fault yet.
func (v *verdicts) begin(l linkState) {
	v.all(l)
	if l == linkBack || l == linkFail {
		v.all(linkUp)
		v[monitorMII] = l
	}
}

// usefulness orders the states of a link, the least useful first.
var usefulness = [...]int{linkDown: 0, linkBack: 1, linkFail: 2, linkUp: 3}

// combine is the rule: under any the least useful verdict of the monitors that
// are on, under all the most useful one. ok is false where none has an opinion.
func (v *verdicts) combine(on monitorSet, rule MonitorRule) (l linkState, ok bool) {
	for m, says := range v {
		if !on.has(monitor(m)) || says == noOpinion {
			continue
		}
		switch better := ok && usefulness[says] > usefulness[l]; {
		case !ok, better == (rule == MonitorAll) && says != l:
			l, ok = says, true
		}
	}
	return l, ok
}

// monitorSet is a set of monitors.
type monitorSet uint8

func (s monitorSet) has(m monitor) bool { return s&(1<<m) != 0 }
func (s monitorSet) several() bool      { return s&(s-1) != 0 }

// monitors returns those that are on.
func (c *config) monitors() (on monitorSet) {
	if c.miimon > 0 {
		on |= 1 << monitorMII
	}
	if c.arp.interval > 0 {
		on |= 1 << monitorARP
	}
	if c.probeInterval > 0 {
		on |= 1 << monitorProbe
	}
	return on
}

// view is what a monitor takes a slave's link for. One that is alone has no
// opinion apart from the bond's.
func (b *Bond) view(s *slave, m monitor) linkState {
	if !b.config.monitors().several() {
		return s.link
	}
	return s.verdicts[m]
}

// say notes what a monitor says of a slave, and returns the link that follows
// from all the verdicts.
func (b *Bond) say(s *slave, m monitor, l linkState) linkState {
	s.verdicts[m] = l
	next, ok := s.verdicts.combine(b.config.monitors(), b.config.rule)
	switch inUse := s.link == linkUp || s == b.active; {
	case !ok:
		return s.link
	case next == linkBack && inUse:
		return linkDown // it was in use: one monitor's updelay is no reason to go on, once the others gave it up
	}
	return next
}

// judge is say for one slave, with all that follows from it.
func (b *Bond) judge(s *slave, m monitor, l linkState, now instant) {
	proposals := make([]linkState, len(b.slaves))
	for i, other := range b.slaves {
		proposals[i] = other.link
		if other == s {
			proposals[i] = b.say(s, m, l)
		}
	}
	b.commit(proposals, now)
}

// monitorsChanged has the monitors begin with the links as they are, when
// another set of them is on.
func (b *Bond) monitorsChanged() {
	for _, s := range b.slaves {
		s.verdicts.begin(s.link)
		if b.config.period() == 0 {
			s.goneUntil = 0 // no pass will end it
		}
	}
}

// exclusive refuses both monitors where the rule does not let them run together:
// in one message, as netlink does, and as what is left of a rule.
func (ch *change) exclusive(values map[string]string) error {
	if ch.rule != MonitorExclusive {
		return nil
	}
	nonzero := func(name string, n number) bool {
		v, ok := n.parse(values[name])
		return ok && v != 0
	}
	miimon := nonzero("miimon", fromZero(int31, 0))
	switch {
	case miimon && nonzero("arp_interval", fromZero(int31, 0)):
		return &OptionError{"arp_interval", values["arp_interval"], "miimon and arp_interval exclude each other unless monitor_rule is any or all", ErrInvalid}
	case miimon && nonzero("arp_validate", validateNumber):
		return &OptionError{"arp_validate", values["arp_validate"], "miimon and arp_validate exclude each other unless monitor_rule is any or all", ErrInvalid}
	case ch.miimon > 0 && ch.arp.interval > 0:
		return &OptionError{"monitor_rule", values["monitor_rule"], "miimon is " + strconv.FormatUint(ms(ch.miimon), 10) +
			" and arp_interval " + strconv.FormatUint(ms(ch.arp.interval), 10) + "; set one of them to 0", ErrInvalid}
	}
	return nil
}

// verdictWords are the verdicts of the monitors that are on, for the status.
func (b *Bond) verdictWords(s *slave) map[string]string {
	words := map[string]string{}
	for m := range numMonitors {
		switch on := b.config.monitors(); {
		case !on.has(m):
		case b.view(s, m) == noOpinion:
			words[monitorNames[m]] = "unknown"
		default:
			words[monitorNames[m]] = strings.ReplaceAll(b.view(s, m).String(), " ", "_")
		}
	}
	return words
}
