package fd

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Probe says what a descriptor is. The error has ErrNotALink in its chain, and
// says what was found and what is allowed.
func Probe(fd int) (Kind, error) {
	kind, _, err := probe(fd)
	return kind, err
}

// probe is Probe that also returns the size of the header before each frame.
func probe(fd int) (kind Kind, prefix int, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, fmt.Errorf("%w: descriptor %d is not open (%w): whoever starts this program has to pass it", ErrNotALink, fd, err)
	}
	var found string
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		kind, found = probeSocket(fd)
	case unix.S_IFCHR:
		kind, prefix, found = probeTAP(fd)
	case unix.S_IFREG:
		found = "a file"
	case unix.S_IFIFO:
		found = "a pipe"
	default:
		found = fmt.Sprintf("a file of type %#o", st.Mode&unix.S_IFMT)
	}
	if found != "" {
		return 0, 0, fmt.Errorf("%w: descriptor %d is %s: %s", ErrNotALink, fd, found, allowed)
	}
	return kind, prefix, nil
}

// probeSocket returns the kind, or what else was found.
func probeSocket(fd int) (kind Kind, found string) {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return 0, fmt.Sprintf("a socket that does not tell its family (%v)", err)
	}
	kindOfSocket, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return 0, fmt.Sprintf("a socket that does not tell its type (%v)", err)
	}
	switch {
	case domain == unix.AF_PACKET && kindOfSocket != unix.SOCK_RAW:
		return 0, "a packet socket without Ethernet headers (SOCK_DGRAM)"
	case domain == unix.AF_PACKET:
		at, err := unix.Getsockname(fd)
		if ll, ok := at.(*unix.SockaddrLinklayer); err != nil || !ok || ll.Ifindex == 0 {
			return 0, "a packet socket that is bound to no interface"
		}
		return Packet, ""
	case domain != unix.AF_UNIX:
		return 0, fmt.Sprintf("a socket of family %d", domain)
	case kindOfSocket == unix.SOCK_STREAM:
		return 0, "a unix socket of type SOCK_STREAM, which has no bounds of frames"
	}
	if _, err := unix.Getpeername(fd); err != nil {
		return 0, "a unix socket that is not connected"
	}
	return Socket, ""
}

// probeTAP returns the kind and the size of the virtio header, or what else was
// found.
func probeTAP(fd int) (kind Kind, prefix int, found string) {
	request, err := unix.NewIfreq("")
	if err != nil {
		return 0, 0, err.Error()
	}
	err = unix.IoctlIfreq(fd, unix.TUNGETIFF, request)
	flags := request.Uint16()
	switch {
	case errors.Is(err, unix.EBADFD):
		return 0, 0, "a TUN device's, of which no device was made (TUNSETIFF)"
	case err != nil:
		return 0, 0, "a character device other than a TAP device"
	case flags&unix.IFF_TAP == 0:
		return 0, 0, fmt.Sprintf("the TUN device %s, which has no Ethernet frames", request.Name())
	case flags&unix.IFF_NO_PI == 0:
		return 0, 0, fmt.Sprintf("the TAP device %s, made without IFF_NO_PI", request.Name())
	case flags&unix.IFF_VNET_HDR == 0:
		return TAP, 0, ""
	}
	if prefix, err = unix.IoctlGetInt(fd, unix.TUNGETVNETHDRSZ); err != nil || prefix > maxPrefix {
		return 0, 0, fmt.Sprintf("the TAP device %s, with a virtio header of unknown size", request.Name())
	}
	return TAP, prefix, ""
}

// maxPrefix is the longest virtio header that is understood.
const maxPrefix = 64
