package main

import (
	"errors"
	"fmt"
	"io"

	"bondstack/cmd/bondstack/config"
	"bondstack/cmd/bondstack/migrate"
)

const exportHelp = `
Usage: bondstack export [--to ip] [-c FILE | --control SOCKET]

Prints the ip commands by which Linux makes the same bonds: those of a configuration
file (- is the standard input), or the bond of a running instance. The commands need
root, and a shell; bondstack import reads them back.

What Linux does not have, and what ip does not do, goes to the standard error, as
comments. The status of an instance has neither routes nor VLAN devices.

Examples:
  bondstack export
  bondstack export -c bond.yaml
  bondstack export --to ip --control /run/bondstack/bond0.sock > bond.sh
  bondstack import bond.sh | bondstack export -c -`

func runExport(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("export")
	to := fs.String("to", "ip", "the `FORMAT`: ip")
	file := fs.StringP("config", "c", "", "a configuration `FILE`, - for the standard input")
	socket := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	if code, done := parseFlags(fs, exportHelp, args, stdout, stderr); done {
		return code
	}
	switch {
	case *to != "ip":
		return usageError("export", stderr, fmt.Errorf("--to %q: allowed is ip", *to))
	case *file != "" && *socket != "":
		return usageError("export", stderr, errors.New("give one of -c and --control"))
	case *file == "" && *socket == "":
		*socket = defaultSocket()
	}
	script, err := exportScript(*file, *socket, stdin)
	if err != nil {
		return failure("export", stderr, err)
	}
	for _, c := range script.Commands {
		if _, err := fmt.Fprintln(stdout, c); err != nil {
			return failure("export", stderr, err)
		}
	}
	for _, l := range script.Left {
		fmt.Fprintln(stderr, "# "+l)
	}
	return exitOK
}

func exportScript(file, socket string, stdin io.Reader) (*migrate.Script, error) {
	if socket != "" {
		return exportInstance(socket)
	}
	text, err := readBounded(file, stdin, config.MaxSize)
	if err != nil {
		return nil, err
	}
	f, faults := config.Parse(text)
	if len(faults) == 0 {
		faults = f.Check(config.Checks{})
	}
	if faults = faults.Errors(); len(faults) > 0 {
		var errs []error
		for _, fault := range faults {
			errs = append(errs, fmt.Errorf("%s:%w", file, fault))
		}
		return nil, errors.Join(errs...)
	}
	return migrate.ToIP(f)
}

// exportInstance makes the commands for the bond of a running instance.
func exportInstance(socket string) (*migrate.Script, error) {
	st, err := askStatus(socket)
	if err != nil {
		return nil, explainAsk(socket, err)
	}
	f := migrate.FromStatus(&st.Status)
	for _, a := range st.Addresses {
		if !a.Prefix.Addr().IsLinkLocalUnicast() {
			f.Bonds[0].Addresses = append(f.Bonds[0].Addresses, a.Prefix.String())
		}
	}
	for _, name := range st.Absent {
		f.Bonds[0].Slaves = append(f.Bonds[0].Slaves, config.Slave{Name: name})
	}
	script, err := migrate.ToIP(f)
	if err == nil {
		script.Left = append(script.Left, f.Bonds[0].Name+": routes and vlans: the status of an instance does not have them")
	}
	return script, err
}
