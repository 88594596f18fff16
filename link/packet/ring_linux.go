package packet

import (
	"errors"
	"fmt"
	"math/bits"

	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

const (
	// ringSize is the size of a ring in bytes, and blockSize that of the pieces
	// that the kernel makes it of.
	ringSize  = 8 << 20
	blockSize = 64 << 10
	// leastPlace and greatestPlace are the sizes of the place of a frame in a
	// ring. Longer frames go by the socket's queue.
	leastPlace, greatestPlace = 2 << 10, 16 << 10
	// placeOverhead is what of a place is before the frame and its tag: struct
	// tpacket2_hdr, struct sockaddr_ll and the virtio header, aligned.
	placeOverhead = 96
)

// ring is memory that the kernel puts received frames in, instead of queueing
// them: no system call for a frame, and no copy by one. It is of the second
// version of PACKET_RX_RING (packet(7)), whose places are of one size: the third
// has none too small, but holds frames back for a millisecond at least.
//
// For a frame that is longer than its place, the place says that the frame is in
// the socket's queue as well, whole (PACKET_COPY_THRESH).
type ring struct {
	memory []byte
	place  int
	// next is the place that the next frame comes to, by its number.
	next int
}

// placeFor returns the size of the places for frames of an MTU.
func placeFor(mtu uint32) int {
	least := int(min(mtu, greatestPlace)) + header.EthernetMinimumSize + vlanTagSize + placeOverhead
	return min(max(1<<bits.Len(uint(least-1)), leastPlace), greatestPlace)
}

// addRing gives the socket a ring for frames of an MTU. It must not be bound yet.
func (s *socket) addRing(mtu uint32) error {
	for _, o := range []struct{ option, value int }{
		{unix.PACKET_VERSION, unix.TPACKET_V2},
		{unix.PACKET_COPY_THRESH, 1},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, o.option, o.value); err != nil {
			return fmt.Errorf("prepare a ring: %w", err)
		}
	}
	place := placeFor(mtu)
	request := unix.TpacketReq{
		Block_size: blockSize, Block_nr: ringSize / blockSize,
		Frame_size: uint32(place), Frame_nr: uint32(ringSize / place),
	}
	if err := unix.SetsockoptTpacketReq(s.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return fmt.Errorf("make a ring: %w", err)
	}
	memory, err := unix.Mmap(s.fd, 0, ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		// Frames would go there, unseen.
		none := unix.SetsockoptTpacketReq(s.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq{})
		return fmt.Errorf("map a ring: %w", errors.Join(err, none))
	}
	s.ring = &ring{memory: memory, place: place}
	return nil
}

// release gives the memory back.
func (g *ring) release() { unix.Munmap(g.memory) }

// at returns the place of the number next+n.
func (g *ring) at(n int) ringPlace {
	i := (g.next + n) * g.place % len(g.memory)
	return g.memory[i : i+g.place]
}

// pass gives the next n places back to the kernel.
func (g *ring) pass(n int) {
	for i := range n {
		g.at(i).giveBack()
	}
	g.next = (g.next + n) % (len(g.memory) / g.place)
}

// ringPlace is the place of one frame in a ring.
type ringPlace []byte

// ringFrame is a received frame in its place. Its bytes are the kernel's again once
// the place has been given back.
type ringFrame struct {
	virtio vnet.Header
	parts  [1][]byte
}

// read reads a place that has a frame. It is false where the frame has no whole
// Ethernet header. A tag that the kernel took out is put back.
func (f *ringFrame) read(p ringPlace) bool {
	h := p.header()
	begin, end := int(h.Mac), int(h.Mac)+int(h.Snaplen)
	if begin < placeHeaderSize+vnet.Size || end > len(p) || end-begin < header.EthernetMinimumSize {
		return false
	}
	f.virtio, _ = vnet.Parse(p[begin-vnet.Size : begin]) // it has the size
	if tag, ok := tagOf(h.Status, h.Vlan_tci, h.Vlan_tpid); ok {
		// The virtio header, which was read, makes room.
		begin -= vlanTagSize
		restoreTag(p[begin:end], tag)
		f.virtio.ChecksumStart += vlanTagSize
	}
	f.parts[0] = p[begin:end]
	return true
}

// take copies the frame out of its place.
func (*ringFrame) take(parts [][]byte) buffer.Buffer {
	v := buffer.NewView(len(parts[0]))
	v.Write(parts[0])
	return buffer.MakeWithView(v)
}
