//go:build !linux

package main

import (
	"context"
	"log/slog"

	"bondstack/link/tap"
)

// run returns an error: there are no TAP devices here.
func (s *tapSettings) run(context.Context, *slog.Logger, map[string]openFunc) error {
	_, err := tap.New(s.name, tap.Options{})
	return err
}
