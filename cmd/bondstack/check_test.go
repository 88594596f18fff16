package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bondstack/cmd/bondstack/config"
)

// inFile writes a configuration file and returns its path.
func inFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bondstack.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodFile = "version: 1\nbonds:\n- {name: bond0, mode: 2, slaves: [eth0], addresses: [10.0.0.2/24]}\n"

func TestCheckCommand(t *testing.T) {
	good := inFile(t, goodFile)
	bad := inFile(t, "version: 1\nbonds:\n- {name: bond0, mode: 2, slaves: [{name: eth0, kind: fd}], serve: [\"http:80=/no/such\"],\n  addresses: [10.0.0.2/24], forwards: [\"tcp:1=h:0\"]}\n")
	form := inFile(t, "version: 1\nbonds: []\nspeed: 1\n")
	ignored := inFile(t, strings.Replace(goodFile, "slaves: [eth0]", "slaves: [eth0], options: {min_links: 1}", 1))
	runWith("", "check", good).check(t, "good", exitOK, "", "")
	runWith("", "check", ignored).check(t, "a warning", exitOK, ignored+":3:63: warning: bonds[0].options.min_links", "")
	r := runWith("", "check", bad, good, form)
	for _, want := range []string{bad + ":3:35: bonds[0].slaves[0]: the name \"eth0\" is not that of a slave of kind fd", bad + `:3:68: bonds[0].serve[0]: "http:80=/no/such": /no/such is not a folder`,
		bad + `:4:40: bonds[0].forwards[0]: "tcp:1=h:0"`, form + ":2:8: bonds: the list is empty", form + ":3:1: speed: there is no such key"} {
		r.check(t, "bad ones", exitFailure, want, "")
	}
	if n := strings.Count(r.stdout, "\n"); n != 5 {
		t.Errorf("%d faults, want 5:\n%s", n, r.stdout)
	}
	var faults []fileFault
	r = runWith("", "check", "--json", form)
	if err := json.Unmarshal([]byte(r.stdout), &faults); err != nil || r.code != exitFailure || len(faults) != 2 || faults[1].File != form ||
		faults[1].Line != 3 || faults[1].Column != 1 || faults[1].Key != "speed" {
		t.Errorf("%v %+v", err, faults)
	}
	if r = runWith("", "check", "--json", good); r.stdout != "[]\n" || r.code != exitOK {
		t.Errorf("no faults as JSON: %q", r.stdout)
	}
	runWith("", "check", filepath.Join(t.TempDir(), "none")).check(t, "no file", exitFailure, "", "no such file")
	runWith("", "check").check(t, "no argument", exitUsage, "", "no FILE is given")
	runWith("", "check", "/dev/zero").check(t, "no file", exitFailure, "", "/dev/zero is a device, allowed is a regular file")
	runWith(goodFile, "check", "-").check(t, "standard input", exitOK, "", "")
	runWith("version: 2", "check", "-").check(t, "standard input", exitFailure, "-:1:10: version", "")
	runWith(strings.Repeat("a", config.MaxSize+1), "check", "-").check(t, "too long", exitFailure, "allowed are 1048576", "")
}

func TestSchemaCommand(t *testing.T) {
	runWith("", "schema").check(t, "schema", exitOK, string(config.Schema()), "")
}

// The examples in docs are what check takes.
func TestCheckExamples(t *testing.T) {
	paths, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil || len(paths) < 7 {
		t.Fatal(paths, err)
	}
	r := runWith("", append([]string{"check"}, paths...)...)
	r.check(t, "examples", exitOK, "", "")
}

// Flags are not mixed with a file, but those of the log and the control socket,
// and a file that has faults does not run.
func TestRunFileFlags(t *testing.T) {
	good := inFile(t, goodFile)
	two := inFile(t, goodFile+"- {name: bond1, mode: 2, slaves: [eth1], addresses: [10.1.0.2/24]}\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-c", good, "--slave", "eth0"}, "--slave: this is not given together with --config"},
		{[]string{"-c", good, "--mode", "1", "--web", "8080"}, "--web: this is not given together with --config"},
		{[]string{"-c", good, "--log-level", "loud"}, `--log-level: "loud": allowed are debug, info, warn, error`},
		{[]string{"-c", good, "--log-format", "xml"}, `--log-format: "xml": allowed are text, json`},
		{[]string{"-c", two, "--control", "/tmp/x"}, "has 2 bonds: they name theirs by their key control"},
		{append(backup, "--log-level", "loud"), `--log-level: "loud"`},
	} {
		runWith("", append([]string{"run"}, tt.args...)...).check(t, strings.Join(tt.args, " "), exitUsage, "", tt.want)
	}
	bad := inFile(t, "version: 1\nbonds: []\n")
	r := runWith("", "run", "--config", bad)
	r.check(t, "a bad file", exitFailure, "", bad+":2:8: bonds: the list is empty")
	r.check(t, "a bad file", exitFailure, "", "has 1 fault")
	runWith("", "run", "--config", bad+"x").check(t, "no file", exitFailure, "", "no such file")
}

func TestLogging(t *testing.T) {
	var out strings.Builder
	log, level := logging{"warn", "json"}.logger(&out)
	log.Info("quiet")
	log.Warn("said", "bond", "b")
	level.Set(logLevels["debug"])
	log.Debug("more")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var first struct{ Level, Msg, Bond string }
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &first) != nil || first.Msg != "said" || first.Level != "WARN" || first.Bond != "b" {
		t.Errorf("the log is %q", out.String())
	}
	out.Reset()
	log, _ = logging{}.logger(&out)
	log.Debug("quiet")
	log.Info("said")
	if !strings.Contains(out.String(), "level=INFO msg=said") || strings.Contains(out.String(), "quiet") {
		t.Errorf("the log is %q", out.String())
	}
}
