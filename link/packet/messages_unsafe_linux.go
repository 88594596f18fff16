package packet

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is struct mmsghdr of recvmmsg(2) and sendmmsg(2).
type message struct {
	header unix.Msghdr
	// size is how many bytes were received or sent.
	size uint32
}

// receiveMessages receives without waiting. Both calls are made without telling
// the scheduler: they do not block, and most are shorter than a handover.
func receiveMessages(fd int, messages []message) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd),
		uintptr(unsafe.Pointer(&messages[0])), uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// sendMessages sends without waiting.
func sendMessages(fd int, messages []message) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd),
		uintptr(unsafe.Pointer(&messages[0])), uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// controlBuffer has room for the control message with the auxiliary data of a
// frame, and its alignment.
type controlBuffer [8]uint64

// bytes returns the buffer as bytes.
func (c *controlBuffer) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(c)), unsafe.Sizeof(*c))
}

// auxiliaryTag returns the VLAN tag that the kernel took out of the frame, from
// the control message that came with it.
func auxiliaryTag(control []byte) (vlanTag, bool) {
	want := unix.CmsgLen(int(unsafe.Sizeof(unix.TpacketAuxdata{})))
	if len(control) < want {
		return vlanTag{}, false
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if h.Level != unix.SOL_PACKET || h.Type != unix.PACKET_AUXDATA || int(h.Len) < want {
		return vlanTag{}, false
	}
	aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
	return tagOf(aux.Status, aux.Vlan_tci, aux.Vlan_tpid)
}
