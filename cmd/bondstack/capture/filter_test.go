package capture

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"bondstack/link/linktest"
)

func TestFilter(t *testing.T) {
	f4, f6 := linktest.Flow4(1), linktest.Flow6(1) // 10.1.0.1:1025 to 10.2.0.1:81
	tcp4 := f4.IP(6, append([]byte{4, 1, 0, 81}, make([]byte, 16)...))
	udp4, udp6 := f4.UDP([]byte("x")), f6.UDP([]byte("x"))
	tagged := append(append(bytes.Clone(udp4[:12]), 0x81, 0, 0, 5), udp4[12:]...)
	arp := append(append(bytes.Repeat([]byte{255}, 6), f4.SrcMAC...), 8, 6, 0, 1, 8, 0, 6, 4, 0, 1)
	arp = append(append(append(arp, f4.SrcMAC...), 10, 1, 0, 1, 0, 0, 0, 0, 0, 0), 10, 2, 0, 1)
	lacp := append(append([]byte{1, 0x80, 0xc2, 0, 0, 2}, f4.SrcMAC...), 0x88, 9, 1, 1)
	frames := map[string][]byte{"tcp4": tcp4, "udp4": udp4, "udp6": udp6, "tagged": tagged, "arp": arp, "lacp": lacp, "short": {1, 2, 3}}
	for text, want := range map[string]string{
		"tcp":                            "tcp4",
		"udp":                            "tagged udp4 udp6",
		"ip":                             "tagged tcp4 udp4",
		"ip6":                            "udp6",
		"arp":                            "arp",
		"lacp":                           "lacp",
		"ether proto 0x8809":             "lacp",
		"multicast":                      "arp lacp",
		"broadcast":                      "arp",
		"vlan":                           "tagged",
		"vlan 5 and udp":                 "tagged",
		"vlan 6":                         "",
		"not vlan and udp port 81":       "udp4 udp6",
		"host 10.1.0.1":                  "arp tagged tcp4 udp4",
		"src 10.2.0.1":                   "",
		"dst host 10.2.0.1 and not arp":  "tagged tcp4 udp4",
		"net 10.0.0.0/8":                 "arp tagged tcp4 udp4",
		"dst net fd00:2::/32":            "udp6",
		"tcp port 81":                    "tcp4",
		"tcp src port 81":                "",
		"src port 1025 && (tcp or vlan)": "tagged tcp4",
		"!(udp || tcp)":                  "arp lacp short",
		"ether src 02:00:00:01:00:01":    "arp lacp tagged tcp4 udp4 udp6",
		"ether host 01:80:c2:00:00:02":   "lacp",
		"less 20":                        "lacp short",
		"greater 44 and udp and less 46": "",
		"udp or tcp and host 10.9.9.9":   "tagged udp4 udp6",
		"(udp or tcp) and host 10.9.9.9": "",
		"not not (lacp)":                 "lacp",
	} {
		f, err := ParseFilter(text)
		if err != nil {
			t.Errorf("ParseFilter(%s) = %v", text, err)
			continue
		}
		var got []string
		for _, name := range []string{"arp", "lacp", "short", "tagged", "tcp4", "udp4", "udp6"} {
			if f(frames[name]) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

func TestFilterFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "a condition is missing",
		"tcp and":                 "a condition is missing",
		"(tcp":                    "not closed",
		"tcp)":                    `")" was not expected`,
		"tcp udp":                 `"udp" was not expected`,
		"weather":                 `"weather" is not known`,
		"port 70000":              `port "70000": allowed are 0 to 65535`,
		"host localhost":          `"localhost" is not an IP address`,
		"net 10.0.0.1/8":          "is not a network",
		"ether 1":                 "ether needs host",
		"ether host x":            "is not a MAC address",
		strings.Repeat("(", 100):  "brackets",
		strings.Repeat("x", 2000): "2000 bytes",
	} {
		if _, err := ParseFilter(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseFilter(%.40s) = %v, want %q", text, err, want)
		}
	}
}

// TestFilterAsTcpdump: on untagged frames tcpdump makes the same choice.
func TestFilterAsTcpdump(t *testing.T) {
	tcpdump, err := exec.LookPath("tcpdump")
	if err != nil {
		t.Skip("needs tcpdump")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var file bytes.Buffer
	w := pcapgo.NewWriterNanos(&file)
	w.WriteFileHeader(65535, layers.LinkTypeEthernet)
	var frames [][]byte
	for i := range 400 {
		f := linktest.Flow4(rng.IntN(3))
		if i%3 == 0 {
			f = linktest.Flow6(rng.IntN(3))
		}
		frame := f.IP([]byte{1, 2, 6, 17, 58}[rng.IntN(5)], append([]byte{4, byte(rng.IntN(3)), 0, 80 + byte(rng.IntN(3))}, make([]byte, 20+rng.IntN(60))...))
		if i%7 == 0 && i%3 != 0 {
			frame[21] = byte(rng.IntN(3)) // a fragment's offset
		}
		frames = append(frames, frame)
		w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(int64(i), 0), CaptureLength: len(frame), Length: len(frame)}, frame)
	}
	path := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"tcp", "udp", "icmp", "icmp6", "igmp", "ip", "ip6", "host 10.1.0.1", "src net 10.1.0.0/16", "port 81", "tcp port 80", "udp dst port 82",
		"src port 1025 or dst port 80", "not tcp and (host 10.2.0.2 or ip6)", "ether host 02:00:00:01:00:01", "less 70", "greater 80", "dst host fd00:2::1"} {
		out, err := exec.Command(tcpdump, "-n", "-tt", "-r", path, text).Output()
		if err != nil {
			t.Fatalf("tcpdump %s: %v", text, err)
		}
		theirs := map[string]bool{}
		for line := range strings.Lines(string(out)) {
			second, _, _ := strings.Cut(line, ".")
			theirs[second] = true
		}
		f, err := ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		chosen := 0
		for i, frame := range frames {
			if ours := f(frame); ours != theirs[strconv.Itoa(i)] {
				t.Errorf("%s: frame %d is chosen %v, by tcpdump %v: %x", text, i, ours, !ours, frame)
				break
			} else if ours {
				chosen++
			}
		}
		if chosen == 0 {
			t.Errorf("%s chooses nothing", text)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("not tcp and (host 10.2.0.2 or ip6)", []byte("0123456789012345678901234567890123456789"))
	f.Add("ether host 02:00:00:01:00:01 or vlan 5", linktest.Flow4(1).UDP([]byte("x")))
	f.Fuzz(func(t *testing.T, text string, frame []byte) {
		if filter, err := ParseFilter(text); err == nil {
			not, err := ParseFilter("not (" + text + ")")
			if err == nil && filter(frame) == not(frame) {
				t.Errorf("%q and its opposite agree on %x", text, frame)
			}
		}
	})
}
