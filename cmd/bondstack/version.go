package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

const versionHelp = `
Usage: bondstack version

Tells the version of this program, the commit that it was built from, and the
Go version and platform.

Examples:
  bondstack version`

func runVersion(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("version")
	if code, done := parseFlags(fs, versionHelp, args, stdout, stderr); done {
		return code
	}
	if _, err := fmt.Fprintln(stdout, thisVersion()); err != nil {
		return failure("version", stderr, err)
	}
	return exitOK
}

func thisVersion() string {
	info, _ := debug.ReadBuildInfo()
	return versionText(info)
}

// versionText is one line; info may be nil, where a build has none.
func versionText(info *debug.BuildInfo) string {
	version, commit, dirty := "(unknown)", "", ""
	if info != nil {
		version = info.Main.Version
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = " commit " + s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = " (modified)"
			}
		}
	}
	return fmt.Sprintf("bondstack %s%s%s %s %s/%s", version, commit, dirty, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
