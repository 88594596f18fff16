package packet

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// FromDescriptor makes an endpoint on a packet socket that somebody else opened and
// bound to an interface, for who may not open one. It keeps a descriptor of its own;
// the given one stays the caller's. The interface is to be in the network namespace
// of the calling thread. Options.Queues may be 1 at most, and Exclusive and
// SetHardwareAddress are not allowed. Errors and all else are as with New; without
// CAP_NET_ADMIN the kernel bounds the buffers (net.core.rmem_max).
func FromDescriptor(fd int, options Options) (*Endpoint, error) {
	e, err := fromDescriptor(fd, options)
	if err != nil {
		return nil, fmt.Errorf("packet: descriptor %d: %w", fd, err)
	}
	return e, nil
}

func fromDescriptor(fd int, options Options) (*Endpoint, error) {
	if options.Queues > 1 || options.Exclusive || options.SetHardwareAddress {
		return nil, errors.New("one queue is allowed, and neither the exclusive nor the hardware address option")
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	bound, ok := at.(*unix.SockaddrLinklayer)
	if !ok || bound.Ifindex == 0 {
		return nil, errors.New("it is not a packet socket that is bound to an interface")
	}
	name, err := nameOf(fd, bound.Ifindex)
	if err != nil {
		return nil, err
	}
	if options.passed, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil, err
	}
	e, err := open(name, options)
	if err != nil {
		unix.Close(options.passed)
		return nil, fmt.Errorf("interface %q: %w", name, err)
	}
	if own := e.hardware.original; e.Info().Index != bound.Ifindex || string(own[:]) != string(bound.Addr[:bound.Halen]) {
		e.Close()
		return nil, fmt.Errorf("interface %q is in another network namespace than this process", name)
	}
	return e, nil
}

// nameOf asks a socket for the name of an interface in its namespace.
func nameOf(fd, index int) (string, error) {
	request, err := unix.NewIfreq("")
	if err != nil {
		return "", err
	}
	request.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFNAME, request); err != nil {
		return "", fmt.Errorf("the interface that it was bound to is gone: %w", err)
	}
	return request.Name(), nil
}

// newDescriptor returns a descriptor of a packet socket: a new one, or another of
// the one that was passed.
func newDescriptor(opts Options) (int, error) {
	if opts.passed == 0 {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return -1, fmt.Errorf("open a packet socket: %w", err)
		}
		return fd, nil
	}
	fd, err := unix.FcntlInt(uintptr(opts.passed), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return -1, fmt.Errorf("use the passed packet socket: %w", err)
	}
	return fd, nil
}
