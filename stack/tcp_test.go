package stack_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"bondstack/stack"
)

func TestTCPEcho(t *testing.T) {
	for _, tt := range []struct {
		address string
		queue   int
	}{{"10.0.0.2:80", 0}, {"[fd00::2]:80", 0}, {"10.0.0.2:80", 1024}} {
		t.Run(fmt.Sprintf("%s/%d", tt.address, tt.queue), func(t *testing.T) {
			a, b := newPair(t, func(o *stack.HostOptions) { o.TransmitQueue = tt.queue })
			l, err := b.Listen("tcp", ":80")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				io.Copy(c, c)
				c.Close()
			}()
			c, err := a.Dial("tcp", tt.address)
			if err != nil {
				t.Fatal(err)
			}
			sent := pattern(3 << 20)
			go func() {
				c.Write(sent)
				c.(*stack.TCPConn).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err != nil || string(got) != string(sent) {
				t.Fatalf("echo of %d bytes = %d bytes, %v", len(sent), len(got), err)
			}
			c.Close()
		})
	}
}

// pattern returns bytes that repeat only after 251: no power of two, so that a
// piece at a wrong place shows.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

// Each side of a connection is closed by itself.
func TestHalfClose(t *testing.T) {
	a, b := newPair(t)
	c, s := connect(t, a, mustListen(t, b, "10.0.0.2:80"))
	conn := c.(*stack.TCPConn)
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Write() after CloseWrite = %v, want broken pipe", err)
	}
	if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the peer's Read() = %d, %v, want EOF", n, err)
	}
	if _, err := s.Write([]byte("still")); err != nil {
		t.Errorf("the peer's Write() = %v", err)
	}
	if n, err := c.Read(make([]byte, 9)); n != 5 || err != nil {
		t.Errorf("Read() = %d, %v", n, err)
	}
	done := make(chan error)
	go func() { done <- second(c.Read(make([]byte, 1))) }()
	if err := conn.CloseRead(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != io.EOF {
		t.Errorf("Read() during CloseRead = %v, want EOF", err)
	}
	c.Close()
	for what, err := range map[string]error{
		"CloseRead": conn.CloseRead(), "CloseWrite": conn.CloseWrite(), "SetLinger": conn.SetLinger(0),
		"SetNoDelay": conn.SetNoDelay(true), "SetKeepAlive": conn.SetKeepAlive(true),
		"SetKeepAlivePeriod": conn.SetKeepAlivePeriod(time.Minute),
	} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after Close = %v", what, err)
		}
	}
}

func TestConnOptions(t *testing.T) {
	a, b := newPair(t)
	c, _ := connect(t, a, mustListen(t, b, "10.0.0.2:80"))
	conn := c.(*stack.TCPConn)
	for what, err := range map[string]error{
		"SetLinger": conn.SetLinger(-1), "SetNoDelay": conn.SetNoDelay(false), "SetKeepAlive": conn.SetKeepAlive(false),
		"SetKeepAlivePeriod": conn.SetKeepAlivePeriod(time.Second),
	} {
		if err != nil {
			t.Errorf("%s = %v", what, err)
		}
	}
	if err := conn.SetKeepAlivePeriod(time.Millisecond); err == nil || !strings.Contains(err.Error(), "1ms is too short") {
		t.Errorf("SetKeepAlivePeriod(1ms) = %v", err)
	}
	if n, err := c.Write(nil); n != 0 || err != nil {
		t.Errorf("Write(nil) = %d, %v", n, err)
	}
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Errorf("Read(nil) = %d, %v", n, err)
	}
}
