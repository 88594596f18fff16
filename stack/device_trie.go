package stack

import "math/bits"

const (
	trieBits  = 4 // so that a change copies few nodes, and small ones
	trieWidth = 1 << trieBits
)

// trie is a map from numbers to values of which a copy of the struct is a
// version that stays as it is while the next one is made. It is a big-endian
// Patricia trie, so keys that are near each other share their nodes, an
// iteration is in the order of the keys, and no node has a single child.
//
// Versions follow one another: only the last one is changed, by one goroutine,
// and what comes of it takes its place or is dropped. So a new key is hung into
// nodes that older versions share, with the number of the edit that did it, and
// versions from before that edit look past it: adding copies nothing. To replace
// or to remove a value copies the nodes on the way to it.
type trie[V any] struct {
	root trieSlot[V]
	size int
	now  uint64 // number of the last edit that changed it
}

type trieLeaf[V any] struct {
	stamp trieStamp // the edit that hung it in
	key   uint64
	value V
}

// trieEdit is one change, small or large, that makes a version of one or more
// tries of the next. Its number is greater than those of all edits before it.
type trieEdit struct {
	number uint64
	hung   []hungItem // what went into nodes that are shared with older versions
}

// get returns the value of a key, nil when there is none.
func (t *trie[V]) get(key uint64) *V {
	s := t.root
	for n := s.node(); n != nil; n = s.node() {
		s = n.slots[n.place(key)].load()
	}
	return s.value(key, t.now)
}

// value returns the value of a leaf, if it is the key's and was there at the
// edit of a number.
func (s trieSlot[V]) value(key, now uint64) *V {
	leaf := s.leaf()
	if leaf == nil || leaf.key != key || leaf.stamp.number() > now {
		return nil
	}
	return &leaf.value
}

// put sets the value of a key.
func (t *trie[V]) put(key uint64, v V, e *trieEdit) {
	there := t.get(key) != nil
	t.now = e.number
	leaf := leafSlot(&trieLeaf[V]{leafStamp(e.number), key, v})
	if there {
		t.root = t.root.with(leaf, key, e.number)
		return
	}
	t.size++
	at, owned := &t.root, true
	for n := at.node(); n != nil && n.covers(key); n = at.node() {
		owned = n.stamp.number() == e.number
		at = &n.slots[n.place(key)]
	}
	if owned {
		*at = join(*at, leaf, e.number)
		return
	}
	e.hang(at.hook(), join(*at, leaf, 0).pointer())
}

// with returns a slot with a leaf in the place of the one that has its key.
func (s trieSlot[V]) with(leaf trieSlot[V], key, number uint64) trieSlot[V] {
	n := s.node()
	if n == nil {
		return leaf
	}
	n = n.own(number)
	at := &n.slots[n.place(key)]
	*at = at.with(leaf, key, number)
	return nodeSlot(n)
}

// join returns what takes the place of a slot that a leaf is to come to: the
// leaf, or a node with both, of the edit that may change it in place.
func join[V any](old, leaf trieSlot[V], number uint64) trieSlot[V] {
	key, oldKey := leaf.leaf().key, uint64(0)
	switch {
	case old == trieSlot[V]{}:
		return leaf
	case old.node() != nil:
		oldKey = old.node().prefix
	default:
		oldKey = old.leaf().key
	}
	shift := uint8(bits.Len64(key^oldKey)-1) / trieBits * trieBits // of the highest bits in which they differ
	above := shift + trieBits
	n := &trieNode[V]{stamp: nodeStamp(number), prefix: key >> above << above, shift: shift}
	n.slots[n.place(oldKey)] = old
	n.slots[n.place(key)] = leaf
	return nodeSlot(n)
}

// remove removes a key that is there.
func (t *trie[V]) remove(key uint64, e *trieEdit) {
	t.now = e.number
	t.root = t.root.without(key, e.number)
	t.size--
}

// without returns what is left of a slot when a key is removed from it.
func (s trieSlot[V]) without(key, number uint64) trieSlot[V] {
	n := s.node()
	if n == nil {
		return trieSlot[V]{}
	}
	n = n.own(number)
	at := &n.slots[n.place(key)]
	*at = at.without(key, number)
	if last, ok := n.single(); ok {
		return last
	}
	return nodeSlot(n)
}

// all calls yield for every value in the order of the keys, until it returns
// false.
func (t *trie[V]) all(yield func(*V) bool) { t.root.all(t.now, yield) }

func (s trieSlot[V]) all(now uint64, yield func(*V) bool) bool {
	if leaf := s.leaf(); leaf != nil {
		return leaf.stamp.number() > now || yield(&leaf.value)
	}
	if n := s.node(); n != nil {
		for place := range n.slots {
			if !n.slots[place].load().all(now, yield) {
				return false
			}
		}
	}
	return true
}
