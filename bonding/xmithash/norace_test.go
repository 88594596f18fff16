//go:build !race

package xmithash

const raceEnabled = false
