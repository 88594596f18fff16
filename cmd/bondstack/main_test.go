package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

// result is what a run of the program did.
type result struct {
	code           int
	stdout, stderr string
}

func runWith(stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(args, strings.NewReader(stdin), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// check compares the exit code and looks for texts that must be in the outputs;
// "" stands for an output that must be empty.
func (r result) check(t *testing.T, what string, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code {
		t.Errorf("%s: exit code %d, want %d (stderr %q)", what, r.code, code, r.stderr)
	}
	for _, o := range []struct{ name, got, want string }{{"stdout", r.stdout, stdout}, {"stderr", r.stderr, stderr}} {
		if !strings.Contains(o.got, o.want) || (o.want == "" && o.got != "") {
			t.Errorf("%s: %s is %q, want %q in it", what, o.name, o.got, o.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"--help", "-h", "help"} {
		r := runWith("", arg)
		r.check(t, arg, 0, "Usage: bondstack COMMAND", "")
		for _, c := range commands {
			if !strings.Contains(r.stdout, "  "+c.name) || !strings.Contains(r.stdout, c.short) {
				t.Errorf("%s does not list %s", arg, c.name)
			}
		}
	}
	runWith("").check(t, "no arguments", 2, "", "Usage: bondstack COMMAND")
	for _, c := range commands {
		for _, args := range [][]string{{c.name, "--help"}, {c.name, "-h"}, {"help", c.name}} {
			r := runWith("", args...)
			r.check(t, strings.Join(args, " "), 0, "Usage: bondstack "+c.name, "")
			if !strings.Contains(r.stdout, "Examples:\n  bondstack "+c.name) {
				t.Errorf("%v has no example", args)
			}
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"hsah"}, []string{`unknown command "hsah" (did you mean hash?)`, "version"}},
		{[]string{"help", "hsah"}, []string{`unknown command "hsah"`}},
		{[]string{"--mode"}, []string{`unknown flag "--mode"`, "--help"}},
		{[]string{"version", "now"}, []string{`unexpected argument "now"`}},
		{[]string{"version", "--long"}, []string{"unknown flag: --long", "--help"}},
		{[]string{"hash", "--hash"}, []string{"unknown flag: --hash", "--policy", "--explain"}},
	} {
		r := runWith("", tt.args...)
		for _, want := range tt.want {
			r.check(t, strings.Join(tt.args, " "), 2, "", want)
		}
	}
}

func TestVersion(t *testing.T) {
	runWith("", "version").check(t, "version", 0, "bondstack ", "")
	runWith("", "--version").check(t, "--version", 0, "bondstack ", "")
	got := versionText(&debug.BuildInfo{
		Main:     debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	})
	if want := "bondstack v1.2.3 commit abc (modified) go"; !strings.HasPrefix(got, want) {
		t.Errorf("versionText = %q, want it to begin with %q", got, want)
	}
	if got := versionText(nil); !strings.HasPrefix(got, "bondstack (unknown) go") {
		t.Errorf("versionText(nil) = %q", got)
	}
}
