//go:build !race

package vnet

// raceEnabled is whether the race detector is on: it allocates, and is slow.
const raceEnabled = false
