//go:build !linux

package sandbox

// Hook does nothing: there are no sandboxes here.
func Hook() {}
