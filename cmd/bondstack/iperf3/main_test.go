package iperf3

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// pair is two hosts on a wire, of which one has a server.
type pair struct {
	client *stack.Host
	server *stack.Host
	out    *reports
	stop   func()
	done   chan error
}

// reports gathers the reports of a server: each comes by one write.
type reports struct{ came chan *Report }

func (r *reports) Write(b []byte) (int, error) {
	var one Report
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&one); err != nil {
		return 0, err
	}
	r.came <- &one
	return len(b), nil
}

const serverAddress = "10.0.0.2"

// newPair makes the hosts and starts the server.
func newPair(t *testing.T, im wire.Impairments, o ServerOptions) *pair {
	t.Helper()
	a, b, err := wire.New(wire.Options{A: wire.EndOptions{Impairments: im}})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{client: newHost(t, a, "10.0.0.1/24"), server: newHost(t, b, serverAddress+"/24"), out: &reports{came: make(chan *Report, 64)}, done: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	ready := make(chan struct{})
	o.JSON, o.Out, o.Ready = true, p.out, func() { close(ready) }
	go func() { p.done <- Serve(ctx, p.server, o) }()
	<-ready
	p.stop = stop
	t.Cleanup(func() {
		stop()
		if err := <-p.done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return p
}

func newHost(t *testing.T, ep *wire.Endpoint, cidr string) *stack.Host {
	t.Helper()
	h, err := stack.NewHost(ep, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix(cidr)}})
	if err != nil {
		ep.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// run runs a test and returns the reports of both ends.
func (p *pair) run(t *testing.T, o ClientOptions) (client, server *Report) {
	t.Helper()
	o.Host = serverAddress
	client, err := Run(t.Context(), p.client, o)
	if err != nil {
		t.Fatalf("Run() = %v", err)
	}
	return client, p.report(t)
}

func (p *pair) report(t *testing.T) *Report {
	t.Helper()
	select {
	case r := <-p.out.came:
		return r
	case <-time.After(20 * time.Second):
		t.Fatal("no report of the server")
		return nil
	}
}
