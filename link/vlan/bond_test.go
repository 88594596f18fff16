package vlan_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/vlan"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A bond is not made of VLAN devices that are on itself, in whatever way.
func TestNoLoops(t *testing.T) {
	newBond := func() *bonding.Bond {
		b, err := bonding.New(bonding.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	low, high := newBond(), newBond()
	trunk := newTrunk(t, low)
	device := add(t, trunk, q(5), vlan.Options{})
	if err := high.Enslave("eth0", add(t, newTrunk(t, device), q(6), vlan.Options{}), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, ep := range map[string]stack.LinkEndpoint{
		"device": add(t, trunk, q(7), vlan.Options{}), "trunk": trunk, "high": high, "above": add(t, newTrunk(t, high), q(8), vlan.Options{}),
	} {
		if err := low.Enslave(name, ep, bonding.SlaveOptions{}); !errors.Is(err, bonding.ErrLoop) {
			t.Errorf("the bond takes %s, which is on itself: %v", name, err)
		}
	}
}

// One bond has the VLAN devices of two links as slaves, another the links
// themselves, without their tags; a VLAN device is on the first. Nothing waits for
// ever, frames find their way, and all can be released (T64).
func TestBondsOnVLANs(t *testing.T) {
	var links []*linktest.Recorder
	var trunks []*vlan.Trunk
	newBond := func(name string) *bonding.Bond {
		b, err := bonding.New(bonding.Options{Name: name, Mode: bonding.ActiveBackup})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	tagged, plain := newBond("tagged"), newBond("plain")
	for i := range 2 {
		r := linktest.NewRecorder(linktest.RecorderOptions{Address: baseMAC, GSO: true})
		trunk := newTrunk(t, r)
		links, trunks = append(links, r), append(trunks, trunk)
		name := fmt.Sprintf("eth%d", i)
		if err := tagged.Enslave(name+".5", add(t, trunk, q(5), vlan.Options{}), bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := plain.Enslave(name, trunk, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	above := newTrunk(t, tagged)
	six := add(t, above, q(6), vlan.Options{LinkAddress: ownMAC})
	for _, trunk := range trunks {
		// A tag that a device below a bond has would be lost behind it; one of
		// the trunk's own would be the device's.
		if _, err := trunk.Add(q(5), vlan.Options{}); err == nil {
			t.Error("a second device of VLAN 5")
		}
	}
	if _, err := above.Add(q(5), vlan.Options{}); err == nil || !strings.Contains(err.Error(), "device below") {
		t.Errorf("the tag of the slaves, above them: %v", err)
	}
	if _, err := newTrunk(t, plain).Add(q(5), vlan.Options{}); err == nil || !strings.Contains(err.Error(), "there is a device already") {
		t.Errorf("the tag of a device on the slaves: %v", err)
	}

	var inTagged, inSix, inPlain linktest.Sink
	above.Attach(&inTagged)
	six.Attach(&inSix)
	plain.Attach(&inPlain)
	for _, b := range []*bonding.Bond{tagged, plain} {
		if err := b.SetOption("active_slave", b.Status().Slaves[0].Name); err != nil {
			t.Fatal(err)
		}
	}
	out := from(tagged.LinkAddress())
	send(t, above, out)
	same(t, "tagged", links[0].Drain(), linktest.VLAN(out, 0x8100, 5))
	send(t, six, from(ownMAC))
	same(t, "tagged twice", links[0].Drain(), linktest.VLAN(linktest.VLAN(from(ownMAC), 0x8100, 6), 0x8100, 5))
	send(t, plain, out)
	same(t, "plain", links[0].Drain(), out)

	check := func(what string, frame, want []byte, sink *linktest.Sink) {
		t.Helper()
		links[0].Inject(frame)
		links[1].Inject(frame) // by a backup
		got := sink.Drain()
		if len(got) != 1 || !bytes.Equal(got[0].Frame, want) || got[0].Protocol != header.IPv4ProtocolNumber {
			t.Errorf("%s: %+v was delivered", what, got)
		}
		for _, other := range []*linktest.Sink{&inTagged, &inSix, &inPlain} {
			if len(other.Drain()) != 0 {
				t.Errorf("%s: delivered elsewhere too", what)
			}
		}
	}
	in := to(tagged.LinkAddress())
	check("VLAN 5", linktest.VLAN(in, 0x8100, 5), in, &inTagged)
	check("VLAN 6 in 5", linktest.VLAN(linktest.VLAN(to(ownMAC), 0x8100, 6), 0x8100, 5), to(ownMAC), &inSix)
	check("no tag", in, in, &inPlain)

	// A GSO packet goes whole through both, and its tags are where they belong.
	pkt := linktest.GSOPacket(linktest.Flow4(1).TCP(linktest.Segment{Payload: make([]byte, 9000)}), 1000)
	defer pkt.DecRef()
	writePacket(t, six, pkt)
	if got := links[0].Drain(); len(got) != 1 || got[0].GSO.MSS != 1000 || !bytes.Equal(got[0].Frame[12:20], []byte{0x81, 0, 0, 5, 0x81, 0, 0, 6}) {
		t.Errorf("a GSO packet left as %d frames", len(got))
	}
	if err := tagged.Release("eth0.5"); err != nil {
		t.Fatal(err)
	}
	if err := plain.Release("eth1"); err != nil {
		t.Fatal(err)
	}
	above.Close()
	for _, trunk := range trunks {
		trunk.Close()
	}
}
