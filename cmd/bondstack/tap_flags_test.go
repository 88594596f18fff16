package main

import (
	"bytes"
	"strings"
	"testing"
)

// Every fault of the flags is named at once, before anything is opened.
func TestTapFlagFaults(t *testing.T) {
	good := []string{"tap", "--slave", "eth0", "--mode", "active-backup"}
	for _, tt := range []struct {
		args []string // beside the good ones
		want []string
	}{
		{[]string{"--name", "a/b"}, []string{"--name", "slash"}},
		{[]string{"--name", "sixteen-letters-"}, []string{"--name", "16 bytes", "1 to 15"}},
		{[]string{"--address", "10.0.0.3"}, []string{"--address", `"10.0.0.3"`, "10.0.0.2/24"}},
		{[]string{"--address", "224.0.0.1/24", "--address", "10.0.0.255/24"}, []string{"224.0.0.1/24 cannot be a host's", "10.0.0.255/24 is its network's broadcast"}},
		{[]string{"--address", "::ffff:10.0.0.2/120", "--address", "0.0.0.0/8"}, []string{"give it as IPv4", "0.0.0.0/8 cannot be"}},
		{[]string{"--address", "10.0.0.2/24", "--address", "10.0.0.2/16"}, []string{"--address: 10.0.0.2/16 is given twice"}},
		{[]string{"--name", "all"}, []string{"--name: the name is not allowed: the kernel has settings"}},
		{[]string{"--queues", "0"}, []string{"--queues: 0", "1 to 64"}},
		{[]string{"--queues", "65"}, []string{"--queues: 65", "1 to 64"}},
		{[]string{"--mtu", "65530"}, []string{"--mtu: 65530", "68 to 65521"}},
		{[]string{"--slave", "tun:eth1"}, []string{`--slave: "tun:eth1"`, "fdbased, packet"}},
		{[]string{"-o", "speed=1"}, []string{`speed="1"`, "no such option"}},
		{[]string{"--gateway", "10.0.0.1"}, []string{"unknown flag: --gateway", "--netns"}},
		{[]string{"eth1"}, []string{`unexpected argument "eth1"`, "--slave"}},
	} {
		var out bytes.Buffer
		code := run(append(good, tt.args...), nil, &out, &out)
		for _, want := range tt.want {
			if code != exitUsage || !strings.Contains(out.String(), want) {
				t.Errorf("%v: exit code %d, want %q in %s", tt.args, code, want, &out)
			}
		}
	}
	var out bytes.Buffer
	if code := run([]string{"tap"}, nil, &out, &out); code != exitUsage || !strings.Contains(out.String(), "--slave: missing") || !strings.Contains(out.String(), "--mode: missing") {
		t.Errorf("without flags: %d, %s", code, &out)
	}
}

// Beside its slaves the device needs them kept from the host's stack.
func TestTapIsExclusiveBesideItsSlaves(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--exclusive=false"}, false},
		{[]string{"--netns", "box"}, false},
		{[]string{"--netns", "box", "--exclusive"}, true},
	} {
		var out bytes.Buffer
		s, _, done := parseTap(append([]string{"--slave", "eth0", "--mode", "1"}, c.args...), &out, &out)
		if done || s.link.exclusive != c.want {
			t.Errorf("%v: exclusive is not %v: %s", c.args, c.want, &out)
		}
	}
}

func TestTapHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"tap", "--help"}, nil, &out, &errs); code != exitOK || errs.Len() > 0 {
		t.Errorf("exit code %d, %s", code, &errs)
	}
	for _, want := range []string{"Examples:", "--netns", "--queues", "--require-slaves"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help has no %s", want)
		}
	}
}
