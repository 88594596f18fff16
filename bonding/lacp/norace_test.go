//go:build !race

package lacp_test

const raceEnabled = false
