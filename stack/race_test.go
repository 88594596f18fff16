//go:build race

package stack_test

// raceEnabled says that the race detector is on, which allocates by itself.
const raceEnabled = true
