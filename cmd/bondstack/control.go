package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/control"
	"bondstack/cmd/bondstack/drill"
	"bondstack/link/relay"
	"bondstack/link/user"
	"bondstack/stack"
)

// runState is what a running instance tells about itself. It has a host, or a
// device.
type runState struct {
	bond   *bonding.Bond
	joiner *joiner
	host   *stack.Host
	relay  *relay.Relay
	device func() (deviceStatus, []hostAddress)
}

// instanceStatus is the answer to a request for the status: the bond's, and
// what the instance adds.
type instanceStatus struct {
	bonding.Status
	Absent    []string        `json:"absent"` // slaves that have not appeared
	Addresses []hostAddress   `json:"addresses"`
	Stack     *stack.Settings `json:"stack,omitempty"`
	Device    *deviceStatus   `json:"device,omitempty"`
	Forwarded *relay.Stats    `json:"forwarded,omitempty"`
	User      *user.Stats     `json:"user_network,omitempty"`
	PID       int             `json:"pid"`
	Version   string          `json:"version"`
}

// hostAddress is an address of the stack, and how far it is.
type hostAddress struct {
	Prefix netip.Prefix `json:"prefix"`
	State  string       `json:"state"`
}

func (r *runState) status() instanceStatus {
	st := instanceStatus{
		Status: r.bond.Status(), Absent: r.joiner.absent(), Addresses: []hostAddress{}, PID: os.Getpid(), Version: thisVersion(),
	}
	if r.host != nil {
		settings := r.host.Settings()
		st.Stack = &settings
		for _, a := range r.host.Addresses() {
			st.Addresses = append(st.Addresses, hostAddress{a.Prefix, a.State.String()})
		}
	}
	st.User = r.joiner.link.user.stats()
	if r.relay != nil {
		forwarded := r.relay.Stats()
		st.Forwarded = &forwarded
	}
	if r.device != nil {
		device, addresses := r.device()
		st.Device, st.Addresses = &device, append(st.Addresses, addresses...)
	}
	return st
}

const defaultSocketText = "control in a folder of the user's own"

// defaultSocket is in the user's runtime folder where the system has one, else
// in a folder of the temporary one that only the user can enter.
func defaultSocket() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "bondstack", "control")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("bondstack-%d", os.Getuid()), "control")
}

// controlSocket is the control socket: HTTP on a unix socket that only its owner can
// open. It answers questions, and makes changes by package control.
type controlSocket struct {
	listener net.Listener
	server   *http.Server
	changes  *control.Server
	drills   *drill.Server
}

// listenControl takes the socket. Where another instance has it the error says
// which; a socket that nobody listens on is replaced.
func listenControl(path string) (*controlSocket, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &controlSocket{listener: l}, nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("control socket: %w", err)
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("control socket %s: there is something else under this name", path)
	}
	st, err := askStatus(path)
	switch {
	case err == nil:
		return fmt.Errorf("control socket %s: process %d holds it (bond %s); stop that, or name another with --control", path, st.PID, st.Name)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("control socket %s: somebody holds it, but does not answer: %w", path, err)
	}
	return os.Remove(path)
}

// serve begins to answer.
func (c *controlSocket) serve(r *runState) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(r.status())
	})
	mux.HandleFunc("GET /v1/proc", func(w http.ResponseWriter, _ *http.Request) {
		st := r.bond.Status()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		st.WriteProc(w)
	})
	r.explainRequests(mux)
	mux.HandleFunc("GET /v1/capture", r.capture)
	c.changes = control.NewServer(r.bond, control.Options{Open: r.joiner.open, Logger: r.joiner.log})
	c.changes.Register(mux)
	c.drills = drill.NewServer(r.bond, r.host, r.joiner.log)
	c.drills.Register(mux)
	c.server = c.changes.HTTP(mux)
	go c.server.Serve(c.listener)
}

// close stops answering and removes the socket.
func (c *controlSocket) close() {
	if c.server != nil {
		c.server.Close()
		c.drills.Close()
		c.changes.Close()
	}
	c.listener.Close()
}

// controlTimeout bounds a request and an answer.
const controlTimeout = 5 * time.Second

// ask asks the instance behind a socket.
func ask(socket, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	resp, err := askStream(ctx, socket, path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// maxRefusal bounds what is read of an answer that is no success.
const maxRefusal = 4096

// askStream is ask for an answer that is read as it comes. The error of an answer that
// is no success is its body.
func askStream(ctx context.Context, socket, path string) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://bondstack"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	why, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	return nil, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(why)))
}

func askStatus(socket string) (st instanceStatus, err error) {
	body, err := ask(socket, "/v1/status")
	if err == nil {
		err = json.Unmarshal(body, &st)
	}
	return st, err
}
