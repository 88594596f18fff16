package bonding

import (
	"errors"
	"strings"
)

// CheckOption tells what is wrong with an option by its Linux name whatever the bond:
// that there is no such option, or that no bond takes the value. The error is that of
// SetOption. Nil does not say that a bond takes it: that may depend on its mode, its
// slaves, and its other options.
func CheckOption(name, value string) error {
	o := findOption(name)
	if o == nil {
		return unknownOption(name, value)
	}
	if o.get == nil || o.values == nil && strings.ContainsAny(firstLine(value), "+-") {
		return nil // of a slave, or a change of a list
	}
	ch := change{config: defaults()}
	if o.modes != nil {
		ch.mode = o.modes[0]
	}
	err := ch.set(o, name, value)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return nil // another option is in the way
}
