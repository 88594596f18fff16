// Package readonly serves pages over HTTP that only tell: no request changes
// anything. It is what the command's metrics and its web page have in common.
//
//	l, err := readonly.ParseListen(":9090") // 127.0.0.1:9090
//	s, err := l.Start(handler, readonly.Options{})
//	defer s.Close()
//
// A request has the method GET or HEAD, no body, a bounded head and a bounded
// time, and connections are bounded in number. On loopback the Host of a request
// has to be an address or localhost, so that no page of the network reads what is
// here by a name that its owner points at this machine (DNS rebinding).
//
// # Limits
//
// There is no TLS and nobody is asked who he is: that is for a proxy in front.
package readonly

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Listener is where to listen. The zero value is nowhere.
type Listener struct{ addr netip.AddrPort }

// ParseListen reads PORT, :PORT or ADDRESS:PORT. Without an address it is the
// loopback's, 127.0.0.1: to be reached from elsewhere, an address has to be
// written out, such as 192.0.2.1:9090, 0.0.0.0:9090 or [::]:9090. Port 0 is any
// that is free.
func ParseListen(text string) (Listener, error) {
	host, port := "", text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		host, port = text[:i], text[i+1:]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Listener{}, fmt.Errorf("%q: port %q is not a number of 0 to 65535; the form is PORT, :PORT (both on 127.0.0.1) or ADDRESS:PORT", text, port)
	}
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	switch {
	case host == "" || host == "localhost":
	case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"):
		if addr, err = netip.ParseAddr(host[1 : len(host)-1]); err == nil && addr.Is4() {
			err = errors.New("IPv4 has no brackets")
		}
	default:
		if addr, err = netip.ParseAddr(host); err == nil && addr.Is6() {
			err = errors.New("IPv6 has brackets")
		}
	}
	if err != nil {
		return Listener{}, fmt.Errorf("%q: %q is not an address, such as 192.0.2.1, or [2001:db8::1] of IPv6", text, host)
	}
	return Listener{netip.AddrPortFrom(addr, uint16(n))}, nil
}

// IsZero reports whether the Listener is nowhere.
func (l Listener) IsZero() bool { return !l.addr.IsValid() }

// IsLoopback reports whether only this machine can connect.
func (l Listener) IsLoopback() bool { return l.addr.Addr().Unmap().IsLoopback() }

// String returns ADDRESS:PORT, which ParseListen reads; "" for nowhere.
func (l Listener) String() string {
	if l.IsZero() {
		return ""
	}
	return l.addr.String()
}

// listen opens the socket.
func (l Listener) listen() (net.Listener, error) {
	network := "tcp4"
	if l.addr.Addr().Is6() {
		network = "tcp"
	}
	return net.Listen(network, l.addr.String())
}
