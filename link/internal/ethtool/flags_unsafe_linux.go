package ethtool

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// flagReceiveVLAN is ETH_FLAG_RXVLAN of linux/ethtool.h.
const flagReceiveVLAN = 1 << 8

// TakesTagsOut reports whether an interface may take the VLAN tag out of a frame
// that it receives, and hand it on beside the frame.
func TakesTagsOut(fd int, name string) bool {
	answer := value{command: unix.ETHTOOL_GFLAGS}
	return call(fd, name, unsafe.Pointer(&answer)) == 0 && answer.data&flagReceiveVLAN != 0
}
