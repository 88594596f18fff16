package lacp

// StrayArcs returns the arcs that a System went and that Arcs does not list.
func (s *System) StrayArcs() []Arc {
	var stray []Arc
	known := map[Arc]bool{}
	for _, a := range arcs {
		known[Arc{Machine: a.Machine, From: a.From, To: a.To}] = true
	}
	for m := range s.arcs {
		for from := range s.arcs[m] {
			for to, n := range s.arcs[m][from] {
				a := Arc{Machine: Machine(m), From: MachineState(from), To: MachineState(to)}
				if n > 0 && !known[a] {
					stray = append(stray, a)
				}
			}
		}
	}
	return stray
}
