package iperf3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// The time limits of a test's ends, beside that of the test.
const (
	controlTimeout = 10 * time.Second // for an answer
	helloEvery     = 200 * time.Millisecond
)

// cookieSize is the length of the text that names a test, with a zero byte.
const cookieSize = 37

// newCookie makes a cookie of the characters that iperf3 uses.
func newCookie() (c [cookieSize]byte) {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	rand.Read(c[:cookieSize-1]) // never fails
	for i := range c[:cookieSize-1] {
		c[i] = letters[c[i]%32]
	}
	return c
}

// client is a test at the client.
type client struct {
	*test
	net    Network
	server string // address and port
	cookie [cookieSize]byte
	ctl    net.Conn
}

// Run runs a test with a server, and returns its report, also with an error as far
// as it is known. When ctx ends, so does the test.
func Run(ctx context.Context, n Network, o ClientOptions) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	set, _ := o.settings()
	out := newPrinter(&o.Options)
	c := &client{test: newTest(set, true, &o.Options, out), net: n, cookie: newCookie(),
		server: net.JoinHostPort(o.Host, strconv.Itoa(int(o.port())))}
	to := &Peer{o.Host, int(o.port())}
	err := c.do(ctx, to)
	if err != nil {
		c.report.Error = err.Error()
	}
	out.end(c.test, err)
	return c.report, err
}

// do connects, measures, and exchanges results.
func (c *client) do(ctx context.Context, to *Peer) error {
	c.out.line("Connecting to host %s, port %d", to.Host, to.Port)
	defer c.test.close()
	err := c.connect(ctx)
	c.test.begin(string(c.cookie[:cookieSize-1]), to, nil)
	if err != nil {
		return err
	}
	defer c.ctl.Close()
	c.out.streams(c.test)
	c.ctl.SetDeadline(time.Time{})
	if err := c.test.run(ctx, c.watch(c.ctl, 0)); err != nil {
		if ctx.Err() != nil {
			c.ctl.SetDeadline(time.Now().Add(controlTimeout))
			_ = writeState(c.ctl, clientTerminate) // or else the server sees the connection end
		}
		c.settle()
		return err
	}
	if err := c.exchange(); err != nil {
		return err
	}
	c.conclude()
	return nil
}

// connect makes the control connection and the streams.
func (c *client) connect(ctx context.Context) (err error) {
	dial, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	if c.ctl, err = c.net.DialContext(dial, "tcp", c.server); err != nil {
		return fmt.Errorf("cannot connect to the server: %w; it is started there by iperf3 -s, or bondstack iperf3 -s", err)
	}
	defer context.AfterFunc(ctx, func() { c.ctl.SetDeadline(time.Unix(1, 0)) })()
	defer func() {
		if err != nil {
			c.ctl.Close()
			if ctx.Err() != nil {
				err = errClientEnded
			}
		}
	}()
	c.ctl.SetDeadline(time.Now().Add(controlTimeout))
	if _, err := c.ctl.Write(c.cookie[:]); err != nil {
		return err
	}
	if err := expectState(c.ctl, paramExchange); err != nil {
		return err
	}
	if err := writeMessage(c.ctl, c.set.wire()); err != nil {
		return err
	}
	if err := expectState(c.ctl, createStreams); err != nil {
		return err
	}
	if err := c.connectStreams(dial); err != nil {
		return err
	}
	for _, want := range []state{testStart, testRunning} {
		if err := expectState(c.ctl, want); err != nil {
			return err
		}
	}
	return nil
}

// connectStreams makes the streams, one after the other.
func (c *client) connectStreams(ctx context.Context) error {
	network := "tcp"
	if c.set.udp {
		network = "udp"
	}
	for i, sender := range c.set.directions() {
		conn, err := c.net.DialContext(ctx, network, c.server)
		if err != nil {
			return fmt.Errorf("stream %d: %w", i+1, err)
		}
		s := newStream(i, sender, c.set.udp)
		s.over(conn)
		c.test.streams = append(c.test.streams, s)
		if c.set.udp {
			err = sayHello(conn)
		} else {
			setNoDelay(conn, c.set.noDelay)
			_, err = conn.Write(c.cookie[:])
		}
		if err != nil {
			return fmt.Errorf("stream %d: %w", i+1, err)
		}
	}
	return nil
}

// setNoDelay says whether TCP gathers small blocks. Package net and package stack
// do not by default, iperf3 does.
func setNoDelay(c net.Conn, on bool) {
	if tcp, ok := c.(interface{ SetNoDelay(bool) error }); ok {
		_ = tcp.SetNoDelay(on) // of a connection that has ended the test tells
	}
}

// sayHello says hello until it is answered: datagrams are lost.
func sayHello(c net.Conn) error {
	var b [64]byte
	var err error
	var n int
	for deadline := time.Now().Add(controlTimeout); time.Now().Before(deadline); {
		if _, err = c.Write([]byte{0x39, 0x38, 0x37, 0x36}); err != nil { // hello, as most machines send it
			time.Sleep(helloEvery)
			continue
		}
		c.SetReadDeadline(time.Now().Add(helloEvery))
		n, err = c.Read(b[:])
		switch {
		case err == nil && isReply(b[:n]):
			return c.SetReadDeadline(time.Time{})
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			time.Sleep(helloEvery) // such as a port that is not there yet
		}
	}
	return fmt.Errorf("the server does not answer: %w", err)
}

// exchange sends this end's results and receives the server's.
func (c *client) exchange() error {
	c.ctl.SetDeadline(time.Now().Add(controlTimeout))
	if err := writeState(c.ctl, testEnd); err != nil {
		return err
	}
	switch got := <-c.said; {
	case got.err != nil:
		return got.err
	case got.state != exchangeResults:
		return fmt.Errorf("control connection: got %s, want %s", got.state, exchangeResults)
	}
	c.drain(closed)
	c.settle()
	if err := writeMessage(c.ctl, c.results()); err != nil {
		return err
	}
	if err := c.readResults(c.ctl); err != nil {
		return err
	}
	if err := expectState(c.ctl, displayResults); err != nil {
		return err
	}
	return writeState(c.ctl, iperfDone)
}
