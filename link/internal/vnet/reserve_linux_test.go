package vnet

import (
	"math/rand/v2"
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
)

// TestReferences counts the references to a chunk of gVisor, of any size.
func TestReferences(t *testing.T) {
	if !countsReferences {
		t.Fatal("references cannot be counted with this version of gVisor: Reserve keeps nothing")
	}
	for _, size := range []int{1, 128, bodySize, bodySize + 1} {
		v := buffer.NewViewSize(size)
		if n := references(v); n != 1 {
			t.Errorf("size %d: a new view has %d references, want 1", size, n)
		}
		c := v.Clone()
		if n, m := references(v), references(c); n != 2 || m != 2 {
			t.Errorf("size %d: a view and its clone have %d and %d references, want 2", size, n, m)
		}
		c.Release()
		if n := references(v); n != 1 {
			t.Errorf("size %d: when the clone is released %d references are left, want 1", size, n)
		}
		v.Release()
	}
}

// TestReserveLendsAgain: a chunk that was dropped is lent again, as it was.
func TestReserveLendsAgain(t *testing.T) {
	r := NewReserve(4 * bodySize)
	defer r.Release()
	v := r.take()
	v.AsSlice()[100] = 7
	at := v.BasePtr()
	v.Release()
	w := r.take()
	defer w.Release()
	if w.BasePtr() != at || w.AsSlice()[100] != 7 || w.Size() != bodySize {
		t.Errorf("another chunk was lent, or it was cleared: %d bytes, [100] = %d", w.Size(), w.AsSlice()[100])
	}
}

// TestReserveLendsToOneAtATime takes and drops at random, with clones, and
// checks that no chunk is lent while anybody refers to it, and that no more
// chunks than the limit are kept.
func TestReserveLendsToOneAtATime(t *testing.T) {
	const limit = 8
	r := NewReserve(limit * bodySize)
	random := rand.New(rand.NewPCG(1, 2))
	out := map[*byte][]*buffer.View{}
	var order []*byte
	for range 5000 {
		switch random.IntN(3) {
		case 0:
			if len(order) > 2*limit {
				continue
			}
			v := r.take()
			if len(out[v.BasePtr()]) != 0 {
				t.Fatal("a chunk was lent that is in use")
			}
			out[v.BasePtr()] = append(out[v.BasePtr()], v)
			order = append(order, v.BasePtr())
		default:
			if len(order) == 0 {
				continue
			}
			i := random.IntN(len(order))
			views := out[order[i]]
			if random.IntN(4) == 0 {
				out[order[i]] = append(views, views[0].Clone())
				continue
			}
			views[len(views)-1].Release()
			out[order[i]] = views[:len(views)-1]
			if len(views) == 1 {
				order[i] = order[len(order)-1]
				order = order[:len(order)-1]
			}
		}
		if n := len(r.free) + r.count; n > limit {
			t.Fatalf("%d chunks are kept, want at most %d", n, limit)
		}
	}
	r.Release() // before the last of what it lent
	for _, views := range out {
		for _, v := range views {
			v.Release()
		}
	}
}

// TestReserveOfNothing: without a reserve, gVisor's pools serve.
func TestReserveOfNothing(t *testing.T) {
	r := NewReserve(bodySize - 1)
	v := r.take()
	if r != nil || v.Size() != bodySize || references(v) != 1 {
		t.Errorf("reserve %v lent %d bytes with %d references, want a view of gVisor's own", r, v.Size(), references(v))
	}
	v.Release()
	r.Release()
}

// TestReserveAllocatesNothing once it has what it needs.
func TestReserveAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and empties pools")
	}
	r := NewReserve(4 * bodySize)
	defer r.Release()
	if n := testing.AllocsPerRun(100, func() { r.take().Release() }); n != 0 {
		t.Errorf("a chunk that is taken and dropped costs %v allocations, want none", n)
	}
}
