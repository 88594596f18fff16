package bonding

import (
	"testing"

	"bondstack/link/linktest"
)

// Any bytes are looked at without harm, and what lies in pieces is read as what
// lies in one.
func FuzzIsNeighbor(f *testing.F) {
	f.Add(linktest.Flow4(1).ARPRequest())
	f.Add(linktest.VLAN(linktest.Flow4(1).ARPReply(), 0x8100, 10))
	f.Add(linktest.Flow6(1).IP(58, []byte{135}))
	f.Add(linktest.Flow6(1).IP(58, []byte{136, 0, 0, 0}))
	f.Add(linktest.Flow6(1).UDP(nil))
	f.Fuzz(func(t *testing.T, frame []byte) {
		is := isNeighborFrame(frame)
		if len(frame) < 14 {
			if is {
				t.Errorf("%x is none", frame)
			}
			return
		}
		pkt := linktest.Packet(frame)
		defer pkt.DecRef()
		if got := isNeighbor(pkt); got != is {
			t.Errorf("%x is %t as a frame, %t as a packet", frame, is, got)
		}
	})
}
