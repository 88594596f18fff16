package tlb

import "sync/atomic"

// Entries is the size of a table: a hash is taken modulo it.
const Entries = 256

// Table is the transmit table of one period. New or Next makes one; it must not
// be copied.
type Table struct {
	entries [Entries]entry
	// guess is the rate that a flow without history is taken for, at least 1.
	guess int64
	// loose counts the bytes of packets that no entry carries.
	loose atomic.Int64
}

// entry is a set of flows. It fills a cache line, since neighbours are counted
// by different processors.
type entry struct {
	member atomic.Pointer[Member] // nil: assigned by the next packet
	bytes  atomic.Int64           // sent in this period
	rate   int64                  // bytes a second in the last period; 0: none
	_      [40]byte
}

// Member is a slave's part in one table.
type Member struct {
	load atomic.Int64 // of its entries, and what it carries beside them
}

// NewMember returns a member that carries load bytes a second beside its
// entries.
func NewMember(load int64) *Member {
	m := &Member{}
	m.load.Store(load)
	return m
}

// Load returns the bytes a second that the member is taken to carry.
func (m *Member) Load() int64 { return m.load.Load() }

// Candidate is a member that may be given flows now.
type Candidate struct {
	Member *Member
	// Speed weighs the candidates, in any unit that they have in common. Zero
	// counts as 1.
	Speed uint32
}

// New returns a table without history.
func New() *Table { return &Table{guess: 1} }

// Pick returns which candidate the packet of a flow goes by, and counts its
// bytes. The result is -1 where there is no candidate. An entry keeps its
// member while that is a candidate. Pick may be called from many goroutines at
// once; it allocates nothing.
func (t *Table) Pick(hash uint32, size int, among []Candidate) int {
	e := &t.entries[hash%Entries]
	for {
		m := e.member.Load()
		i := find(m, among)
		if i < 0 {
			if i = least(among, t.expected(e)); i < 0 {
				return -1
			}
			if !e.member.CompareAndSwap(m, among[i].Member) {
				continue // another packet of the entry was faster
			}
			among[i].Member.load.Add(t.expected(e))
		}
		e.bytes.Add(int64(size))
		return i
	}
}

// Placed returns the entry of a hash, and the member that has it, nil where the next
// packet decides.
func (t *Table) Placed(hash uint32) (entry int, m *Member) {
	i := hash % Entries
	return int(i), t.entries[i].member.Load()
}

// Loose counts a packet that goes by no entry.
func (t *Table) Loose(size int) { t.loose.Add(int64(size)) }

// expected is what an entry is taken to carry, in bytes a second.
func (t *Table) expected(e *entry) int64 {
	if e.rate > 0 {
		return e.rate
	}
	return t.guess
}

// find returns the candidate that is m, -1 for none.
func find(m *Member, among []Candidate) int {
	for i := range among {
		if among[i].Member == m {
			return i
		}
	}
	return -1
}

// least returns the candidate that is used least once it has taken a flow of
// the given rate, -1 where there is none. Of equals the first is taken.
func least(among []Candidate, rate int64) int {
	best, bestUse := -1, 0.0
	for i := range among {
		use := float64(among[i].Member.load.Load()+rate) / among[i].weight()
		if best < 0 || use < bestUse {
			best, bestUse = i, use
		}
	}
	return best
}

func (c *Candidate) weight() float64 { return float64(max(c.Speed, 1)) }

// Release takes all entries from a member, which carries nothing any more. They
// keep their history.
func (t *Table) Release(m *Member) {
	for i := range t.entries {
		t.entries[i].member.CompareAndSwap(m, nil)
	}
	m.load.Store(0)
}

// Count returns how many entries a member has.
func (t *Table) Count(m *Member) int {
	n := 0
	for i := range t.entries {
		if t.entries[i].member.Load() == m {
			n++
		}
	}
	return n
}
