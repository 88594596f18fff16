package bonding

import "time"

// BalanceStatus is what Status has of balance-tlb and balance-alb beside the
// other modes.
type BalanceStatus struct {
	// Dynamic is whether flows are placed by load [tlb_dynamic_lb].
	Dynamic bool `json:"dynamic"`
	// Rebalances is how many periods have ended since a NIC has the bond.
	Rebalances uint64 `json:"rebalances"`
	// NextMs is how many milliseconds the present period has left; 0 where
	// nothing is placed by load.
	NextMs uint64 `json:"next_ms"`
	// Clients is the receiving half of balance-alb.
	Clients *ClientsStatus `json:"clients,omitempty"`
}

// SlaveBalance is a slave's part in balance-tlb and balance-alb.
type SlaveBalance struct {
	// SourceAddress is the slave's own address: what it sends balanced frames
	// from, or, if it is active, the bond's.
	SourceAddress string `json:"source_address"`
	// Entries is how many of the transmit table's 256 entries the slave has.
	Entries int `json:"entries"`
	// LoadBytesPerSecond is what the slave is taken to carry: its entries by
	// what they carried in the last period, new ones by the average of these,
	// and, if it is active, what is not balanced.
	LoadBytesPerSecond int64 `json:"load_bytes_per_second"`
	// Clients is how many clients of balance-alb send to the slave.
	Clients int `json:"clients"`
}

// addBalanceStatus adds the adaptive modes' part.
func (b *Bond) addBalanceStatus(st *Status) {
	st.Balance = &BalanceStatus{Dynamic: !b.config.tlbStatic}
	l := b.balancer
	if l != nil {
		st.Balance.Rebalances = l.rebalances
		if l.ticks() && len(b.slaves) > 0 {
			st.Balance.NextMs = ms(time.Duration(max(l.rebalance-b.now(), 0)))
		}
	}
	for i, s := range b.slaves {
		own := &SlaveBalance{SourceAddress: s.mac.String()}
		if l != nil {
			own.Entries = l.table.Count(s.member)
			own.LoadBytesPerSecond = s.member.Load()
		}
		st.Slaves[i].Balance = own
	}
	b.addClientsStatus(st)
}
