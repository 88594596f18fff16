package packet

import (
	"bytes"
	"testing"
	"unsafe"

	"bondstack/link/internal/kernel"
	"bondstack/link/internal/vnet"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// eachWay runs a test with frames received by rings and by system calls.
func eachWay(t *testing.T, test func(t *testing.T, o Options)) {
	for name, o := range map[string]Options{"ring": {}, "calls": {NoRing: true}} {
		t.Run(name, func(t *testing.T) { test(t, o) })
	}
}

func TestPlaceFor(t *testing.T) {
	for mtu, want := range map[uint32]int{
		0: 2048, 68: 2048, 1500: 2048, 1934: 2048, 1935: 4096, 9000: 16384, 16270: 16384, 65535: 16384, 1<<32 - 1: 16384,
	} {
		if got := placeFor(mtu); got != want {
			t.Errorf("placeFor(%d) = %d, want %d", mtu, got, want)
		}
	}
}

// A ring is there unless it is not wanted, and Info says so.
func TestInfoTellsOfRing(t *testing.T) {
	eachWay(t, func(t *testing.T, o Options) {
		if got := newPair(t).open(o).Info().Ring; got == o.NoRing {
			t.Errorf("with %+v Info().Ring = %v", o, got)
		}
	})
}

// testRing is a ring in memory that no kernel has.
func testRing(places int) *ring {
	words := make([]uint64, places*leastPlace/8)
	return &ring{memory: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), places*leastPlace), place: leastPlace}
}

// put writes a frame to a place as a kernel would.
func (p ringPlace) put(begin int, frame []byte, virtio vnet.Header, extra uint32, tag vlanTag) {
	*p.header() = unix.Tpacket2Hdr{
		Mac: uint16(begin), Len: uint32(len(frame)), Snaplen: uint32(len(frame)),
		Status: unix.TP_STATUS_USER | extra, Vlan_tci: tag.control, Vlan_tpid: tag.protocol,
	}
	virtio.Put(p[begin-vnet.Size:])
	copy(p[begin:], frame)
}

// Frames are read in place, with the tags that the kernel had taken out.
func TestRingFrames(t *testing.T) {
	p := testRing(1).at(0)
	want := frame(kernel.Broadcast, "payload")
	virtio := vnet.Header{Flags: 1, ChecksumStart: 34, ChecksumOffset: 16}
	const tagged = unix.TP_STATUS_VLAN_VALID
	for _, c := range []struct {
		status uint32
		tag    []byte
	}{
		{0, nil},
		{tagged, []byte{0x81, 0, 0, 7}},
		{tagged | unix.TP_STATUS_VLAN_TPID_VALID, []byte{0x88, 0xa8, 0, 7}},
	} {
		p.put(76, want, virtio, c.status, vlanTag{0x88a8, 7})
		var f ringFrame
		if !f.read(p) {
			t.Fatalf("status %#x: not read", c.status)
		}
		b := f.take(f.parts[:])
		clear(p[76:])
		whole := append(want[:12:12], append(c.tag, want[12:]...)...)
		if got := b.Flatten(); !bytes.Equal(got, whole) {
			t.Errorf("status %#x: took %x, want %x", c.status, got, whole)
		}
		b.Release()
		if start := virtio.ChecksumStart + uint16(len(c.tag)); f.virtio.ChecksumStart != start {
			t.Errorf("status %#x: the checksum starts at %d, want %d", c.status, f.virtio.ChecksumStart, start)
		}
	}
}

// A place whose description makes no sense has no frame.
func TestRingFramesThatAreNone(t *testing.T) {
	p := testRing(1).at(0)
	for _, c := range []struct{ begin, size int }{
		{0, 60}, {placeHeaderSize + vnet.Size - 1, 60}, {76, 0}, {76, 13}, {76, leastPlace - 75}, {leastPlace, 14}, {65535, 60},
	} {
		*p.header() = unix.Tpacket2Hdr{Status: unix.TP_STATUS_USER, Mac: uint16(c.begin), Snaplen: uint32(c.size), Len: uint32(c.size)}
		if f := new(ringFrame); f.read(p) {
			t.Errorf("%d bytes at %d of %d were read", c.size, c.begin, leastPlace)
		}
	}
}

// The places are gone round in order, and one that the queue had no room for a
// longer frame of is counted as dropped by the kernel.
func TestRingGoesRound(t *testing.T) {
	r := newTestReceiver()
	defer r.release()
	to := newRecorder()
	r.endpoint.attached.Store(kernel.NewAttachment(to))
	g := testRing(4)
	for i := range byte(10) {
		p := g.at(0)
		p.put(76, frame(kernel.Broadcast, string(rune('a'+i))), vnet.Header{}, 0, vlanTag{})
		if i == 5 {
			p.header().Len = 3000
		}
		if errno := r.receiveRing(g); errno != 0 {
			t.Fatalf("frame %d: %v", i, errno)
		}
		if p.status() != unix.TP_STATUS_KERNEL {
			t.Fatalf("frame %d: its place was not given back", i)
		}
		if i == 5 {
			continue
		}
		if got := to.next(t); got.frame[14] != 'a'+i {
			t.Errorf("frame %d: received %q", i, got.frame[14:])
		}
	}
	if errno := r.receiveRing(g); errno != unix.EAGAIN {
		t.Errorf("with nothing there: %v, want EAGAIN", errno)
	}
	if s := r.endpoint.stats.snapshot(); s.RXPackets != 9 || s.RXDroppedKernel != 1 {
		t.Errorf("counters %+v, want 9 frames and one dropped by the kernel", s)
	}
}

// A batch takes what comes while it goes on, and ends at a frame that came after an
// Attach, or after an address was added or removed.
func TestRingBatchSeesChanges(t *testing.T) {
	r := newTestReceiver()
	defer r.release()
	g, to := testRing(4), newRecorder()
	mac := kernel.MAC{2, 0, 0, 0, 0, 7}
	addr := tcpip.LinkAddress(mac[:])
	for _, c := range []struct {
		name   string
		change func() error
		want   Stats
	}{
		{"attach", func() error { r.endpoint.attached.Store(kernel.NewAttachment(to)); return nil }, Stats{RXDroppedAddress: 1}},
		{"add", func() error { return r.endpoint.filter.Add(addr) }, Stats{RXDroppedAddress: 1, RXPackets: 1}},
		{"remove", func() error { return r.endpoint.filter.Remove(addr) }, Stats{RXDroppedAddress: 2, RXPackets: 1}},
		{"detach", func() error { r.endpoint.attached.Store(nil); return nil }, Stats{RXDroppedAddress: 2, RXPackets: 1, RXDroppedUnattached: 1}},
	} {
		b := r.begin()
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		g.at(0).put(76, frame(mac, c.name), vnet.Header{}, 0, vlanTag{})
		if n, errno := r.takePlaces(g, &b); n != 0 || errno != 0 {
			t.Fatalf("%s: a batch from before took %d, %v", c.name, n, errno)
		}
		if errno := r.receiveRing(g); errno != 0 {
			t.Fatalf("%s: %v", c.name, errno)
		}
		s := r.endpoint.stats.snapshot()
		if got := (Stats{RXDroppedAddress: s.RXDroppedAddress, RXPackets: s.RXPackets, RXDroppedUnattached: s.RXDroppedUnattached}); got != c.want {
			t.Errorf("%s: counters %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := to.next(t); string(got.frame[14:]) != "add" {
		t.Errorf("received %q", got.frame[14:])
	}
}

// Frames that are longer than a place keep their order among those that are not.
func TestLongFramesKeepTheirOrder(t *testing.T) {
	const frames = 400
	p := newPair(t)
	e := p.open(Options{})
	p.near.Run("ip", "link", "set", "veth0", "mtu", "9000")
	p.peer.Run("ip", "link", "set", "veth1", "mtu", "9000")
	raw := p.raw()
	size := func(i int) int { return []int{60, 5000, 8000, 1500, 700}[i*i%11%5] }
	for i := range frames {
		payload := make([]byte, size(i))
		payload[0], payload[1] = byte(i>>8), byte(i)
		raw.send(etherFrame(kernel.Broadcast, testProtocol, payload))
	}
	r := attach(e)
	for i := range frames {
		got := r.next(t).frame[14:]
		if n := int(got[0])<<8 | int(got[1]); n != i || len(got) != size(i) {
			t.Fatalf("received frame %d of %d bytes, want %d of %d", n, len(got), i, size(i))
		}
	}
	if s := e.Stats(); s.RXDroppedKernel != 0 || s.RXErrors != 0 {
		t.Errorf("counters %+v, want no drops", s)
	}
}
