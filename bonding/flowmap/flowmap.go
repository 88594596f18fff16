// Package flowmap gives each flow one of several members, each its share by
// weight, so that few flows move when members come and go. A flow is known by
// its hash.
//
// A table has Buckets buckets. For each of them every member has a draw, a number
// that comes of the member's name and the bucket alone; the member whose draw,
// divided by its weight, is the least has the bucket (weighted rendezvous
// hashing). So the flows of a member that leaves go to the others by their
// weights, and no other flow moves; when it comes back it has the same ones
// again, and a change of weights moves as few as it can.
//
//	draws := flowmap.NewDraws("eth0")         // once a member
//	table := flowmap.Build([]flowmap.Member{{draws, 1000}, ...})
//	member := table.Index(hash)               // for each frame
//
// Making draws takes some 40 µs, building a table some 5 µs a member, and a
// look-up is a multiplication and a load. Names that are the same at two ends or
// after a restart give the same table.
//
// Limits: shares are as exact as Buckets random draws are: with n members of
// equal weight the standard deviation of a share is sqrt(n/Buckets) of it, such
// as 3 % of 2 members' and 6 % of 8. What moves in a change is counted in
// buckets.
package flowmap

import (
	"hash/fnv"
	"math"
)

const (
	bucketBits = 11
	// Buckets is the number of buckets of a table: enough for even shares, few
	// enough to be in the processor's first cache and to be built a thousand
	// times a second.
	Buckets = 1 << bucketBits
)

// Draws are a member's draws for all buckets: exponentially distributed with a
// mean of 1, since the least of such numbers, divided by weights, belongs to each
// member as often as its weight says.
type Draws [Buckets]float32

// NewDraws returns the draws of a member by its name.
func NewDraws(name string) *Draws {
	h := fnv.New64a()
	h.Write([]byte(name))
	seed := h.Sum64()
	d := new(Draws)
	for i := range d {
		seed += 0x9e3779b97f4a7c15
		// 53 bits of it as a number above 0 and not above 1.
		d[i] = float32(-math.Log(float64(scramble(seed)>>11+1) / (1 << 53)))
	}
	return d
}

// scramble spreads each bit of x over all bits: xor-shifts and odd factors, which
// lose nothing (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014).
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Member is one of those that share the flows.
type Member struct {
	Draws *Draws
	// Weight is the member's, above 0. Only its relation to the others' counts.
	Weight float64
}

// Table has the number of a member for each bucket.
type Table [Buckets]uint16

// Build returns the table of members, at least one and at most 65536.
func Build(members []Member) *Table {
	t := new(Table)
	var least Draws
	for i, m := range members {
		per := float32(1 / m.Weight)
		for b, draw := range m.Draws {
			if draw *= per; i == 0 || draw < least[b] {
				least[b], t[b] = draw, uint16(i)
			}
		}
	}
	return t
}

// Index returns which of the members has the flow of a hash. All bits of the hash
// count.
func (t *Table) Index(hash uint32) int {
	return int(t[hash*0x9e3779b1>>(32-bucketBits)])
}
