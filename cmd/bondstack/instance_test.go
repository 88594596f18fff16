package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"bondstack/cmd/bondstack/sandbox"
	"bondstack/link/linktest"
	"bondstack/link/packet"
	"bondstack/link/wire"
	"bondstack/stack"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// asCommand in the environment has the test's own binary be the command, so
// that tests can run it as a process without building it.
const asCommand = "BONDSTACK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	sandbox.Hook()
	if os.Getenv(asCommand) != "" {
		main()
	}
	if signal.Ignored(syscall.SIGHUP) { // by nohup: processes that tests start are to hear it
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	linktest.Main(m)
}

// patience is how long a test waits for what is bound to happen. It is reached
// only where the test fails.
const patience = 30 * time.Second

// eventually polls until ok returns true, for what nothing announces.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// instance is bondstack run in this process.
type instance struct {
	t      testing.TB
	socket string
	log    logBuffer
	stop   context.CancelFunc
	ended  chan struct{}
	err    error // of run, once ended is closed
}

// logBuffer keeps a log that many goroutines write.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// tempSocket returns a path that is short enough for a socket.
func tempSocket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "control")
}

// launch begins to run with the given arguments beside --control, and does not
// wait until it is up.
func launch(t testing.TB, socket string, kinds map[string]openFunc, args ...string) *instance {
	t.Helper()
	var stdout, stderr bytes.Buffer
	s, code, done := parseRun(append(args, "--control", socket), &stdout, &stderr)
	if done {
		t.Fatalf("run %q: exit code %d, %s%s", args, code, &stdout, &stderr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i := &instance{t: t, socket: socket, stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(i.ended)
		i.err = s.run(ctx, slog.New(slog.NewTextHandler(&i.log, nil)), kinds)
	}()
	t.Cleanup(func() {
		i.end()
		if t.Failed() {
			t.Logf("log of the instance:\n%s", &i.log)
		}
	})
	return i
}

// start launches an instance and waits until it answers and has its addresses.
func start(t testing.TB, kinds map[string]openFunc, args ...string) *instance {
	t.Helper()
	i := launch(t, tempSocket(t), kinds, args...)
	eventually(t, "the instance answers", func() bool {
		select {
		case <-i.ended:
			t.Fatalf("run %q = %v", args, i.err)
		default:
		}
		_, err := os.Stat(i.socket)
		if err != nil {
			return false
		}
		st, err := askStatus(i.socket)
		return err == nil && !slices.ContainsFunc(st.Addresses, func(a hostAddress) bool { return a.State != "assigned" })
	})
	return i
}

// end stops the instance and returns what run returned.
func (i *instance) end() error {
	i.stop()
	<-i.ended
	return i.err
}

func (i *instance) status() instanceStatus {
	i.t.Helper()
	st, err := askStatus(i.socket)
	if err != nil {
		i.t.Fatalf("status: %v", err)
	}
	return st
}

// await waits until the status is as wanted.
func (i *instance) await(what string, ok func(instanceStatus) bool) {
	i.t.Helper()
	eventually(i.t, what, func() bool { return ok(i.status()) })
}

// up reports whether the named slaves, and no others, are there with their
// links up.
func (st *instanceStatus) up(names ...string) bool {
	var up []string
	for _, s := range st.Slaves {
		if s.MIIStatus == "up" {
			up = append(up, s.Name)
		}
	}
	return slices.Equal(up, names)
}

// network is a switch in memory, with the devices that instances find there by
// name, and a host beside them.
type network struct {
	t    testing.TB
	sw   *wire.Switch
	host *stack.Host

	mu      sync.Mutex
	devices map[string]int // ports of the switch, by device
}

// newNetwork makes a network with devices at ports 0, 1 and so on, and a host
// at 10.0.0.1 and fd00::1.
func newNetwork(t testing.TB, devices ...string) *network {
	t.Helper()
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sw.Close)
	n := &network{t: t, sw: sw, devices: map[string]int{}}
	for _, d := range devices {
		n.add(d)
	}
	n.host, err = stack.NewHost(sw.Port(4), stack.HostOptions{DADInterval: time.Millisecond, Addresses: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.host.Close() })
	return n
}

// add has a device appear.
func (n *network) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.devices[name] = len(n.devices)
}

// port returns the cable of a device, to cut it.
func (n *network) port(name string) *wire.Endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sw.Far(n.devices[name])
}

// kinds has every kind of slave be a device of the network.
func (n *network) kinds() map[string]openFunc {
	open := func(name string, _ linkOptions) (netstack.LinkEndpoint, []string, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		port, ok := n.devices[name]
		if !ok {
			return nil, nil, packet.ErrNoInterface
		}
		return n.sw.Port(port), []string{name + " is in memory"}, nil
	}
	return map[string]openFunc{"packet": open, "fdbased": open}
}

// dial connects the network's host to the instance.
func (n *network) dial(address string) *stack.TCPConn {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := n.host.DialContext(ctx, "tcp", address)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*stack.TCPConn)
}
