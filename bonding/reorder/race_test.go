//go:build race

package reorder

// raceEnabled tells that allocation counts mean nothing: the race detector
// has sync.Pool drop items at random.
const raceEnabled = true
