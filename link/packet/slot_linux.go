package packet

import (
	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
)

// slot is the place of one received frame.
type slot struct {
	virtio  [vnet.Size]byte
	control controlBuffer
	views   vnet.Views
	// vectors are the virtio header and the views, without the headroom.
	vectors [1 + vnet.MaxVectors]unix.Iovec
	// restored is whether the frame has a tag that the kernel had taken out.
	restored bool
}

// prepare fills the slot with views where it has none, and points the message
// at it.
func (s *slot) prepare(m *message) {
	vectors := s.views.Prepare(vnet.AppendVector(s.vectors[:0], s.virtio[:]))
	m.header = unix.Msghdr{Iov: &vectors[0]}
	m.header.SetIovlen(len(vectors))
	control := s.control.bytes()
	m.header.Control = &control[0]
	m.header.SetControllen(len(control))
}

// tagOf returns the tag that the kernel took out of a frame of a status
// (TP_STATUS_...), from what it says of it.
func tagOf(status uint32, control, protocol uint16) (vlanTag, bool) {
	if status&unix.TP_STATUS_VLAN_VALID == 0 {
		return vlanTag{}, false
	}
	if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		protocol = ethertypeVLAN
	}
	return vlanTag{protocol, control}, true
}

// frame returns the bytes of a received frame of a size, in parts. A tag that
// the kernel took out is back in its place.
func (s *slot) frame(size int, m *message) [][]byte {
	control := s.control.bytes()[:m.header.Controllen]
	tag, ok := auxiliaryTag(control)
	s.restored = ok && size >= tagOffset
	if s.restored {
		restoreTag(s.views.First(), tag)
		size += vlanTagSize
	}
	return s.views.Frame(size, s.restored)
}

// header returns the virtio header of the frame that frame returned. The kernel
// counts without the tag that it took out.
func (s *slot) header() vnet.Header {
	h, _ := vnet.Parse(s.virtio[:]) // it has the size
	if s.restored {
		h.ChecksumStart += vlanTagSize
	}
	return h
}

// take moves the frame of parts out of the slot, which prepare then fills
// again.
func (s *slot) take(parts [][]byte) buffer.Buffer { return s.views.Take(parts) }

// release gives the views back.
func (s *slot) release() { s.views.Release() }
