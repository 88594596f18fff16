// Package packet is a link on a kernel interface, by packet sockets (AF_PACKET)
// of Linux.
//
//	ep, err := packet.New("eth0", packet.Options{})
//
// The endpoint sends and receives whole Ethernet frames. It carries TCP
// segments of up to 64 KiB in both directions (virtio header, with TSO and
// checksum offload), hears none of the frames it sent itself, hears every
// multicast frame and every unicast frame that its address filter lets through,
// whatever the interface's own address is, and gives back the VLAN tag that the
// kernel took out of a frame. It knows the interface's carrier, speed and
// duplex mode and tells of changes.
//
// # Lifetime
//
// The endpoint belongs to the network namespace of the thread that called New
// (a caller that moves its thread must lock it with runtime.LockOSThread). It
// belongs to the interface's name: when the interface is deleted or renamed the
// link goes down, and when an interface has the name again the endpoint opens
// anew on it and the link comes up. Attach may be called any number of times;
// Attach(nil) returns at once, and the endpoint goes on receiving, counts the
// frames and drops them. Close ends everything and waits for it.
//
// # Checksums
//
// The endpoint claims CapabilityRXChecksumOffload, and earns it: a frame for
// which the kernel vouches (its checksum is partial, since it never left this
// machine, or the hardware verified it) passes at once; any other frame is
// verified here, and a wrong one dropped and counted. What cannot be verified
// by frame passes: fragments of IP datagrams, and protocols other than TCP and
// UDP (netstack verifies ICMP and IGMP in any case).
// stack.PacketBuffer.RXChecksumValidated is true for the frames that were
// vouched for or verified.
//
// # Receiving
//
// Received frames of up to the MTU come by a ring in memory that the kernel shares
// (PACKET_RX_RING, 8 MiB a queue, which hold 4,096 frames of an MTU of 1500 and 512
// of 9000); longer ones, which are segments that the kernel joined or never cut, and
// all where Options.NoRing is set, wait in the socket's receive buffer.
//
// # Limits
//
// A queue keeps 16 frames' memory of 64 KiB for what comes next, and all queues
// together 16 MiB for what comes after, or 2 MiB each where that is more.
//
// The kernel's own stack sees every received frame too. Where the interface has
// addresses of the host the kernel answers beside the user-space stack; see
// Warnings and Options.Exclusive. The endpoint needs CAP_NET_RAW; CAP_BPF with
// CAP_NET_ADMIN for Options.Exclusive; and CAP_SYS_ADMIN to follow an interface
// that comes back in another namespace than the process's own. On systems other
// than Linux New returns ErrNotSupported.
package packet
