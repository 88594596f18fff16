package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"bondstack/cmd/bondstack/sandbox"
)

// Every fault of the flags is named at once, with the exit code of a failure of
// bondstack's own.
func TestExecFlagFaults(t *testing.T) {
	good := []string{"exec", "--slave", "eth0", "--mode", "active-backup", "--address", "10.0.0.2/24"}
	for _, tt := range []struct {
		args []string // beside the good ones
		want []string
	}{
		{nil, []string{"COMMAND: missing", "-- curl"}},
		{[]string{"--"}, []string{"COMMAND: missing"}},
		{[]string{"true"}, []string{`unexpected argument "true"`}},
		{[]string{"--gateway", "10.0.1.1", "--", "true"}, []string{"--gateway: 10.0.1.1", "10.0.0.2/24"}},
		{[]string{"--gateway", "10.0.0.2", "--", "true"}, []string{"--gateway: 10.0.0.2 is an address of the device's own"}},
		{[]string{"--gateway", "10.0.0.255", "--", "true"}, []string{"--gateway: 10.0.0.255 is no router's", "broadcast"}},
		{[]string{"--gateway", "224.0.0.1", "--dns", "0.0.0.0", "--", "true"}, []string{"--gateway: 224.0.0.1 is no router's", "--dns: 0.0.0.0 is no server's"}},
		{[]string{"--gateway", "x", "--dns", "y", "--wait", "-1s", "--", "true"}, []string{`--gateway: "x"`, `--dns: "y"`, "--wait"}},
		{[]string{"--gateway", "10.0.0.1", "--gateway", "10.0.0.3", "--", "true"}, []string{"10.0.0.3: there is one"}},
		{[]string{"--slave", "fd:x", "--slave", "fd:2", "--", "true"}, []string{`"x" is not`, `"2" is not`}},
		{[]string{"--name", "a/b", "--", "true"}, []string{"--name"}},
		{[]string{"--netns", "box", "--", "true"}, []string{"unknown flag: --netns"}},
	} {
		var out bytes.Buffer
		code := run(append(slices.Clone(good), tt.args...), nil, &out, &out)
		for _, want := range tt.want {
			if code != sandbox.CodeFailure || !strings.Contains(out.String(), want) {
				t.Errorf("%v: exit code %d, want %q in %s", tt.args, code, want, &out)
			}
		}
	}
	var out bytes.Buffer
	if code := run([]string{"exec", "--", "true"}, nil, &out, &out); code != sandbox.CodeFailure || !strings.Contains(out.String(), "--address: missing") {
		t.Errorf("without flags: exit code %d, %s", code, &out)
	}
}

func TestExecDefaults(t *testing.T) {
	parse := func(args ...string) *execSettings {
		t.Helper()
		var out bytes.Buffer
		s, _, done := parseExec(append([]string{"--mode", "1"}, args...), &out, &out)
		if done {
			t.Fatalf("%v: %s", args, &out)
		}
		return s
	}
	s := parse("--slave", "eth0", "--address", "10.0.0.2/24", "--", "a", "--", "--b")
	if !s.insist || s.control != "" || !slices.Equal(s.command, []string{"a", "--", "--b"}) || s.link.exclusive {
		t.Errorf("settings %+v", s)
	}
	if s := parse("--slave", "eth0", "--address", "10.0.0.2/24", "--require-slaves=false", "--control", "x", "--", "a"); s.insist || s.control != "x" {
		t.Errorf("settings %+v", s)
	}
	if s := parse("--slave", "user:", "--slave", "user:", "--", "a"); len(s.addresses) != 2 || len(s.gateways) != 2 || len(s.dns) != 1 || s.slaves[1].name != "user1" {
		t.Errorf("with links of kind user: %+v", s)
	}
	if s := parse("--slave", "user:", "--address", "10.0.2.7/24", "--", "a"); len(s.addresses) != 1 || len(s.gateways) != 0 {
		t.Errorf("with an address: %+v", s)
	}
	if s := parse("--slave", "fd:7", "--address", "10.0.2.7/24", "--", "a"); s.slaves[0].name != "fd7" {
		t.Errorf("slave %+v", s.slaves)
	}
}
