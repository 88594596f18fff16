package xdp

import (
	"errors"
	"fmt"
	"time"

	"bondstack/link/internal/kernel"
)

// Limits and defaults of Options.
const (
	// MinRing and MaxRing bound Options.Ring.
	MinRing, MaxRing = 64, 32768
	// DefaultRing holds what arrives in 4 ms at a million frames a second: a
	// receiver may have to wait that long for a processor.
	DefaultRing = 4096
	// DefaultPollInterval is how often the carrier is looked at while frames
	// flow: the kernel may hold its own news of it back for a second.
	DefaultPollInterval = 2 * time.Millisecond
	// MaxMTU is the greatest MTU: a frame with a VLAN tag has its place in a
	// page of 4096 bytes beside what the kernel keeps of it.
	MaxMTU = maxFrame - headroom - overhead
)

const (
	// headroom is what the kernel keeps in front of a received frame
	// (XDP_PACKET_HEADROOM).
	headroom = 256
	// overhead is an Ethernet header and two VLAN tags.
	overhead = 14 + 2*4
	// minFrame and maxFrame are the sizes of a frame's place.
	minFrame, maxFrame = 2048, 4096
)

// Errors that callers branch on.
var (
	// ErrNotSupported is in the chain of the error that New returns where the
	// system has no AF_XDP, or not what the options ask for.
	ErrNotSupported = errors.New("not supported")
	// ErrNoInterface is in the chain of the error that New returns where there
	// is no interface of the name in the namespace. It may come later.
	ErrNoInterface = kernel.ErrNoInterface
)

// Mode is how frames come from the driver.
type Mode int

// The modes, in the order in which ModeAuto tries them.
const (
	// ModeAuto is the first of the others that the interface can do.
	ModeAuto Mode = iota
	// ModeZeroCopy has the device read and write the endpoint's memory.
	ModeZeroCopy
	// ModeCopy has the program run in the driver, and the kernel copy frames.
	ModeCopy
	// ModeGeneric has the program run in the kernel's stack, for any driver.
	ModeGeneric
)

var modeNames = [...]string{"auto", "zero-copy", "copy", "generic"}

// String returns "auto", "zero-copy", "copy" or "generic".
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modeNames) {
		return fmt.Sprintf("mode %d", int(m))
	}
	return modeNames[m]
}

// Share says which received frames the host's own stack gets.
type Share int

const (
	// ShareNone gives it none: every frame of the interface is the endpoint's.
	ShareNone Share = iota
	// ShareOthers gives it the unicast frames for addresses that the endpoint's
	// filter does not let through. Frames for groups are the endpoint's alone:
	// the program cannot give a frame to both.
	ShareOthers
)

// String returns "none" or "others".
func (s Share) String() string {
	switch s {
	case ShareNone:
		return "none"
	case ShareOthers:
		return "others"
	}
	return fmt.Sprintf("share %d", int(s))
}

// Options are what an Endpoint can be told when it is made. The zero value is
// a good one.
type Options struct {
	// Mode is how frames come from the driver. Any other than ModeAuto is an
	// error where it cannot be had.
	Mode Mode
	// Share is what the host's own stack gets.
	Share Share
	// Ring is how many received frames each queue holds, beside a quarter as
	// many to send: a power of two from MinRing to MaxRing; 0 means DefaultRing. A
	// frame takes 2048 bytes where the MTU is at most 1770, else 4096: by default
	// 10 MiB a queue, or 20.
	Ring int
	// RefusePartial drops received frames whose checksum is partial.
	RefusePartial bool
	// PollInterval is how often the endpoint itself reads the interface's
	// carrier bit, beside the kernel's events, while frames flow; while none do
	// it is a fifth as often. 0 means DefaultPollInterval, negative none.
	PollInterval time.Duration
}

// Validate returns an error that names every option whose value is not
// allowed, and what is.
func (o Options) Validate() error {
	var errs []error
	if o.Mode < ModeAuto || o.Mode > ModeGeneric {
		errs = append(errs, fmt.Errorf("%v is not allowed: auto (0), zero-copy (1), copy (2) or generic (3)", o.Mode))
	}
	if o.Share < ShareNone || o.Share > ShareOthers {
		errs = append(errs, fmt.Errorf("%v is not allowed: none (0) or others (1)", o.Share))
	}
	if o.Ring != 0 && (o.Ring < MinRing || o.Ring > MaxRing || o.Ring&(o.Ring-1) != 0) {
		errs = append(errs, fmt.Errorf("ring %d is not allowed: a power of two from %d to %d, or 0 for %d", o.Ring, MinRing, MaxRing, DefaultRing))
	}
	return errors.Join(errs...)
}

// withDefaults returns the options with every zero replaced by what it means.
func (o Options) withDefaults() Options {
	if o.Ring == 0 {
		o.Ring = DefaultRing
	}
	if o.PollInterval == 0 {
		o.PollInterval = DefaultPollInterval
	}
	return o
}

// Info says what is in force on an endpoint at this moment.
type Info struct {
	// Index is the index of the interface that the sockets are bound to, 0
	// while there is none.
	Index int
	// Mode is how frames come from the driver, and Reason why it is not a
	// better one, empty where there is none.
	Mode   Mode
	Reason string
	// Queues is the number of sockets, and TransmitQueues how many of them
	// send.
	Queues, TransmitQueues int
	// Frame is the size in bytes of a frame's place in memory, and Ring the
	// number of places that each socket has to receive.
	Frame, Ring int
}
