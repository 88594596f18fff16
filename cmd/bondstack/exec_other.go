//go:build !linux

package main

import (
	"log/slog"

	"bondstack/cmd/bondstack/sandbox"
)

// exec returns an error: there are no network namespaces here.
func (s *execSettings) exec([]string, *slog.Logger, map[string]openFunc) (int, error) {
	return 0, sandbox.ErrNotSupported
}
