package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/control"
	"bondstack/link/linktest"
)

// post sends a body as it is.
func (r *rig) post(path, body string) (int, string) {
	r.t.Helper()
	c := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", r.socket) }}}
	resp, err := c.Post("http://x"+path, "application/json", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// Requests are bounded, and what is not understood is refused by name.
func TestRequestBounds(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, 2)
	many := strings.Repeat(`{"op":"drain","slave":"eth0"},`, control.MaxOperations)
	for _, tt := range []struct {
		body, text string
		status     int
	}{
		{``, "not understood", 400},
		{`[]`, "not understood", 400},
		{`{"operations":[]}`, "none is given", 400},
		{`{"operations":[{"op":"drain","slave":"eth0"}]} {}`, "more behind", 400},
		{`{"operations":[{"op":"drain","slave":"eth0","force":true}]}`, "force", 400},
		{`{"operations":[{"op":"explode","slave":"eth0"}]}`, "allowed are set, add_slave", 400},
		{`{"operations":[{"op":"set","option":"miimom","value":"1"}]}`, "did you mean miimon?", 400},
		{`{"operations":[{"op":"set","option":"miimon","value":"x"}]}`, "miimon", 422},
		{`{"operations":[{"op":"drain"}]}`, "operation 1: drain: slave is missing", 400},
		{`{"operations":[{"op":"drain","slave":"eth0","value":"1"}]}`, "has no meaning", 400},
		{`{"operations":[{"op":"drain","slave":"eth0","prio":1}]}`, "are of add_slave", 400},
		{`{"operations":[{"op":"drain","slave":"eth0"}],"confirm_within_ms":3600001}`, "0 to 3600000", 400},
		{`{"operations":[{"op":"drain","slave":"eth0"}],"confirm_within_ms":-1}`, "0 to 3600000", 400},
		{`{"operations":[{"op":"drain","slave":"eth0"}],"confirm_within_ms":1,"dry_run":true}`, "dry run", 400},
		{`{"operations":[` + many + `{"op":"drain","slave":"eth0"}]}`, "1 to 64", 400},
		{`{"operations":[{"op":"set","option":"primary","value":"` + strings.Repeat("x", control.MaxRequest) + `"}]}`, "too large", 413},
	} {
		status, body := r.post("/v1/change", tt.body)
		var f struct{ Error string }
		if json.Unmarshal([]byte(body), &f); status != tt.status || !strings.Contains(f.Error, tt.text) {
			t.Errorf("%.90s: %d %s, want %d with %q", tt.body, status, body, tt.status, tt.text)
		}
	}
	if status, body := r.post("/v1/confirm", `{"id":5}`); status != 400 {
		t.Errorf("confirm with a number: %d %s", status, body)
	}
	if status, body := r.post("/v1/confirm", ``); status != 404 {
		t.Errorf("confirm of nothing: %d %s", status, body)
	}
}

// stuck is a client that takes nothing until it is let go.
type stuck struct {
	header  http.Header
	release chan struct{}
	blocked chan struct{}
	out     bytes.Buffer
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Write(b []byte) (int, error) {
	select {
	case s.blocked <- struct{}{}:
	default:
	}
	<-s.release
	return s.out.Write(b)
}

// A reader that is too slow loses events and is told how many; the bond does not
// wait for it.
func TestSlowWatcher(t *testing.T) {
	linktest.CheckGoroutines(t)
	r := newRig(t, bonding.ActiveBackup, 2)
	mux := http.NewServeMux()
	r.server.Register(mux)
	w := &stuck{header: http.Header{}, release: make(chan struct{}), blocked: make(chan struct{}, 1)}
	req, err := http.NewRequest("GET", "/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { mux.ServeHTTP(w, req); close(ended) }()
	const n = 1000
	sent := 0
	send := func() {
		name := "eth1"
		if r.bond.Status().ActiveSlave == name {
			name = "eth0"
		}
		if err := r.bond.SetOption("active_slave", name); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	for stop := time.Now().Add(30 * time.Second); ; { // until the watcher is there and stuck
		send()
		select {
		case <-w.blocked:
		default:
			if time.Now().After(stop) {
				t.Fatal("the watcher gets nothing")
			}
			continue
		}
		break
	}
	for range n {
		send()
	}
	close(w.release)
	r.bond.Close()
	<-ended
	got, missed := 0, uint64(0)
	for _, line := range strings.Split(strings.TrimSpace(w.out.String()), "\n") {
		var e control.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		switch e.Kind {
		case control.EventMissed:
			missed += e.Missed
			if !strings.Contains(e.String(), "events were missed") {
				t.Errorf("the line for people is %q", e)
			}
		case bonding.EventActive:
			got++
		}
	}
	if missed == 0 || got+int(missed) < n || got+int(missed) > sent+1 {
		t.Errorf("%d came and %d were missed of %d sent", got, missed, sent)
	}
}

// Watch tells events as they come, and ends with the bond.
func TestWatch(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, 2)
	var got []string
	ready := make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- r.client.Watch(context.Background(), func() { close(ready) }, func(e control.Event) error {
			if e.Kind == bonding.EventActive {
				got = append(got, e.String())
			}
			return nil
		})
	}()
	<-ready
	r.must(ops(control.Operation{Op: control.Activate, Slave: "eth1"}))
	r.bond.Close()
	if err := <-ended; err != nil {
		t.Errorf("Watch() = %v", err)
	}
	if len(got) == 0 || got[0] != "bond0: active slave eth1, was eth0" {
		t.Errorf("events %v", got)
	}
	stop := fmt.Errorf("enough")
	if err := r.client.Watch(context.Background(), nil, func(control.Event) error { return stop }); err != nil {
		t.Errorf("Watch() of a bond that has ended = %v", err)
	}
}

// The socket stays usable by its owner while others hold connections open.
func TestIdleConnections(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, 2)
	for range 20 {
		c, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "POST /v1/change HTTP/1.1\r\n")
	}
	r.must(ops(control.Operation{Op: control.Activate, Slave: "eth1"}))
	if _, err := os.Stat(r.socket); err != nil {
		t.Error(err)
	}
}

// Whatever comes is refused or is a request that keeps its bounds and reads the
// same again.
func FuzzParseRequest(f *testing.F) {
	for _, op := range control.Operations {
		f.Add([]byte(`{"operations":[{"op":"` + op + `","slave":"eth0","value":"1","to":"x","option":"miimon"}],"confirm_within_ms":5}`))
	}
	f.Add([]byte(`{"operations":[{"op":"set","option":"miimon","value":"50"}],"dry_run":true}`))
	f.Add([]byte(`{"operations":[{"op":"add_slave","slave":"eth0","kind":"packet","prio":-1,"weight":5,"queue_id":1}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := control.ParseRequest(body)
		if err != nil {
			return
		}
		if n := len(r.Operations); n == 0 || n > control.MaxOperations {
			t.Errorf("%d operations", n)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > control.MaxRequest {
			return // escapes may make it longer
		}
		if _, err := control.ParseRequest(again); err != nil {
			t.Errorf("%s reads as %v", again, err)
		}
	})
}
