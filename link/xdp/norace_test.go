//go:build !race

package xdp

// raceEnabled is whether the race detector is in, which allocates.
const raceEnabled = false
