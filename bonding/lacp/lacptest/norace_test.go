//go:build !race

package lacptest_test

const raceEnabled = false
