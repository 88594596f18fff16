package ethtool

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// channels is struct ethtool_channels (linux/ethtool.h).
type channels struct {
	command                                     uint32
	maxReceive, maxTransmit, maxOther, maxBoth  uint32
	receive, transmit, other, receiveAndTransit uint32
}

// Channels reads how many queues an interface has in use, to receive and to
// transmit. known is false where the driver does not say.
func Channels(fd int, name string) (receive, transmit int, known bool) {
	c := channels{command: unix.ETHTOOL_GCHANNELS}
	if call(fd, name, unsafe.Pointer(&c)) != 0 {
		return 0, 0, false
	}
	return int(c.receive + c.receiveAndTransit), int(c.transmit + c.receiveAndTransit), true
}
