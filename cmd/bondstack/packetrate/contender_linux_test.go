package packetrate

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"bondstack/link/netnstest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// slaves are the interfaces of a bond, q0 is the one that is forwarded to or
// from; p0, p1 and r0 are their other ends.
var slaves = []string{"g0", "g1"}

// contender is a process in a namespace, with the other ends of its interfaces
// in another.
type contender struct {
	t         testing.TB
	name      string
	box, far  *netnstest.Namespace
	job       job
	process   process
	command   *exec.Cmd
	generated map[string]*traffic
}

// process is a contender's: it does its job between start and stop.
type process interface {
	start(size int)
	stop()
	// received is how many frames it has received.
	received() float64
}

// newContender makes the namespaces and starts the process. kind is packet, xdp
// or dpdk.
func newContender(t testing.TB, name string, j job) *contender {
	t.Helper()
	c := &contender{t: t, name: name, job: j, box: netnstest.New(t), far: netnstest.New(t), generated: map[string]*traffic{}}
	for _, ns := range []*netnstest.Namespace{c.box, c.far} {
		ns.Sysctl("net.ipv6.conf.all.disable_ipv6", "1")
		ns.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	}
	for _, pair := range [][2]string{{"g0", "p0"}, {"g1", "p1"}, {"q0", "r0"}} {
		netnstest.Veth(t, c.box, pair[0], c.far, pair[1])
	}
	if j.kind == "dpdk" {
		c.process = startTestpmd(c)
	} else {
		c.process = startOurs(c)
	}
	return c
}

// ours is a process of the test's program.
type ours struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Reader
}

// startOurs starts the test's program on the second processor.
func startOurs(c *contender) *ours {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobVariable+"="+strings.Join([]string{c.job.role, c.job.kind, c.job.mode}, " "))
	cmd.Stderr = os.Stderr
	c.command = cmd
	in, out := pipes(c.t, cmd)
	onProcessor(1, func() { c.box.Start(cmd) })
	p := &ours{c.t, in, bufio.NewReader(out)}
	if said := p.line(); said != "ready" {
		c.t.Fatalf("%s said %q, want ready", c.name, said)
	}
	return p
}

// pipes returns the standard input and output of a command.
func pipes(t testing.TB, cmd *exec.Cmd) (io.WriteCloser, io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}

// line reads a line.
func (p *ours) line() string {
	p.t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the process ended: %v", err)
	}
	return strings.TrimSuffix(s, "\n")
}

// ask gives a command and returns the answer.
func (p *ours) ask(command string) string {
	p.t.Helper()
	fmt.Fprintln(p.in, command)
	return p.line()
}

func (p *ours) start(size int) { p.ask(fmt.Sprint("start ", size)) }
func (p *ours) stop()          { p.ask("stop") }
func (p *ours) received() float64 {
	n, err := strconv.ParseFloat(p.ask("count"), 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

const (
	// turn is how long a contender is measured at a time, and lead how long
	// frames flow before.
	turn = 200 * time.Millisecond
	lead = 40 * time.Millisecond
)

// figures are what one turn brought.
type figures struct {
	// rate is in packets a second, and cost in seconds of processor time a packet.
	rate, cost float64
}

// measure has a contender at work for one turn, and counts the packets that it
// received, sent or forwarded. from is the other end by which traffic comes to it.
func (c *contender) measure(from string, size int) figures {
	c.t.Helper()
	c.process.start(size)
	defer c.process.stop()
	count := c.process.received
	if c.job.role != "receive" {
		count = func() float64 { return c.arrived(from) }
	}
	if c.job.role != "send" {
		defer c.traffic(from, size).run()()
	}
	time.Sleep(lead)
	before, used, start := count(), c.processorTime(), time.Now()
	time.Sleep(turn)
	n := count() - before
	return figures{n / time.Since(start).Seconds(), (c.processorTime() - used) / n}
}

// processorTime is what the process has used, in seconds: the kernel tells it in
// hundredths of a second.
func (c *contender) processorTime() float64 {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.command.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name is before
	var user, system float64
	fields := strings.Fields(after)
	fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return (user + system) / 100
}

// traffic returns the traffic of a size that comes to the contender by an end.
func (c *contender) traffic(from string, size int) *traffic {
	c.t.Helper()
	key := fmt.Sprint(from, size)
	if c.generated[key] == nil {
		near := map[string]string{"p0": "g0", "p1": "g1", "r0": "q0"}[from]
		dst := tcpip.LinkAddress(c.box.HardwareAddress(near))
		c.generated[key] = newTraffic(c.t, c.far, from, framesFor(dst, size))
	}
	return c.generated[key]
}

// arrived is how many frames the kernel has counted at the other ends, but for
// that by which traffic goes.
func (c *contender) arrived(from string) float64 {
	c.t.Helper()
	sum := 0.0
	c.far.Do(func() {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			name, counts, ok := strings.Cut(strings.TrimSpace(line), ":")
			if ok && name != from && name != "lo" {
				var bytes, packets float64
				fmt.Sscan(counts, &bytes, &packets)
				sum += packets
			}
		}
	})
	return sum
}
