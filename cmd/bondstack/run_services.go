package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"bondstack/cmd/bondstack/iperf3"
	"bondstack/stack"
)

// service is one --serve.
type service struct {
	kind string
	port uint16
	dir  string // of http
}

func (s service) String() string {
	text := fmt.Sprintf("%s:%d", s.kind, s.port)
	if s.dir != "" {
		text += "=" + s.dir
	}
	return text
}

// parseService reads KIND:PORT[=DIR].
func (s *runSettings) parseService(text string) error {
	svc, err := parseService(text)
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	s.services = append(s.services, svc)
	return nil
}

func parseService(text string) (service, error) {
	kind, rest, _ := strings.Cut(text, ":")
	portText, dir, hasDir := strings.Cut(rest, "=")
	switch kind {
	case "echo", "discard", "iperf3":
		if hasDir {
			return service{}, fmt.Errorf("%s takes no folder, the form is %s:PORT", kind, kind)
		}
	case "http":
		if dir == "" {
			return service{}, errors.New("the folder is missing, the form is http:PORT=DIR")
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return service{}, fmt.Errorf("%s is not a folder that can be read", dir)
		}
	default:
		return service{}, fmt.Errorf("unknown service %q, allowed are echo:PORT, discard:PORT, iperf3:PORT, http:PORT=DIR", kind)
	}
	port, err := parsePort(portText)
	return service{kind, port, dir}, err
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port, allowed are 1 to 65535", text)
	}
	return uint16(n), nil
}

// start is that of a starter.
func (s service) start(ctx context.Context, h *stack.Host, log *slog.Logger) (stop func(), err error) {
	if s.kind == "iperf3" {
		o := iperf3.ServerOptions{Log: log}
		o.Port = s.port
		return startIperf3(ctx, h, o)
	}
	l, err := h.Listen("tcp", fmt.Sprintf(":%d", s.port))
	if err != nil {
		return nil, err
	}
	switch s.kind {
	case "http":
		srv := &http.Server{Handler: http.FileServer(http.Dir(s.dir)), ReadHeaderTimeout: headerTimeout,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
		go srv.Serve(l)
	case "echo":
		go serveEach(l, func(c net.Conn) { io.Copy(c, c) })
	case "discard":
		go serveEach(l, func(c net.Conn) { io.Copy(io.Discard, c) })
	}
	return func() { l.Close() }, nil
}

// headerTimeout bounds how long a client may take over its request's header.
const headerTimeout = 10 * time.Second

// serveEach handles each connection on a goroutine of its own, until the
// listener is closed.
func serveEach(l net.Listener, handle func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			handle(c)
		}()
	}
}
