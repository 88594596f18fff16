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
	runWith("", "explain", "weather").check(t, "explain weather", exitUsage, "", "allowed are bond and lacp")
	for _, args := range [][]string{{}, {"--json"}, {"bond", "--flow", "x"}, {"--flow", "x", "--frame", "00"}} {
		runWith("", append([]string{"explain"}, args...)...).check(t, "explain "+strings.Join(args, " "), exitUsage, "", "give one of bond, lacp, --flow and --frame")
	}
	runWith("", "explain", "bond", "--vlan", "5").check(t, "explain bond --vlan", exitUsage, "", "go with --flow")
	for want, args := range map[string][]string{
		"flow \"sctp:1-2\": allowed are tcp:":      {"--flow", "sctp:1-2"},
		"VLAN \"5000\": allowed are 1 to 4094":     {"--flow", "tcp:10.0.0.2:1-10.0.0.1:2", "--vlan", "5000"},
		"MAC \"x\": six bytes in hex":              {"--flow", "tcp:10.0.0.2:1-10.0.0.1:2", "--to-mac", "x"},
		"frame \"0g\": encoding/hex: invalid byte": {"--frame", "0g"},
	} {
		runWith("", append([]string{"explain", "--control", tempSocket(t)}, args...)...).check(t, strings.Join(args, " "), exitUsage, "", want)
	}
	runWith("", "explain", "lacp", "now").check(t, "explain lacp now", exitUsage, "", `unexpected argument "now"`)
}

// TestExplainBondAndFlow: what is said of a flow is what the counters of the slaves
// show, and after a failover what was said would be.
func TestExplainBondAndFlow(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), "--mode", "balance-xor", "-o", "xmit_hash_policy=layer3+4", "--slave", "eth0", "--slave", "eth1", "--address", "10.0.0.2/24")
	const flow = "tcp:10.0.0.2:4000-10.0.0.1:80"
	r := runWith("", "explain", "--control", i.socket, "--flow", flow)
	for _, want := range []string{"bond0 (balance-xor)\nsent by eth", "xmit_hash_policy layer3+4, xmit_hash_map modulo, over eth0, eth1",
		"source port 4000, destination port 80", "mod 2 = ", "with eth0 down by eth1: ", "with eth1 down by eth0: "} {
		r.check(t, "explain --flow", exitOK, want, "")
	}
	var e frameAnswer
	asJSON := runWith("", "explain", "--control", i.socket, "--flow", flow, "--json")
	if err := json.Unmarshal([]byte(asJSON.stdout), &e); err != nil || len(e.Slaves) != 1 || e.Note != "" {
		t.Fatalf("explain --flow --json: %v, %+v", err, e)
	}
	runWith("", "set", "--control", i.socket, "xmit_hash_policy=layer2").check(t, "set", exitOK, "changed:", "")
	runWith("", "explain", "--control", i.socket, "--flow", "tcp:10.0.0.2:4000-10.0.0.99:80").
		check(t, "a next hop that nobody has", exitOK, "note: the next hop's MAC is not known", "")
	runWith("", "explain", "--control", i.socket, "--flow", "tcp:10.0.0.2:4000-10.0.0.99:80", "--to-mac", "02:00:00:00:00:01").
		check(t, "a next hop that is given", exitOK, "destination MAC[5] 0x01", "")
	runWith("", "explain", "--control", i.socket, "--frame", "02000000000102000000ee000806").check(t, "--frame", exitOK, "sent by eth", "")

	runWith("", "explain", "bond", "--control", i.socket).check(t, "explain bond", exitOK, "bond0 (balance-xor): 2 of 2 slaves send\n\neth0: sends\neth1: sends\n", "")
	runWith("", "drain", "--control", i.socket, "eth0").check(t, "drain", exitOK, "changed:", "")
	r = runWith("", "explain", "bond", "--control", i.socket)
	for _, want := range []string{"eth0: not used: it is drained, and others serve\n    remedy: bondstack drain eth0 --undo\n", "last failovers\n  #1 ", "drain: eth0, now eth1"} {
		r.check(t, "explain bond", exitOK, want, "")
	}
}
