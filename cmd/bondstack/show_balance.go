package main

import (
	"fmt"
	"strings"
	"time"

	"bondstack/bonding"
)

// balanceText is what balance-tlb and balance-alb have to show beside the other
// modes, one line a slave.
func balanceText(st *bonding.Status) string {
	if st.Balance == nil {
		return ""
	}
	var b strings.Builder
	if st.Balance.Dynamic {
		fmt.Fprintf(&b, "\nflows are placed by load; %d rebalances, the next in %v\n", st.Balance.Rebalances, time.Duration(st.Balance.NextMs)*time.Millisecond)
	} else {
		fmt.Fprintf(&b, "\nflows are placed by hash, %s\n", st.XmitHashPolicy)
	}
	for _, s := range st.Slaves {
		fmt.Fprintf(&b, "  %s sends from %s: %d of 256 entries, %.2f Mbit/s", s.Name, s.Balance.SourceAddress,
			s.Balance.Entries, float64(s.Balance.LoadBytesPerSecond)*8/1e6)
		if st.Balance.Clients != nil {
			fmt.Fprintf(&b, "; %d clients send to it", s.Balance.Clients)
		}
		b.WriteByte('\n')
	}
	if c := st.Balance.Clients; c != nil {
		fmt.Fprintf(&b, "  %d of at most %d clients; %d found no room\n", c.Count, c.Max, c.Refused)
	}
	return b.String()
}
