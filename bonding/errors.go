package bonding

import (
	"errors"
	"fmt"
)

// What can be wrong, for callers that branch. Every error of this package
// wraps one of these or an error of the endpoint concerned. The errno is what
// Linux returns in the same case.
var (
	ErrUnknownOption = errors.New("no such option")
	ErrMode          = errors.New("not in this mode")            // EACCES
	ErrNotEmpty      = errors.New("the bond has slaves")         // ENOTEMPTY
	ErrUp            = errors.New("the bond is up")              // EBUSY
	ErrInvalid       = errors.New("invalid value")               // EINVAL
	ErrPrecondition  = errors.New("another option is needed")    // EPERM
	ErrUnavailable   = errors.New("not available in bondstack")  // none
	ErrNoSlave       = errors.New("no such slave")               // ENODEV
	ErrSlaveExists   = errors.New("slave exists already")        // EBUSY
	ErrBusy          = errors.New("endpoint is in use")          // EBUSY
	ErrLoop          = errors.New("the bond would hold itself")  // EPERM
	ErrLinkType      = errors.New("not an Ethernet link")        // EINVAL
	ErrMTU           = errors.New("MTU does not fit")            // EINVAL
	ErrAddress       = errors.New("link address does not fit")   // EADDRNOTAVAIL
	ErrClosed        = errors.New("the bond is closed")          // ENODEV
	ErrNoSuccessor   = errors.New("no other slave can serve")    // none
	ErrTooManySlaves = errors.New("the bond has no room for it") // none
)

// OptionError says which option was refused, with which value, and why.
type OptionError struct {
	Option string // Linux's name
	Value  string // as given
	Reason string // what is allowed, or what is in the way
	Err    error  // one of the errors above
}

// Error names the option, the value and what is allowed.
func (e *OptionError) Error() string {
	text := fmt.Sprintf("option %s=%q: %v", e.Option, e.Value, e.Err)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Unwrap returns the kind of error.
func (e *OptionError) Unwrap() error { return e.Err }

// SlaveError says which slave could not be enslaved, released or changed, and
// why.
type SlaveError struct {
	Op     string // "enslave", "release", "drain", "cut" or "set"
	Slave  string
	Reason string
	Err    error // one of the errors above
}

// Error names the deed, the slave and the reason.
func (e *SlaveError) Error() string {
	text := fmt.Sprintf("%s %q: %v", e.Op, e.Slave, e.Err)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Unwrap returns the kind of error.
func (e *SlaveError) Unwrap() error { return e.Err }
