package echo

// PeerStatus is the state of one peer of a port.
type PeerStatus struct {
	System, Discriminator uint64
	State                 PeerState
	HeardAt               Instant // of its last hello
}

// Peers returns what a port knows of its peers, in the order in which they were
// first heard.
func (m *Monitor) Peers(id PortID) []PeerStatus {
	port := m.port(id)
	if port == nil {
		return nil
	}
	list := make([]PeerStatus, len(port.peers))
	for i, p := range port.peers {
		list[i] = PeerStatus{p.system, p.discriminator, p.state, p.heardAt}
	}
	return list
}

// Config returns the settings.
func (m *Monitor) Config() Config { return m.cfg }

// ArcCount returns how often an arc of Arcs was taken.
func (m *Monitor) ArcCount(a Arc) uint64 { return m.arcs[a.From][a.To] }
