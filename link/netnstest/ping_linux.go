package netnstest

import (
	"fmt"
	"strconv"
	"strings"
)

// pingPatience is how many seconds Ping waits for the answers.
const pingPatience = "20"

// Ping sends n echo requests, 2 ms apart, to an address or a name with a zone, and
// returns an error unless each has been answered, once. A late answer counts: ping
// by itself waits for the last one no longer than two round trips, however busy the
// machine is.
func (ns *Namespace) Ping(address string, n int) error {
	ns.t.Helper()
	// By -w it waits for n answers, and goes on asking meanwhile.
	out, err := ns.TryRun("ping", "-n", "-i", "0.002", "-c", strconv.Itoa(n), "-w", pingPatience, address)
	if err != nil {
		return err
	}
	if err := answeredOnce(out, n); err != nil {
		return fmt.Errorf("ping %s: %w: %s", address, err, out)
	}
	return nil
}

// answeredOnce looks for the answers to n requests in what ping printed.
func answeredOnce(out string, n int) error {
	for seq := 1; seq <= n; seq++ {
		if got := strings.Count(out, fmt.Sprintf("icmp_seq=%d ", seq)); got != 1 {
			return fmt.Errorf("request %d of %d was answered %d times", seq, n, got)
		}
	}
	return nil
}
