package main

import (
	"fmt"
	"strings"
	"testing"
)

// Every fault of the flags is named at once, with its value and what is
// allowed, before anything is opened.
func TestRunFlagFaults(t *testing.T) {
	good := []string{"run", "--slave", "eth0", "--mode", "active-backup", "--address", "10.0.0.2/24"}
	for _, tt := range []struct {
		args []string // beside the good ones
		want []string
	}{
		{[]string{"--slave", "tun:eth1"}, []string{`--slave: "tun:eth1"`, `unknown kind "tun"`, "fdbased, packet"}},
		{[]string{"--slave", "packet:"}, []string{`--slave: "packet:"`, "0 bytes", "1 to 15"}},
		{[]string{"--slave", "sixteen-letters-"}, []string{"--slave", "sixteen-letters-", "16 bytes", "1 to 15"}},
		{[]string{"--slave", "fdbased:eth0"}, []string{`--slave: "fdbased:eth0"`, "given twice"}},
		{[]string{"--mode", "fast"}, []string{"--mode", `"fast"`, "balance-rr", "broadcast"}},
		{[]string{"-o", "miimon"}, []string{"--option", `"miimon"`, "NAME=VALUE"}},
		{[]string{"-o", "miimon=1", "-o", "miimon=2"}, []string{"--option: miimon", `"1" and "2"`}},
		{[]string{"-o", "mode=2"}, []string{"--option", `"mode=2"`, "--mode"}},
		{[]string{"-o", "xmit_hash_polic=layer2"}, []string{"no such option", "did you mean xmit_hash_policy?"}},
		{[]string{"-o", "speed=1"}, []string{`speed="1"`, "no such option", "primary_reselect"}},
		{[]string{"-o", "miimon=-5"}, []string{`miimon="-5"`, "0 to 2147483647"}},
		{[]string{"-o", "lacp_rate=fast"}, []string{`lacp_rate="fast"`, "active-backup", "802.3ad"}},
		{[]string{"--mode", "balance-rr", "-o", "primary=eth0"}, []string{`primary="eth0"`, "balance-rr", "active-backup"}},
		{[]string{"--address", "10.0.0.3"}, []string{"--address", `"10.0.0.3"`, "10.0.0.2/24"}},
		{[]string{"--address", "224.0.0.1/8"}, []string{"224.0.0.1/8", "multicast", "not allowed"}},
		{[]string{"--address", "10.0.0.2/8"}, []string{"10.0.0.2/8", "already"}},
		{[]string{"--gateway", "router"}, []string{"--gateway", `"router"`, "IP address"}},
		{[]string{"--gateway", "10.0.0.1", "--gateway", "10.0.0.3"}, []string{"--gateway: 10.0.0.3", "already"}},
		{[]string{"--gateway", "10.9.9.9"}, []string{"10.9.9.9"}},
		{[]string{"--vlan", "0"}, []string{`--vlan: "0"`, `"0" is not a VLAN`, "1 to 4094"}},
		{[]string{"--vlan", "4095=10.5.0.2/24"}, []string{`"4095" is not a VLAN`}},
		{[]string{"--vlan", "802.1x:5"}, []string{`"802.1x:5" is not a VLAN`, "802.1ad:"}},
		{[]string{"--vlan", "5@8"}, []string{`"8" is not a priority`, "0 to 7"}},
		{[]string{"--vlan", "5=10.5.0.2"}, []string{`"10.5.0.2"`, "10.5.0.2/24"}},
		{[]string{"--vlan", "5=224.0.0.1/8"}, []string{"224.0.0.1/8", "multicast"}},
		{[]string{"--vlan", "5", "--vlan", "802.1q:5"}, []string{"bond0.5 is given twice"}},
		{[]string{"--vlan", "1/2/3"}, []string{`"1/2/3" has 3 tags`, "at most 2"}},
		{[]string{"--name", "bond-with-name", "--vlan", "5"}, []string{"bond-with-name.5", "15 bytes"}},
		{[]string{"--mac", "2"}, []string{"--mac", `"2"`, "02:00:00:00:00:01"}},
		{[]string{"--mac", "01:00:00:00:00:01"}, []string{"01:00:00:00:00:01"}},
		{[]string{"--mtu", "9"}, []string{"MTU 9", "68 to 65535"}},
		{[]string{"--mtu", "many"}, []string{"--mtu", `"many"`, "(bondstack run --help tells more)"}},
		{[]string{"--name", "a:b"}, []string{`"a:b"`, "colon"}},
		{[]string{"--serve", "ftp:21"}, []string{`--serve: "ftp:21"`, `"ftp"`, "echo:PORT, discard:PORT, iperf3:PORT, http:PORT=DIR"}},
		{[]string{"--serve", "echo:65536"}, []string{`"echo:65536"`, "1 to 65535"}},
		{[]string{"--serve", "echo"}, []string{`--serve: "echo"`, "1 to 65535"}},
		{[]string{"--serve", "discard:9=/tmp"}, []string{"discard:9=/tmp", "no folder", "discard:PORT"}},
		{[]string{"--serve", "http:80"}, []string{`"http:80"`, "folder is missing", "http:PORT=DIR"}},
		{[]string{"--serve", "http:80=/no/such"}, []string{"/no/such", "not a folder"}},
		{[]string{"--forward", "sctp:53=10.0.0.1:53"}, []string{"sctp:53=10.0.0.1:53", "[host:]tcp|udp:[ADDRESS:]PORT=HOST:PORT"}},
		{[]string{"--forward", "tcp:53"}, []string{`"tcp:53"`, "PORT=HOST:PORT"}},
		{[]string{"--forward", "host:tcp:name:53=10.0.0.1:53"}, []string{`"name:53"`, "literal address"}},
		{[]string{"--socks", "here"}, []string{"--socks", `"here" is not [ADDRESS:]PORT`}},
		{[]string{"--socks-users", "/no/such"}, []string{"--socks", "missing"}},
		{[]string{"--socks", "1080", "--socks-users", "/no/such"}, []string{"--socks", "/no/such"}},
		{[]string{"--flow-limit", "0"}, []string{"--flow-limit", "1 to 65536"}},
		{[]string{"--tcp-idle", "-1s"}, []string{"--tcp-idle", "negative"}},
		{[]string{"--udp-idle", "0s"}, []string{"--udp-idle", "1s and more"}},
		{[]string{"--forward", "tcp:0=h:1"}, []string{"tcp:0=h:1", "1 to 65535"}},
		{[]string{"--forward", "tcp:1=host"}, []string{"tcp:1=host", `"host" is not HOST:PORT`}},
		{[]string{"--forward", "tcp:1=host:0"}, []string{"tcp:1=host:0", "1 to 65535"}},
		{[]string{"eth1"}, []string{`unexpected argument "eth1"`, "--slave"}},
		{[]string{"--slaves", "eth1"}, []string{"unknown flag: --slaves (did you mean --slave?)", "--slave,"}},
	} {
		args := append(good, tt.args...)
		r := runWith("", args...)
		for _, want := range tt.want {
			r.check(t, strings.Join(args, " "), exitUsage, "", want)
		}
	}
}

func TestRunFlagFaultsAtOnce(t *testing.T) {
	r := runWith("", "run")
	for _, want := range []string{"--slave: missing", "--mode: missing", "--address: missing"} {
		r.check(t, "run", exitUsage, "", want)
	}
	r = runWith("", "run", "--slave", "x:y", "--slave", "packet:", "--mode", "active-backup", "--address", "a", "--address", "b",
		"--mac", "m", "--mtu", "1", "-o", "no", "-o", "miimon=x", "-o", "updelay=y", "--gateway", "g", "--serve", "s", "--forward", "f")
	for _, want := range []string{`"x:y"`, `"packet:"`, `--address: "a"`, `--address: "b"`, `--mac: "m"`, "MTU 1", `"no"`,
		`miimon="x"`, `updelay="y"`, `--gateway: "g"`, `--serve: "s"`, `--forward: "f"`} {
		r.check(t, "many faults", exitUsage, "", want)
	}
	if n := strings.Count(r.stderr, "missing"); n != 0 {
		t.Errorf("%d flags are said to be missing that were given:\n%s", n, r.stderr)
	}
}

func TestRunParses(t *testing.T) {
	for _, args := range [][]string{
		{"--slave", "eth0", "--slave", "fdbased:eth1", "--mode", "1", "--address", "10.0.0.2/24"},
		{"--slave", "packet:eth0", "--mode", "balance-xor", "-o", "xmit_hash_policy=layer3+4", "--address", "fd00::2/64", "--gateway", "fd00::1"},
		{"--slave", "eth0", "--mode", "broadcast", "--address", "10.0.0.2/24", "--address", "fd00::2/64", "--gateway", "fd00::1", "--gateway", "10.0.0.1"},
	} {
		var out strings.Builder
		s, code, done := parseRun(args, &out, &out)
		if done {
			t.Errorf("run %q: exit code %d: %s", args, code, out.String())
			continue
		}
		if s.control == "" {
			t.Errorf("run %q has no control socket", args)
		}
	}
	var out strings.Builder
	s, _, done := parseRun([]string{"--slave", "eth0", "--slave", "fdbased:eth1", "--mode", "1", "--address", "fd00::2/64",
		"--address", "10.0.0.2/24", "--gateway", "fd00::1", "--gateway", "10.0.0.1", "-o", "primary=a=b"}, &out, &out)
	if done {
		t.Fatal(out.String())
	}
	if s.slaves[0].String() != "packet:eth0" || s.slaves[1].String() != "fdbased:eth1" {
		t.Errorf("slaves %v", s.slaves)
	}
	if s.host.Gateway.String() != "10.0.0.1" || s.host.Gateway6.String() != "fd00::1" {
		t.Errorf("gateways %v, %v", s.host.Gateway, s.host.Gateway6)
	}
	if s.host.DHCP || s.host.SLAAC {
		t.Error("DHCP or SLAAC where nobody asked")
	}
	s, _, done = parseRun([]string{"--slave", "eth0", "--mode", "1", "--address", "dhcp", "--address", "auto", "--dns", "10.0.0.53",
		"--search", "lan", "--host-name", "box", "-o", "primary=a=b"}, &out, &out)
	if done {
		t.Fatal(out.String())
	}
	if h := s.host; !h.DHCP || !h.SLAAC || len(h.Addresses) != 0 || fmt.Sprint(h.DNS) != "{[10.0.0.53] [lan]}" || h.HostName != "box" {
		t.Errorf("host options %+v", h)
	}
	if s.options["primary"] != "a=b" {
		t.Errorf("options %v", s.options)
	}
}

// What fdbased cannot do is refused by name, before anything is opened.
func TestFdbasedRefusesLinkOptions(t *testing.T) {
	for flag, o := range map[string]linkOptions{"--exclusive": {exclusive: true}, "--hardware-address": {hardwareAddress: true}} {
		if _, _, err := openFdbased("eth9", o); err == nil || !strings.Contains(err.Error(), "fdbased:eth9: "+flag+" is for slaves of kind packet") {
			t.Errorf("openFdbased() with %s = %v", flag, err)
		}
	}
}

// So is what xdp cannot do.
func TestXDPRefusesLinkOptions(t *testing.T) {
	_, _, err := openXDP("eth9", linkOptions{hardwareAddress: true})
	if err == nil || !strings.Contains(err.Error(), "xdp:eth9: --hardware-address is for slaves of kind packet") {
		t.Errorf("openXDP() with --hardware-address = %v", err)
	}
}
