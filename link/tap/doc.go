// Package tap is a link whose other end is a network interface of the kernel: a
// TAP device of Linux, made for the purpose and gone when the link is closed.
// Programs of the host, or of a network namespace, use the interface; their
// frames come out of the link, and what is written to the link comes in by the
// interface.
//
//	ep, err := tap.New("bond0", tap.Options{})
//
// Frames pass with a virtio header: TCP segments of up to 64 KiB and begun
// checksums in both directions. Segmented UDP datagrams (UDP_SEGMENT) are cut on
// their way out of the kernel. With several queues the kernel spreads flows over
// them, and each is received by a goroutine of its own.
//
// # The two ends
//
// LinkAddress and SetLinkAddress are this end's, as for any link: the address
// that a stack on the link has. DeviceAddress and SetDeviceAddress are the
// kernel's end. MTU, speed and carrier are the cable's, so to speak: SetMTU,
// SetSpeed and SetCarrier set what the kernel's end shows.
//
// # Lifetime
//
// New makes the device in Options.Namespace, down, and with a carrier; SetUp
// brings it up. Close ends all goroutines, waits for them, and the device with
// its addresses and routes is gone, as it is when the process ends in any way.
// Where somebody else deletes the device, Gone's channel is closed, and the link
// is down for good. Attach(nil) only unpublishes.
//
// # Checksums
//
// As in package packet: the endpoint claims CapabilityRXChecksumOffload, passes
// frames for which the kernel vouches, verifies all others and drops those with
// wrong checksums. With Options.PassChecksums it does neither: for who sends the
// frames on. A packet's GSOOptions tell, also for a frame of one segment, whether
// and where its checksum is to be completed.
//
// # Limits
//
// It needs CAP_NET_ADMIN in the namespace, and /dev/net/tun. The device can be
// renamed, but where it is moved to another namespace, MTU and state no longer
// follow. One system call carries one frame: many small frames cost more than
// with packet sockets.
package tap
