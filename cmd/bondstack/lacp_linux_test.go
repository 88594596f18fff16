package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/netnstest"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// lacpLab is a namespace with n veth pairs: sN is for our bond, pN for a real
// partner that a script of the lab runs in the same namespace.
type lacpLab struct {
	t    *testing.T
	dir  string // of the lab's scripts
	near *netnstest.Namespace
	name string // of the namespace, as the scripts want one
	n    int
	us   *instance
}

// newLACPLab skips the test where the lab, or what it runs, is not there.
func newLACPLab(t *testing.T, n int, needs string) *lacpLab {
	t.Helper()
	near := netnstest.New(t)
	l := &lacpLab{t: t, dir: labFolder(t), near: near, n: n}
	for _, tool := range []string{needs, "ip", "tc", "ethtool", "bash", "busybox"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs the lab: %v", err)
		}
	}
	near.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	for i := range n {
		netnstest.Veth(t, near, l.ours(i), near, l.theirs(i))
		// The scripts' wires carry plain frames with whole checksums.
		near.Run("ethtool", "-K", l.ours(i), "tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off")
	}
	l.nameNamespace()
	return l
}

// labFolder is the folder of the lab's scripts: BONDSTACK_LAB, or beside the
// project.
func labFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BONDSTACK_LAB")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "lab")
	}
	if _, err := os.Stat(filepath.Join(dir, "lib.sh")); err != nil {
		t.Skipf("needs the lab: BONDSTACK_LAB names no folder with its scripts, nor is there one beside the project: %v", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// nameNamespace gives the namespace a name that ends with the test.
func (l *lacpLab) nameNamespace() {
	l.t.Helper()
	holder := exec.Command("sleep", "600")
	l.near.Start(holder)
	l.name = fmt.Sprintf("bondstack%d", holder.Process.Pid)
	ipNetns := func(args ...string) {
		l.t.Helper()
		if out, err := exec.Command("ip", append([]string{"netns"}, args...)...).CombinedOutput(); err != nil {
			l.t.Fatalf("ip netns %s: %v: %s", args, err, out)
		}
	}
	ipNetns("attach", l.name, fmt.Sprint(holder.Process.Pid))
	l.t.Cleanup(func() { ipNetns("delete", l.name) })
}

func (l *lacpLab) ours(i int) string   { return fmt.Sprintf("s%d", i) }
func (l *lacpLab) theirs(i int) string { return fmt.Sprintf("p%d", i) }

// script runs a script of the lab and returns what it prints. The output goes
// to a file: what a script leaves running would keep a pipe open.
func (l *lacpLab) script(state, name string, args ...string) (string, error) {
	out, err := os.CreateTemp(state, "out")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(l.dir, name), args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+state)
	cmd.Stdout, cmd.Stderr = out, out
	failed := cmd.Run()
	text, err := os.ReadFile(out.Name())
	return string(text), errors.Join(failed, err)
}

// partner is a real LACP partner.
type partner interface {
	// start has it run on the interfaces pN with the address 10.9.0.1.
	start()
	stop()
	// ports are what it says of its ports, in the order of the interfaces.
	ports() []lacpView
	// exchange has it send random bytes over four connections to the echo
	// service of our stack, which come back while it sends, and compare them.
	exchange() error
}

// lacpView is what one end says of a port.
type lacpView struct {
	own, other lacpEnd
	up         bool // its link
	works      bool // collects and distributes
}

// lacpEnd is one end of a link as one side sees it.
type lacpEnd struct {
	system         string
	systemPriority int
	key            int
	port           int
	portPriority   int
	state          string // letters of the bits that are set: A T G S C D F E
}

// run starts our side, with the given options of LACP.
func (l *lacpLab) run(options ...string) {
	l.t.Helper()
	args := []string{"--mode", "802.3ad", "-o", "xmit_hash_policy=layer3+4", "--address", "10.9.0.2/24", "--serve", "echo:7"}
	for i := range l.n {
		args = append(args, "--slave", l.ours(i))
	}
	for _, o := range options {
		args = append(args, "-o", o)
	}
	kinds := map[string]openFunc{}
	for kind, open := range linkKinds {
		kinds[kind] = func(name string, o linkOptions) (ep netstack.LinkEndpoint, warnings []string, err error) {
			l.near.Do(func() { ep, warnings, err = open(name, o) })
			return ep, warnings, err
		}
	}
	l.us = start(l.t, kinds, args...)
}

// views are what our side says of its ports.
func (l *lacpLab) views() []lacpView {
	l.t.Helper()
	var list []lacpView
	for _, s := range l.us.status().Slaves {
		list = append(list, lacpView{ourEnd(s.LACP.Actor), ourEnd(s.LACP.Partner), s.MIIStatus == "up", s.State == "active" && s.Receives})
	}
	return list
}

func ourEnd(e bonding.LACPEnd) lacpEnd {
	return lacpEnd{e.System, int(e.SystemPriority), int(e.Key), int(e.Port), int(e.PortPriority), stateLetters(e.State)}
}

func stateLetters(bits uint8) string {
	var letters string
	for i, letter := range "ATGSCDFE" {
		if bits&(1<<i) != 0 {
			letters += string(letter)
		}
	}
	return letters
}

// awaitPorts waits until both sides say that exactly the given ports work, and
// returns how long that took.
func (l *lacpLab) awaitPorts(p partner, what string, works ...bool) time.Duration {
	l.t.Helper()
	begin := time.Now()
	var ours, theirs []lacpView
	agreed := false
	defer func() {
		if !agreed {
			l.t.Logf("%s: ours %+v\ntheirs %+v", what, ours, theirs)
		}
	}()
	eventually(l.t, what+": both sides agree", func() bool {
		ours = l.views()
		if !working(ours, works) {
			return false
		}
		theirs = p.ports()
		agreed = working(theirs, works)
		return agreed
	})
	return time.Since(begin)
}

func working(views []lacpView, works []bool) bool {
	if len(views) != len(works) {
		return false
	}
	for i := range views {
		if views[i].works != works[i] {
			return false
		}
	}
	return true
}

// all is n times true.
func all(n int) []bool {
	works := make([]bool, n)
	for i := range works {
		works[i] = true
	}
	return works
}

// but is all with one port that does not work.
func but(n, out int) []bool {
	works := all(n)
	works[out] = false
	return works
}

// agreeOnEach waits until each side knows of the other what that says of
// itself, on every port that works.
func (l *lacpLab) agreeOnEach(p partner) {
	l.t.Helper()
	var wrong string
	defer func() {
		if wrong != "" {
			l.t.Logf("the sides disagree: %s", wrong)
		}
	}()
	eventually(l.t, "what each side knows of the other is what that says", func() bool {
		wrong = ""
		ours, theirs := l.views(), p.ports()
		for i := range theirs {
			switch {
			case ours[i].own != theirs[i].other:
				wrong = fmt.Sprintf("port %d: we say %+v, they know %+v", i, ours[i].own, theirs[i].other)
				return false
			case theirs[i].own != ours[i].other:
				wrong = fmt.Sprintf("port %d: they say %+v, we know %+v", i, theirs[i].own, ours[i].other)
				return false
			}
		}
		return true
	})
}

// whileExchanging has a partner exchange data with us while something happens,
// and wants it all to arrive.
func (l *lacpLab) whileExchanging(p partner, what string, deed func()) {
	l.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.exchange() }()
	deed()
	if err := <-done; err != nil {
		l.t.Errorf("%s: exchange: %v", what, err)
	}
}

// cutOneWay drops what an interface sends, and leaves its carrier.
func (l *lacpLab) cutOneWay(name string) (restore func()) {
	l.t.Helper()
	_, err := l.near.TryRun("tc", "qdisc", "add", "dev", name, "root", "netem", "loss", "100%")
	if err != nil { // a kernel without netem: no frame is small enough for this one
		l.near.Run("tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", "8bit", "burst", "10", "limit", "10")
	}
	return func() { l.near.Run("tc", "qdisc", "del", "dev", name, "root") }
}

// linksDown takes all links down and waits until both sides have noticed.
func (l *lacpLab) linksDown(p partner) {
	l.t.Helper()
	for i := range l.n {
		l.near.Down(l.ours(i))
	}
	l.awaitPorts(p, "all links down", make([]bool, l.n)...)
}

func (l *lacpLab) linksUp() {
	l.t.Helper()
	for i := range l.n {
		l.near.Up(l.ours(i))
	}
}

// awaitLinks waits until both sides say that all links are up: a guest is told
// of each by a script.
func (l *lacpLab) awaitLinks(p partner) {
	l.t.Helper()
	eventually(l.t, "all links up", func() bool {
		down := func(v lacpView) bool { return !v.up }
		return !slices.ContainsFunc(l.views(), down) && !slices.ContainsFunc(p.ports(), down)
	})
}

// converge measures how long it takes from links up to all ports working, by
// both sides' word. A busy machine may be late: of three times one counts.
func (l *lacpLab) converge(p partner, bound time.Duration) {
	l.t.Helper()
	var took []time.Duration
	for range 3 {
		l.linksDown(p)
		l.linksUp()
		l.awaitLinks(p)
		d := l.awaitPorts(p, "links up", all(l.n)...)
		took = append(took, d)
		if d <= bound {
			l.t.Logf("all %d ports work on both sides %v after the links were up", l.n, took)
			return
		}
	}
	l.t.Errorf("all %d ports work on both sides %v after the links were up, want one within %v", l.n, took, bound)
}

// exercise is what every partner has to bear: links up together, data both
// ways, a port cut and restored, with agreement each time. More is: a port
// cut one way, each way, and the partner restarted.
func (l *lacpLab) exercise(p partner, rate string, more bool) {
	l.t.Helper()
	p.start()
	l.t.Cleanup(p.stop)
	l.run("lacp_rate=" + rate)
	l.t.Logf("first agreement %v after our start", l.awaitPorts(p, "start", all(l.n)...))
	l.converge(p, 3*time.Second)
	l.agreeOnEach(p)
	last := l.n - 1
	l.whileExchanging(p, "port cut", func() {
		l.near.Down(l.ours(last))
		l.t.Logf("cut: agreed after %v", l.awaitPorts(p, "port cut", but(l.n, last)...))
	})
	l.near.Up(l.ours(last))
	l.t.Logf("restored: agreed after %v", l.awaitPorts(p, "port restored", all(l.n)...))
	l.agreeOnEach(p)
	if more {
		l.exerciseMore(p)
	}
	l.whileExchanging(p, "at the end", func() {})
}

func (l *lacpLab) exerciseMore(p partner) {
	l.t.Helper()
	for _, way := range []string{l.ours(0), l.theirs(0)} {
		l.whileExchanging(p, way+" cut one way", func() {
			restore := l.cutOneWay(way)
			l.t.Logf("%s cut one way: agreed after %v", way, l.awaitPorts(p, way+" cut one way", but(l.n, 0)...))
			// Now, before both sides have given up and speak every 30 s.
			restore()
			l.t.Logf("%s restored: agreed after %v", way, l.awaitPorts(p, way+" restored", all(l.n)...))
		})
	}
	p.stop()
	p.start()
	l.t.Logf("partner restarted: agreed after %v", l.awaitPorts(p, "partner restarted", all(l.n)...))
	l.agreeOnEach(p)
}

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
func stateFolder(t *testing.T) string { return filepath.Dir(tempSocket(t)) }

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

// ports reads the text of /proc/net/bonding.
func (p *linuxPartner) ports() []lacpView {
	p.t.Helper()
	text, err := p.script(p.state, "linux-bond.sh", "proc", "peer")
	if err != nil {
		p.t.Fatalf("status of the Linux partner: %v: %s", err, text)
	}
	bond, slaves, _ := strings.Cut(text, "\nSlave Interface: ")
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

// Real partners: Linux's own driver and Open vSwitch.
func TestLACPPartners(t *testing.T) {
	for _, rate := range []string{"fast", "slow"} {
		for _, n := range []int{2, 4} {
			t.Run(fmt.Sprintf("Linux, %s, %d ports", rate, n), func(t *testing.T) {
				t.Parallel()
				l := newLACPLab(t, n, "linux.uml")
				l.exercise(&linuxPartner{l, rate, stateFolder(t)}, rate, rate == "fast" && n == 2)
			})
		}
		t.Run("Open vSwitch, "+rate, func(t *testing.T) {
			t.Parallel()
			l := newLACPLab(t, 2, "ovs-vswitchd")
			l.exercise(&ovsPartner{l, rate, stateFolder(t)}, rate, rate == "fast")
		})
	}
}
