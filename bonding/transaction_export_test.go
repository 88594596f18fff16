package bonding

// FlowOwners returns which slave sends for the hashes 0 to n-1, as the present
// snapshot of a mode that hashes says.
func (b *Bond) FlowOwners(n uint32) []string {
	s := b.snap.Load()
	owners := make([]string, n)
	for h := range owners {
		if len(s.usable) == 0 {
			continue
		}
		i := uint32(h) % uint32(len(s.usable))
		if s.flows != nil {
			i = uint32(s.flows.Index(uint32(h)))
		}
		owners[h] = s.usable[i].name
	}
	return owners
}
