package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"bondstack/cmd/bondstack/drill"
)

// The command asks a running instance for a drill, and its exit code says whether
// the outage was within its limit.
func TestDrill(t *testing.T) {
	i := start(t, newNetwork(t, "eth0", "eth1").kinds(), backup...)
	do := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = run(append([]string{"drill", "--control", i.socket}, args...), nil, &out, &errs)
		return code, out.String(), errs.String()
	}
	code, out, errs := do("--cut", "eth0", "--for", "100ms", "--peer", "10.0.0.1", "--peer", "fd00::1", "--json")
	var r drill.Result
	if err := json.Unmarshal([]byte(out), &r); code != exitOK || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	if len(r.Rounds) != 1 || len(r.Rounds[0].Peers) != 2 || r.LongestGapUs == nil || r.How != "disable" || len(r.Rounds[0].Failovers) == 0 {
		t.Errorf("result %s", out)
	}
	code, out, errs = do("--cut", "eth1", "--for", "100ms", "--peer", "10.0.0.1", "--max-outage", "1us")
	if code != exitFailure || !strings.Contains(errs, "--max-outage allows 1µs") || !strings.Contains(out, "10.0.0.1") {
		t.Errorf("with an outage of 1 µs: exit code %d\n%s%s", code, out, errs)
	}
	for want, args := range map[string][]string{
		"none is named":     {"--for", "1s"},
		"for: 0 ms":         {"--cut", "eth0"},
		`ParseAddr("moon")`: {"--cut", "eth0", "--for", "1s", "--peer", "moon"},
		"is negative":       {"--cut", "eth0", "--for", "1s", "--max-outage", "-1s"},
	} {
		if code, _, errs := do(args...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("drill %q: exit code %d, %s, want %q", args, code, errs, want)
		}
	}
	if code, _, errs := do("--cut", "eth7", "--for", "1s"); code != exitFailure || !strings.Contains(errs, `no "eth7"`) {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
