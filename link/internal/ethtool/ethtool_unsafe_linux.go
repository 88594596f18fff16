package ethtool

import (
	"fmt"
	"unsafe"

	"bondstack/link"

	"golang.org/x/sys/unix"
)

// interfaceRequest is struct ifreq with a pointer (linux/if.h). The padding is
// more than its union needs anywhere.
type interfaceRequest struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [32]byte
}

// call asks the interface of a name by the ethtool call of the kernel, which
// fills in what data points to.
func call(fd int, name string, data unsafe.Pointer) unix.Errno {
	request := interfaceRequest{data: data}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	return errno
}

// value is struct ethtool_value (linux/ethtool.h).
type value struct {
	command, data uint32
}

// Carrier reads the carrier bit itself, not what the kernel has told of
// it. known is false where the driver does not say.
func Carrier(fd int, name string) (carrier, known bool) {
	answer := value{command: unix.ETHTOOL_GLINK}
	if errno := call(fd, name, unsafe.Pointer(&answer)); errno != 0 {
		// An interface that has just gone has no carrier.
		return false, errno == unix.ENODEV
	}
	return answer.data != 0, true
}

// maxLinkModeWords is how many words of 32 bits the kernel has at most in each
// of its sets of link modes (a signed byte says how many).
const maxLinkModeWords = 127

// settings is struct ethtool_link_settings (linux/ethtool.h) with room
// for its three sets.
type settings struct {
	command   uint32
	speed     uint32
	duplex    uint8
	_         [6]uint8
	modeWords int8
	_         [32]uint8
	_         [3 * maxLinkModeWords]uint32
}

// Speed reads the speed in Mbit/s and the duplex mode, or the unknown values. fd
// is any socket of the interface's network namespace.
func Speed(fd int, name string) (uint32, link.Duplex) {
	got, errno := read(fd, name)
	if errno != 0 || got.speed == 0 {
		return link.SpeedUnknown, link.DuplexUnknown
	}
	duplex := link.Duplex(got.duplex)
	if duplex != link.DuplexHalf && duplex != link.DuplexFull {
		duplex = link.DuplexUnknown
	}
	return got.speed, duplex
}

// SetSpeed sets what Speed reads, for a device that only keeps it, as a TAP
// device does (Linux 5.0).
func SetSpeed(fd int, name string, speed uint32, duplex link.Duplex) error {
	s, errno := read(fd, name)
	if errno == 0 {
		s.command, s.speed, s.duplex = unix.ETHTOOL_SLINKSETTINGS, speed, uint8(duplex)
		errno = call(fd, name, unsafe.Pointer(&s))
	}
	if errno != 0 {
		return fmt.Errorf("set the speed of interface %q to %d: %w", name, speed, errno)
	}
	return nil
}

// read reads the settings of an interface.
func read(fd int, name string) (settings, unix.Errno) {
	// The first call is answered with the number of words, negated.
	ask := settings{command: unix.ETHTOOL_GLINKSETTINGS}
	if errno := call(fd, name, unsafe.Pointer(&ask)); errno != 0 {
		return settings{}, errno
	}
	if ask.modeWords >= 0 {
		return settings{}, unix.EOPNOTSUPP
	}
	got := settings{command: unix.ETHTOOL_GLINKSETTINGS, modeWords: -ask.modeWords}
	errno := call(fd, name, unsafe.Pointer(&got))
	return got, errno
}
