package main

import (
	"encoding/json"
	"strings"
	"testing"

	"bondstack/bonding"
)

// An instance in 802.3ad explains each port; its partner here is a switch
// without LACP, so that none distributes by it.
func TestExplainLACP(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), "--mode", "802.3ad", "-o", "lacp_rate=fast", "--slave", "eth0", "--slave", "eth1", "--address", "10.0.0.2/24")
	text := runWith("", "explain", "lacp", "--control", i.socket)
	for _, want := range []string{"bond0: 0 of 2 ports distribute\n", "carrier is ", "eth0 (port ", "eth1 (port ", "does not distribute", "    remedy: ",
		"\nlast changes\n", "INITIALIZE -> PORT_DISABLED", "(port added: "} {
		text.check(t, "explain lacp", exitOK, want, "")
	}

	asJSON := runWith("", "explain", "lacp", "--json", "--control", i.socket)
	asJSON.check(t, "explain lacp --json", exitOK, `"remedy"`, "")
	var e bonding.LACPExplanation
	if err := json.Unmarshal([]byte(asJSON.stdout), &e); err != nil {
		t.Fatal(err)
	}
	if e.Bond != "bond0" || e.Mode != bonding.IEEE8023AD || len(e.Ports) != 2 || e.Ports[1].Slave != "eth1" || e.Ports[0].Remedy == "" || len(e.Changes) == 0 {
		t.Errorf("explain lacp --json gives %+v", e)
	}
}

func TestExplainFaults(t *testing.T) {
	i := start(t, newNetwork(t, "eth0", "eth1").kinds(), backup...)
	runWith("", "explain", "lacp", "--control", i.socket).check(t, "in another mode", exitFailure, "",
		"bond bond0: not in this mode: LACP runs in mode 802.3ad, and this is active-backup")
	runWith("", "explain", "lacp", "--control", tempSocket(t)).check(t, "without an instance", exitFailure, "", "no instance runs on")
	for _, args := range [][]string{{}, {"--json"}, {"weather"}} {
		runWith("", append([]string{"explain"}, args...)...).check(t, "explain "+strings.Join(args, " "), exitUsage, "", "allowed is lacp")
	}
	runWith("", "explain", "lacp", "now").check(t, "explain lacp now", exitUsage, "", `unexpected argument "now"`)
}
