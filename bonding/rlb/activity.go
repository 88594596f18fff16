package rlb

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
)

// activityBits is the size of an Activity: eight for each client of a full
// table, so that hosts are seldom taken for each other. Where they are, a client
// that is idle keeps its place for longer.
const activityBits = 8 * DefaultMaxClients

// Activity is a set of hosts that have been sent to. Marking is what the data
// path does for each packet: one load, once a host is in the set. The zero value
// is empty. It is safe for concurrent use.
type Activity [activityBits / 64]atomic.Uint64

// Mark adds a host by its address, of 4 or 16 bytes.
func (a *Activity) Mark(addr []byte) {
	n := place(addr)
	if w, bit := &a[n/64], uint64(1)<<(n%64); w.Load()&bit == 0 {
		w.Or(bit)
	}
}

func (a *Activity) has(n uint32) bool { return a[n/64].Load()&(1<<(n%64)) != 0 }

func (a *Activity) clear() {
	for i := range a {
		a[i].Store(0)
	}
}

// place is the bit of an address.
func place(addr []byte) uint32 {
	var h uint64
	switch len(addr) {
	case 4:
		h = uint64(binary.LittleEndian.Uint32(addr))
	case 16:
		h = binary.LittleEndian.Uint64(addr)*0x9e3779b97f4a7c15 ^ binary.LittleEndian.Uint64(addr[8:])
	}
	return uint32(h * 0x9e3779b97f4a7c15 >> (64 - placeBits))
}

const placeBits = 13

// The bits of a place and the size of the set fit together.
var _ [activityBits]struct{} = [1 << placeBits]struct{}{}

func placeOf(addr netip.Addr) uint32 { return place(addr.AsSlice()) }
