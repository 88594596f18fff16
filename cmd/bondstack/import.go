package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"bondstack/cmd/bondstack/config"
	"bondstack/cmd/bondstack/migrate"
)

const importHelp = `
Usage: bondstack import [--from FORMAT] [--strict] [--json] FILE ...

Reads bonds from the files of another program, which belong together, and prints a
configuration file for bondstack run -c. FILE - is the standard input. FORMAT is
netplan, networkd, ifcfg, ifupdown, teamd, nmstate or ip (scripts of ip commands, or
the output of ip -d -j link show); without --from it is told by the first file's name
and content.

What is not in the configuration goes to the standard error, a line each:
FILE:LINE: KEY VALUE: what became of it. Nothing is dropped without such a line.
  not carried       it is about the bond, and there is no equal, for the reason told
  changed           it is carried in another form
  overridden        it is set again later, and has no effect in the original either
  left to the host  when and how the bond is started
  not a bond        a part about something else, listed once as a whole

The exit code is 0 also when something is not carried; with --strict it is then 1.

Examples:
  bondstack import /etc/netplan/*.yaml > bond.yaml
  bondstack import --from networkd --strict /etc/systemd/network/*
  ip -d -j link show | bondstack import -`

func runImport(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("import")
	from := fs.String("from", "", "the files' `FORMAT` (default by their names and content)")
	strict := fs.Bool("strict", false, "fail when something about the bonds is not carried")
	asJSON := fs.Bool("json", false, "print JSON: the configuration as text, and the list")
	if code, done := parseMixed(fs, importHelp, args, stdout, stderr); done {
		return code
	}
	if fs.NArg() == 0 {
		return usageError("import", stderr, errors.New("no FILE is given, for instance bondstack import /etc/netplan/*.yaml"))
	}
	if *from != "" && !migrate.Known(*from) {
		return usageError("import", stderr, fmt.Errorf("--from %q: allowed are %s", *from, strings.Join(migrate.Formats(), ", ")))
	}
	result, err := importFiles(*from, fs.Args(), stdin)
	if result != nil && err != nil { // nothing but what is listed
		printNotices(stderr, result.Notices)
	}
	if err == nil {
		err = printImport(result, *asJSON, stdout, stderr)
	}
	if err == nil && *strict && !result.Complete() {
		err = errors.New("not everything about the bonds is carried")
	}
	if err != nil {
		return failure("import", stderr, err)
	}
	return exitOK
}

func importFiles(from string, names []string, stdin io.Reader) (*migrate.Result, error) {
	var sources []migrate.Source
	for _, name := range names {
		text, err := readBounded(name, stdin, migrate.MaxSource)
		if err != nil {
			return nil, err
		}
		if name == "-" {
			name = "standard input"
		}
		sources = append(sources, migrate.Source{Name: name, Text: text})
	}
	return migrate.Import(from, sources)
}

// readBounded reads a file, - being the standard input, to one byte beyond a
// limit at most, so that what is too long is seen.
func readBounded(name string, stdin io.Reader, limit int64) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, limit+1))
}

// printImport prints the configuration and the list.
func printImport(r *migrate.Result, asJSON bool, stdout, stderr io.Writer) error {
	text, err := config.Marshal(r.Config)
	if err != nil {
		return err
	}
	if asJSON {
		out := struct {
			Complete bool             `json:"complete"`
			Config   string           `json:"config"`
			Notices  []migrate.Notice `json:"notices"`
		}{r.Complete(), string(text), append([]migrate.Notice{}, r.Notices...)}
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(out)
	}
	printNotices(stderr, r.Notices)
	_, err = stdout.Write(text)
	return err
}

func printNotices(stderr io.Writer, notices []migrate.Notice) {
	for _, n := range notices {
		fmt.Fprintln(stderr, n)
	}
}
