package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/drill"
)

// A silent cut over veths is found by the ARP monitor, and the kernel's host is
// reached again within the cut, by IPv4 and IPv6.
func TestDrillVeth(t *testing.T) {
	l := newLAN(t)
	i := l.run("--slave", "s0", "--slave", "s1", "--mode", "active-backup", "-o", "miimon=0", "-o", "arp_interval=50",
		"-o", "arp_ip_target=10.9.0.1", "-o", "arp_validate=all")
	i.await("s0 is active", func(st instanceStatus) bool { return st.ActiveSlave == "s0" && st.Slaves[1].MIIStatus == "up" })
	var out, errs bytes.Buffer
	code := run([]string{"drill", "--control", i.socket, "--cut", "s0", "--for", "1s", "--peer", "10.9.0.1", "--peer", "fd00:9::1", "--json"}, nil, &out, &errs)
	var r drill.Result
	if err := json.Unmarshal(out.Bytes(), &r); code != exitOK || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, &out, &errs)
	}
	round := r.Rounds[0]
	if r.How != bonding.CutSilence || !round.Served || !round.Noticed || !round.Back || len(round.Failovers) == 0 || round.Failovers[0].Cause != bonding.CauseARP {
		t.Errorf("round %+v", round)
	}
	for _, p := range round.Peers {
		if p.Lost == 0 || p.ReachedAgainUs == nil || *p.ReachedAgainUs == 0 || *p.ReachedAgainUs > 1_000_000 {
			t.Errorf("peer %+v, want a loss that ends within the cut", p)
		}
	}
	t.Logf("longest gap %d µs, %d of %d pings lost", *r.LongestGapUs, r.Lost, r.Sent)
}
