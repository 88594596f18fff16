package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// logging says what is logged, and how.
type logging struct {
	level, format string // as flags or a file have them; "" is the default
}

// logLevels are the levels by name.
var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "": slog.LevelInfo, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// define defines the flags. read checks their values once they are parsed.
func (l *logging) define(fs *pflag.FlagSet) (read func(*faults)) {
	fs.StringVar(&l.level, "log-level", "", "the least `LEVEL` that is logged: debug, info, warn or error (default info)")
	fs.StringVar(&l.format, "log-format", "", "the `FORMAT` of the log: text or json (default text)")
	return func(f *faults) {
		f.add("--log-level", checkLog("log-level", l.level))
		f.add("--log-format", checkLog("log-format", l.format))
	}
}

// checkLog checks the value of one of the flags.
func checkLog(flag, value string) error {
	allowed := map[string][]string{"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"}}[flag]
	if value != "" && !slices.Contains(allowed, value) {
		return fmt.Errorf("%q: allowed are %s", value, strings.Join(allowed, ", "))
	}
	return nil
}

// logger returns a logger, and what its level is set by.
func (l logging) logger(w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	level.Set(logLevels[l.level])
	o := &slog.HandlerOptions{Level: level}
	if l.format == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), level
	}
	return slog.New(slog.NewTextHandler(w, o)), level
}
