//go:build !linux

package main

import (
	"context"
	"log/slog"

	"bondstack/link/tap"
)

// run returns an error: there are no TAP devices here.
func (s *tapSettings) run(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) error {
	_, err := s.start(ctx, log, kinds)
	return err
}

// start is as run.
func (s *tapSettings) start(context.Context, *slog.Logger, map[string]openFunc) (running, error) {
	_, err := tap.New(s.name, tap.Options{})
	return nil, err
}
