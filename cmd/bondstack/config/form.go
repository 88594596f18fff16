package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"bondstack/link/user"
)

// form is a kind of text.
type form struct {
	allowed string // in words, with an example
	pattern string // of the schema: what it refuses fault refuses too
	// fault says what is wrong with a text, "" for nothing.
	fault func(string) string
}

// forms are the kinds of text that a field's tag may name.
var forms = map[string]form{
	"name": {"a name of 1 to 15 bytes without slash, colon and white space, such as eth1", `^[^/:\s]{1,15}$`, func(s string) string {
		switch {
		case len(s) == 0 || len(s) > 15:
			return "has " + strconv.Itoa(len(s)) + " bytes"
		case s == "." || s == "..":
			return "names a folder"
		}
		return unless(!strings.ContainsAny(s, "/: \t\n\v\f\r"), "has a slash, a colon or white space")
	}},
	"netns": {"a name of ip netns, or an absolute path", `^([^/]+|/.+)$`, func(s string) string {
		return unless(s != "" && (s[0] == '/' && len(s) > 1 || !strings.Contains(s, "/")), "is neither")
	}},
	"path": {"an absolute path, such as /run/bondstack/bond0.sock", `^/.+$`, func(s string) string {
		return unless(len(s) > 1 && s[0] == '/', "is none")
	}},
	"mac": {"a MAC address that is no group's, such as 02:00:00:00:00:01", `^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$|^[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4}){2}$`, func(s string) string {
		mac, err := net.ParseMAC(s)
		switch {
		case err != nil || len(mac) != 6:
			return "is no MAC address"
		case mac[0]&1 != 0:
			return "is a group's"
		}
		return unless(mac.String() != "00:00:00:00:00:00", "is zero")
	}},
	"address": {"an address with a prefix length, such as 10.0.0.2/24, or dhcp, or auto", `^(dhcp|auto|[0-9A-Fa-f:.]+/[0-9]{1,3})$`, func(s string) string {
		if s == "dhcp" || s == "auto" {
			return ""
		}
		_, err := netip.ParsePrefix(s)
		return unless(err == nil, "is none")
	}},
	"destination": {"a network, such as 10.9.0.0/16, or default", `^(default|[0-9A-Fa-f:.]+/[0-9]{1,3})$`, func(s string) string {
		if s == "default" {
			return ""
		}
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			return "is none"
		case p != p.Masked():
			return "has bits outside of its prefix (" + p.Masked().String() + " is meant?)"
		}
		return ""
	}},
	"ip": {"an IP address, such as 10.0.0.1", `^[0-9A-Fa-f:.]+$`, func(s string) string {
		a, err := netip.ParseAddr(s)
		return unless(err == nil && a.Zone() == "", "is none")
	}},
	"domain": {"a domain name, such as example.org", domainPattern, func(s string) string {
		return unless(len(s) < 254 && domain.MatchString(s), "is none")
	}},
	"listener": {"PORT, :PORT (both on 127.0.0.1) or HOST:PORT with an IP address or localhost, such as 9090 or 127.0.0.1:9090 (port 0: any free one)", listenerPattern, func(s string) string {
		port, why := listener(s)
		return cmp.Or(why, unless(port == "0" || isPort(port), "has no port from 0 to 65535"))
	}},
	"proxy": {"PORT, :PORT (both on 127.0.0.1) or HOST:PORT with an IP address or localhost, and a port from 1 to 65535, such as 1080 or 127.0.0.1:1080", listenerPattern, func(s string) string {
		port, why := listener(s)
		return cmp.Or(why, unless(isPort(port), "has no port from 1 to 65535"))
	}},
	"user network": {user.SettingsText + ", with commas between them", `^[a-z0-9]+=[^,]+(,[a-z0-9]+=[^,]+)*$`, func(s string) string {
		if err := new(user.Options).Set(s); err != nil {
			return fmt.Sprintf("is none (%v)", err)
		}
		return ""
	}},
	"service": {"echo:PORT, discard:PORT, iperf3:PORT or http:PORT=FOLDER", `^((echo|discard|iperf3):[0-9]{1,5}|http:[0-9]{1,5}=.+)$`, func(s string) string {
		kind, rest, _ := strings.Cut(s, ":")
		port, dir, hasDir := strings.Cut(rest, "=")
		switch {
		case kind != "echo" && kind != "discard" && kind != "iperf3" && kind != "http":
			return "is none"
		case hasDir != (kind == "http") || hasDir && dir == "":
			return "has a folder too many or none"
		}
		return unless(isPort(port), "has no port from 1 to 65535")
	}},
	// What a forward may be is for who makes it to say: Options.Forward.
	"forward": {"a forward, such as tcp:2222=127.0.0.1:22", `^[a-z][-a-z0-9]*:.+=.+$`, func(s string) string {
		return unless(forward.MatchString(s), "is none")
	}},
}

const domainPattern = `^[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?)*\.?$`

var (
	domain  = regexp.MustCompile(domainPattern)
	forward = regexp.MustCompile(`^[a-z][-a-z0-9]*:.+=.+$`)
)

const listenerPattern = `^((\[[0-9A-Fa-f:.]+\]|[0-9.]+|localhost)?:)?[0-9]{1,5}$`

// numbers reports whether a text of a form may be written as a number.
func numbers(form string) bool { return form == "listener" || form == "proxy" }

// withHost returns a listener with its host.
func withHost(listener string) string {
	if listener != "" && !strings.Contains(listener, ":") {
		listener = ":" + listener
	}
	if strings.HasPrefix(listener, ":") {
		return "127.0.0.1" + listener
	}
	return listener
}

// listener returns the port of a listener, and what is wrong with the rest.
func listener(s string) (port, why string) {
	host, port, err := net.SplitHostPort(withHost(s))
	if err != nil {
		return "", "has no port"
	}
	if host != "localhost" {
		a, err := netip.ParseAddr(host)
		if err != nil || a.Zone() != "" {
			return "", "has no IP address"
		}
	}
	return port, ""
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

// isPort is for a port in decimal digits alone.
func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0 && len(s) <= 5
}
