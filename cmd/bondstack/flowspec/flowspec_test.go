package flowspec_test

import (
	"net/netip"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"bondstack/cmd/bondstack/flowspec"
)

const (
	ours   = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01")
	theirs = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x02")
)

func TestParse(t *testing.T) {
	for text, want := range map[string]flowspec.Flow{
		"tcp:10.0.0.2:4000-10.0.0.1:80":   {6, netip.MustParseAddrPort("10.0.0.2:4000"), netip.MustParseAddrPort("10.0.0.1:80")},
		"udp:[fd00::2]:4000-[fd00::1]:53": {17, netip.MustParseAddrPort("[fd00::2]:4000"), netip.MustParseAddrPort("[fd00::1]:53")},
		"icmp:10.0.0.2-10.0.0.1":          {1, netip.MustParseAddrPort("10.0.0.2:0"), netip.MustParseAddrPort("10.0.0.1:0")},
		"icmp:fd00::2-fd00::1":            {58, netip.MustParseAddrPort("[fd00::2]:0"), netip.MustParseAddrPort("[fd00::1]:0")},
	} {
		if got, err := flowspec.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%s) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "tcp", "tcp:", "tcp:1.2.3.4:1", "tcp:1.2.3.4:1-", "tcp:1.2.3.4-1.2.3.5", "sctp:1.2.3.4:1-1.2.3.5:1",
		"tcp:1.2.3.4:1-1.2.3.5:70000", "tcp:fd00::1:1-fd00::2:1", "udp:1.2.3.4:1-[fd00::1]:1", "tcp:[fe80::1%a]:1-[fe80::2]:1", "icmp:1.2.3.4:1-1.2.3.5:2"} {
		if _, err := flowspec.Parse(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("Parse(%s) = %v, want an error that names it", text, err)
		}
	}
}

func TestFrame(t *testing.T) {
	for _, text := range []string{"tcp:10.0.0.2:4000-10.0.0.1:80", "udp:[fd00::2]:4000-[fd00::1]:80"} {
		f, err := flowspec.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, vlan := range []uint16{0, 5} {
			b := f.Frame(ours, theirs, vlan)
			if string(b[:6]) != string(theirs) || string(b[6:12]) != string(ours) {
				t.Errorf("%s: addresses % x", text, b[:12])
			}
			b = b[12:]
			if vlan != 0 {
				if string(b[:4]) != "\x81\x00\x00\x05" {
					t.Errorf("%s: tag % x", text, b[:4])
				}
				b = b[4:]
			}
			var transport []byte
			if f.From.Addr().Is4() {
				ip := header.IPv4(b[2:])
				if !ip.IsValid(len(ip)) || ip.Protocol() != 6 || ip.SourceAddress().String() != "10.0.0.2" || ip.DestinationAddress().String() != "10.0.0.1" {
					t.Errorf("%s: % x", text, []byte(ip))
				}
				transport = ip.Payload()
			} else {
				ip := header.IPv6(b[2:])
				if !ip.IsValid(len(ip)) || ip.NextHeader() != 17 || ip.SourceAddress().String() != "fd00::2" || ip.DestinationAddress().String() != "fd00::1" {
					t.Errorf("%s: % x", text, []byte(ip))
				}
				transport = ip.Payload()
			}
			if udp := header.UDP(transport); udp.SourcePort() != 4000 || udp.DestinationPort() != 80 {
				t.Errorf("%s: ports %d, %d", text, udp.SourcePort(), udp.DestinationPort())
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("tcp:10.0.0.2:4000-10.0.0.1:80")
	f.Add("icmp:fd00::2-fd00::1")
	f.Fuzz(func(t *testing.T, text string) {
		if flow, err := flowspec.Parse(text); err == nil {
			if n := len(flow.Frame(ours, theirs, 1)); n != 58 && n != 78 {
				t.Errorf("a frame of %d bytes", n)
			}
		}
	})
}
