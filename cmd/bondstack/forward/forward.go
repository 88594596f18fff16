// Package forward passes TCP connections and UDP datagrams on between a bonded
// stack and its host, both ways.
//
//	f, err := forward.Parse("tcp:2222=127.0.0.1:22")
//	at, stop, err := f.Start(relay, host, log)
//
// The text is [host:]NETWORK:[ADDRESS:]PORT=HOST:PORT. Without "host:" the port is
// one of the stack, and the destination what the host reaches; with it the port is
// one of the host, and the destination what the stack reaches. The address where
// one listens is that of all the stack's, or the host's loopback address, unless
// it is given.
//
// # Limits
//
// Ends, resets, idle times and limits are those of package link/relay. A UDP
// forward of a stack with several addresses answers from the one that its routes
// choose, unless its own address is given.
package forward

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"bondstack/link/relay"
)

// Form is the form of the text, for help and errors.
const Form = "[host:]tcp|udp:[ADDRESS:]PORT=HOST:PORT"

// Forward is one forward. Its text form is that of the package's text.
type Forward struct {
	// FromHost is whether the port is one of the host, and not of the stack.
	FromHost bool
	// Network is "tcp" or "udp".
	Network string
	// Address is where to listen: one of the stack's addresses, or one of the
	// host's. The zero Addr is all of the stack's, or the host's 127.0.0.1.
	Address netip.Addr
	// Port is where to listen. Parse wants 1 to 65535; 0 is any free one.
	Port uint16
	// To is the destination, HOST:PORT.
	To string
}

var (
	_ encoding.TextMarshaler   = Forward{}
	_ encoding.TextUnmarshaler = (*Forward)(nil)
)

// Parse reads the text form.
func Parse(text string) (Forward, error) {
	var f Forward
	rest, ok := strings.CutPrefix(text, "host:")
	f.FromHost = ok
	network, rest, _ := strings.Cut(rest, ":")
	at, to, ok := strings.Cut(rest, "=")
	if (network != "tcp" && network != "udp") || !ok {
		return Forward{}, errors.New("the form is " + Form)
	}
	f.Network, f.To = network, to
	var err error
	if f.Address, f.Port, err = parseListen(at); err != nil {
		return Forward{}, err
	}
	host, port, err := net.SplitHostPort(to)
	if err != nil || host == "" {
		return Forward{}, fmt.Errorf("%q is not HOST:PORT", to)
	}
	if _, err := parsePort(port); err != nil {
		return Forward{}, err
	}
	return f, nil
}

// parseListen reads [ADDRESS:]PORT.
func parseListen(text string) (netip.Addr, uint16, error) {
	if !strings.Contains(text, ":") {
		port, err := parsePort(text)
		return netip.Addr{}, port, err
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("%q is not [ADDRESS:]PORT with a literal address", text)
	}
	_, err = parsePort(strconv.Itoa(int(at.Port())))
	return at.Addr(), at.Port(), err
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port, allowed are 1 to 65535", text)
	}
	return uint16(n), nil
}

// String returns the text form.
func (f Forward) String() string {
	text := f.Network + ":"
	if f.FromHost {
		text = "host:" + text
	}
	if f.Address.IsValid() {
		text += netip.AddrPortFrom(f.Address, f.Port).String()
	} else {
		text += strconv.Itoa(int(f.Port))
	}
	return text + "=" + f.To
}

// MarshalText implements encoding.TextMarshaler.
func (f Forward) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Forward) UnmarshalText(text []byte) (err error) {
	*f, err = Parse(string(text))
	return err
}

// Stack is the bonded stack, a *stack.Host.
type Stack interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Listen(network, address string) (net.Listener, error)
	// ListenPacket returns one that is a relay.PacketConn.
	ListenPacket(network, address string) (net.PacketConn, error)
}

// machine is the host as a Stack.
type machine struct{ net.Dialer }

func (machine) Listen(network, address string) (net.Listener, error) {
	return net.Listen(network, address)
}

func (machine) ListenPacket(network, address string) (net.PacketConn, error) {
	return net.ListenPacket(network, address)
}

// Start begins to forward, until stop is called or the relay is closed, and returns
// where it listens. stop leaves connections be. The log is told of destinations that
// cannot be reached.
func (f Forward) Start(r *relay.Relay, stack Stack, log *slog.Logger) (at net.Addr, stop func(), err error) {
	var near, far Stack = stack, &machine{}
	if f.FromHost {
		near, far = far, near
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		c, err := far.DialContext(ctx, f.Network, f.To)
		if err != nil && ctx.Err() != context.Canceled {
			log.Warn("forward failed", "forward", f.String(), "error", err)
		}
		return c, err
	}
	if f.Network == "udp" {
		pc, err := near.ListenPacket("udp", f.listenAt())
		if err != nil {
			return nil, nil, err
		}
		r.ServeUDP(pc.(relay.PacketConn), dial)
		return pc.LocalAddr(), func() { pc.Close() }, nil
	}
	l, err := near.Listen("tcp", f.listenAt())
	if err != nil {
		return nil, nil, err
	}
	r.ServeTCP(l, dial)
	return l.Addr(), func() { l.Close() }, nil
}

// listenAt returns where to listen in the form of package net.
func (f Forward) listenAt() string {
	host := ""
	switch {
	case f.Address.IsValid():
		host = f.Address.String()
	case f.FromHost:
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(int(f.Port)))
}
