package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"bondstack/stack"
)

// packetConn is what a server receives datagrams by. Those of package net and of
// package stack are.
type packetConn interface {
	net.PacketConn
	ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error)
}

var (
	_ packetConn = (*net.UDPConn)(nil)
	_ packetConn = (*stack.UDPConn)(nil)
)

// datagrams are all streams of a server's test, which share its port: they differ
// by who sends.
type datagrams struct {
	packetConn
	client  netip.Addr // whose datagrams are taken
	local   net.Addr   // with the port of the control connection, which is the same
	streams map[netip.AddrPort]*stream
}

// newDatagrams takes over a connection. The addresses are those of the
// control connection.
func newDatagrams(c net.PacketConn, local, client net.Addr) (*datagrams, error) {
	conn, ok := c.(packetConn)
	from, err := netip.ParseAddrPort(client.String())
	if !ok || err != nil {
		c.Close()
		return nil, fmt.Errorf("datagrams by %T from %s: not an IP network", c, client)
	}
	return &datagrams{conn, plain(from.Addr()), local, map[netip.AddrPort]*stream{}}, nil
}

// plain returns an address in the form in which it can be compared.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// accept waits until every stream has said hello.
func (d *datagrams) accept(ctx context.Context, t *test, deadline time.Time) error {
	d.SetReadDeadline(deadline)
	defer context.AfterFunc(ctx, func() { d.SetReadDeadline(time.Unix(1, 0)) })()
	var b [64]byte
	want := t.set.directions()
	for len(t.streams) < len(want) {
		n, from, err := d.ReadFromUDPAddrPort(b[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return faultf(faultAccept, "of %d streams %d came in %v", len(want), len(t.streams), controlTimeout)
		}
		if err != nil {
			return err
		}
		reply, ok := replyTo(b[:n])
		if !ok || plain(from.Addr()) != d.client {
			continue
		}
		if d.streams[from] == nil {
			s := newStream(len(t.streams), !want[len(t.streams)], true)
			s.local, s.remote = d.local, net.UDPAddrFromAddrPort(from)
			s.write = func(b []byte) (int, error) { return d.WriteToUDPAddrPort(b, from) }
			d.streams[from] = s
			t.streams = append(t.streams, s)
		}
		_, _ = d.WriteToUDPAddrPort(reply[:], from) // who does not get it asks again
	}
	return d.SetReadDeadline(time.Time{})
}

// receive counts datagrams until the connection is closed.
func (d *datagrams) receive(t *test) {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := d.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(failurePause) // such as a port that is gone
			continue
		}
		s := d.streams[from]
		if s == nil {
			continue
		}
		if reply, ok := replyTo(buf[:n]); ok {
			_, _ = d.WriteToUDPAddrPort(reply[:], from) // the last reply was lost
		} else if !s.sender {
			s.arrived(t, buf[:n])
		}
	}
}
