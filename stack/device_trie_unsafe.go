package stack

import "unsafe"

// trieNode has up to trieWidth children, in the order of the keys' bits at
// shift. It is copied at each change, so a child is one word: a pointer to a
// node, or to a leaf where its bit in leaves is set. get and set alone know.
type trieNode[V any] struct {
	slots  [trieWidth]unsafe.Pointer
	prefix uint64 // what all keys below have above their slot bits; 0 elsewhere
	owner  uint64
	leaves uint16
	shift  uint8
}

// place returns where a key is below the node.
func (n *trieNode[V]) place(key uint64) int { return int(key >> n.shift % trieWidth) }

// covers reports whether a key can be below the node.
func (n *trieNode[V]) covers(key uint64) bool { return (key^n.prefix)>>n.shift < trieWidth }

func (n *trieNode[V]) get(place int) trieSlot[V] {
	p := n.slots[place]
	if n.leaves>>place&1 != 0 {
		return trieSlot[V]{leaf: (*trieLeaf[V])(p)}
	}
	return trieSlot[V]{node: (*trieNode[V])(p)}
}

func (n *trieNode[V]) set(place int, s trieSlot[V]) {
	if s.leaf != nil {
		n.slots[place] = unsafe.Pointer(s.leaf)
		n.leaves |= 1 << place
		return
	}
	n.slots[place] = unsafe.Pointer(s.node)
	n.leaves &^= 1 << place
}

// single returns the child of a node that has no other.
func (n *trieNode[V]) single() (child trieSlot[V], ok bool) {
	last, count := 0, 0
	for place, p := range n.slots {
		if p != nil {
			last = place
			count++
		}
	}
	return n.get(last), count == 1
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
