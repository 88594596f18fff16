package stack

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// errLinkGone is what calls return once the link below the host was removed or
// closed.
var errLinkGone = fmt.Errorf("link is gone: %w", syscall.ENETDOWN)

// errNames says why a host part that is no address is refused.
var errNames = errors.New("names are not resolved: the host must be a literal IP address, or empty")

// errorOf returns the error of package syscall that stands for a gVisor error,
// so that errors.Is works as on a kernel's connections.
func errorOf(err tcpip.Error) error {
	switch err.(type) {
	case *tcpip.ErrAborted, *tcpip.ErrConnectionAborted:
		return syscall.ECONNABORTED
	case *tcpip.ErrAddressFamilyNotSupported:
		return syscall.EAFNOSUPPORT
	case *tcpip.ErrBadLocalAddress, *tcpip.ErrNoPortAvailable:
		return syscall.EADDRNOTAVAIL
	case *tcpip.ErrBroadcastDisabled:
		return syscall.EACCES
	case *tcpip.ErrClosedForSend:
		return syscall.EPIPE
	case *tcpip.ErrConnectionRefused:
		return syscall.ECONNREFUSED
	case *tcpip.ErrConnectionReset:
		return syscall.ECONNRESET
	case *tcpip.ErrDestinationRequired:
		return syscall.EDESTADDRREQ
	case *tcpip.ErrHostUnreachable, *tcpip.ErrHostDown, *tcpip.ErrNoNet:
		return syscall.EHOSTUNREACH
	case *tcpip.ErrInvalidEndpointState, *tcpip.ErrInvalidOptionValue:
		return syscall.EINVAL
	case *tcpip.ErrMessageTooLong:
		return syscall.EMSGSIZE
	case *tcpip.ErrNetworkUnreachable:
		return syscall.ENETUNREACH
	case *tcpip.ErrNoBufferSpace:
		return syscall.ENOBUFS
	case *tcpip.ErrNotConnected:
		return syscall.ENOTCONN
	case *tcpip.ErrPortInUse:
		return syscall.EADDRINUSE
	case *tcpip.ErrTimeout:
		return syscall.ETIMEDOUT
	case *tcpip.ErrUnknownDevice, *tcpip.ErrUnknownNICID:
		return syscall.ENODEV
	}
	return errors.New(err.String())
}

// callError is errorOf with the name of the socket call that failed, which
// package net puts between the addresses and the reason.
func callError(call string, err tcpip.Error) error {
	return os.NewSyscallError(call, errorOf(err))
}

// opError makes the error that package net would return. The addresses are
// those of a socket, so either may be a nil pointer's interface: both are taken
// as given.
func opError(op, network string, source, addr net.Addr, err error) error {
	return &net.OpError{Op: op, Net: network, Source: source, Addr: addr, Err: err}
}
