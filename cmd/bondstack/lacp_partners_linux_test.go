package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exchangeScript has 100 kB echoed over each of four connections, with a pause,
// while more is sent, and compares. It is little, since netstack recovers slowly
// from the losses of a partner that is short of buffers.
const exchangeScript = `
dir=$(mktemp -d) && cd "$dir" && head -c 100000 /dev/urandom >sent || exit 1
for i in 1 2 3 4; do
	( exec 3<>/dev/tcp/10.9.0.2/7 || exit 1
	  { head -c 40000 sent; sleep 1; tail -c +40001 sent; } >&3 &
	  timeout 40 head -c 100000 <&3 | cmp - sent ) & pids="$pids $!"
done
rc=0; for pid in $pids; do wait "$pid" || rc=1; done
cd /; rm -rf "$dir"; exit $rc`

// linuxPartner is a bond of the kernel's own driver, in a guest.
type linuxPartner struct {
	*lacpLab
	rate, state string
}

// ovsPartner is Open vSwitch.
type ovsPartner struct {
	*lacpLab
	rate, state string
}

// stateFolder is where a partner's script keeps its state; its path is short
// enough for sockets.
func stateFolder(t testing.TB) string { return filepath.Dir(tempSocket(t)) }

func (p *linuxPartner) start() {
	p.t.Helper()
	args := []string{"start", "peer", "--ns", p.name, "--ip", "10.9.0.1/24"}
	for i := range p.n {
		args = append(args, "--nic", p.theirs(i))
	}
	args = append(args, "mode=802.3ad", "miimon=100", "xmit_hash_policy=layer3+4", "lacp_rate="+p.rate)
	if out, err := p.script(p.state, "linux-bond.sh", args...); err != nil {
		p.t.Fatalf("start of the Linux partner: %v: %s", err, out)
	}
}

func (p *linuxPartner) stop() {
	if out, err := p.script(p.state, "linux-bond.sh", "stop", "peer"); err != nil {
		p.t.Errorf("stop of the Linux partner: %v: %s", err, out)
	}
}

func (p *linuxPartner) exchange() error {
	out, err := p.script(p.state, "linux-bond.sh", "exec", "peer", "bash -c '"+exchangeScript+"'")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// proc is the text of /proc/net/bonding, of the bond and of its slaves.
func (p *linuxPartner) proc() (bond, slaves string) {
	p.t.Helper()
	text, err := p.script(p.state, "linux-bond.sh", "proc", "peer")
	if err != nil {
		p.t.Fatalf("status of the Linux partner: %v: %s", err, text)
	}
	bond, slaves, _ = strings.Cut(text, "\nSlave Interface: ")
	return bond, slaves
}

func (p *linuxPartner) usable() int {
	p.t.Helper()
	bond, _ := p.proc()
	return number(field(bond, "\tNumber of ports"))
}

func (p *linuxPartner) ports() []lacpView {
	p.t.Helper()
	bond, slaves := p.proc()
	active := field(bond, "\tAggregator ID")
	var list []lacpView
	for _, s := range strings.Split(slaves, "\nSlave Interface: ") {
		actor, partner, _ := strings.Cut(s, "details partner lacp pdu:")
		v := lacpView{procEnd(actor, "port key"), procEnd(partner, "oper key"), field(s, "MII Status") == "up", false}
		v.works = v.up && field(s, "Aggregator ID") == active && strings.Contains(v.own.state, "CD")
		list = append(list, v)
	}
	return list
}

func procEnd(text, key string) lacpEnd {
	return lacpEnd{field(text, "system mac address"), number(field(text, "system priority")), number(field(text, key)),
		number(field(text, "port number")), number(field(text, "port priority")), stateLetters(uint8(number(field(text, "port state"))))}
}

// field returns what follows a label at the beginning of a line of a text, or
// "".
func field(text, label string) string {
	for _, line := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), label+": "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// number reads a number, -1 if there is none.
func number(text string) int {
	n := -1
	fmt.Sscan(text, &n)
	return n
}

func (p *ovsPartner) start() {
	p.t.Helper()
	args := []string{"start", "sw", "--ns", p.name, "--ip", "10.9.0.1/24", "--time", p.rate}
	for i := range p.n {
		args = append(args, "--nic", p.theirs(i))
	}
	if out, err := p.script(p.state, "ovs-lacp.sh", args...); err != nil {
		p.t.Fatalf("start of Open vSwitch: %v: %s", err, out)
	}
}

func (p *ovsPartner) stop() {
	if out, err := p.script(p.state, "ovs-lacp.sh", "stop", "sw"); err != nil {
		p.t.Errorf("stop of Open vSwitch: %v: %s", err, out)
	}
}

func (p *ovsPartner) exchange() error {
	out, err := exec.Command("ip", "netns", "exec", p.name, "bash", "-c", exchangeScript).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// usable counts the ports, since a text of lacp/show has no number of them.
func (p *ovsPartner) usable() int {
	p.t.Helper()
	n := 0
	for _, v := range p.ports() {
		if v.works {
			n++
		}
	}
	return n
}

// ports reads the text of lacp/show.
func (p *ovsPartner) ports() []lacpView {
	p.t.Helper()
	text, err := p.script(p.state, "ovs-lacp.sh", "show", "sw")
	if err != nil {
		p.t.Fatalf("status of Open vSwitch: %v: %s", err, text)
	}
	text, _, _ = strings.Cut(text, "\nbond_mode:")
	var list []lacpView
	for _, s := range strings.Split(text, "\nmember: ")[1:] {
		actor, partner, _ := strings.Cut(s, "partner sys_id")
		v := lacpView{ovsEnd(actor, "actor "), ovsEnd("partner sys_id"+partner, "partner "), true, false} // it tells nothing of links here
		v.works = field(s, "may_enable") == "true" && strings.Contains(s, ": current attached") && strings.Contains(v.own.state, "CD")
		list = append(list, v)
	}
	return list
}

func ovsEnd(text, who string) lacpEnd {
	var letters string
	for _, bit := range []struct{ word, letter string }{{"activity", "A"}, {"timeout", "T"}, {"aggregation", "G"},
		{"synchronized", "S"}, {"collecting", "C"}, {"distributing", "D"}, {"defaulted", "F"}, {"expired", "E"}} {
		if strings.Contains(field(text, who+"state"), bit.word) {
			letters += bit.letter
		}
	}
	return lacpEnd{field(text, who+"sys_id"), number(field(text, who+"sys_priority")), number(field(text, who+"key")),
		number(field(text, who+"port_id")), number(field(text, who+"port_priority")), letters}
}
