package packet

import (
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

// ethtool asks the interface of a name by the ethtool call of the kernel, which
// fills in what data points to.
func ethtool(fd int, name string, data unsafe.Pointer) unix.Errno {
	request := interfaceRequest{data: data}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	return errno
}

// ethtoolValue is struct ethtool_value (linux/ethtool.h).
type ethtoolValue struct {
	command, data uint32
}

// ethtoolCarrier reads the carrier bit itself, not what the kernel has told of
// it. known is false where the driver does not say.
func ethtoolCarrier(fd int, name string) (carrier, known bool) {
	value := ethtoolValue{command: unix.ETHTOOL_GLINK}
	if errno := ethtool(fd, name, unsafe.Pointer(&value)); errno != 0 {
		// An interface that has just gone has no carrier.
		return false, errno == unix.ENODEV
	}
	return value.data != 0, true
}

// maxLinkModeWords is how many words of 32 bits the kernel has at most in each
// of its sets of link modes (a signed byte says how many).
const maxLinkModeWords = 127

// ethtoolSettings is struct ethtool_link_settings (linux/ethtool.h) with room
// for its three sets.
type ethtoolSettings struct {
	command   uint32
	speed     uint32
	duplex    uint8
	_         [6]uint8
	modeWords int8
	_         [32]uint8
	_         [3 * maxLinkModeWords]uint32
}

// ethtoolSpeed reads the speed in Mbit/s and the duplex mode, or the unknown
// values.
func ethtoolSpeed(fd int, name string) (uint32, link.Duplex) {
	// The first call is answered with the number of words, negated.
	ask := ethtoolSettings{command: unix.ETHTOOL_GLINKSETTINGS}
	if ethtool(fd, name, unsafe.Pointer(&ask)) != 0 || ask.modeWords >= 0 {
		return link.SpeedUnknown, link.DuplexUnknown
	}
	settings := ethtoolSettings{command: unix.ETHTOOL_GLINKSETTINGS, modeWords: -ask.modeWords}
	if ethtool(fd, name, unsafe.Pointer(&settings)) != 0 || settings.speed == 0 {
		return link.SpeedUnknown, link.DuplexUnknown
	}
	duplex := link.Duplex(settings.duplex)
	if duplex != link.DuplexHalf && duplex != link.DuplexFull {
		duplex = link.DuplexUnknown
	}
	return settings.speed, duplex
}
