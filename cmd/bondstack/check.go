package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"bondstack/cmd/bondstack/config"
	"bondstack/cmd/bondstack/forward"
)

const checkHelp = `
Usage: bondstack check FILE ... [--json]

Finds every fault of configuration files (- is standard input), as bondstack run --config would, and opens
nothing. Each is a line FILE:LINE:COLUMN: KEY: what is wrong, the value, and what is
allowed. The exit code is 1 where there is a fault, 0 where there are none or only
warnings.

Examples:
  bondstack check bondstack.yaml
  bondstack check --json /etc/bondstack/*.yaml
  bondstack import /etc/netplan | bondstack check -`

// fileFault is a fault and the file that it is in.
type fileFault struct {
	File string `json:"file"`
	config.Fault
}

func runCheck(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("check")
	asJSON := fs.Bool("json", false, "print JSON")
	if code, done := parseMixed(fs, checkHelp, args, stdout, stderr); done {
		return code
	}
	if fs.NArg() == 0 {
		return usageError("check", stderr, errors.New("no FILE is given"))
	}
	code, all := exitOK, []fileFault{}
	for _, path := range fs.Args() {
		faults, err := checkFile(path, stdin)
		if err != nil {
			return failure("check", stderr, err)
		}
		if len(faults.Errors()) > 0 {
			code = exitFailure
		}
		for _, f := range faults {
			all = append(all, fileFault{path, f})
		}
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		e.Encode(all)
		return code
	}
	for _, f := range all {
		fmt.Fprintf(stdout, "%s:%s\n", f.File, f.Error())
	}
	return code
}

// checkFile finds the faults of a file, or of standard input.
func checkFile(path string, stdin io.Reader) (config.Faults, error) {
	if path != "-" {
		_, faults, err := readConfig(path)
		return faults, err
	}
	text, err := readBounded(path, stdin, config.MaxSize)
	if err != nil {
		return nil, err
	}
	_, faults := config.Read(text, fileChecks)
	return faults, nil
}

// readConfig reads a file and finds its faults. The error says that the file
// itself cannot be read.
func readConfig(path string) (*config.File, config.Faults, error) {
	text, err := config.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	f, faults := config.Read(text, fileChecks)
	return f, faults, nil
}

// fileChecks are the checks of what this program does, by the code that does it.
var fileChecks = config.Checks{
	Service: func(text string) error { _, err := parseService(text); return err },
	Forward: func(text string) error { _, err := forward.Parse(text); return err },
	Slave: func(s config.Slave) error {
		kind := s.KindOrDefault()
		if kind == fdKind {
			_, err := numberOfFD(s.Name)
			return err
		}
		if linkKinds[kind] == nil {
			return fmt.Errorf("kind %s is not available here, allowed are %s", kind, strings.Join(slices.Sorted(maps.Keys(linkKinds)), ", "))
		}
		return nil
	},
}

const schemaHelp = `
Usage: bondstack schema

Prints the JSON schema of the configuration file, for editors and other programs.

Examples:
  bondstack schema > bondstack.schema.json`

func runSchema(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	if code, done := parseFlags(newFlags("schema"), schemaHelp, args, stdout, stderr); done {
		return code
	}
	if _, err := stdout.Write(config.Schema()); err != nil {
		return failure("schema", stderr, err)
	}
	return exitOK
}
