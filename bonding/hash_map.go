package bonding

import (
	"slices"
	"strconv"
	"strings"

	"bondstack/bonding/flowmap"
	"bondstack/link"
)

// HashMap is how the hash of a frame chooses a slave.
type HashMap uint8

// The values of xmit_hash_map.
const (
	// HashModulo numbers the usable slaves and takes the hash modulo their
	// number, as Linux does: most flows move when one of them goes or comes.
	HashModulo HashMap = 0
	// HashConsistent gives each slave its share of the flows by weight: when one
	// of N slaves goes, its own flows move, about 1/N, and no other; when it
	// comes back it has them again.
	HashConsistent HashMap = 1
)

var hashMapNames = []string{"modulo", "consistent"}

// String returns "modulo" or "consistent".
func (m HashMap) String() string { return nameOf(hashMapNames, uint64(m)) }

// maxDraws bounds the names of which the draws are kept.
const maxDraws = 64

// flowTable returns the map of flows to the slaves that may transmit; nil where
// the hash is taken modulo their number.
func (b *Bond) flowTable(by HashMap, usable []*slave) *flowmap.Table {
	if by != HashConsistent || len(usable) == 0 {
		return nil
	}
	members := make([]flowmap.Member, len(usable))
	for i, s := range usable {
		if s.draws == nil { // and kept when it is renamed
			s.draws = b.flowMaps.drawsOf(s.name)
		}
		members[i] = flowmap.Member{Draws: s.draws, Weight: float64(s.weightAmong(usable))}
	}
	return b.flowMaps.of(members)
}

// flowMaps keeps the tables that were built last: most changes of a bond do not
// change its members, and one whose link comes and goes changes between two sets.
// It is guarded by Bond.mu.
type flowMaps struct {
	draws map[string]*flowmap.Draws // by slave
	built [maxFlowMaps]builtFlowMap
	next  int // the oldest
}

type builtFlowMap struct {
	members []flowmap.Member
	table   *flowmap.Table
}

// maxFlowMaps bounds them; a table has 4 KiB.
const maxFlowMaps = 4

// of returns the table of members, made now if need be.
func (m *flowMaps) of(members []flowmap.Member) *flowmap.Table {
	for _, b := range m.built {
		if slices.Equal(b.members, members) {
			return b.table
		}
	}
	table := flowmap.Build(members)
	m.built[m.next] = builtFlowMap{members, table}
	m.next = (m.next + 1) % maxFlowMaps
	return table
}

// drawsOf returns the draws of a slave by its name: whoever comes back finds them
// made.
func (m *flowMaps) drawsOf(name string) *flowmap.Draws {
	d := m.draws[name]
	if d == nil {
		if m.draws == nil || len(m.draws) >= maxDraws {
			m.draws = map[string]*flowmap.Draws{}
		}
		d = flowmap.NewDraws(name)
		m.draws[name] = d
	}
	return d
}

// weightAmong is the slave's own weight, or its speed in Mbit/s. One that does
// not know its speed counts as the fastest that does.
func (s *slave) weightAmong(others []*slave) uint32 {
	if s.weight != 0 {
		return s.weight
	}
	if speed := s.state.Speed; speed != link.SpeedUnknown && speed != 0 {
		return speed
	}
	fastest := uint32(1)
	for _, other := range others {
		if speed := other.state.Speed; speed != link.SpeedUnknown {
			fastest = max(fastest, speed)
		}
	}
	return fastest
}

// setWeight reads name:weight. The last colon separates.
func setWeight(ch *change, text string) error {
	text = firstLine(text)
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return &OptionError{Reason: "the form is SLAVE:WEIGHT", Err: ErrPrecondition}
	}
	weight, err := strconv.ParseUint(text[i+1:], 10, 32)
	if err != nil || weight > MaxWeight {
		return &OptionError{Reason: "the weight is 1 to " + strconv.Itoa(MaxWeight) + ", or 0 for the speed", Err: ErrPrecondition}
	}
	s := ch.slave(text[:i])
	if s == nil {
		return &OptionError{Reason: "the slaves are " + ch.slaveNames(), Err: ErrPrecondition}
	}
	if ch.weights == nil {
		ch.weights = map[string]uint32{}
	}
	ch.weights[s.name] = uint32(weight)
	return nil
}

// showWeights lists what was set.
func showWeights(slaves []*slave) string {
	list := make([]string, len(slaves))
	for i, s := range slaves {
		list[i] = s.name + ":" + strconv.FormatUint(uint64(s.weight), 10)
	}
	return strings.Join(list, " ")
}
