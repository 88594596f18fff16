package dns_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"bondstack/stack/dns"
)

// server answers questions over net.Pipe: a zone of "TYPE name" to records such as
// "A 10.0.0.1", "AAAA fd00::1", "CNAME other.", or "NXDOMAIN", "SERVFAIL", "TC" (by
// UDP alone), "SILENT", "FORGED" (wrong answers before the right one, 10.0.0.1).
type server struct {
	zone map[string][]string
	mu   sync.Mutex
	seen []string // "network server TYPE name"
}

func (s *server) dial(_ context.Context, network, address string) (net.Conn, error) {
	if strings.HasPrefix(address, "10.0.0.99:") {
		return nil, errors.New("unreachable")
	}
	client, end := net.Pipe()
	go s.serve(end, network, address)
	return client, nil
}

func (s *server) serve(c net.Conn, network, address string) {
	defer c.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		msg := buf[:n]
		if network == "tcp" {
			msg = msg[2:]
		}
		var m dnsmessage.Message
		if err := m.Unpack(msg); err != nil {
			return
		}
		key := strings.TrimPrefix(m.Questions[0].Type.String(), "Type") + " " + m.Questions[0].Name.String()
		s.mu.Lock()
		s.seen = append(s.seen, network+" "+address+" "+key)
		s.mu.Unlock()
		for _, a := range s.answers(m, key, network) {
			b, _ := a.Pack()
			if network == "tcp" {
				b = append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
			}
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}
}

func (s *server) answers(m dnsmessage.Message, key, network string) []dnsmessage.Message {
	m.Header.Response = true
	good := dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET},
		Body:   &dnsmessage.AResource{A: [4]byte{10, 0, 0, 1}},
	}
	for _, record := range s.zone[key] {
		kind, value, _ := strings.Cut(record, " ")
		owner := m.Questions[0].Name
		if at, rest, ok := strings.Cut(value, "|"); ok {
			owner, value = dnsmessage.MustNewName(at), rest
		}
		h := dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET}
		switch kind {
		case "A":
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: netip.MustParseAddr(value).As4()}})
		case "AAAA":
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(value).As16()}})
		case "CNAME":
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(value)}})
		case "NXDOMAIN":
			m.RCode = dnsmessage.RCodeNameError
		case "SERVFAIL":
			m.RCode = dnsmessage.RCodeServerFailure
		case "TC":
			m.Truncated = network == "udp"
		case "SILENT":
			return nil
		case "FORGED":
			wrongID, wrongName, isQuery := m, m, m
			wrongID.ID++
			wrongName.Questions = []dnsmessage.Question{{Name: dnsmessage.MustNewName("evil."), Type: m.Questions[0].Type, Class: dnsmessage.ClassINET}}
			isQuery.Response = false
			bad := good
			bad.Body = &dnsmessage.AResource{A: [4]byte{6, 6, 6, 6}}
			for _, f := range []*dnsmessage.Message{&wrongID, &wrongName, &isQuery} {
				f.Answers = []dnsmessage.Resource{bad}
			}
			m.Answers = []dnsmessage.Resource{good}
			return []dnsmessage.Message{wrongID, wrongName, isQuery, m}
		}
	}
	return []dnsmessage.Message{m}
}

func TestLookup(t *testing.T) {
	zone := map[string][]string{
		"A both.example.":          {"A 10.0.0.5", "A 10.0.0.6"},
		"A BOTH.example.":          {"A both.example.|10.0.0.5"},
		"AAAA both.example.":       {"AAAA fd00::5"},
		"A www.example.":           {"A real.example.|10.0.0.7", "CNAME mid.example.|real.example.", "CNAME mid.example."},
		"A alias.example.":         {"CNAME both.example."},
		"A loop.example.":          {"CNAME loop2.example."},
		"A loop2.example.":         {"CNAME loop.example."},
		"A gone.example.":          {"NXDOMAIN"},
		"AAAA gone.example.":       {"NXDOMAIN"},
		"A broken.example.":        {"SERVFAIL"},
		"A long.example.":          {"TC", "A 10.0.0.8"},
		"A forged.example.":        {"FORGED"},
		"A stray.example.":         {"A other.example.|6.6.6.6"},
		"A short.corp.":            {"A 10.0.0.9"},
		"A short.lab.":             {"NXDOMAIN"},
		"A short.":                 {"A 6.6.6.6"},
		"A quiet.example.":         {"SILENT"},
		"A dotted.name.":           {"NXDOMAIN"},
		"A dotted.name.corp.":      {"A 10.0.0.10"},
		"A xn--bcher-kva.example.": {"A 10.0.0.11"},
	}
	for _, tc := range []struct {
		network, host string
		want          string // addresses, or a part of the error
		seen          int    // questions asked, where it matters
	}{
		{"ip", "both.example", "[10.0.0.5 10.0.0.6 fd00::5]", 2},
		{"ip4", "BOTH.example.", "[10.0.0.5]", 1}, // the answer is about both.example
		{"ip6", "both.example", "[fd00::5]", 1},
		{"ip4", "www.example", "[10.0.0.7]", 1},
		{"ip4", "alias.example", "[10.0.0.5 10.0.0.6]", 2},
		{"ip4", "loop.example", "too many aliases", 8},
		{"ip", "gone.example", "no such host", 0},
		{"ip4", "broken.example", "server says ServerFailure", 4},
		{"ip4", "long.example", "[10.0.0.8]", 2},
		{"ip4", "forged.example", "[10.0.0.1]", 1},
		{"ip4", "stray.example", "no such host", 0},
		{"ip4", "short", "[10.0.0.9]", 2},
		{"ip4", "short.", "[6.6.6.6]", 1},
		{"ip4", "dotted.name", "[10.0.0.10]", 3},
		{"ip4", "quiet.example", "i/o timeout", 4},
		{"ip", "10.9.8.7", "[10.9.8.7]", 0},
		{"ip", "fe80::1%bond0", "[fe80::1%bond0]", 0},
		{"ip", "bücher.example", "not a domain name", 0},
		{"ip4", "xn--bcher-kva.example", "[10.0.0.11]", 1},
		{"ip", "", "not a domain name", 0},
		{"ip", "a..b", "not a domain name", 0},
		{"ip", strings.Repeat("a", 64) + ".b", "not a domain name", 0},
		{"ip", strings.Repeat("a.", 127) + "bc", "not a domain name", 0},
		{"udp", "both.example", "unknown network udp", 0},
	} {
		t.Run(tc.network+" "+tc.host, func(t *testing.T) {
			s := &server{zone: zone}
			r := dns.Resolver{
				Config: func() dns.Config {
					return dns.Config{Servers: addrs("10.0.0.53", "10.0.0.54"), Search: []string{"lab.", "corp"}}
				},
				Dial:    s.dial,
				Timeout: 100 * time.Millisecond,
			}
			got, err := r.LookupNetIP(t.Context(), tc.network, tc.host)
			if err != nil && !strings.Contains(err.Error(), tc.want) || err == nil && fmt.Sprint(got) != tc.want {
				t.Errorf("LookupNetIP(%s, %s) = %v, %v, want %s", tc.network, tc.host, got, err, tc.want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if tc.seen != 0 && len(s.seen) != tc.seen {
				t.Errorf("%d questions, want %d: %q", len(s.seen), tc.seen, s.seen)
			}
			if strings.Contains(tc.want, "no such host") {
				if e, ok := errors.AsType[*net.DNSError](err); !ok || !e.IsNotFound || e.Name != tc.host {
					t.Errorf("error %#v is not a *net.DNSError that says not found, of %s", err, tc.host)
				}
			}
		})
	}
}

// TestServersInTurn: a server that cannot be reached or fails is passed over.
func TestServersInTurn(t *testing.T) {
	s := &server{zone: map[string][]string{"A a.example.": {"A 10.0.0.1"}}}
	r := dns.Resolver{Config: func() dns.Config { return dns.Config{Servers: addrs("10.0.0.99", "10.0.0.53")} }, Dial: s.dial}
	got, err := r.LookupNetIP(t.Context(), "ip4", "a.example")
	if err != nil || !slices.Equal(got, addrs("10.0.0.1")) {
		t.Errorf("%v, %v", got, err)
	}
	r.Config = func() dns.Config { return dns.Config{} }
	if _, err := r.LookupNetIP(t.Context(), "ip", "a.example"); err == nil || !strings.Contains(err.Error(), "no name servers are known") {
		t.Errorf("without servers: %v", err)
	}
}

// TestCancel: a look-up ends with its context.
func TestCancel(t *testing.T) {
	s := &server{zone: map[string][]string{"A quiet.": {"SILENT"}}}
	r := dns.Resolver{Config: func() dns.Config { return dns.Config{Servers: addrs("10.0.0.53")} }, Dial: s.dial, Timeout: time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := r.LookupNetIP(ctx, "ip4", "quiet"); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}

func addrs(texts ...string) (list []netip.Addr) {
	for _, s := range texts {
		list = append(list, netip.MustParseAddr(s))
	}
	return list
}

// FuzzAnswer: whatever a server sends, by UDP and by TCP, a look-up ends, and gives
// no address that was not in an answer to its question.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x80\x00\x00\x01\x00\x01\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\x0a\x00\x00\x01"))
	f.Add([]byte("\x82\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		r := dns.Resolver{
			Config: func() dns.Config { return dns.Config{Servers: addrs("10.0.0.53")} },
			Dial: func(_ context.Context, network, _ string) (net.Conn, error) {
				client, end := net.Pipe()
				go func() {
					defer end.Close()
					buf := make([]byte, 512)
					n, _ := end.Read(buf)
					id := buf[:2]
					if network == "tcp" {
						id = buf[2:4]
						binary.Write(end, binary.BigEndian, uint16(len(answer)+2))
					}
					if n > 0 {
						end.Write(append(slices.Clone(id), answer...))
					}
					io.Copy(io.Discard, end)
				}()
				return client, nil
			},
			Timeout:  20 * time.Millisecond,
			Attempts: 1,
		}
		got, err := r.LookupNetIP(t.Context(), "ip4", "a")
		if (err == nil) != (len(got) > 0) {
			t.Errorf("%v, %v", got, err)
		}
	})
}
