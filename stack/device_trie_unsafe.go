package stack

import (
	"sync/atomic"
	"unsafe"
)

// trieStamp begins every node and leaf: the number of the edit that made it,
// and in the lowest bit which of the two it is. So a slot is one word, that is
// read and written as a whole.
type trieStamp uint64

func leafStamp(number uint64) trieStamp { return trieStamp(number<<1 | 1) }
func nodeStamp(number uint64) trieStamp { return trieStamp(number << 1) }

func (s trieStamp) number() uint64 { return uint64(s >> 1) }
func (s trieStamp) isLeaf() bool   { return s&1 != 0 }

// trieNode has up to trieWidth children, in the order of the keys' bits at
// shift.
type trieNode[V any] struct {
	stamp  trieStamp // the edit that may change it in place, 0: none
	slots  [trieWidth]trieSlot[V]
	prefix uint64 // what all keys below have above their slot bits; 0 elsewhere
	shift  uint8
}

// place returns where a key is below the node.
func (n *trieNode[V]) place(key uint64) int { return int(key >> n.shift % trieWidth) }

// covers reports whether a key can be below the node.
func (n *trieNode[V]) covers(key uint64) bool { return (key^n.prefix)>>n.shift < trieWidth }

// single returns the child of a node that has no other.
func (n *trieNode[V]) single() (child trieSlot[V], ok bool) {
	count := 0
	for _, s := range n.slots {
		if s.to != nil {
			child = s
			count++
		}
	}
	return child, count == 1
}

// own returns a node that an edit may change: this one or a copy.
func (n *trieNode[V]) own(number uint64) *trieNode[V] {
	if n.stamp.number() == number {
		return n
	}
	c := *n
	c.stamp = nodeStamp(number)
	return &c
}

// trieSlot is a node, a leaf or nothing.
type trieSlot[V any] struct{ to unsafe.Pointer }

func leafSlot[V any](l *trieLeaf[V]) trieSlot[V] { return trieSlot[V]{unsafe.Pointer(l)} }
func nodeSlot[V any](n *trieNode[V]) trieSlot[V] { return trieSlot[V]{unsafe.Pointer(n)} }

func (s trieSlot[V]) leaf() *trieLeaf[V] {
	if s.to == nil || !(*trieStamp)(s.to).isLeaf() {
		return nil
	}
	return (*trieLeaf[V])(s.to)
}

func (s trieSlot[V]) node() *trieNode[V] {
	if s.to == nil || (*trieStamp)(s.to).isLeaf() {
		return nil
	}
	return (*trieNode[V])(s.to)
}

// load reads a slot into which something may be hung meanwhile.
func (s *trieSlot[V]) load() trieSlot[V] { return trieSlot[V]{atomic.LoadPointer(&s.to)} }

func (s *trieSlot[V]) hook() *unsafe.Pointer  { return &s.to }
func (s trieSlot[V]) pointer() unsafe.Pointer { return s.to }

// hungItem is a slot of a shared node and what was there before.
type hungItem struct {
	slot *unsafe.Pointer
	old  unsafe.Pointer
}

// hang puts a leaf, or a node with a leaf more, into a slot that readers of older
// versions see: nothing that they have goes away by that.
func (e *trieEdit) hang(slot *unsafe.Pointer, item unsafe.Pointer) {
	e.hung = append(e.hung, hungItem{slot, *slot})
	atomic.StorePointer(slot, item)
}

// drop takes out again what the edit has hung into shared nodes. The versions
// that it was to make are not used any more.
func (e *trieEdit) drop() {
	for i := len(e.hung) - 1; i >= 0; i-- {
		atomic.StorePointer(e.hung[i].slot, e.hung[i].old)
	}
}
