//go:build !unix

package main

// quietly cannot hide what the runtime prints here, so it does not run f.
func quietly(func()) bool { return false }
