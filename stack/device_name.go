package stack

import (
	"fmt"
	"strings"
	"syscall"
)

// What can be wrong with a change of a device table, for callers that branch.
// Each wraps the errno that Linux returns in the same case.
var (
	ErrInvalidName error = &deviceError{"invalid name", syscall.EINVAL}
	ErrNameExists  error = &deviceError{"name exists", syscall.EEXIST}
	ErrTableFull   error = &deviceError{"table full", syscall.ENFILE}
	ErrNoDevice    error = &deviceError{"no such device", syscall.ENODEV}
	ErrDeviceBusy  error = &deviceError{"device is busy", syscall.EBUSY}
	ErrIndex       error = &deviceError{"index is not free", syscall.EBUSY}
	ErrVetoed      error = &deviceError{"vetoed", syscall.ECANCELED}
)

// deviceError is a kind of error with the errno that stands for it.
type deviceError struct {
	text  string
	errno syscall.Errno
}

func (e *deviceError) Error() string { return e.text }
func (e *deviceError) Unwrap() error { return e.errno }

// The limits of names in a device table.
const (
	// maxAltName is the longest alternative name (ALTIFNAMSIZ less the zero).
	maxAltName = 127
	// maxTemplateNumber is the greatest number that replaces a %d: Linux looks
	// for a free one in a page of bits.
	maxTemplateNumber = 8*4096 - 1
)

// forbiddenInNames are the bytes that no name has: they separate names from
// other things in paths, in labels and on command lines.
const forbiddenInNames = "/: \t\n\v\f\r"

// checkDeviceName checks a device's name, which may be a template.
func checkDeviceName(name string) error {
	if err := checkBytes(name, maxName); err != nil {
		return err
	}
	if before, after, found := strings.Cut(name, "%"); found {
		if !strings.HasPrefix(after, "d") || strings.Contains(after, "%") {
			return fmt.Errorf("%w: %q: a %% is allowed only in one %%d, which stands for a number", ErrInvalidName, before+"%"+after)
		}
	}
	return nil
}

// checkAltName checks an alternative name, which may not be a template.
func checkAltName(name string) error {
	if err := checkBytes(name, maxAltName); err != nil {
		return err
	}
	if strings.Contains(name, "%") {
		return fmt.Errorf("%w: %q: an alternative name may not hold a %%", ErrInvalidName, name)
	}
	return nil
}

// checkBytes has the rules that names of both kinds share.
func checkBytes(name string, longest int) error {
	switch {
	case name == "" || len(name) > longest:
		return fmt.Errorf("%w: %q has %d bytes, allowed are 1 to %d", ErrInvalidName, name, len(name), longest)
	case name == "." || name == "..":
		return fmt.Errorf("%w: %q names a folder", ErrInvalidName, name)
	case strings.ContainsAny(name, forbiddenInNames):
		return fmt.Errorf("%w: %q may not hold a slash, a colon or white space", ErrInvalidName, name)
	}
	return nil
}
