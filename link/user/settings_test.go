package user

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	var o Options
	if err := o.Set("gateway=192.0.2.1,gateway6=2001:db8::1,dns=192.0.2.53,loopback=on,mtu=9000"); err != nil {
		t.Fatal(err)
	}
	if err := o.Set("dns=[2001:db8::53]:5353"); err != nil {
		t.Fatal(err)
	}
	if o.Gateway.String() != "192.0.2.1" || o.Gateway6.String() != "2001:db8::1" || o.DNS.String() != "[2001:db8::53]:5353" || !o.Loopback || o.MTU != 9000 {
		t.Errorf("options = %+v", o)
	}
	before := o
	for text, want := range map[string]string{
		"":                       SettingsText,
		"speed=1":                `no setting "speed"`,
		"loopback=yes":           "on and off",
		"mtu=1279":               "1280 to",
		"mtu=x":                  "mtu=x",
		"dns=here":               "dns=here",
		"loopback=off,gateway=x": "gateway=x",
		"gateway=fe80::1":        "an IPv4 address",
		"gateway=127.0.0.1":      "an IPv4 address of a host",
		"gateway6=fe80::1":       "not link-local",
	} {
		if err := o.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Set(%q) = %v, want %q in it", text, err, want)
		}
	}
	if o != before {
		t.Errorf("a wrong text has changed the options: %+v", o)
	}
}

// What may be reached, and by which address of the host.
func TestTarget(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("# nameserver 192.0.2.1\nsearch a b\nnameserver\nnameserver x\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := hostResolver(conf); err != nil || a.String() != "192.0.2.2:53" {
		t.Errorf("the resolver is %v, %v", a, err)
	}
	o := Options{DNS: netip.MustParseAddrPort("127.0.0.53:53")}
	o.setDefaults()
	for to, want := range map[string]string{
		"192.0.2.1:80":            "192.0.2.1:80",
		"[2001:db8::1]:80":        "[2001:db8::1]:80",
		"[::ffff:192.0.2.1]:80":   "192.0.2.1:80",
		"10.0.2.2:53":             "127.0.0.53:53",
		"[fe80::2]:53":            "127.0.0.53:53",
		"10.0.2.2:80":             "",
		"[fd00::2]:80":            "",
		"127.0.0.1:80":            "",
		"127.9.9.9:53":            "",
		"[::1]:80":                "",
		"[::]:80":                 "",
		"0.0.0.0:80":              "",
		"0.1.2.3:80":              "",
		"[::ffff:127.0.0.1]:80":   "",
		"[::7f00:1]:80":           "",
		"[64:ff9b::7f00:1]:80":    "",
		"[64:ff9b::a9fe:a9fe]:80": "",
		"[64:ff9b:1::7f00:1]:80":  "",
		"[2002:7f00:1::]:80":      "",
		"[2002:a9fe:a9fe::1]:80":  "",
		"[2002:c000:201::1]:80":   "[2002:c000:201::1]:80",
		"[fd00:ec2::254]:80":      "",
		"[fd00:ec2::253]:80":      "[fd00:ec2::253]:80",
		"[64:ff9b::6464:64c8]:80": "",
		"168.63.129.16:80":        "",
		"169.254.169.254:80":      "",
		"[fe80::1]:80":            "",
		"224.0.0.251:5353":        "",
		"[ff02::fb]:5353":         "",
		"255.255.255.255:67":      "",
		"240.0.0.1:80":            "",
		"[64:ff9b::c000:201]:80":  "[64:ff9b::c000:201]:80",
	} {
		got, err := o.target(netip.MustParseAddrPort(to))
		if want == "" && err == nil || want != "" && got.String() != want {
			t.Errorf("%s leads to %v, %v, want %q", to, got, err, want)
		}
	}
	o.Loopback = true
	for to, want := range map[string]string{"10.0.2.2:80": "127.0.0.1:80", "[fd00::2]:80": "[::1]:80", "[fe80::2]:80": "[::1]:80", "10.0.2.2:53": "127.0.0.53:53"} {
		if got, err := o.target(netip.MustParseAddrPort(to)); err != nil || got.String() != want {
			t.Errorf("%s leads to %v, %v, want %q", to, got, err, want)
		}
	}
	if _, err := o.target(netip.MustParseAddrPort("127.0.0.1:80")); err == nil {
		t.Error("the host's loopback is reached by its own address")
	}
}
