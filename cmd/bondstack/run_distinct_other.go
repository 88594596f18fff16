//go:build !linux

package main

// interfaceIndex returns 0: interfaces are slaves on Linux only.
func interfaceIndex(string) int { return 0 }
