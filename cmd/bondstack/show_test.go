package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestShow(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), append(backup, "--slave", "eth2", "-o", "primary=eth2")...)
	i.await("two slaves up", func(st instanceStatus) bool { return st.up("eth0", "eth1") })

	text := runWith("", "show", "--control", i.socket)
	for _, want := range []string{"bond0: active-backup, carrier on, address ", ", MTU 1500\n", "  address 10.0.0.2/24 (assigned)\n",
		"  active slave eth0\n", "SLAVE", "10000 Mbit/s", "eth1   backup  up", "eth2   -       absent", "warning: primary eth2 is not among the slaves"} {
		text.check(t, "show", exitOK, want, "")
	}

	asJSON := runWith("", "show", "--json", "--control", i.socket)
	var st instanceStatus
	asJSON.check(t, "show --json", exitOK, `"slaves"`, "")
	if err := json.Unmarshal([]byte(asJSON.stdout), &st); err != nil {
		t.Fatalf("show --json is no JSON: %v", err)
	}
	if st.Name != "bond0" || st.Mode.String() != "active-backup" || st.ActiveSlave != "eth0" || len(st.Slaves) != 2 ||
		st.PID != os.Getpid() || len(st.Absent) != 1 || st.Absent[0] != "eth2" || !st.Stack.SACK {
		t.Errorf("show --json gives %+v", st)
	}

	proc := runWith("", "show", "--proc", "--control", i.socket)
	for _, want := range []string{"Ethernet Channel Bonding Driver: v", "\n\nBonding Mode: fault-tolerance (active-backup)\n",
		"Currently Active Slave: eth0\n", "\nSlave Interface: eth1\n", "Speed: 10000 Mbps\n"} {
		proc.check(t, "show --proc", exitOK, want, "")
	}
}

func TestShowFaults(t *testing.T) {
	nothing := tempSocket(t)
	stale := filepath.Join(filepath.Dir(nothing), "stale")
	c, err := listenControl(stale)
	if err != nil {
		t.Fatal(err)
	}
	c.listener.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	c.listener.Close()
	for _, socket := range []string{nothing, stale} {
		r := runWith("", "show", "--control", socket)
		for _, want := range []string{"no instance runs on " + socket, "bondstack run", "--control"} {
			r.check(t, "show without an instance", exitFailure, "", want)
		}
	}
	for _, want := range []string{"control socket /x", "another user's", "sudo"} {
		if err := explainAsk("/x", fmt.Errorf("dial: %w", syscall.EACCES)); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	runWith("", "show", "--json", "--proc").check(t, "show --json --proc", exitUsage, "", "--json and --proc")
	runWith("", "show", "bond0").check(t, "show bond0", exitUsage, "", `unexpected argument "bond0"`)
}

// Counters are whole in the JSON, however large.
func TestFormatKeepsDigits(t *testing.T) {
	got, err := format([]byte(`{"tx_bytes":18446744073709551615}`), true)
	if err != nil || !strings.Contains(string(got), "18446744073709551615") {
		t.Errorf("format() = %q, %v", got, err)
	}
	for _, asJSON := range []bool{true, false} {
		if _, err := format([]byte("no JSON"), asJSON); err == nil {
			t.Errorf("format(no JSON, %v) gives no error", asJSON)
		}
	}
}
