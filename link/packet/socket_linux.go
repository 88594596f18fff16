package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// socket is one packet socket with what it takes to end its receiver.
type socket struct {
	fd int
	// ring is where received frames come to; nil where they are queued only.
	ring *ring
	// ringFailure is why there is none where there should be one.
	ringFailure error
	// wakeup is an eventfd: readable when the receiver is to end.
	wakeup int
	// ending is set before wakeup is written, for a receiver too busy to wait.
	ending atomic.Bool
}

// allProtocols is ETH_P_ALL in the byte order of sockaddr_ll.
var allProtocols = binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})

// openSockets opens the sockets of an endpoint on the interface of an index, in
// the calling thread's namespace. They receive from then on.
func openSockets(index int32, mtu uint32, opts Options) ([]*socket, error) {
	var socks []*socket
	fail := func(err error) ([]*socket, error) {
		closeSockets(socks)
		return nil, err
	}
	for range opts.Queues {
		s, err := newSocket(opts)
		if err != nil {
			return fail(err)
		}
		socks = append(socks, s)
		if opts.wantsRing() {
			// Without one, for want of memory, frames are queued.
			s.ringFailure = s.addRing(mtu)
		}
		if err := s.bind(index); err != nil {
			return fail(err)
		}
	}
	if len(socks) > 1 {
		if err := joinFanout(socks); err != nil {
			return fail(err)
		}
	}
	// The memberships are those of the sockets and end with them.
	if err := socks[0].join(index); err != nil {
		return fail(err)
	}
	return socks, nil
}

// closeSockets closes sockets whose receivers have ended.
func closeSockets(socks []*socket) {
	for _, s := range socks {
		s.close()
	}
}

// newSocket opens a socket that is bound to nothing and receives nothing.
func newSocket(opts Options) (*socket, error) {
	fd, err := newDescriptor(opts)
	if err != nil {
		return nil, err
	}
	s := &socket{fd: fd, wakeup: -1}
	if s.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		s.close()
		return nil, fmt.Errorf("open an eventfd: %w", err)
	}
	if err := s.configure(opts); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// configure sets the options that must be in force before the first frame.
func (s *socket) configure(opts Options) error {
	for _, o := range []struct {
		name   string
		option int
	}{
		{"the virtio header", unix.PACKET_VNET_HDR},
		{"auxiliary data", unix.PACKET_AUXDATA},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, o.option, 1); err != nil {
			return fmt.Errorf("ask for %s: %w", o.name, err)
		}
	}
	setBuffer(s.fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, opts.ReceiveBuffer)
	setBuffer(s.fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, opts.SendBuffer)
	// With fan-out the option is void, and a kernel before 4.20 has none: the
	// filter serves both.
	err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	if err != nil || opts.Queues > 1 {
		filter := ignoreOutgoing
		if opts.Queues > 1 {
			filter = ignoreAll // until all sockets are in the fan-out group
		}
		return s.setFilter(filter)
	}
	return nil
}

// omitVirtio has frames go without the virtio header.
func (s *socket) omitVirtio() error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 0); err != nil {
		return fmt.Errorf("omit the virtio header: %w", err)
	}
	return nil
}

// setBuffer sets the size of a socket buffer: beyond the system's limit where
// the process may, else up to the limit. Info tells what came of it.
func setBuffer(fd, force, option, size int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, size)
	}
}

// Filters in classic BPF (linux/filter.h). The value returned is how much of a
// frame to keep.
var (
	// ignoreOutgoing keeps frames whose packet type is not PACKET_OUTGOING.
	ignoreOutgoing = []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: packetTypeOffset},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.PACKET_OUTGOING},
		{Code: unix.BPF_RET | unix.BPF_K, K: ^uint32(0)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	// ignoreAll keeps nothing.
	ignoreAll = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
)

// packetTypeOffset is SKF_AD_OFF + SKF_AD_PKTTYPE: where a filter finds the
// packet type.
const packetTypeOffset = 1<<32 - 0x1000 + 4

// setFilter gives the socket a filter in place of the one it has.
func (s *socket) setFilter(f []unix.SockFilter) error {
	err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]})
	if err != nil {
		return fmt.Errorf("attach a filter: %w", err)
	}
	return nil
}

// bind binds the socket to an interface, which may be down, and to all
// protocols.
func (s *socket) bind(index int32) error {
	err := unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: allProtocols, Ifindex: int(index)})
	if err != nil {
		return fmt.Errorf("bind the packet socket: %w", err)
	}
	return nil
}

// join has the interface receive frames for all addresses while the socket is
// open.
func (s *socket) join(index int32) error {
	for _, kind := range []uint16{unix.PACKET_MR_PROMISC, unix.PACKET_MR_ALLMULTI} {
		m := unix.PacketMreq{Ifindex: index, Type: kind}
		if err := unix.SetsockoptPacketMreq(s.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return fmt.Errorf("make the interface promiscuous: %w", err)
		}
	}
	return nil
}

// joinFanout makes a group of the sockets, to which the kernel spreads received
// flows by hash.
func joinFanout(socks []*socket) error {
	const unique = unix.PACKET_FANOUT_FLAG_UNIQUEID << 16
	kind := unix.PACKET_FANOUT_HASH<<16 | unix.PACKET_FANOUT_FLAG_IGNORE_OUTGOING<<16
	err := unix.SetsockoptInt(socks[0].fd, unix.SOL_PACKET, unix.PACKET_FANOUT, kind|unique)
	if errors.Is(err, unix.EINVAL) { // before Linux 5.17: without the last flag
		kind = unix.PACKET_FANOUT_HASH << 16
		err = unix.SetsockoptInt(socks[0].fd, unix.SOL_PACKET, unix.PACKET_FANOUT, kind|unique)
	}
	if err != nil {
		return fmt.Errorf("make a fan-out group: %w", err)
	}
	group, err := unix.GetsockoptInt(socks[0].fd, unix.SOL_PACKET, unix.PACKET_FANOUT)
	if err != nil {
		return fmt.Errorf("read the fan-out group: %w", err)
	}
	for _, s := range socks[1:] {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_FANOUT, group&0xffff|kind); err != nil {
			return fmt.Errorf("join the fan-out group: %w", err)
		}
	}
	for _, s := range socks {
		if err := s.setFilter(ignoreOutgoing); err != nil {
			return err
		}
	}
	return nil
}

// dropped returns how many frames the kernel dropped for lack of room since it
// was last asked.
func (s *socket) dropped() uint64 {
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return uint64(stats.Drops)
}

// end has the socket's receiver end.
func (s *socket) end() {
	s.ending.Store(true)
	// Eight bytes to an eventfd that is written once cannot fail.
	unix.Write(s.wakeup, []byte{1, 1, 1, 1, 1, 1, 1, 1})
}

// close closes the descriptors.
func (s *socket) close() {
	if s.ring != nil {
		s.ring.release()
	}
	unix.Close(s.fd)
	if s.wakeup >= 0 {
		unix.Close(s.wakeup)
	}
}
