//go:build !race

package reorder

const raceEnabled = false
