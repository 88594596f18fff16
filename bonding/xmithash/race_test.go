//go:build race

package xmithash

const raceEnabled = true
