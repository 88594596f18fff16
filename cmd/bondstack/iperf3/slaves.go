package iperf3

// SlaveBytes is what one slave of a bond has carried up to a moment, with all
// headers, and with all that is not of the test.
type SlaveBytes struct {
	Name   string
	Tx, Rx uint64 // bytes
}

// Bond is what a bond carried below a test.
type Bond struct {
	Slaves []SlaveShare `json:"slaves"`
	// NotSent counts the datagrams that the network did not take.
	NotSent uint64 `json:"datagrams_not_sent,omitempty"`
}

// SlaveShare is what one slave carried in a time; a share is of what all did, and
// null where that is nothing.
type SlaveShare struct {
	Name    string   `json:"name"`
	TxBytes uint64   `json:"tx_bytes"`
	RxBytes uint64   `json:"rx_bytes"`
	TxShare *float64 `json:"tx_share"`
	RxShare *float64 `json:"rx_share"`
}

// slavesReport returns what the slaves carried between two moments: nil where
// there are none. A slave that came meanwhile, or came again, has begun with 0.
func slavesReport(now, before []SlaveBytes) *Bond {
	if len(now) == 0 {
		return nil
	}
	old := map[string]SlaveBytes{}
	for _, s := range before {
		old[s.Name] = s
	}
	b := &Bond{}
	var tx, rx uint64
	for _, s := range now {
		share := SlaveShare{Name: s.Name, TxBytes: since(s.Tx, old[s.Name].Tx), RxBytes: since(s.Rx, old[s.Name].Rx)}
		tx, rx = tx+share.TxBytes, rx+share.RxBytes
		b.Slaves = append(b.Slaves, share)
	}
	for i := range b.Slaves {
		s := &b.Slaves[i]
		s.TxShare, s.RxShare = part(s.TxBytes, tx), part(s.RxBytes, rx)
	}
	return b
}

func since(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

func part(n, of uint64) *float64 {
	if of == 0 {
		return nil
	}
	p := float64(n) / float64(of)
	return &p
}
