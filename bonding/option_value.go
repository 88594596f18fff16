package bonding

import (
	"fmt"
	"strconv"
	"strings"
)

// number is the set of values of a numeric option: a range and names for some
// values of it. It reads text as Linux's text interfaces do: up to the first
// newline; all digits is a number; anything else is one name, compared exactly.
type number struct {
	least, greatest uint64
	names           []named
	words           bool // shown as the name and the number, as sysfs does
}

type named struct {
	name  string
	value uint64
}

func off() named               { return named{"off", 0} }
func maxval(v uint64) named    { return named{"maxval", v} }
func minval(v uint64) named    { return named{"minval", v} }
func byDefault(v uint64) named { return named{"default", v} }

// onOff is a switch that is off or on by default.
func onOff(on uint64) number {
	return number{greatest: 1, names: []named{{"off", 0}, {"on", 1}, byDefault(on)}}
}

// fromZero is a range from 0 with Linux's words for its ends.
func fromZero(greatest, usual uint64) number {
	return number{greatest: greatest, names: []named{off(), maxval(greatest), byDefault(usual)}}
}

const int31 = 1<<31 - 1

// keywords is an option whose values are names, numbered from zero. Its first
// name is its default.
func keywords(names ...string) number {
	n := number{greatest: uint64(len(names) - 1), words: true}
	for i, name := range names {
		n.names = append(n.names, named{name, uint64(i)})
	}
	n.names = append(n.names, byDefault(0))
	return n
}

// parse reads a value; ok is false when it is none of the set.
func (n *number) parse(text string) (v uint64, ok bool) {
	text, _, _ = strings.Cut(text, "\n")
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, false
	}
	if digits(text) {
		v, err := strconv.ParseUint(fields[0], 10, 64)
		return v, err == nil && len(fields) == 1 && v >= n.least && v <= n.greatest
	}
	for _, k := range n.names {
		if k.name == fields[0] {
			return k.value, true
		}
	}
	return 0, false
}

// digits reports whether text is of digits and white space alone.
func digits(text string) bool {
	return strings.Trim(text, "0123456789 \t\r\v\f") == ""
}

// allowed says in words what parse accepts.
func (n *number) allowed() string {
	names := make([]string, 0, len(n.names))
	for _, k := range n.names {
		names = append(names, fmt.Sprintf("%s (%d)", k.name, k.value))
	}
	switch {
	case n.words || n.greatest == 1 && n.least == 0:
		return strings.Join(names, ", ")
	case len(names) == 0:
		return fmt.Sprintf("%d to %d", n.least, n.greatest)
	default:
		return fmt.Sprintf("%d to %d, %s", n.least, n.greatest, strings.Join(names, ", "))
	}
}

// show returns a value as Linux's sysfs does.
func (n *number) show(v uint64) string {
	if n.words {
		return fmt.Sprintf("%s %d", n.name(v), v)
	}
	return strconv.FormatUint(v, 10)
}

// name returns the keyword of a value, or its number.
func (n *number) name(v uint64) string {
	for _, k := range n.names {
		if k.value == v {
			return k.name
		}
	}
	return strconv.FormatUint(v, 10)
}
