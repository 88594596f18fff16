package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Kind is why a part of a file is not in the configuration.
type Kind string

// The kinds of notices.
const (
	// Lost is about the bond, its slaves or their addresses, and has no equal
	// in the configuration.
	Lost Kind = "not carried"
	// Overridden has no effect in the original either: it is set again later.
	Overridden Kind = "overridden"
	// Changed is carried, but not in this form.
	Changed Kind = "changed"
	// Host is about when and how the host starts the bond, which a service
	// manager says of bondstack.
	Host Kind = "left to the host"
	// NotBond is a part about something else, such as another interface.
	NotBond Kind = "not a bond"
)

// Notice is a part of a file that is not in the configuration.
type Notice struct {
	Kind Kind   `json:"kind"`
	File string `json:"file"`
	Line int    `json:"line"` // from 1
	// Key is as the file has it, Value shortened to some 80 bytes.
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// String returns the notice as a line for people, without a line end.
func (n Notice) String() string {
	text := fmt.Sprintf("%s:%d: ", n.File, n.Line)
	if n.Kind == NotBond {
		return text + n.Key + ": not a bond"
	}
	text += n.Key
	if n.Value != "" {
		text += " " + strconv.Quote(n.Value)
	}
	text += ": " + string(n.Kind)
	if n.Reason != "" {
		text += ": " + n.Reason
	}
	return text
}

// sortNotices brings notices into the order of the files and their lines.
func sortNotices(list []Notice, files map[string]int) {
	slices.SortStableFunc(list, func(a, b Notice) int {
		return cmp.Or(cmp.Compare(files[a.File], files[b.File]), cmp.Compare(a.Line, b.Line))
	})
}
