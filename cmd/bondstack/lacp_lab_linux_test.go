package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bondstack/link/netnstest"
)

// lacpLab is a namespace with n veth pairs: sN is for our bond, pN for a real
// partner that a script of the lab runs in the same namespace.
type lacpLab struct {
	t    testing.TB
	dir  string // of the lab's scripts
	near *netnstest.Namespace
	name string // of the namespace, as the scripts want one
	n    int
	us   *instance
}

// newLACPLab skips the test where the lab, or what it runs, is not there.
func newLACPLab(t testing.TB, n int, needs string) *lacpLab {
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
func labFolder(t testing.TB) string {
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
	// usable is how many ports its aggregator has.
	usable() int
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
