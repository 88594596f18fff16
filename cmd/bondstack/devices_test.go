package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestDevicesBench(t *testing.T) {
	r := runWith("", "devices", "bench", "--count", "50", "--runs", "2", "--readers", "2")
	r.check(t, "devices bench", 0, "0 violations", "run 2 of 2")
	for _, want := range []string{"bondstack\n", "bondstack-batch\n", "gvisor\n", "add ms", "rename ms", "delete ms", "ns/op", "50 devices, 2 runs, 2 readers"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "kernel") {
		t.Error("the kernel is measured without --kernel")
	}
}

// The keys of the JSON form are those that the help of the issue names, and no
// others.
func TestDevicesBenchJSON(t *testing.T) {
	r := runWith("", "devices", "bench", "--count", "20", "--runs", "3", "--readers", "0", "--json")
	r.check(t, "devices bench --json", 0, `"count":20`, "run 1 of 3")
	var result map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]float64{"count": 20, "runs": 3, "readers": 0, "violations": 0} {
		if result[key] != want {
			t.Errorf("%s is %v, want %v", key, result[key], want)
		}
	}
	tables := result["tables"].([]any)
	if len(result) != 5 || len(tables) != 3 {
		t.Fatalf("%d keys, %d tables", len(result), len(tables))
	}
	for i, name := range []string{"bondstack", "bondstack-batch", "gvisor"} {
		table := tables[i].(map[string]any)
		if table["name"] != name || len(table) != 4 {
			t.Errorf("table %d is %v", i, table)
		}
		for _, key := range []string{"add_ms", "rename_ms", "delete_ms"} {
			if list := table[key].([]any); len(list) != 3 || list[0].(float64) <= 0 {
				t.Errorf("%s of %s is %v", key, name, list)
			}
		}
	}
}

func TestDevicesVariants(t *testing.T) {
	r := runWith("", "devices", "bench", "--count", "500", "--runs", "1", "--readers", "2", "--writers", "4", "--names-only")
	r.check(t, "--names-only", 0, "bondstack-batch", "run 1 of 1")
	if strings.Contains(r.stdout, "gvisor") {
		t.Error("--names-only measures gVisor")
	}
	runWith("", "devices", "bench", "--count", "20", "--runs", "1", "--floor").check(t, "--floor", 0, "gvisor-unnamed", "run 1 of 1")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "the first argument must be bench"},
		{[]string{"table"}, "the first argument must be bench"},
		{[]string{"bench", "--count", "0"}, "--count is 0, allowed are 1 to 1000000"},
		{[]string{"bench", "--runs", "-1", "--readers", "1000"}, "--readers is 1000, allowed are 0 to 256"},
		{[]string{"bench", "--writers", "0"}, "--writers is 0, allowed are 1 to 256"},
		{[]string{"bench", "now"}, `unexpected argument "now"`},
	} {
		runWith("", append([]string{"devices"}, tt.args...)...).check(t, strings.Join(tt.args, " "), 2, "", tt.want)
	}
}

func TestDevicesKernel(t *testing.T) {
	r := runWith("", "devices", "bench", "--count", "3", "--runs", "1", "--readers", "0", "--kernel")
	if os.Geteuid() != 0 {
		r.check(t, "--kernel", 0, "gvisor", "kernel: skipped: needs root")
		t.Skip("needs root: makes a network namespace")
	}
	if strings.Contains(r.stderr, "kernel: skipped") {
		t.Skip("needs root with the right to make a network namespace, and ip: " + r.stderr)
	}
	r.check(t, "--kernel", 0, "\nkernel\n", "the host kernel")
}

// What a reader reports as wrong makes the command fail.
func TestDevicesViolations(t *testing.T) {
	s := devicesSettings{count: 4, runs: 1, namesOnly: true, writers: 1}
	table := newOurTable(s.plan(), false)
	defer table.close()
	if err := table.add(); err != nil {
		t.Fatal(err)
	}
	look := table.look()
	r := &tableReader{}
	for ; r.round < 10; r.round++ {
		look(r)
	}
	if r.violations != 0 || r.looks != 10 {
		t.Fatalf("%d violations in %d looks: %s", r.violations, r.looks, r.first)
	}
	if err := table.devices.Rename(table.indexes[2], "elsewhere"); err != nil {
		t.Fatal(err)
	}
	for r.round = 0; r.round < 4; r.round++ {
		look(r)
	}
	if r.violations != 1 || !strings.Contains(r.first, "neither dev2 nor new2") {
		t.Errorf("%d violations: %s", r.violations, r.first)
	}
	var report readerReport
	report.add(&r.readerReport)
	if report.violations != 1 || report.first != r.first {
		t.Errorf("report %+v", &report)
	}
}
