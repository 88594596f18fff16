package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"bondstack/stack"
)

// forward is one --forward: connections to a port of the bonded stack are
// passed on to an address that the host reaches.
type forward struct {
	port uint16
	to   string
}

func (f forward) String() string { return fmt.Sprintf("tcp:%d=%s", f.port, f.to) }

// parseForward reads tcp:PORT=HOST:PORT.
func (s *runSettings) parseForward(text string) error {
	f, err := parseForward(text)
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	s.forwards = append(s.forwards, f)
	return nil
}

func parseForward(text string) (forward, error) {
	rest, ok := strings.CutPrefix(text, "tcp:")
	portText, to, hasTo := strings.Cut(rest, "=")
	if !ok || !hasTo {
		return forward{}, errors.New("the form is tcp:PORT=HOST:PORT")
	}
	port, err := parsePort(portText)
	if err != nil {
		return forward{}, err
	}
	host, toPort, err := net.SplitHostPort(to)
	if err != nil || host == "" {
		return forward{}, fmt.Errorf("%q is not HOST:PORT", to)
	}
	if _, err := parsePort(toPort); err != nil {
		return forward{}, err
	}
	return forward{port, to}, nil
}

// forwardDialTimeout bounds how long the other side may take to answer.
const forwardDialTimeout = 10 * time.Second

// start is that of a starter.
func (f forward) start(ctx context.Context, h *stack.Host, log *slog.Logger) (stop func(), err error) {
	l, err := h.Listen("tcp", fmt.Sprintf(":%d", f.port))
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: forwardDialTimeout}
	go serveEach(l, func(in net.Conn) {
		out, err := dialer.DialContext(ctx, "tcp", f.to)
		if err != nil {
			log.Warn("forward failed", "forward", f.String(), "error", err)
			reset(in)
			return
		}
		stop := context.AfterFunc(ctx, func() { out.Close() })
		defer stop()
		splice(in, out)
	})
	return func() { l.Close() }, nil
}

// splice passes bytes both ways until both are done. The end of one direction
// is passed on as the end of that direction alone, and an error ends both with
// a reset, so that neither side takes a cut stream for a whole one.
func splice(a, b net.Conn) {
	var wg sync.WaitGroup
	pass := func(to, from net.Conn) {
		defer wg.Done()
		if _, err := io.Copy(to, from); err != nil {
			reset(to)
			reset(from)
			return
		}
		if c, ok := to.(interface{ CloseWrite() error }); ok {
			c.CloseWrite()
		}
	}
	wg.Add(2)
	go pass(a, b)
	go pass(b, a)
	wg.Wait()
	a.Close()
	b.Close()
}

// reset closes a connection so that the other end sees it was cut off.
func reset(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		l.SetLinger(0)
	}
	c.Close()
}
