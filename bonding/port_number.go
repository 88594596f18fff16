package bonding

import (
	"fmt"
	"sync"
)

// portNumbers gives each slave of the process a port number of its own, from 1,
// as LACP needs one: a partner that hears one number of one system on two links
// takes that for a port that moved. Linux numbers the ports of each bond; here
// two bonds may share an address.
var portNumbers struct {
	sync.Mutex
	taken map[uint16]bool
}

// takePortNumber returns the least number that is free.
func takePortNumber() (uint16, error) {
	portNumbers.Lock()
	defer portNumbers.Unlock()
	if portNumbers.taken == nil {
		portNumbers.taken = map[uint16]bool{}
	}
	for n := uint16(1); n != 0; n++ {
		if !portNumbers.taken[n] {
			portNumbers.taken[n] = true
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: all 65535 port numbers of the process are in use", ErrTooManySlaves)
}

// givePortNumber frees a number.
func givePortNumber(n uint16) {
	portNumbers.Lock()
	defer portNumbers.Unlock()
	delete(portNumbers.taken, n)
}
