package wire

// SwitchStats counts what a switch has learned since it was made.
type SwitchStats struct {
	// Addresses is how many addresses are in the table now, those that are too
	// old but were not looked at since included.
	Addresses int
	// Learned counts addresses entered, Moved addresses that came in by another
	// port than before, Aged addresses that became too old, Flushed addresses
	// forgotten since their port lost carrier.
	Learned, Moved, Aged, Flushed uint64
	// TableFull counts frames whose source found no room in the table.
	TableFull uint64
}

// PortStats counts the frames at one port of a switch.
type PortStats struct {
	// Cable are the counters of the switch's end of the cable: Rx is what came
	// from the device, Tx what went to it.
	Cable Stats
	// Forwarded counts the frames from the device that went to one port,
	// Flooded those that went to all others.
	Forwarded, Flooded uint64
	// SamePort counts the frames from the device for an address at this port,
	// Reserved those for reserved group addresses; both are dropped.
	SamePort, Reserved uint64
}

// Stats returns the switch's counters now.
func (sw *Switch) Stats() SwitchStats {
	t := &sw.table
	return SwitchStats{
		Addresses: t.len(),
		Learned:   t.learned.Load(),
		Moved:     t.moved.Load(),
		Aged:      t.aged.Load(),
		Flushed:   t.flushed.Load(),
		TableFull: t.full.Load(),
	}
}

// PortStats returns the counters of a port now.
func (sw *Switch) PortStats(i int) PortStats {
	p := sw.ports[i]
	return PortStats{
		Cable:     p.end.Stats(),
		Forwarded: p.forwarded.Load(),
		Flooded:   p.flooded.Load(),
		SamePort:  p.samePort.Load(),
		Reserved:  p.reserved.Load(),
	}
}
