package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
)

const devicesHelp = `
Usage: bondstack devices bench [--count N] [--runs N] [--readers N] [--writers N]
                               [--floor] [--names-only] [--kernel] [--json]

Adds, renames and deletes N network devices, in three tables in turn: bondstack's
table of devices one by one, the same in batches, and gVisor's own calls
(CreateNICWithOptions with a name, SetNICName, RemoveNIC). Each device is a full
NIC: IPv4, IPv6, ARP. Readers look names up and list devices all the while, and
what they see must be right: each device once, under one of its names, and never
missing. Violations make the exit code 1. It touches no network but that of
--kernel.

Figures need a quiet machine; readers, and a collection of garbage, take their
part of the time. --readers 0 measures the writer alone.

Examples:
  bondstack devices bench
  bondstack devices bench --count 10000 --runs 3 --readers 0 --floor
  bondstack devices bench --names-only --count 100000 --readers 0
  GOMAXPROCS=1 bondstack devices bench --names-only --writers 4 --readers 4
  sudo bondstack devices bench --kernel --json`

// devicesSettings are what the flags say.
type devicesSettings struct {
	count, runs, readers, writers int
	floor, namesOnly, kernel      bool
}

// The limits of a benchmark of devices. A NIC has about 60 KiB.
const (
	maxDevices     = 1_000_000
	maxDeviceTasks = 256
)

// devicesResult is the JSON form.
type devicesResult struct {
	Count      int           `json:"count"`
	Runs       int           `json:"runs"`
	Readers    int           `json:"readers"`
	Violations int64         `json:"violations"`
	Tables     []tableResult `json:"tables"`

	readers *readerReport
}

// tableResult has the milliseconds of each run.
type tableResult struct {
	Name     string    `json:"name"`
	AddMs    []float64 `json:"add_ms"`
	RenameMs []float64 `json:"rename_ms"`
	DeleteMs []float64 `json:"delete_ms"`
}

func runDevices(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("devices")
	var s devicesSettings
	fs.IntVar(&s.count, "count", 1000, "how many `N` devices")
	fs.IntVar(&s.runs, "runs", 5, "how many `N` runs, each of all tables in turn")
	fs.IntVar(&s.readers, "readers", 2, "how many `N` goroutines look names up and list")
	fs.IntVar(&s.writers, "writers", 1, "how many `N` goroutines share the changes that are made one by one")
	fs.BoolVar(&s.floor, "floor", false, "measure gVisor's NICs without names too, as gvisor-unnamed")
	fs.BoolVar(&s.namesOnly, "names-only", false, "measure bondstack's tables alone, without NICs")
	fs.BoolVar(&s.kernel, "kernel", false, "time the host kernel too: one run of ip -batch with bridges, in a namespace of its own; needs root")
	asJSON := fs.Bool("json", false, "print JSON")
	if len(args) > 0 && args[0] == "bench" {
		args = args[1:]
	} else if len(args) == 0 || args[0] != "--help" && args[0] != "-h" {
		return usageError("devices", stderr, errors.New("the first argument must be bench"))
	}
	if code, done := parseFlags(fs, devicesHelp, args, stdout, stderr); done {
		return code
	}
	if err := s.check(); err != nil {
		return usageError("devices", stderr, err)
	}
	progress := newProgress(stderr)
	result, err := s.run(progress)
	progress.done()
	if err != nil {
		return failure("devices", stderr, err)
	}
	if *asJSON {
		err = json.NewEncoder(stdout).Encode(result)
	} else {
		err = result.print(stdout, runtime.GOMAXPROCS(0))
	}
	if err == nil && result.Violations > 0 {
		err = fmt.Errorf("readers saw %d violations, the first: %s", result.Violations, result.readers.first)
	}
	if err != nil {
		return failure("devices", stderr, err)
	}
	return exitOK
}

// check returns all faults in one error.
func (s *devicesSettings) check() error {
	var errs []error
	for _, f := range []struct {
		name               string
		n, least, greatest int
	}{
		{"count", s.count, 1, maxDevices}, {"runs", s.runs, 1, maxRounds},
		{"readers", s.readers, 0, maxDeviceTasks}, {"writers", s.writers, 1, maxDeviceTasks},
	} {
		if f.n < f.least || f.n > f.greatest {
			errs = append(errs, fmt.Errorf("--%s is %d, allowed are %d to %d", f.name, f.n, f.least, f.greatest))
		}
	}
	return errors.Join(errs...)
}
