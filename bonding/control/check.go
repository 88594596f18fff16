package control

import (
	"errors"
	"maps"
	"slices"

	"bondstack/bonding"
)

// Check tells what is wrong with operations whatever the bond, so that no server need
// be asked: their form, names of options and values that no bond takes, names that no
// slave can have.
func Check(ops []Operation) error {
	r := Request{Operations: ops}
	if err := r.check(); err != nil {
		return err
	}
	t, err := transaction(ops)
	errs := []error{err}
	for _, name := range slices.Sorted(maps.Keys(t.Options)) {
		errs = append(errs, bonding.CheckOption(name, t.Options[name]))
	}
	for _, o := range ops {
		switch o.Op {
		case Add:
			errs = append(errs, bonding.CheckName(o.Slave))
		case Rename:
			errs = append(errs, bonding.CheckName(o.To))
		}
	}
	return errors.Join(errs...)
}
