package dhcp

import "github.com/insomniacslk/dhcp/dhcpv4"

// maxName is the length of the longest domain name as text (RFC 1035, section
// 2.3.4), without the dot at its end.
const maxName = 253

// search returns the domains in which names are looked up.
func search(m *dhcpv4.DHCPv4) []string {
	if list := parseSearch(m.Options.Get(dhcpv4.OptionDNSDomainSearchList)); len(list) > 0 {
		return list
	}
	if name := m.DomainName(); name != "" && len(name) <= maxName {
		return []string{name}
	}
	return nil
}

// parseSearch reads the option of RFC 3397, up to maxSearch names; nothing where one
// of them is wrong. A server can write 64 KiB of pointers to one long name: so what
// is read is bounded, and not what is kept.
func parseSearch(b []byte) (list []string) {
	for at := 0; at < len(b) && len(list) < maxSearch; {
		name, next, ok := parseName(b, at)
		if !ok {
			return nil
		}
		if name != "" {
			list = append(list, name)
		}
		at = next
	}
	return list
}

// parseName reads a name (RFC 1035, section 4.1.4), and returns where the next one
// begins. A pointer leads to before the labels that it follows, so there is an end.
// That of the option ends a name too: not all servers write the root.
func parseName(b []byte, at int) (name string, next int, ok bool) {
	var text []byte
	begin, next := at, len(b)
	for jumped := false; at < len(b); {
		n := int(b[at])
		switch {
		case n == 0:
			if !jumped {
				next = at + 1
			}
			return string(text), next, true
		case n < 64:
			if at+1+n > len(b) || len(text)+1+n > maxName {
				return "", 0, false
			}
			if len(text) > 0 {
				text = append(text, '.')
			}
			text = append(text, b[at+1:at+1+n]...)
			at += 1 + n
		case n >= 192 && at+1 < len(b):
			if !jumped {
				next, jumped = at+2, true
			}
			to := (n-192)<<8 + int(b[at+1])
			if to >= begin {
				return "", 0, false
			}
			begin, at = to, to
		default:
			return "", 0, false
		}
	}
	return string(text), next, true
}
