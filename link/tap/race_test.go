//go:build race

package tap

// RaceEnabled is whether the race detector is on: it allocates, and is slow.
const RaceEnabled = true
