package rcu

import "unsafe"

// stripeOfStack returns the stripe of the calling goroutine: a hash of the
// address of its stack. The address is only a number here; when a stack moves
// the goroutine changes its stripe, which is why a Section remembers it.
func stripeOfStack() uint32 {
	var local byte
	// Stacks are at least 2 KiB and aligned to it. The multiplication (by the
	// golden ratio) spreads neighbours, and the top bits are the best mixed.
	page := uint64(uintptr(unsafe.Pointer(&local)) >> 11)
	return uint32(page * 0x9e3779b97f4a7c15 >> 59)
}

// The shift above leaves five bits.
var _ [Stripes - 32]struct{}
