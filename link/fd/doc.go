// Package fd is a link on a descriptor that somebody else opened, for processes
// that may not open one: a TAP device of Linux, or a connected unix socket that
// carries an Ethernet frame a message (SOCK_SEQPACKET or SOCK_DGRAM), as helpers
// of rootless containers have.
//
//	what, err := fd.Probe(3) // says what it is
//	ep, err := fd.New(3, fd.Options{})
//
// A packet socket is Probe's to tell too, and package packet's to use
// (packet.FromDescriptor).
//
// New keeps a descriptor of its own; the given one stays the caller's, and shares
// with it that it does not block. Close ends all goroutines and waits for them.
//
// # State
//
// The link is up until its other end is gone: a socket was closed there, or the
// TAP device was deleted. It then is down for good. That a TAP device is down is
// not seen, but frames are refused meanwhile.
//
// # Limits
//
// A TAP device made without IFF_NO_PI is refused where the kernel tells it; one that
// does not (Linux 6.18) gives frames with 4 bytes too many.
//
// One system call carries one frame, and each is copied once. There is no
// segmentation offload: a TAP device that has a virtio header is told to send
// whole frames. Speed and duplex mode are unknown.
package fd
