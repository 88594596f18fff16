package vlan_test

import (
	"bytes"
	"strings"
	"testing"

	"bondstack/link/linktest"
	"bondstack/link/vlan"
	"bondstack/link/wire"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writePacket writes one packet.
func writePacket(tb testing.TB, ep stack.LinkEndpoint, pkt *stack.PacketBuffer) {
	tb.Helper()
	var list stack.PacketBufferList
	list.PushBack(pkt)
	if n, err := ep.WritePackets(list); n != 1 || err != nil {
		tb.Errorf("WritePackets() = %d, %v", n, err)
	}
}

// A wire passes GSO packets with one and two tags whole, and completes their
// checksums where it has to.
func TestWireTakesTaggedGSO(t *testing.T) {
	for _, corrupt := range []float64{0, 1e-12} {
		a, b, err := wire.New(wire.Options{Synchronous: true, A: wire.EndOptions{Impairments: wire.Impairments{Corrupt: corrupt}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		var sink linktest.Sink
		b.Attach(&sink)
		if err := b.SetPromiscuous(true); err != nil {
			t.Fatal(err)
		}
		trunk := newTrunk(t, a)
		outer := add(t, trunk, ad(7), vlan.Options{})
		inner := add(t, newTrunk(t, outer), q(5), vlan.Options{})
		for _, f := range []linktest.Flow{linktest.Flow4(0), linktest.Flow6(0)} {
			whole := f.TCP(linktest.Segment{Payload: []byte(strings.Repeat("payload", 5001))})
			for _, tt := range []struct {
				ep   stack.LinkEndpoint
				want []byte
			}{
				{trunk, whole},
				{outer, linktest.VLAN(whole, 0x88a8, 7)},
				{inner, linktest.VLAN(linktest.VLAN(whole, 0x8100, 5), 0x88a8, 7)},
			} {
				pkt := linktest.GSOPacket(whole, 1000)
				writePacket(t, tt.ep, pkt)
				pkt.DecRef()
				got := sink.Drain()
				if len(got) != 1 || got[0].GSO.MSS != 1000 || got[0].GSO.NeedsCsum != (corrupt == 0) {
					t.Fatalf("%d packets came: %+v", len(got), got)
				}
				frame, want := got[0].Frame, tt.want
				if corrupt == 0 { // the checksum is begun only
					at := len(want) - len(whole) + 14 + int(got[0].GSO.L3HdrLen) + 16
					frame, want = bytes.Clone(frame), bytes.Clone(want)
					copy(frame[at:at+2], want[at:])
				}
				if !bytes.Equal(frame, want) {
					t.Errorf("corrupt %v: a packet of %d bytes came changed, as %d", corrupt, len(want), len(frame))
				}
			}
		}
	}
}
