package bridge_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// segments returns n segments of 1,000 bytes that follow each other.
func segments(flow linktest.Flow, n int) (frames [][]byte) {
	for i := range n {
		b := flow.TCP(linktest.Segment{Seq: uint32(1000 * i), Payload: bytes.Repeat([]byte{byte('a' + i)}, 1000)})
		binary.BigEndian.PutUint16(b[14+4:], uint16(i))
		b[24], b[25] = 0, 0
		binary.BigEndian.PutUint16(b[24:], ^checksum.Checksum(b[14:34], 0))
		frames = append(frames, b)
	}
	return frames
}

// Segments that came together go to the device as one packet, and what was with
// them goes as it is.
func TestJoined(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
	flow := linktest.Flow4(1)
	flow.DstMAC = r.bond.LinkAddress()
	frames := segments(flow, 3)
	udp := flow.UDP([]byte("between"))
	r.links[0].InjectList(frames[0], udp, frames[1], frames[2])
	got := r.device.Drain()
	if len(got) != 2 || !bytes.Equal(got[1].Frame, udp) {
		t.Fatalf("%d frames came, want a packet and a datagram", len(got))
	}
	whole := append(append(bytes.Clone(frames[0][54:]), frames[1][54:]...), frames[2][54:]...)
	if g := got[0]; !bytes.Equal(g.Frame[54:], whole) || g.GSO.Type != stack.GSOTCPv4 || g.GSO.MSS != 1000 || !g.GSO.NeedsCsum {
		t.Errorf("a packet of %d bytes, %+v", len(g.Frame), g.GSO)
	}
	if n := r.bridge.Stats().In; n != 4 {
		t.Errorf("%d frames counted, want 4", n)
	}
}

// Segments that the device hands over one by one go out as one packet to a link
// that takes it, and to one that does not as they were.
func TestJoinedOnTheWayOut(t *testing.T) {
	for slave, want := range []int{1, 3} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
		r.do([]string{"eth0", "eth1"}[slave])
		r.drain()
		flow := linktest.Flow4(1)
		flow.SrcMAC = r.bond.LinkAddress()
		frames := segments(flow, 3)
		r.device.InjectList(frames...)
		got := r.links[slave].Drain()
		if len(got) != want {
			t.Fatalf("eth%d was given %d packets, want %d", slave, len(got), want)
		}
		if want == 1 {
			if g := got[0].GSO; g.Type != stack.GSOTCPv4 || g.MSS != 1000 || len(got[0].Frame) != 54+3000 {
				t.Errorf("a packet of %d bytes, %+v", len(got[0].Frame), g)
			}
			continue
		}
		for i := range got {
			if !bytes.Equal(got[i].Frame, frames[i]) {
				t.Errorf("segment %d has changed", i)
			}
		}
	}
}
