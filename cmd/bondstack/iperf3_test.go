package main

import (
	"encoding/json"
	"strings"
	"testing"

	"bondstack/cmd/bondstack/iperf3"
)

// Every fault of the flags is named at once, before anything is opened.
func TestIperf3FlagFaults(t *testing.T) {
	bond := []string{"--slave", "eth0", "--mode", "active-backup", "--address", "10.0.0.2/24"}
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{bond, []string{"--server, --client and --in-memory"}},
		{append([]string{"-s", "-c", "10.0.0.1"}, bond...), []string{"--server, --client and --in-memory"}},
		{[]string{"-s"}, []string{"--slave: missing", "--mode: missing", "--address: missing"}},
		{append([]string{"-c", "host"}, bond...), []string{`"host" is not an IP address`}},
		{append([]string{"-c", "10.0.0.1", "-t", "86401"}, bond...), []string{"time is 24h0m1s"}},
		{append([]string{"-c", "10.0.0.1", "-t", "1", "-n", "1M"}, bond...), []string{"exclude each other"}},
		{append([]string{"-c", "10.0.0.1", "-n", "much", "-b", "1X", "-P", "129"}, bond...), []string{`--bytes: "much"`, `--bitrate: "1X"`, "parallel is 129"}},
		{append([]string{"-c", "10.0.0.1", "-b", "1M/x"}, bond...), []string{`--bitrate: "x"`}},
		{append([]string{"-c", "10.0.0.1", "-R", "--bidir"}, bond...), []string{"exclude each other"}},
		{append([]string{"-s", "-i", "0.01"}, bond...), []string{"interval is 10ms"}},
		{append([]string{"-s", "--max-duration", "25h"}, bond...), []string{"25h0m0s"}},
		{[]string{"--in-memory", "--slave", "eth0", "--mode", "9"}, []string{"--slave: not with --in-memory", `"9"`}},
	} {
		r := runWith("", append([]string{"iperf3"}, tt.args...)...)
		for _, want := range tt.want {
			r.check(t, strings.Join(tt.args, " "), exitUsage, "", want)
		}
	}
}

// A bond that runs serves tests beside its other services, one after the other, and
// logs each.
func TestRunServesIperf3(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), append(backup, "--serve", "iperf3:5201", "--serve", "echo:7")...)
	for _, o := range []iperf3.ClientOptions{{Bytes: 2 << 20, Parallel: 2}, {Bytes: 100_000, UDP: true, Rate: 100e6, Bidir: true}} {
		o.Host = "10.0.0.2"
		r, err := iperf3.Run(t.Context(), n.host, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.End.SumReceived.Bytes == 0 || o.Bytes == 2<<20 && r.End.SumReceived.Bytes != o.Bytes {
			t.Errorf("%d bytes received, want %d", r.End.SumReceived.Bytes, o.Bytes)
		}
	}
	eventually(t, "both tests are logged", func() bool { return strings.Count(i.log.String(), "iperf3: test\" client=10.0.0.1:") == 2 })
	if err := i.end(); err != nil {
		t.Errorf("run = %v", err)
	}
}

// Client and server in memory: what was sent came, half by each slave.
func TestIperf3InMemory(t *testing.T) {
	t.Parallel()
	r := runWith("", "iperf3", "--in-memory", "-n", "20M", "-P", "2", "-J", "-p", "5555", "-o", "packets_per_slave=2")
	r.check(t, "in memory", exitOK, "end", "")
	var got iperf3.Report
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	if got.End.SumSent.Bytes != 20<<20 || got.End.SumReceived.Bytes != 20<<20 {
		t.Errorf("sent %d bytes and received %d, want 20 MiB", got.End.SumSent.Bytes, got.End.SumReceived.Bytes)
	}
	if len(got.Bond.Slaves) != 2 {
		t.Fatalf("slaves: %+v", got.Bond)
	}
	for _, s := range got.Bond.Slaves {
		if *s.TxShare < 0.3 || *s.TxShare > 0.7 || s.TxBytes < 5<<20 {
			t.Errorf("slave %s has sent %d bytes, a share of %v, want about half", s.Name, s.TxBytes, *s.TxShare)
		}
	}
}
