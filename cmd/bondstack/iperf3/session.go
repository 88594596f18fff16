package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// session is a test at the server.
type session struct {
	*test
	server *server
	cookie [cookieSize]byte
	ctl    net.Conn
	joined chan joining // with the cookie
	ending bool         // guarded by the server's mu: it is about to end
}

// serve runs the session and ends it.
func (s *session) serve(ctx context.Context) {
	srv := s.server
	host, port := addrPort(s.ctl.RemoteAddr())
	srv.out.line("Accepted connection from %s, port %d", host, port)
	err := s.do(ctx, &Peer{host, port})
	s.end()
	if err != nil {
		s.tell(ctx, err)
		srv.log.Warn("iperf3: test failed", "client", s.ctl.RemoteAddr(), "reason", err)
	} else if e := &s.report.End; srv.o.Out == nil {
		srv.log.Info("iperf3: test", "client", s.ctl.RemoteAddr(), "sent", e.SumSent.Bytes, "received", e.SumReceived.Bytes, "seconds", e.SumReceived.Seconds)
	}
	s.ctl.Close()
	if s.test != nil {
		if err != nil {
			s.report.Error = err.Error()
		}
		s.test.close()
		srv.out.end(s.test, err)
	}
	srv.mu.Lock()
	srv.session = nil
	srv.ended.Broadcast()
	srv.mu.Unlock()
	for len(s.joined) > 0 {
		(<-s.joined).Close()
	}
	if srv.o.Once {
		srv.stop()
		return
	}
	srv.banner()
}

// end has other clients wait for the end.
func (s *session) end() {
	s.server.mu.Lock()
	s.ending = true
	s.server.mu.Unlock()
}

// tell tells the client why its test is over.
func (s *session) tell(ctx context.Context, err error) {
	s.ctl.SetDeadline(time.Now().Add(time.Second))
	var f *faultError
	switch {
	case errors.As(err, &f):
		_ = writeFault(s.ctl, f.fault)
	case ctx.Err() != nil:
		_ = writeState(s.ctl, serverTerminate)
	}
}

// do agrees on a test and connects, measures, and exchanges results.
func (s *session) do(ctx context.Context, from *Peer) error {
	defer context.AfterFunc(ctx, func() { s.ctl.SetDeadline(time.Unix(1, 0)) })()
	if err := s.agree(); err != nil {
		return err
	}
	if err := s.accept(ctx); err != nil {
		return err
	}
	s.test.begin(string(s.cookie[:cookieSize-1]), nil, from)
	s.out.streams(s.test)
	for _, st := range []state{testStart, testRunning} {
		if err := writeState(s.ctl, st); err != nil {
			return err
		}
	}
	limit := s.set.omit + s.server.o.longest() + s.server.o.timeout()
	if s.set.time > 0 {
		limit = s.set.omit + s.set.time + s.server.o.timeout()
	}
	s.limit(ctx, limit)
	if err := s.test.run(ctx, s.test.watch(s.ctl, testEnd)); err != nil {
		s.settle()
		return err
	}
	return s.exchange(ctx)
}

// limit bounds how long the control connection may wait from now on.
func (s *session) limit(ctx context.Context, d time.Duration) {
	s.ctl.SetDeadline(time.Now().Add(d))
	if ctx.Err() != nil {
		s.ctl.SetDeadline(time.Unix(1, 0))
	}
}

// agree receives the parameters.
func (s *session) agree() error {
	s.ctl.SetDeadline(time.Now().Add(s.server.o.timeout()))
	if err := writeState(s.ctl, paramExchange); err != nil {
		return err
	}
	var p params
	if err := readMessage(s.ctl, maxParams, &p); err != nil {
		return faultf(faultParams, "parameters: %v", err)
	}
	set, err := p.settings(s.server.o.longest())
	if err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	if names := p.ignored(); len(names) > 0 {
		s.server.log.Warn("iperf3: wishes of the client are not honoured", "client", s.ctl.RemoteAddr(), "wishes", names)
	}
	s.test = newTest(set, false, &s.server.o.Options, s.server.out)
	return nil
}

// accept has the client make the streams.
func (s *session) accept(ctx context.Context) error {
	if s.set.udp {
		c, err := s.server.net.ListenPacket("udp", fmt.Sprintf(":%d", s.server.o.port()))
		if err != nil {
			return faultf(faultListen, "datagrams: %v", err)
		}
		if s.shared, err = newDatagrams(c, s.ctl.LocalAddr(), s.ctl.RemoteAddr()); err != nil {
			return err
		}
	}
	if err := writeState(s.ctl, createStreams); err != nil {
		return err
	}
	if s.set.udp {
		return s.shared.accept(ctx, s.test, time.Now().Add(s.server.o.timeout()))
	}
	return s.acceptStreams(ctx)
}

// acceptStreams takes the connections that have the session's cookie.
func (s *session) acceptStreams(ctx context.Context) error {
	timer := time.NewTimer(s.server.o.timeout())
	defer timer.Stop()
	want := s.set.directions()
	came := make([]joining, 0, len(want))
	defer func() {
		if len(s.streams) == 0 {
			for _, c := range came {
				c.Close()
			}
		}
	}()
	for len(came) < len(want) {
		select {
		case c := <-s.joined:
			came = append(came, c)
		case <-timer.C:
			return faultf(faultAccept, "of %d streams %d came in %v", len(want), len(came), s.server.o.timeout())
		case <-ctx.Done():
			return errServerEnded
		}
	}
	slices.SortFunc(came, func(a, b joining) int { return a.order - b.order })
	for i, c := range came {
		setNoDelay(c.Conn, s.set.noDelay)
		one := newStream(i, !want[i], false)
		one.over(c.Conn)
		s.streams = append(s.streams, one)
	}
	return nil
}

// exchange receives the client's results and sends this end's.
func (s *session) exchange(ctx context.Context) error {
	s.limit(ctx, s.server.o.timeout())
	if err := writeState(s.ctl, exchangeResults); err != nil {
		return err
	}
	if err := s.readResults(s.ctl); err != nil {
		return err
	}
	s.drain(allCame)
	s.settle()
	if err := writeMessage(s.ctl, s.results()); err != nil {
		return err
	}
	s.end() // before the client knows that it is done, and the next one comes
	if err := writeState(s.ctl, displayResults); err != nil {
		return err
	}
	s.conclude()
	s.limit(ctx, s.server.o.timeout()/4)
	_ = expectState(s.ctl, iperfDone) // all is known: a client that goes without a word has not failed
	return nil
}
