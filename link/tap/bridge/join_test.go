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

// Segments that came together go to the device as one packet, and what was with
// them goes as it is.
func TestJoined(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
	flow := linktest.Flow4(1)
	flow.DstMAC = r.bond.LinkAddress()
	var frames [][]byte
	var whole []byte
	for i := range 3 {
		payload := bytes.Repeat([]byte{byte('a' + i)}, 1000)
		b := flow.TCP(linktest.Segment{Seq: uint32(1000 * i), Payload: payload})
		binary.BigEndian.PutUint16(b[14+4:], uint16(i))
		b[24], b[25] = 0, 0
		binary.BigEndian.PutUint16(b[24:], ^checksum.Checksum(b[14:34], 0))
		frames = append(frames, b)
		whole = append(whole, payload...)
	}
	udp := flow.UDP([]byte("between"))
	r.links[0].InjectList(frames[0], udp, frames[1], frames[2])
	got := r.device.Drain()
	if len(got) != 2 || !bytes.Equal(got[1].Frame, udp) {
		t.Fatalf("%d frames came, want a packet and a datagram", len(got))
	}
	if g := got[0]; !bytes.Equal(g.Frame[54:], whole) || g.GSO.Type != stack.GSOTCPv4 || g.GSO.MSS != 1000 || !g.GSO.NeedsCsum {
		t.Errorf("a packet of %d bytes, %+v", len(g.Frame), g.GSO)
	}
	if n := r.bridge.Stats().In; n != 4 {
		t.Errorf("%d frames counted, want 4", n)
	}
}
