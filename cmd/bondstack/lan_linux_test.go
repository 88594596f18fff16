package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bondstack/bonding"
	"bondstack/link/netnstest"
	"bondstack/stack"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// lan is a namespace with the interfaces s0 and s1, for the bond, and one with
// their other ends p0 and p1 as ports of the bridge br0: the kernel's host at
// 10.9.0.1 and fd00:9::1. The kernel's offloads are as the kernel makes them.
type lan struct {
	t         testing.TB
	near, far *netnstest.Namespace
}

// The bond's addresses on a lan, as flags.
var lanAddresses = []string{"--address", "10.9.0.2/24", "--address", "fd00:9::2/64"}

// The same as flags of a host that the test makes itself.
var lanPrefixes = []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24"), netip.MustParsePrefix("fd00:9::2/64")}

func newLAN(t testing.TB) *lan {
	t.Helper()
	l := &lan{t: t, near: netnstest.New(t), far: netnstest.New(t)}
	// The near host is not to answer beside the bonded stack.
	l.near.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	l.far.Bridge("br0")
	// A bridge without an address of its own changes it with its ports.
	l.far.Run("ip", "link", "set", "br0", "address", "02:00:00:00:00:b0")
	l.far.AddAddress("br0", "10.9.0.1/24")
	l.far.AddAddress("br0", "fd00:9::1/64")
	l.plug(0)
	l.plug(1)
	return l
}

// plug makes the interface sN with its other end at the bridge.
func (l *lan) plug(n int) {
	l.t.Helper()
	netnstest.Veth(l.t, l.near, fmt.Sprintf("s%d", n), l.far, fmt.Sprintf("p%d", n))
	l.far.Run("ip", "link", "set", fmt.Sprintf("p%d", n), "master", "br0")
}

// kinds opens slaves in the near namespace.
func (l *lan) kinds() map[string]openFunc {
	kinds := map[string]openFunc{}
	for name, open := range linkKinds {
		kinds[name] = func(name string, o linkOptions) (ep netstack.LinkEndpoint, warnings []string, err error) {
			l.near.Do(func() { ep, warnings, err = open(name, o) })
			return ep, warnings, err
		}
	}
	return kinds
}

// run starts an instance in the near namespace.
func (l *lan) run(args ...string) *instance {
	l.t.Helper()
	return start(l.t, l.kinds(), append(args, lanAddresses...)...)
}

// host makes a bond of slaves and a host on it, without the command.
func (l *lan) host(o bonding.Options, slaves ...slaveSpec) (*bonding.Bond, *stack.Host) {
	l.t.Helper()
	return l.hostWith(o, stack.HostOptions{Addresses: lanPrefixes}, slaves...)
}

// hostWith is host with options of the stack's. It waits for the addresses.
func (l *lan) hostWith(o bonding.Options, ho stack.HostOptions, slaves ...slaveSpec) (*bonding.Bond, *stack.Host) {
	l.t.Helper()
	b, err := bonding.New(o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(b.Close)
	for _, s := range slaves {
		ep, _, err := l.kinds()[s.kind](s.name, linkOptions{})
		if err != nil {
			l.t.Fatal(err)
		}
		if err := b.Enslave(s.name, ep, bonding.SlaveOptions{}); err != nil {
			l.t.Fatal(err)
		}
	}
	h, err := stack.NewHost(b, ho)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { h.Close() })
	if err := h.AwaitAddresses(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	return b, h
}

// peer is the far end of a slave.
func peer(slave string) string { return "p" + strings.TrimPrefix(slave, "s") }

// dial connects the far kernel to the bonded stack.
func (l *lan) dial(address string) net.Conn {
	l.t.Helper()
	var c net.Conn
	l.far.Do(func() {
		var err error
		if c, err = (&net.Dialer{Timeout: patience}).Dial("tcp", address); err != nil {
			l.t.Fatal(err)
		}
	})
	return c
}

// random is a stream of n bytes that is the same each time.
func random(n int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{7}), n) }

// writeRandom makes a folder with a file of n random bytes, and returns the
// folder and the file's hash.
func writeRandom(t testing.TB, n int64) (dir, sum string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, h), random(n)); err != nil {
		t.Fatal(err)
	}
	return dir, hex.EncodeToString(h.Sum(nil))
}

// download is curl in the far namespace, whose output the test reads at its
// own pace.
type download struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  io.Reader
	hash interface {
		io.Writer
		Sum([]byte) []byte
	}
	got int64
}

// curl begins to download a URL.
func (l *lan) curl(url string) *download {
	l.t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		l.t.Skip("needs root and curl: ", err)
	}
	return startDownload(l.t, l.far, exec.Command("curl", "--silent", "--show-error", "--fail", "--max-time", "110", url))
}

// startDownload starts a command in a namespace that prints what it downloads.
func startDownload(t testing.TB, at *netnstest.Namespace, cmd *exec.Cmd) *download {
	t.Helper()
	d := &download{t: t, cmd: cmd, hash: sha256.New()}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = out
	at.Start(d.cmd)
	return d
}

// take reads n more bytes.
func (d *download) take(n int64) {
	d.t.Helper()
	got, err := io.CopyN(d.hash, d.out, n)
	d.got += got
	if err != nil {
		d.t.Fatalf("the download ended after %d bytes: %v", d.got, err)
	}
}

// finish reads the rest and checks the hash of all.
func (d *download) finish(sum string) {
	d.t.Helper()
	n, err := io.Copy(d.hash, d.out)
	d.got += n
	if err != nil {
		d.t.Errorf("reading from curl: %v", err)
	}
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("curl: %v", err)
	}
	if got := hex.EncodeToString(d.hash.Sum(nil)); got != sum {
		d.t.Errorf("%d bytes came with hash %s, want %s", d.got, got, sum)
	}
}

// pinger is ping in the far namespace, at intervals of 10 ms.
type pinger struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}

	mu   sync.Mutex
	seen map[int]int // replies, by sequence number
	last int         // the greatest number with a reply
	tail []string    // lines that are no replies
}

var sequenceOf = regexp.MustCompile(`icmp_seq=(\d+) .*time=`)

// ping begins to ping an address.
func (l *lan) ping(address string) *pinger {
	l.t.Helper()
	p := &pinger{t: l.t, cmd: exec.Command("ping", "-n", "-i", "0.01", address), done: make(chan struct{}), seen: map[int]int{}}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	l.far.Start(p.cmd)
	go p.read(out)
	eventually(l.t, "a first reply to ping", func() bool { return p.at() > 0 })
	return p
}

func (p *pinger) read(out io.Reader) {
	defer close(p.done)
	for s := bufio.NewScanner(out); s.Scan(); {
		p.mu.Lock()
		if m := sequenceOf.FindStringSubmatch(s.Text()); m != nil {
			n, _ := strconv.Atoi(m[1])
			p.seen[n]++
			p.last = max(p.last, n)
		} else {
			p.tail = append(p.tail, s.Text())
		}
		p.mu.Unlock()
	}
}

// at returns the number of the last reply.
func (p *pinger) at() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// awaitReplies waits for n more replies.
func (p *pinger) awaitReplies(n int) {
	p.t.Helper()
	end := p.at() + n
	eventually(p.t, "replies to ping", func() bool { return p.at() >= end })
}

// stop ends ping and returns which numbers had no reply, and how many replies
// came more than once. Numbers after the last reply are not counted: they may
// have been under way.
func (p *pinger) stop() (lost []int, duplicates int) {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGINT)
	<-p.done
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("ping: %v: %s", err, p.tail)
	}
	for n := 1; n <= p.last; n++ {
		switch {
		case p.seen[n] == 0:
			lost = append(lost, n)
		case p.seen[n] > 1:
			duplicates++
		}
	}
	return lost, duplicates
}
