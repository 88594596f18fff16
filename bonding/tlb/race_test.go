//go:build race

package tlb

const raceEnabled = true
