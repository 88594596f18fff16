package stack

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// template is a name with a number to be found.
type template struct{ prefix, suffix string }

// parseTemplate returns whether a valid name is a template, and which.
func parseTemplate(name string) (t template, ok bool) {
	t.prefix, t.suffix, ok = strings.Cut(name, "%d")
	return t, ok
}

func (t template) name(number int) string { return t.prefix + strconv.Itoa(number) + t.suffix }

// number returns which number would have the template make a name, -1 when none
// would.
func (t template) number(name string) int {
	if len(name) <= len(t.prefix)+len(t.suffix) || !strings.HasPrefix(name, t.prefix) || !strings.HasSuffix(name, t.suffix) {
		return -1
	}
	digits := name[len(t.prefix) : len(name)-len(t.suffix)]
	n := 0
	for i, c := range []byte(digits) {
		if c < '0' || c > '9' || i > 0 && n == 0 {
			return -1
		}
		if n = 10*n + int(c-'0'); n > maxTemplateNumber {
			return -1
		}
	}
	return n
}

// numberSet is the set of a template's numbers that are taken. full has a bit
// for each word of which no bit is free, so that the lowest free number is
// found in a few steps.
type numberSet struct {
	taken [(maxTemplateNumber + 1) / 64]uint64
	full  [(maxTemplateNumber + 1) / 64 / 64]uint64
}

func (s *numberSet) set(n int, taken bool) {
	w := n / 64
	if taken {
		s.taken[w] |= 1 << (n % 64)
	} else {
		s.taken[w] &^= 1 << (n % 64)
	}
	if s.taken[w] == ^uint64(0) {
		s.full[w/64] |= 1 << (w % 64)
	} else {
		s.full[w/64] &^= 1 << (w % 64)
	}
}

// lowest returns the lowest number that is not taken, -1 when all are.
func (s *numberSet) lowest() int {
	for i, full := range s.full {
		if full != ^uint64(0) {
			w := 64*i + bits.TrailingZeros64(^full)
			return 64*w + bits.TrailingZeros64(^s.taken[w])
		}
	}
	return -1
}

// maxTemplates bounds how many templates are remembered: each costs 4 KiB, and
// a comparison at each change of a name. One more has all forgotten.
const maxTemplates = 64

// templates knows the taken numbers of the templates in use. The first use of
// a template looks at every name of the table; from then on each change of a
// name is noted.
type templates map[template]*numberSet

// note records that a name is taken or free.
func (t templates) note(name string, taken bool) {
	for tpl, numbers := range t {
		if n := tpl.number(name); n >= 0 {
			numbers.set(n, taken)
		}
	}
}

// numbers returns the taken numbers of a template.
func (t templates) numbers(tpl template, table *DeviceTable) *numberSet {
	if s := t[tpl]; s != nil {
		return s
	}
	if len(t) >= maxTemplates {
		clear(t)
	}
	s := new(numberSet)
	for name := range table.names() {
		if n := tpl.number(name); n >= 0 {
			s.set(n, true)
		}
	}
	t[tpl] = s
	return s
}

// lowestName returns the name with the lowest free number.
func (t templates) lowestName(tpl template, table *DeviceTable) (string, error) {
	n := t.numbers(tpl, table).lowest()
	if n < 0 {
		return "", fmt.Errorf("%w: each number from 0 to %d of %q is taken", ErrTableFull, maxTemplateNumber, tpl.prefix+"%d"+tpl.suffix)
	}
	name := tpl.name(n)
	if len(name) > maxName {
		return "", fmt.Errorf("%w: the lowest free number of %q is %d, and the name would have %d bytes, allowed are 1 to %d",
			ErrTableFull, tpl.prefix+"%d"+tpl.suffix, n, len(name), maxName)
	}
	return name, nil
}
