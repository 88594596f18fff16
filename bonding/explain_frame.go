package bonding

import (
	"fmt"
	"strings"

	"bondstack/bonding/xmithash"
)

// FrameExplanation says by which slave a bond would send a frame, and why.
type FrameExplanation struct {
	Bond string `json:"bond"`
	Mode Mode   `json:"mode"`
	FramePath
	// Without says who would send it if a slave's link were down, for each slave
	// that is in use. Where flows are placed by load, that is not known before.
	Without []FrameWithout `json:"without"`
}

// FramePath is a choice of slaves with its reason.
type FramePath struct {
	// Slaves send the frame: one, several in broadcast (a copy each) and in
	// balance-rr (in turn), none where no slave may transmit or the choice is
	// still to be made.
	Slaves []string `json:"slaves"`
	// Rule is why, in a sentence.
	Rule string `json:"rule"`
	// Steps are the arithmetic, where there is any, in order.
	Steps []string `json:"steps"`
}

// FrameWithout is a choice of slaves with one of them down.
type FrameWithout struct {
	Down string `json:"down"`
	FramePath
}

// ExplainFrame tells by which slave the bond would send a frame that begins at its
// destination MAC, VLAN tags included, at this moment, and by which with any one of
// the slaves down. Nothing is sent, and nothing of the bond changes. The answer is
// that of the data path: frames that netstack sends have the bond's own address as
// their source.
func (b *Bond) ExplainFrame(frame []byte) FrameExplanation {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := FrameExplanation{Bond: b.Name(), Mode: b.config.mode, Without: []FrameWithout{}}
	now := b.spreadNow()
	e.FramePath = b.path(&now, frame, false)
	off := false
	for _, s := range b.slaves {
		if s.link != linkUp && s.link != linkFail || !s.usable() {
			continue
		}
		then := b.plan(&Transaction{Slaves: []SlaveChange{{Slave: s.name, Enabled: &off}}}, b.now())
		e.Without = append(e.Without, FrameWithout{s.name, b.path(&then.after, frame, true)})
	}
	return e
}

// path is the choice of a spread. supposed is whether it is not the present one.
func (b *Bond) path(sp *spreading, frame []byte, supposed bool) FramePath {
	p := FramePath{Slaves: []string{}, Steps: []string{}}
	switch mode := sp.config.mode; {
	case mode == ActiveBackup:
		p.byActive(sp, "everything leaves by the active slave")
	case len(sp.usable) == 0:
		p.Rule = "no slave may transmit"
	case mode == Broadcast:
		p.Slaves, p.Rule = namesOf(sp.usable), "every slave sends a copy"
	case mode == BalanceRR:
		p.inTurn(sp, frame)
	case mode.balances():
		b.balancedPath(&p, sp, frame, supposed)
	default:
		p.byHash(sp, frame)
	}
	return p
}

func (p *FramePath) byActive(sp *spreading, rule string) {
	if sp.active == nil {
		p.Rule = "there is no active slave"
		return
	}
	p.Slaves, p.Rule = []string{sp.active.name}, rule
}

func (p *FramePath) inTurn(sp *spreading, frame []byte) {
	if protocol, ip := network(frame); protocol == 0x0800 && len(ip) > ipv4Protocol && ip[ipv4Protocol] == 2 && sp.active != nil {
		p.byActive(sp, "IGMP leaves by the active slave, so that a snooping switch sees the group on one port")
		return
	}
	p.Slaves = namesOf(sp.usable)
	switch n := sp.config.packetsPerSlave; n {
	case 0:
		p.Rule = "each frame goes by a slave chosen at random (packets_per_slave 0)"
	default:
		p.Rule = fmt.Sprintf("the slaves take turns, %d frames each (packets_per_slave)", n)
	}
}

// byHash is balance-xor, 802.3ad, and the adaptive modes with tlb_dynamic_lb off.
func (p *FramePath) byHash(sp *spreading, frame []byte) {
	e := xmithash.Explain(sp.config.policy, xmithash.VLAN, frame, len(sp.usable))
	s := sp.pick(e.Sum)
	p.Slaves = []string{s.name}
	p.Rule = fmt.Sprintf("xmit_hash_policy %s, xmit_hash_map %s, over %s", sp.config.policy, sp.config.hashMap, strings.Join(namesOf(sp.usable), ", "))
	p.Steps = append(p.Steps, e.Notes...)
	for _, step := range e.Steps {
		p.Steps = append(p.Steps, step.String())
	}
	if sp.table != nil {
		p.Steps = append(p.Steps, fmt.Sprintf("%#x belongs to %s in the table by weights", e.Sum, s.name))
		return
	}
	p.Steps = append(p.Steps, fmt.Sprintf("slave = %#x mod %d = %d, which is %s", e.Sum, e.Slaves, e.Slave, s.name))
}

// balancedPath is balance-tlb and balance-alb.
func (b *Bond) balancedPath(p *FramePath, sp *spreading, frame []byte, supposed bool) {
	own := mac48([]byte(b.mac))
	var key uint32
	if sp.config.mode == BalanceTLB {
		if yes, _ := flowMayBalance(frame, own); !yes {
			p.byActive(sp, "what is not unicast IP of the bond's own leaves by the active slave")
			return
		}
		key, _ = sp.config.policy.Func(xmithash.VLAN)(frame, len(frame))
	} else {
		kind, to := flowOf(frame, own)
		switch {
		case kind == talkARP || kind == talkND && sp.config.ipv6Receive:
			p.Rule = "ARP and neighbour discovery leave by the slave that the neighbour was given; bondstack show lists the clients"
			return
		case kind != flowIPv4 && kind != flowIPv6:
			p.byActive(sp, "what is not unicast IP of the bond's own leaves by the active slave")
			return
		}
		key = uint32(xor8(to))
		p.Steps = append(p.Steps, fmt.Sprintf("key = all bytes of the destination, XORed = %#x", key))
	}
	if sp.config.tlbStatic {
		p.Steps = nil
		p.byHash(sp, frame)
		return
	}
	b.placedPath(p, sp, key, supposed)
}

// placedPath finds the slave that the transmit table has for a key.
func (b *Bond) placedPath(p *FramePath, sp *spreading, key uint32, supposed bool) {
	if b.balancer == nil {
		p.Rule = "no NIC has the bond, so there is no transmit table"
		return
	}
	entry, m := b.balancer.table.Placed(key)
	p.Steps = append(p.Steps, fmt.Sprintf("entry %d of the transmit table", entry))
	for _, s := range sp.usable {
		if m != nil && s.member == m {
			p.Slaves = []string{s.name}
			p.Rule = "the transmit table has the flow on it, by load and speed (tlb_dynamic_lb)"
			return
		}
	}
	p.Rule = "the next frame places the flow on the slave that is used least for its speed (tlb_dynamic_lb)"
	if supposed {
		p.Rule = "the flow is placed anew, on the slave that is used least for its speed then (tlb_dynamic_lb)"
	}
}

func namesOf(slaves []*slave) []string {
	list := make([]string, len(slaves))
	for i, s := range slaves {
		list[i] = s.name
	}
	return list
}

// String returns the path for people: the slaves and the rule.
func (p FramePath) String() string {
	who := "nobody"
	if len(p.Slaves) > 0 {
		who = strings.Join(p.Slaves, ", ")
	}
	return who + ": " + p.Rule
}
