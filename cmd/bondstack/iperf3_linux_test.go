package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"bondstack/cmd/bondstack/iperf3"
)

// iperf3Runs are what is tested with the system's iperf3 at the other end, as
// client's flags of both.
var iperf3Runs = []struct{ name, flags string }{
	{"four streams", "-P 4 -b 50M -l 16K"},
	{"server sends", "-R -P 2 -b 100M -l 16K"},
	{"both ways", "--bidir -b 100M -l 16K"},
	{"datagrams", "-u -b 20M -l 1000"},
	{"datagrams both ways", "-u --bidir -b 10M -l 1000 --udp-counters-64bit"},
}

// iperf3Reports gets the reports that bondstack iperf3 prints: each comes by one
// write.
type iperf3Reports chan iperf3.Report

func (c iperf3Reports) Write(b []byte) (int, error) {
	var r iperf3.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return 0, err
	}
	c <- r
	return len(b), nil
}

// next returns the next report.
func (c iperf3Reports) next(t *testing.T) iperf3.Report {
	t.Helper()
	select {
	case r := <-c:
		if r.Error != "" {
			t.Fatalf("bondstack iperf3: %s", r.Error)
		}
		return r
	case <-time.After(patience):
		t.Fatal("bondstack iperf3 reports nothing")
		return iperf3.Report{}
	}
}

// iperf3 runs bondstack iperf3 on the bond of a LAN, in this process, until the test
// ends.
func (l *lan) iperf3(flags string) iperf3Reports {
	l.t.Helper()
	if _, err := exec.LookPath("iperf3"); err != nil {
		l.t.Skip("needs root and iperf3: ", err)
	}
	args := append(strings.Fields(flags), "-J", "--slave", "s0", "--slave", "s1", "--mode", "active-backup", "--control", tempSocket(l.t))
	reports := make(iperf3Reports, 16)
	var stderr bytes.Buffer
	s, code, done := parseIperf3(append(args, lanAddresses...), reports, &stderr)
	if done {
		l.t.Fatalf("iperf3 %s: exit code %d, %s", flags, code, &stderr)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var log logBuffer
	go func() { ended <- s.run(ctx, slog.New(slog.NewTextHandler(&log, nil)), l.kinds()) }()
	l.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			l.t.Errorf("bondstack iperf3 %s: %v\n%s", flags, err, &log)
		}
	})
	return reports
}

// Must hold 3 of the measuring: the system's iperf3 is a client of ours, and both
// count the same.
func TestIperf3ServesTheSystems(t *testing.T) {
	t.Parallel()
	l := newLAN(t)
	server := l.iperf3("-s")
	for _, run := range iperf3Runs {
		var theirs iperf3.Report
		eventually(t, "the server answers", func() bool {
			out, err := l.far.TryRun("iperf3", append(strings.Fields("-c 10.9.0.2 -t 1 -J "+run.flags), "--connect-timeout", "1000")...)
			theirs = iperf3.Report{}
			if wrong := json.Unmarshal([]byte(out), &theirs); wrong != nil {
				t.Fatalf("%s: iperf3: %v, %v: %s", run.name, err, wrong, out)
			}
			if theirs.Error != "" && !strings.Contains(theirs.Error, "unable to connect") {
				t.Fatalf("%s: iperf3: %s", run.name, theirs.Error)
			}
			return theirs.Error == ""
		})
		ours := server.next(t)
		x, y := &theirs.End, &ours.End
		sameRow(t, run.name+": sent", x.SumSent, y.SumSent)
		sameRow(t, run.name+": received", x.SumReceived, y.SumReceived)
		sameRow(t, run.name+": sent reverse", x.ReverseSent, y.ReverseSent)
		sameRow(t, run.name+": received reverse", x.ReverseReceived, y.ReverseReceived)
		if !strings.Contains(run.flags, "-R") {
			allCame(t, run.name, y.SumSent, y.SumReceived)
		}
	}
}

// The same with the system's iperf3 as the server.
func TestIperf3IsAClientOfTheSystems(t *testing.T) {
	t.Parallel()
	l := newLAN(t)
	for _, run := range iperf3Runs {
		server := exec.Command("iperf3", "-s", "-1", "-J", "-B", "10.9.0.1")
		var out bytes.Buffer
		server.Stdout = &out
		l.far.Start(server)
		eventually(t, "iperf3 listens", func() bool { return strings.Contains(l.far.Run("ss", "-Hltn"), ":5201 ") })
		client := l.iperf3("-c 10.9.0.1 -t 1 " + run.flags)
		ours := client.next(t)
		if err := server.Wait(); err != nil {
			t.Fatalf("%s: iperf3 -s: %v: %s", run.name, err, &out)
		}
		var theirs iperf3.Report
		if err := json.Unmarshal(out.Bytes(), &theirs); err != nil {
			t.Fatalf("%s: iperf3's report: %v: %s", run.name, err, &out)
		}
		// It does not report what its client has sent and received.
		x, y := &theirs.End, &ours.End
		switch {
		case strings.Contains(run.flags, "-R"):
			sameRow(t, run.name+": sent", x.SumSent, y.SumSent)
			allCame(t, run.name, y.SumSent, y.SumReceived)
		case y.ReverseSent != nil:
			sameRow(t, run.name+": sent reverse", x.ReverseSent, y.ReverseSent)
			allCame(t, run.name+": reverse", y.ReverseSent, y.ReverseReceived)
			fallthrough
		default:
			sameRow(t, run.name+": received", x.SumReceived, y.SumReceived)
		}
		if tx, rx := ours.Bond.Slaves[0], ours.Bond.Slaves[1]; *tx.TxShare+*rx.TxShare < 0.999 || tx.TxBytes+rx.TxBytes+tx.RxBytes+rx.RxBytes < y.SumReceived.Bytes {
			t.Errorf("%s: the slaves carried %+v", run.name, ours.Bond.Slaves)
		}
	}
}

// sameRow compares what both ends' reports say of the same: bytes and datagrams are
// the same numbers, times differ as the reports round.
func sameRow(t *testing.T, what string, x, y *iperf3.Row) {
	t.Helper()
	if (x == nil) != (y == nil) {
		t.Errorf("%s: iperf3 says %+v, bondstack %+v", what, x, y)
		return
	}
	if x == nil {
		return
	}
	if x.Bytes != y.Bytes || x.Bytes == 0 {
		t.Errorf("%s: iperf3 says %d bytes, bondstack %d", what, x.Bytes, y.Bytes)
	}
	// What came of UDP, or the other way beside the first, iperf3 divides by the time
	// of the end that did not count it: on a busy machine the two differ.
	mixed := y.Packets != nil || strings.Contains(what, "reverse")
	if sameTime := math.Abs(x.Seconds/y.Seconds-1) < 0.01; (sameTime || !mixed) && math.Abs(x.Bits/y.Bits-1) > 0.02 {
		t.Errorf("%s: iperf3 says %.0f bit/s, bondstack %.0f", what, x.Bits, y.Bits)
	}
	if y.Packets != nil && x.Packets != nil && *x.Packets != *y.Packets {
		t.Errorf("%s: iperf3 says %d datagrams, bondstack %d", what, *x.Packets, *y.Packets)
	}
}

// allCame compares sender and receiver where bondstack received: of TCP all came, and
// of datagrams of 1000 bytes those that were not lost.
func allCame(t *testing.T, what string, sent, received *iperf3.Row) {
	t.Helper()
	switch {
	case received.Packets == nil:
		if received.Bytes != sent.Bytes {
			t.Errorf("%s: %d bytes sent, %d received", what, sent.Bytes, received.Bytes)
		}
	case *received.Packets > *sent.Packets || received.Bytes != 1000*(*received.Packets-uint64(*received.Lost)):
		t.Errorf("%s: %d datagrams sent, %d until the last that came, %d lost, %d bytes came",
			what, *sent.Packets, *received.Packets, *received.Lost, received.Bytes)
	}
}
