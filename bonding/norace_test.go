//go:build !race

package bonding_test

const raceEnabled = false
