package capture

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// The bounds of a filter's text.
const (
	maxExpression = 1024 // bytes
	maxDepth      = 32   // brackets and nots inside each other
)

// Filter decides which frames are written.
type Filter func(frame []byte) bool

// filterWords is what an error says is allowed.
const filterWords = "ip, ip6, arp, tcp, udp, icmp, icmp6, igmp, lacp, lldp, broadcast, multicast, [src|dst] host IP, [src|dst] net PREFIX, " +
	"[src|dst] port N, ether [src|dst] host MAC, ether proto N, vlan [ID], less N, greater N, joined by and, or, not and brackets"

// ParseFilter reads an expression in tcpdump's language, of which it knows what people
// use most. Unlike tcpdump it looks behind VLAN tags by itself.
func ParseFilter(text string) (Filter, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("filter has %d bytes: allowed are at most %d", len(text), maxExpression)
	}
	spaced := strings.NewReplacer("(", " ( ", ")", " ) ", "!", " ! ", "&&", " and ", "||", " or ").Replace(text)
	p := &filterParser{words: strings.Fields(spaced)}
	f, err := p.either(0)
	if err == nil && len(p.words) > 0 {
		err = p.fail("%q was not expected", p.words[0])
	}
	if err != nil {
		return nil, fmt.Errorf("filter %.100q: %w; allowed are %s", text, err, filterWords)
	}
	return f, nil
}

// filterParser reads words from the left.
type filterParser struct{ words []string }

func (p *filterParser) fail(format string, args ...any) error { return fmt.Errorf(format, args...) }

// take takes the next word if it is one of those given.
func (p *filterParser) take(words ...string) (string, bool) {
	for _, w := range words {
		if len(p.words) > 0 && p.words[0] == w {
			p.words = p.words[1:]
			return w, true
		}
	}
	return "", false
}

// value takes the next word whatever it is.
func (p *filterParser) value(what string) (string, error) {
	if len(p.words) == 0 {
		return "", p.fail("%s is missing at the end", what)
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w, nil
}

func (p *filterParser) either(depth int) (Filter, error) {
	f, err := p.both(depth)
	for err == nil {
		if _, ok := p.take("or"); !ok {
			break
		}
		left, right := f, Filter(nil)
		right, err = p.both(depth)
		f = func(b []byte) bool { return left(b) || right(b) }
	}
	return f, err
}

func (p *filterParser) both(depth int) (Filter, error) {
	f, err := p.single(depth)
	for err == nil {
		if _, ok := p.take("and"); !ok {
			break
		}
		left, right := f, Filter(nil)
		right, err = p.single(depth)
		f = func(b []byte) bool { return left(b) && right(b) }
	}
	return f, err
}

func (p *filterParser) single(depth int) (Filter, error) {
	if depth == maxDepth {
		return nil, p.fail("more than %d brackets and nots inside each other", maxDepth)
	}
	if _, ok := p.take("not", "!"); ok {
		f, err := p.single(depth + 1)
		return func(b []byte) bool { return !f(b) }, err
	}
	if _, ok := p.take("("); ok {
		f, err := p.either(depth + 1)
		if err == nil {
			if _, ok := p.take(")"); !ok {
				err = p.fail("a bracket is not closed")
			}
		}
		return f, err
	}
	return p.primitive()
}

// protocols are the filters of a single word. tcpdump's tcp and udp do not look behind
// IPv6's extension headers either.
var protocols = map[string]Filter{
	"ip":    func(b []byte) bool { return layersOf(b).etherType == 0x0800 },
	"ip6":   func(b []byte) bool { return layersOf(b).etherType == 0x86dd },
	"arp":   func(b []byte) bool { return layersOf(b).etherType == 0x0806 },
	"tcp":   func(b []byte) bool { return layersOf(b).protocol == 6 },
	"udp":   func(b []byte) bool { return layersOf(b).protocol == 17 },
	"icmp":  func(b []byte) bool { l := layersOf(b); return l.etherType == 0x0800 && l.protocol == 1 },
	"igmp":  func(b []byte) bool { l := layersOf(b); return l.etherType == 0x0800 && l.protocol == 2 },
	"icmp6": func(b []byte) bool { l := layersOf(b); return l.etherType == 0x86dd && l.protocol == 58 },
	"lacp": func(b []byte) bool {
		l := layersOf(b)
		return l.etherType == 0x8809 && len(l.rest) > 0 && l.rest[0] == 1
	},
	"lldp":      func(b []byte) bool { return layersOf(b).etherType == 0x88cc },
	"broadcast": func(b []byte) bool { return len(b) >= 6 && string(b[:6]) == "\xff\xff\xff\xff\xff\xff" },
	"multicast": func(b []byte) bool { return len(b) >= 6 && b[0]&1 != 0 },
}

func (p *filterParser) primitive() (Filter, error) {
	word, err := p.value("a condition")
	if err != nil {
		return nil, err
	}
	if f, ok := protocols[word]; ok {
		if len(p.words) > 0 && (p.words[0] == "port" || p.words[0] == "src" || p.words[0] == "dst" || p.words[0] == "host" || p.words[0] == "net") {
			g, err := p.primitive() // tcp port 80
			return func(b []byte) bool { return f(b) && g(b) }, err
		}
		return f, nil
	}
	switch word {
	case "src", "dst":
		kind, ok := p.take("host", "net", "port")
		if !ok {
			kind = "host" // src 10.0.0.1
		}
		return p.qualified(kind, word)
	case "host", "net", "port":
		return p.qualified(word, "")
	case "ether":
		return p.ether()
	case "vlan":
		return p.vlan()
	case "less", "greater":
		n, err := p.number("a length", 1<<17)
		if word == "less" {
			return func(b []byte) bool { return len(b) <= n }, err
		}
		return func(b []byte) bool { return len(b) >= n }, err
	}
	return nil, p.fail("%q is not known", word)
}

func (p *filterParser) number(what string, most int) (int, error) {
	text, err := p.value(what)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil || n > uint64(most) {
		return 0, p.fail("%s %q: allowed are 0 to %d", what, text, most)
	}
	return int(n), nil
}

// qualified is host, net or port, of the source, the destination or either.
func (p *filterParser) qualified(kind, end string) (Filter, error) {
	if kind == "port" {
		n, err := p.number("port", 65535)
		return func(b []byte) bool {
			src, dst, ok := layersOf(b).ports()
			return ok && (end != "dst" && int(src) == n || end != "src" && int(dst) == n)
		}, err
	}
	text, err := p.value("an address")
	if err != nil {
		return nil, err
	}
	prefix, err := parsePrefix(kind, text)
	return func(b []byte) bool {
		src, dst, ok := layersOf(b).addresses()
		return ok && (end != "dst" && prefix.Contains(src) || end != "src" && prefix.Contains(dst))
	}, err
}

// parsePrefix reads an address, or a network.
func parsePrefix(kind, text string) (netip.Prefix, error) {
	if kind == "net" {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() {
			return p, fmt.Errorf("%q is not a network such as 10.0.0.0/24", text)
		}
		return p, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%q is not an IP address", text)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// ether is ether host MAC, ether src MAC, ether proto N and so on.
func (p *filterParser) ether() (Filter, error) {
	if _, ok := p.take("proto"); ok {
		n, err := p.number("EtherType", 65535)
		return func(b []byte) bool { return int(layersOf(b).etherType) == n && len(b) >= 14 }, err
	}
	end, _ := p.take("src", "dst")
	if _, ok := p.take("host"); !ok && end == "" {
		return nil, p.fail("ether needs host, src, dst or proto")
	}
	text, err := p.value("a MAC address")
	if err != nil {
		return nil, err
	}
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		return nil, p.fail("%q is not a MAC address", text)
	}
	want := string(mac)
	return func(b []byte) bool {
		return len(b) >= 12 && (end != "src" && string(b[:6]) == want || end != "dst" && string(b[6:12]) == want)
	}, nil
}

// vlan is vlan, or vlan ID.
func (p *filterParser) vlan() (Filter, error) {
	if len(p.words) > 0 {
		if _, err := strconv.Atoi(p.words[0]); err == nil {
			n, err := p.number("VLAN", 4095)
			return func(b []byte) bool { l := layersOf(b); return l.tagged && int(l.vlan) == n }, err
		}
	}
	return func(b []byte) bool { return layersOf(b).tagged }, nil
}

// frameLayers are the parts of a frame that filters look at.
type frameLayers struct {
	tagged    bool
	vlan      uint16 // of the outer tag
	etherType uint16 // behind the tags
	rest      []byte // behind etherType
	protocol  int    // of IP; -1: none
	payload   []byte // of IP; nil where it is not the first fragment
}

func layersOf(b []byte) frameLayers {
	l := frameLayers{protocol: -1}
	if len(b) < 14 {
		return l
	}
	l.etherType, l.rest = binary.BigEndian.Uint16(b[12:]), b[14:]
	for range 2 {
		if l.etherType != 0x8100 && l.etherType != 0x88a8 || len(l.rest) < 4 {
			break
		}
		if !l.tagged {
			l.tagged, l.vlan = true, binary.BigEndian.Uint16(l.rest)&0xfff
		}
		l.etherType, l.rest = binary.BigEndian.Uint16(l.rest[2:]), l.rest[4:]
	}
	switch ip := l.rest; {
	case l.etherType == 0x0800 && len(ip) >= 20:
		l.protocol = int(ip[9])
		if size := int(ip[0]&15) * 4; binary.BigEndian.Uint16(ip[6:])&0x1fff == 0 && len(ip) >= size {
			l.payload = ip[size:]
		}
	case l.etherType == 0x86dd && len(ip) >= 40:
		l.protocol, l.payload = int(ip[6]), ip[40:]
	}
	return l
}

// ports are those of TCP, UDP and SCTP.
func (l frameLayers) ports() (src, dst uint16, ok bool) {
	if l.protocol != 6 && l.protocol != 17 && l.protocol != 132 || len(l.payload) < 4 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(l.payload), binary.BigEndian.Uint16(l.payload[2:]), true
}

// addresses are those of IP, and of ARP.
func (l frameLayers) addresses() (src, dst netip.Addr, ok bool) {
	at := func(i, n int) netip.Addr { a, _ := netip.AddrFromSlice(l.rest[i : i+n]); return a }
	switch {
	case l.etherType == 0x0800 && len(l.rest) >= 20:
		return at(12, 4), at(16, 4), true
	case l.etherType == 0x86dd && len(l.rest) >= 40:
		return at(8, 16), at(24, 16), true
	case l.etherType == 0x0806 && len(l.rest) >= 28:
		return at(14, 4), at(24, 4), true
	}
	return netip.Addr{}, netip.Addr{}, false
}
