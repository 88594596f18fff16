package packetrate

import (
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// testpmd is DPDK's program for forwarding: net_bonding over AF_PACKET ports, one
// processor that forwards, and one that waits for commands.
type testpmd struct {
	t     testing.TB
	in    io.Writer
	port  int
	sends bool
	// mu guards said: what it has printed.
	mu   sync.Mutex
	said strings.Builder
}

const prompt = "testpmd> "

// dpdkMissing is why there is no testpmd, or "".
func dpdkMissing() string {
	for _, program := range []string{"dpdk-testpmd", "stdbuf"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("needs %s: %v", program, err)
		}
	}
	return ""
}

// startTestpmd starts testpmd for the job of a contender.
func startTestpmd(c *contender) *testpmd {
	c.t.Helper()
	names := append([]string{}, slaves...)
	if c.job.role == "forward" {
		names = append(names, "q0")
	}
	p := &testpmd{t: c.t, port: len(names), sends: c.job.role == "send"}
	args := strings.Fields("-oL dpdk-testpmd -l 0,1 --main-lcore 0 --no-huge -m 256 --no-shconf --no-pci --no-telemetry")
	args = append(args, fmt.Sprintf("--file-prefix=packetrate%d", time.Now().UnixNano()))
	for i, name := range names {
		c.box.Run("ip", "link", "set", name, "promisc", "on")
		args = append(args, "--vdev", fmt.Sprintf("net_af_packet%d,iface=%s", i, name))
	}
	mode := map[string]int{"active-backup": 1, "balance-xor": 2}[c.job.mode]
	args = append(args, "--vdev", fmt.Sprintf("net_bonding0,mode=%d,slave=net_af_packet0,slave=net_af_packet1,xmit_policy=l34", mode))
	ports, engine := fmt.Sprint(p.port), map[string]string{"send": "txonly", "receive": "rxonly", "forward": "io"}[c.job.role]
	if c.job.role == "forward" {
		ports = fmt.Sprintf("%d,%d", p.port-1, p.port)
	}
	args = append(args, "--", "-i", "--no-mlockall", "--total-num-mbufs=32768", "--nb-cores=1",
		"--portlist="+ports, "--forward-mode="+engine, "--txonly-multi-flow")
	cmd := exec.Command("stdbuf", args...)
	c.command = cmd
	in, out := pipes(c.t, cmd)
	cmd.Stderr = p
	p.in = in
	c.box.Start(cmd)
	go io.Copy(p, out)
	p.await(0)
	c.t.Cleanup(func() {
		fmt.Fprintln(in, "quit")
		ended := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		ended.Stop()
	})
	return p
}

// Write takes what it prints.
func (p *testpmd) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

// await waits for a prompt behind the first n bytes that it printed, and returns
// what is before.
func (p *testpmd) await(n int) string {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		said := p.said.String()[n:]
		p.mu.Unlock()
		if text, _, ok := strings.Cut(said, prompt); ok {
			return text
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("testpmd does not ask for commands: %s", said)
		}
	}
}

// ask gives a command and returns what it prints.
func (p *testpmd) ask(command string) string {
	p.t.Helper()
	p.mu.Lock()
	n := p.said.Len()
	p.mu.Unlock()
	fmt.Fprintln(p.in, command)
	return p.await(n)
}

func (p *testpmd) start(size int) {
	if p.sends {
		p.ask(fmt.Sprint("set txpkts ", size))
	}
	p.ask("start")
}

func (p *testpmd) stop() { p.ask("stop") }

var receivedPackets = regexp.MustCompile(`RX-packets:\s*(\d+)`)

func (p *testpmd) received() float64 {
	p.t.Helper()
	m := receivedPackets.FindStringSubmatch(p.ask(fmt.Sprint("show port stats ", p.port)))
	if m == nil {
		p.t.Fatal("testpmd tells no statistics")
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	return n
}
