package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The unit in docs is one that systemd takes, and starts what there is.
func TestUnit(t *testing.T) {
	unit, err := os.ReadFile("../../../docs/bondstack.service")
	if err != nil {
		t.Fatal(err)
	}
	section, line := regexp.MustCompile(`^\[(Unit|Service|Install)\]$`), regexp.MustCompile(`^[A-Z][A-Za-z]+=\S`)
	for i, text := range strings.Split(strings.TrimSuffix(string(unit), "\n"), "\n") {
		if text != "" && text[0] != '#' && !section.MatchString(text) && !line.MatchString(text) {
			t.Errorf("line %d is none of a unit: %q", i+1, text)
		}
	}
	for _, want := range []string{"Type=notify", "run --config ", "ExecReload=kill -HUP $MAINPID"} {
		if !strings.Contains(string(unit), want) {
			t.Errorf("the unit has no %q", want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	self, err := os.Executable() // any program, for there has to be one
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bondstack.service")
	text := strings.Replace(string(unit), "/usr/local/bin/bondstack", self, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
