//go:build race

package fd_test

// raceEnabled is whether the race detector is on: it allocates, and is slow.
const raceEnabled = true
