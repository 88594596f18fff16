package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// helpText is the help of the whole program.
func helpText() string {
	var b strings.Builder
	b.WriteString("bondstack makes several links one, in user space, as Linux bonding does in the kernel.\n\n" +
		"Usage: bondstack COMMAND [FLAGS]\n\nCommands:\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.short)
	}
	b.WriteString("\nbondstack COMMAND --help tells more about one, with examples.\n" +
		"Exit codes: 0 success, 1 failure, 2 wrong usage.\n")
	return b.String()
}

// newFlags returns a flag set for the command of that name.
func newFlags(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard) // parseFlags tells
	fs.Usage = func() {}
	fs.SortFlags = false
	return fs
}

// parseFlags parses a command's arguments, of which all must be flags. text is
// the command's help: a usage line, what it does, and examples. Where the
// command is finished with that, asked for help or wrongly used, done is true
// and code its exit code.
func parseFlags(fs *pflag.FlagSet, text string, args []string, stdout, stderr io.Writer) (code int, done bool) {
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintln(stdout, strings.TrimSpace(text))
		if fs.HasFlags() {
			fmt.Fprintf(stdout, "\nFlags:\n%s", fs.FlagUsages())
		}
		return exitOK, true
	case err != nil:
		return usageError(fs.Name(), stderr, explainFlag(err, fs)), true
	case fs.NArg() > 0:
		return usageError(fs.Name(), stderr, fmt.Errorf("unexpected argument %q; allowed are the flags %s", fs.Arg(0), flagNames(fs))), true
	}
	return exitOK, false
}

// explainFlag adds to what is wrong with a flag those that there are, unless it is
// its value that is wrong.
func explainFlag(err error, fs *pflag.FlagSet) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return err
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		err = fmt.Errorf("%w%s", err, didYouMean("--", unknown.GetSpecifiedName(), names))
	}
	return fmt.Errorf("%w; allowed are %s", err, flagNames(fs))
}

func flagNames(fs *pflag.FlagSet) string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return strings.Join(append(names, "--help"), ", ")
}

// usageError tells of wrong usage of the command of that name, and where to
// read more.
func usageError(name string, stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "bondstack %s: %v\n(bondstack %s --help tells more)\n", name, err, name)
	return exitUsage
}

// failure tells why the command of that name failed.
func failure(name string, stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "bondstack %s: %v\n", name, err)
	return exitFailure
}
