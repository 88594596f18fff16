package control_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/control"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// rig is a bond of Recorders under control.
type rig struct {
	t      *testing.T
	bond   *bonding.Bond
	server *control.Server
	client *control.Client
	socket string
	clock  *faketime.ManualClock

	mu     sync.Mutex
	opened map[string]*linktest.Recorder
}

var errNoLink = errors.New("there is no such link")

// open opens any link but "none".
func (r *rig) open(kind, name string) (stack.LinkEndpoint, error) {
	if name == "none" {
		return nil, errNoLink
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mac := tcpip.LinkAddress([]byte{2, 0, 0, 0, 0xee, byte(len(r.opened) + 1)})
	rec := linktest.NewRecorder(linktest.RecorderOptions{Address: mac})
	r.opened[name] = rec
	return rec, nil
}

// closed reports how often the link opened last under a name was closed.
func (r *rig) closed(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened[name].Calls().Close
}

func newRig(t *testing.T, mode bonding.Mode, slaves int) *rig {
	t.Helper()
	linktest.CheckGoroutines(t)
	r := &rig{t: t, clock: faketime.NewManualClock(), opened: map[string]*linktest.Recorder{}}
	b, err := bonding.New(bonding.Options{Mode: mode, Clock: r.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	for i := range slaves {
		name := fmt.Sprintf("eth%d", i)
		ep, _ := r.open("", name)
		if err := b.Enslave(name, ep, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.Attach(&linktest.Sink{})
	r.bond = b
	r.server = control.NewServer(b, control.Options{Open: r.open, Clock: r.clock})
	t.Cleanup(r.server.Close)
	dir, err := os.MkdirTemp("", "bs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r.socket = filepath.Join(dir, "control")
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	h := r.server.HTTP(nil)
	served := make(chan struct{})
	go func() { h.Serve(l); close(served) }()
	t.Cleanup(func() { h.Close(); <-served })
	r.client = control.NewClient(r.socket)
	return r
}

func (r *rig) change(req control.Request) (control.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return r.client.Change(ctx, req)
}

func (r *rig) must(req control.Request) control.Answer {
	r.t.Helper()
	a, err := r.change(req)
	if err != nil {
		r.t.Fatalf("Change(%+v) = %v", req, err)
	}
	return a
}

// slaves are the names of the slaves.
func (r *rig) slaves() (names []string) {
	for _, s := range r.bond.Status().Slaves {
		names = append(names, s.Name)
	}
	return names
}

func ops(list ...control.Operation) control.Request { return control.Request{Operations: list} }
