package reorder

// expire ends the waits that have been too long. It reports whether frames wait.
func (s *Stage) expire(now uint32) (more bool) {
	quiet := s.quiet(now)
	if quiet == everyLink {
		quiet = 0 // which says nothing of any
	}
	s.seen.And(^uint32(quiet)) // new flows need not find out for themselves
	for i := range s.table.sets {
		set := &s.table.sets[i]
		if !set.waiting.Load() {
			continue
		}
		more = s.sweep(set, expired, func(f *flow) { f.expire(now, quiet, s.counters) }) || more
	}
	return more
}

const everyLink = 1<<MaxLinks - 1

// quiet returns the links that have delivered nothing for the hold time.
func (s *Stage) quiet(now uint32) (links uint16) {
	for link := range s.active {
		if now-s.active[link].Load() >= ticksPerHold {
			links |= 1 << link
		}
	}
	return links
}

// sweep changes each flow of a set and delivers what no longer waits. It reports
// whether frames wait.
func (s *Stage) sweep(set *set, why reason, change func(*flow)) bool {
	set.mu.Lock()
	defer set.mu.Unlock()
	for i := range set.flows {
		f := &set.flows[i]
		change(f)
		s.settleLocked(set, f, why)
	}
	waiting := set.waitingLocked()
	set.waiting.Store(waiting)
	return waiting
}

// Gone tells of links, by bit, that deliver no more: they were released, or are
// down. Nothing waits for them from now on. It returns when what waited for them
// alone has been delivered, or is left to a goroutine that is at it.
func (s *Stage) Gone(links uint32) {
	s.seen.And(^links)
	s.table.eachUsed(func(set *set) {
		s.sweep(set, gone, func(f *flow) { f.gone(uint16(links)) })
	})
}

// Close delivers all that is held. Frames that come later are delivered at once,
// in the order in which they come.
func (s *Stage) Close() {
	s.closed.Store(true)
	for i := range s.table.sets {
		s.sweep(&s.table.sets[i], evicted, func(f *flow) { f.giveUp(s.counters) })
	}
}

// State is how much a Stage holds at one moment.
type State struct {
	// Flows is how many flows are known, Frames and Bytes what waits and the
	// memory that it takes.
	Flows  int   `json:"flows"`
	Frames int   `json:"frames"`
	Bytes  int64 `json:"bytes"`
}

// State returns what the stage holds.
func (s *Stage) State() State {
	st := State{Bytes: s.bytes.Load()}
	for i := range s.table.sets {
		set := &s.table.sets[i]
		set.mu.Lock()
		for i := range set.flows {
			f := &set.flows[i]
			if f.live {
				st.Flows++
			}
			st.Frames += f.held.n + f.ready.n
		}
		set.mu.Unlock()
	}
	return st
}
