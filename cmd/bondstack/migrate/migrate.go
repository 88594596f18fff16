// Package migrate reads what other programs say of bonds and makes a
// configuration file of bondstack of it, and writes the commands by which Linux
// makes the same bond.
//
//	result, err := migrate.Import("netplan", []migrate.Source{{Name: name, Text: text}})
//	text, err := config.Marshal(result.Config)
//	for _, n := range result.Notices { fmt.Fprintln(os.Stderr, n) }
//
// The formats are netplan, networkd, ifcfg (Red Hat's and SUSE's), ifupdown
// (ifupdown2's and ifupdown-ng's too), teamd, nmstate and ip (scripts of ip
// commands with sysfs and ifenslave, and what ip -json shows).
//
// Nothing is dropped without a notice: each key is in the configuration, or in a
// notice with its file and line. What a bond would refuse is left out with the
// bond's own reason, so that the configuration is one that can be run.
//
// A file has at most MaxSource bytes. Scripts are read, not run: variables and
// commands that are not known are listed.
package migrate

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"bondstack/cmd/bondstack/config"
)

// MaxSource is how many bytes a file may have.
const MaxSource = 1 << 20

// Source is a file.
type Source struct {
	Name string // its path, as notices tell it
	Text []byte
}

// Result is what was made of files.
type Result struct {
	Config *config.File
	// Notices are in the order of the files and their lines.
	Notices []Notice
}

// Complete reports whether nothing of the bonds was lost.
func (r *Result) Complete() bool {
	return !slices.ContainsFunc(r.Notices, func(n Notice) bool { return n.Kind == Lost })
}

// format is a format that is read.
type format struct {
	read func(*reader, []Source) error
	// is tells by a file's name, or by its content, that it is of the format.
	named func(base string) bool
	looks func(text string) bool
}

// formatNames is in the order in which a file's format is guessed.
var formatNames = []string{"networkd", "ifcfg", "ifupdown", "teamd", "netplan", "nmstate", "ip"}

var formats = map[string]format{
	"networkd": {readNetworkd, func(base string) bool {
		return slices.Contains([]string{".netdev", ".network", ".link"}, path.Ext(base))
	}, func(text string) bool {
		return hasLine(text, "[NetDev]") || hasLine(text, "[Match]") || hasLine(text, "[Network]")
	}},
	"ifcfg": {readIfcfg, func(base string) bool {
		return strings.HasPrefix(base, "ifcfg-") || ifcfgRank(base) > 0
	}, func(text string) bool { return hasLine(text, "DEVICE=") || hasLine(text, "BONDING_") }},
	"ifupdown": {readIfupdown, func(base string) bool { return base == "interfaces" },
		func(text string) bool { return hasLine(text, "iface ") || hasLine(text, "auto ") }},
	"teamd": {readTeamd, nil, func(text string) bool {
		return strings.HasPrefix(strings.TrimSpace(text), "{") && strings.Contains(text, `"device"`)
	}},
	"netplan": {readNetplan, nil, func(text string) bool { return hasLine(text, "network:") }},
	"nmstate": {readNmstate, nil, func(text string) bool { return hasLine(text, "interfaces:") }},
	"ip": {readIP, nil, func(text string) bool {
		return strings.HasPrefix(strings.TrimSpace(text), "[") || strings.Contains(text, "ip ") || strings.Contains(text, "/sys/class/net/") || hasLine(text, "ifenslave")
	}},
}

// hasLine reports whether a line begins with prefix, white space aside.
func hasLine(text, prefix string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), prefix) {
			return true
		}
	}
	return false
}

// Formats returns the names of the formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// Guess returns the format of a file by its name or its content; "" where neither
// tells.
func Guess(s Source) string {
	for _, name := range formatNames {
		if f := formats[name]; f.named != nil && f.named(path.Base(s.Name)) {
			return name
		}
	}
	for _, name := range formatNames {
		if formats[name].looks(string(s.Text)) {
			return name
		}
	}
	return ""
}

var (
	errNoEqual = errors.New(noEqual)
	// ErrNoBond is the error of files that can be read and have no bond.
	ErrNoBond = errors.New("no bond is in the files")
)

func sourceError(s Source, err error) error { return fmt.Errorf("%s: %w", s.Name, err) }

// Import reads files of a format, which belong together, and makes one
// configuration of all bonds in them. An empty format is guessed by the first
// file. An error is of files that cannot be read as the format; with ErrNoBond
// the result has the notices nevertheless.
func Import(from string, sources []Source) (*Result, error) {
	if len(sources) == 0 {
		return nil, errors.New("no file is given")
	}
	if from == "" {
		if from = Guess(sources[0]); from == "" {
			return nil, fmt.Errorf("%s: the format is not recognised; allowed are %s", sources[0].Name, strings.Join(Formats(), ", "))
		}
	}
	f, ok := formats[from]
	if !ok {
		return nil, fmt.Errorf("format %q: allowed are %s", from, strings.Join(Formats(), ", "))
	}
	order := map[string]int{}
	for n, s := range sources {
		if len(s.Text) > MaxSource {
			return nil, fmt.Errorf("%s: it has %d bytes, allowed are %d", s.Name, len(s.Text), MaxSource)
		}
		order[s.Name] = n
	}
	r := &reader{}
	if err := f.read(r, sources); err != nil {
		return nil, err
	}
	result := &Result{Config: r.build()}
	sortNotices(r.notices, order)
	result.Notices = slices.Compact(r.notices) // a file may speak of several interfaces at once
	if len(result.Config.Bonds) == 0 {
		return result, ErrNoBond
	}
	return result, nil
}

// Known reports whether there is a format of a name.
func Known(name string) bool {
	_, ok := formats[name]
	return ok
}
