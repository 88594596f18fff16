//go:build !unix

package main

func checkFolder(string) error { return nil }

func lockFile(string) (unlock func(), err error) { return func() {}, nil }

func isOurs(int) bool { return false }
