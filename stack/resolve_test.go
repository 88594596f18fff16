package stack_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"bondstack/stack"
	"bondstack/stack/dns"
)

func dnsConfig(servers ...string) (c dns.Config) {
	for _, s := range servers {
		a, _ := netip.ParseAddr(s)
		c.Servers = append(c.Servers, a)
	}
	return c
}

// serveNames answers with the addresses of a zone, over UDP.
func serveNames(t *testing.T, h *stack.Host, zone map[string][]string) {
	conn := mustListenPacket(t, h, "udp", ":53")
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response = true
			q := m.Questions[0]
			for _, text := range zone[q.Name.String()] {
				a := netip.MustParseAddr(text)
				r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}}
				switch {
				case a.Is4() && q.Type == dnsmessage.TypeA:
					r.Body = &dnsmessage.AResource{A: a.As4()}
				case a.Is6() && q.Type == dnsmessage.TypeAAAA:
					r.Body = &dnsmessage.AAAAResource{AAAA: a.As16()}
				default:
					continue
				}
				m.Answers = append(m.Answers, r)
			}
			if packed, err := m.Pack(); err == nil {
				conn.WriteToUDPAddrPort(packed, from)
			}
		}
	}()
}

// unreachable returns n addresses with a prefix that lead nowhere, and then others.
func unreachable(prefix string, n int, others ...string) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i+1))
	}
	return append(list, others...)
}

func TestDialNames(t *testing.T) {
	a, b := newPair(t, func(o *stack.HostOptions) { o.DNS = dnsConfig("10.0.0.2") })
	serveNames(t, b, map[string][]string{
		"both.test.":   {"10.0.0.2", "fd00::2"},
		"v4.test.":     {"10.0.0.2"},
		"second.test.": {"10.9.0.9", "fd00:9::9", "10.0.0.2"}, // the first two cannot be reached
		"last4.test.":  append(unreachable("fd00:9::", 30), unreachable("10.9.0.", 15, "10.0.0.2", "10.0.0.2")...),
		"last6.test.":  append(unreachable("10.9.0.", 30), unreachable("fd00:9::", 15, "fd00::2", "fd00::2")...),
		"beyond.test.": append(unreachable("10.9.0.", 16, "10.0.0.2"), unreachable("fd00:9::", 16, "fd00::2")...),
	})
	l := mustListen(t, b, ":80")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, c.LocalAddr().(*net.TCPAddr).IP.String())
			c.Close()
		}
	}()
	for _, tc := range []struct{ network, address, want string }{
		{"tcp", "both.test:80", "fd00::2"},
		{"tcp4", "both.test:80", "10.0.0.2"},
		{"tcp", "v4.test:80", "10.0.0.2"},
		{"tcp", "second.test:80", "10.0.0.2"},
		{"tcp", "last4.test:80", "10.0.0.2"},
		{"tcp", "last6.test:80", "fd00::2"},
	} {
		c, err := a.Dial(tc.network, tc.address)
		if err != nil {
			t.Errorf("Dial(%s, %s): %v", tc.network, tc.address, err)
			continue
		}
		got, err := io.ReadAll(c)
		if string(got) != tc.want || err != nil {
			t.Errorf("Dial(%s, %s) reached %q, %v, want %s", tc.network, tc.address, got, err, tc.want)
		}
		c.Close()
	}
	for _, tc := range []struct {
		network, address, want string
		is                     error
	}{
		{"tcp6", "v4.test:80", "no such host", nil},
		{"tcp", "none.test:80", "no such host", nil},
		{"tcp", "both.test:81", "refused", syscall.ECONNREFUSED},
		{"tcp", "beyond.test:80", "unreachable", syscall.ENETUNREACH},
		{"udp", "v4.test:http", "port must be a number", nil},
		{"tcp7", "v4.test:80", "unknown network", nil},
	} {
		_, err := a.Dial(tc.network, tc.address)
		if _, ok := errors.AsType[*net.OpError](err); !ok || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("Dial(%s, %s) = %v, want a *net.OpError with %q", tc.network, tc.address, err, tc.want)
		}
	}
}
