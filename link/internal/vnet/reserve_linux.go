package vnet

import "gvisor.dev/gvisor/pkg/buffer"

const (
	// reserveProbes is how many lent chunks are looked at for each one that is
	// asked for. More than one, so that the free ones are found faster than
	// they are needed.
	reserveProbes = 4
	// bodySize is the size of a chunk: with the head it holds a frame of 64 KiB.
	bodySize = buffer.MaxChunkSize
)

// Reserve lends chunks of memory to received frames and takes them back as they
// are. gVisor's own pools clear a chunk each time it is taken, which for frames
// of 64 KiB costs as much as copying them; but a chunk to which there is another
// reference never goes back there. So the reserve keeps one, lends clones, and
// a chunk is free when the reserve's is the only one left.
//
// A reserve belongs to one goroutine, while what it lent may be dropped by any.
// A nil one keeps nothing: it hands out gVisor's own.
type Reserve struct {
	// free are chunks that nobody else refers to, the one used last at the end:
	// its memory is most likely in a cache.
	free []*buffer.View
	// lent is a ring of chunks that somebody may refer to: count of them from
	// first on, the one looked at longest ago first.
	lent         []*buffer.View
	first, count int
}

// NewReserve makes a reserve that keeps up to size bytes. It is nil where that
// is less than a chunk, and where gVisor is a version whose references cannot
// be counted.
func NewReserve(size int) *Reserve {
	limit := size / bodySize
	if !countsReferences || limit == 0 {
		return nil
	}
	return &Reserve{free: make([]*buffer.View, 0, limit), lent: make([]*buffer.View, limit)}
}

// take returns a view of bodySize bytes, whatever is in them.
func (r *Reserve) take() *buffer.View {
	if r == nil {
		return buffer.NewViewSize(bodySize)
	}
	r.reclaim()
	if n := len(r.free); n > 0 {
		v := r.free[n-1]
		r.free = r.free[:n-1]
		r.lend(v)
		return v.Clone()
	}
	v := buffer.NewViewSize(bodySize)
	if r.count == len(r.lent) {
		return v
	}
	r.lend(v)
	return v.Clone()
}

// lend puts a chunk at the end of the ring, which has room: it has as many
// places as there are chunks.
func (r *Reserve) lend(v *buffer.View) {
	r.lent[(r.first+r.count)%len(r.lent)] = v
	r.count++
}

// reclaim looks at a few of those that are lent.
func (r *Reserve) reclaim() {
	for range min(reserveProbes, r.count) {
		v := r.lent[r.first]
		r.lent[r.first] = nil
		r.first = (r.first + 1) % len(r.lent)
		r.count--
		if references(v) == 1 {
			r.free = append(r.free, v)
		} else {
			r.lend(v)
		}
	}
}

// Release gives all chunks back. Those that are lent still go to gVisor's pools
// when they are dropped.
func (r *Reserve) Release() {
	if r == nil {
		return
	}
	for _, v := range r.free {
		v.Release()
	}
	for range r.count {
		r.lent[r.first].Release()
		r.first = (r.first + 1) % len(r.lent)
	}
	r.free, r.lent, r.first, r.count = nil, nil, 0, 0
}
