//go:build !race

package packet

// raceEnabled is whether the race detector is on: it allocates, and is slow.
const raceEnabled = false
