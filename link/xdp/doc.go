// Package xdp is a link on a kernel interface, by AF_XDP sockets of Linux.
//
//	ep, err := xdp.New("eth0", xdp.Options{})
//
// An XDP program takes received frames from the driver before the host's own
// stack sees them, and puts them into memory that this process shares with the
// kernel: there is one socket for each receive queue of the interface, with
// its own memory and its own receiving goroutine. Where the driver can, the
// device itself reads and writes that memory (zero-copy); where not, the kernel
// copies once; where the driver knows no XDP, the generic program hook takes the
// frames later on their way. Info says which is in force, and why.
//
// # Lifetime
//
// The endpoint belongs to the network namespace of the thread that called New
// (a caller that moves its thread must lock it with runtime.LockOSThread), and
// to the interface's name: when the interface is deleted or renamed the link
// goes down, and when an interface has the name again the endpoint opens anew on
// it and the link comes up. Attach may be called any number of times; Attach(nil)
// returns at once, and the endpoint goes on receiving, counts the frames and
// drops them. Close ends everything and waits for it. The program is attached by
// a BPF link: it goes with the endpoint, or with the process even when it is
// killed.
//
// # Checksums
//
// Frames are verified here: CapabilityRXChecksumOffload is claimed and earned.
// A kernel on this machine at the other end of a veth pair leaves its checksums
// for the device to complete, which no device does; such a checksum is
// recognised (it is the sum of the pseudo-header), counted, and the frame is
// delivered with GSOOptions that say so. Warnings tells how to have the peer
// make checksums. Options.RefusePartial drops these frames instead.
// WritePackets completes a partial checksum that a packet's GSOOptions ask for.
//
// # Limits
//
// A frame has its place in one piece of memory of at most 4096 bytes, of which
// the kernel keeps 256: the MTU is at most MaxMTU. There is no segmentation
// offload in either direction, and none may be in force on what feeds the
// interface in generic mode (Warnings). VLAN tags are seen as they are in the
// frame; a driver that takes them out of it must be told not to (ethtool -K eth0
// rxvlan off). Frames for groups of stations all come here, also with ShareOthers.
// One program and one endpoint fit an interface. The endpoint needs CAP_NET_RAW,
// CAP_NET_ADMIN and CAP_BPF, and Linux 5.9 (BPF links for XDP). On systems other
// than Linux New returns ErrNotSupported.
package xdp
