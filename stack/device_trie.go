package stack

import "math/bits"

const (
	trieBits  = 3 // narrow: a change copies one node of each level
	trieWidth = 1 << trieBits
)

// trie is a map from numbers to values that is cheap to change by copying: a
// copy of the struct is a copy of the map, and a change to one of them copies
// the nodes on the way to the key and shares the others. It is a big-endian
// Patricia trie, so keys that are near each other share their nodes, an
// iteration is in the order of the keys, and no node has a single child.
//
// A node belongs to the owner that made it, and is changed in place by that one
// alone. Whoever changes a copy takes an owner number that was never used.
type trie[V any] struct {
	root trieSlot[V]
	size int
}

// trieSlot holds a node, a leaf or nothing.
type trieSlot[V any] struct {
	node *trieNode[V]
	leaf *trieLeaf[V]
}

type trieNode[V any] struct {
	slots  [trieWidth]trieSlot[V]
	prefix uint64 // what all keys below have above their slot bits; 0 elsewhere
	owner  uint64
	shift  uint8 // where a key's slot bits are
}

type trieLeaf[V any] struct {
	key   uint64
	value V
}

func (n *trieNode[V]) slot(key uint64) *trieSlot[V] { return &n.slots[key>>n.shift%trieWidth] }

// covers reports whether a key can be below the node.
func (n *trieNode[V]) covers(key uint64) bool { return (key^n.prefix)>>n.shift < trieWidth }

// get returns the value of a key, nil when there is none.
func (t *trie[V]) get(key uint64) *V {
	s := &t.root
	for s.node != nil {
		s = s.node.slot(key)
	}
	if s.leaf == nil || s.leaf.key != key {
		return nil
	}
	return &s.leaf.value
}

// put sets the value of a key.
func (t *trie[V]) put(key uint64, v V, owner uint64) {
	s := &t.root
	for s.node != nil && s.node.covers(key) {
		s.node = s.node.own(owner)
		s = s.node.slot(key)
	}
	leaf := trieSlot[V]{leaf: &trieLeaf[V]{key, v}}
	switch {
	case s.node != nil:
		*s = fork(*s, s.node.prefix, leaf, owner)
	case s.leaf == nil:
		*s = leaf
	case s.leaf.key == key:
		*s = leaf
		return
	default:
		*s = fork(*s, s.leaf.key, leaf, owner)
	}
	t.size++
}

// fork puts a leaf beside what was in its place, with a node above both for the
// highest bits in which they differ.
func fork[V any](old trieSlot[V], oldKey uint64, leaf trieSlot[V], owner uint64) trieSlot[V] {
	key := leaf.leaf.key
	shift := uint8(bits.Len64(key^oldKey)-1) / trieBits * trieBits
	above := shift + trieBits
	n := &trieNode[V]{prefix: key >> above << above, shift: shift, owner: owner}
	*n.slot(oldKey), *n.slot(key) = old, leaf
	return trieSlot[V]{node: n}
}

// own returns a node that its owner may change: this one or a copy.
func (n *trieNode[V]) own(owner uint64) *trieNode[V] {
	if n.owner == owner {
		return n
	}
	c := *n
	c.owner = owner
	return &c
}

// remove removes a key that is there.
func (t *trie[V]) remove(key uint64, owner uint64) {
	t.root.remove(key, owner)
	t.size--
}

func (s *trieSlot[V]) remove(key uint64, owner uint64) {
	if s.node == nil {
		s.leaf = nil
		return
	}
	s.node = s.node.own(owner)
	s.node.slot(key).remove(key, owner)
	if last, ok := s.node.single(); ok {
		*s = last
	}
}

// single returns the child of a node that has no other.
func (n *trieNode[V]) single() (child trieSlot[V], ok bool) {
	for i := range n.slots {
		switch s := n.slots[i]; {
		case s.node == nil && s.leaf == nil:
		case ok:
			return child, false
		default:
			child, ok = s, true
		}
	}
	return child, ok
}

// all calls yield for every value in the order of the keys, until it returns
// false.
func (t *trie[V]) all(yield func(*V) bool) { t.root.all(yield) }

func (s *trieSlot[V]) all(yield func(*V) bool) bool {
	if s.leaf != nil {
		return yield(&s.leaf.value)
	}
	if s.node == nil {
		return true
	}
	for i := range s.node.slots {
		if !s.node.slots[i].all(yield) {
			return false
		}
	}
	return true
}
