package stack

import "math/bits"

const (
	trieBits  = 4 // so that a change copies few nodes, and small ones
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

// trieSlot is a node, a leaf or nothing.
type trieSlot[V any] struct {
	node *trieNode[V]
	leaf *trieLeaf[V]
}

type trieLeaf[V any] struct {
	key   uint64
	value V
}

// get returns the value of a key, nil when there is none.
func (t *trie[V]) get(key uint64) *V {
	s := t.root
	for s.node != nil {
		s = s.node.get(s.node.place(key))
	}
	if s.leaf == nil || s.leaf.key != key {
		return nil
	}
	return &s.leaf.value
}

// put sets the value of a key.
func (t *trie[V]) put(key uint64, v V, owner uint64) {
	leaf := trieSlot[V]{leaf: &trieLeaf[V]{key, v}}
	if t.root.node == nil || !t.root.node.covers(key) {
		t.root = t.join(t.root, leaf, owner)
		return
	}
	n := t.root.node.own(owner)
	t.root.node = n
	for {
		place := n.place(key)
		below := n.get(place)
		if below.node == nil || !below.node.covers(key) {
			n.set(place, t.join(below, leaf, owner))
			return
		}
		below.node = below.node.own(owner)
		n.set(place, below)
		n = below.node
	}
}

// join returns what takes the place of a slot that a leaf is to come to: the
// leaf, or a node with both.
func (t *trie[V]) join(old, leaf trieSlot[V], owner uint64) trieSlot[V] {
	oldKey := leaf.leaf.key
	switch {
	case old.node != nil:
		oldKey = old.node.prefix
	case old.leaf != nil:
		oldKey = old.leaf.key
	default:
		t.size++
	}
	if oldKey == leaf.leaf.key && old.node == nil {
		return leaf
	}
	t.size++
	return fork(old, oldKey, leaf, owner)
}

// fork returns a node with a leaf and what was in its place, for the highest
// bits in which their keys differ.
func fork[V any](old trieSlot[V], oldKey uint64, leaf trieSlot[V], owner uint64) trieSlot[V] {
	key := leaf.leaf.key
	shift := uint8(bits.Len64(key^oldKey)-1) / trieBits * trieBits
	above := shift + trieBits
	n := &trieNode[V]{prefix: key >> above << above, shift: shift, owner: owner}
	n.set(n.place(oldKey), old)
	n.set(n.place(key), leaf)
	return trieSlot[V]{node: n}
}

// remove removes a key that is there.
func (t *trie[V]) remove(key uint64, owner uint64) {
	t.root = t.root.without(key, owner)
	t.size--
}

// without returns what is left of a slot when a key is removed from it.
func (s trieSlot[V]) without(key uint64, owner uint64) trieSlot[V] {
	if s.node == nil {
		return trieSlot[V]{}
	}
	n := s.node.own(owner)
	place := n.place(key)
	n.set(place, n.get(place).without(key, owner))
	if last, ok := n.single(); ok {
		return last
	}
	return trieSlot[V]{node: n}
}

// all calls yield for every value in the order of the keys, until it returns
// false.
func (t *trie[V]) all(yield func(*V) bool) { t.root.all(yield) }

func (s trieSlot[V]) all(yield func(*V) bool) bool {
	if s.leaf != nil {
		return yield(&s.leaf.value)
	}
	if s.node == nil {
		return true
	}
	for place := range trieWidth {
		if !s.node.get(place).all(yield) {
			return false
		}
	}
	return true
}
