package config

import (
	"cmp"
	"fmt"
	"slices"
)

// place is a place in a text, counted from 1; the zero place is unknown.
type place struct{ line, column int }

// Fault is one thing that is wrong with a file.
type Fault struct {
	// Line and Column are counted from 1; 0 where the value is in no text.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Key is the value's path, such as bonds[0].slaves[1].prio; "" for the file.
	Key string `json:"key"`
	// Message says what is wrong, the value, and what is allowed.
	Message string `json:"message"`
	// Warning says that the file can be used nevertheless.
	Warning bool `json:"warning,omitempty"`
}

// Error returns "LINE:COLUMN: KEY: MESSAGE", without what is unknown.
func (f Fault) Error() string {
	text := f.Message
	if f.Key != "" {
		text = f.Key + ": " + text
	}
	if f.Warning {
		text = "warning: " + text
	}
	if f.Line > 0 {
		text = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
	}
	return text
}

// Faults is a list of faults.
type Faults []Fault

// Errors returns those that are no warnings.
func (fs Faults) Errors() Faults {
	return slices.DeleteFunc(slices.Clone(fs), func(f Fault) bool { return f.Warning })
}

// sort puts faults in the order of the text.
func (fs Faults) sort() {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// maxFaults is how many faults are told. A file with more is of another kind.
const maxFaults = 200

// list collects the faults of one file.
type list struct {
	at     map[string]place
	faults Faults
}

// addAt adds a fault at a place.
func (l *list) addAt(p place, key, format string, args ...any) {
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, Fault{p.line, p.column, key, fmt.Sprintf(format, args...), false})
	}
}

// add adds a fault of the value with this key.
func (l *list) add(key, format string, args ...any) { l.addAt(l.find(key), key, format, args...) }

// warn is add for a fault that does no harm.
func (l *list) warn(key, format string, args ...any) {
	n := len(l.faults)
	l.add(key, format, args...)
	if len(l.faults) > n {
		l.faults[n].Warning = true
	}
}

// find returns the place of a value, or of what holds it where it is not written.
func (l *list) find(key string) place {
	for key != "" {
		if p, ok := l.at[key]; ok {
			return p
		}
		i := len(key) - 1
		for i > 0 && key[i] != '.' && key[i] != '[' {
			i--
		}
		key = key[:i]
	}
	return l.at[""]
}
