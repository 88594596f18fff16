package vlan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	baseMAC = linktest.DefaultAddress
	ownMAC  = tcpip.LinkAddress("\x02\x00\x00\x00\x77\x01")
	peerMAC = tcpip.LinkAddress("\x02\x00\x00\x00\x99\x01")
)

func q(id uint16) link.VLANTag  { return link.VLANTag{Protocol: link.TagProtocolQ, ID: id} }
func ad(id uint16) link.VLANTag { return link.VLANTag{Protocol: link.TagProtocolAD, ID: id} }

func newTrunk(tb testing.TB, base stack.LinkEndpoint) *vlan.Trunk {
	tb.Helper()
	t, err := vlan.NewTrunk(base)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(t.Close)
	return t
}

func add(tb testing.TB, t *vlan.Trunk, tag link.VLANTag, o vlan.Options) *vlan.Device {
	tb.Helper()
	d, err := t.Add(tag, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Close)
	return d
}

// outgoing is a packet of a frame as netstack makes it: with no link header, and
// room for it.
func outgoing(ep stack.LinkEndpoint, frame []byte) *stack.PacketBuffer {
	model := linktest.Packet(frame)
	defer model.DecRef()
	network, transport := model.NetworkHeader().Slice(), model.TransportHeader().Slice()
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: int(ep.MaxHeaderLength()) + len(network) + len(transport),
		Payload:            model.Data().ToBuffer(),
	})
	if len(transport) > 0 {
		copy(pkt.TransportHeader().Push(len(transport)), transport)
	}
	if len(network) > 0 {
		copy(pkt.NetworkHeader().Push(len(network)), network)
	}
	pkt.NetworkProtocolNumber = model.NetworkProtocolNumber
	pkt.EgressRoute.RemoteLinkAddress = header.Ethernet(frame).DestinationAddress()
	return pkt
}

// send sends frames as netstack does: the link adds its header.
func send(tb testing.TB, ep stack.LinkEndpoint, frames ...[]byte) {
	tb.Helper()
	var list stack.PacketBufferList
	defer func() { list.DecRef() }()
	for _, f := range frames {
		pkt := outgoing(ep, f)
		ep.AddHeader(pkt)
		list.PushBack(pkt)
	}
	var given stack.PacketBufferList
	for _, pkt := range list.AsSlice() {
		given.PushBack(pkt)
	}
	if n, err := ep.WritePackets(given); n != len(frames) || err != nil {
		tb.Errorf("WritePackets() = %d, %v, want %d", n, err, len(frames))
	}
}

// from returns a frame to the peer from an address.
func from(src tcpip.LinkAddress) []byte {
	f := linktest.Flow4(1)
	f.SrcMAC, f.DstMAC = src, peerMAC
	return f.UDP([]byte("payload"))
}

// to returns a frame from the peer for an address.
func to(dst tcpip.LinkAddress) []byte {
	f := linktest.Flow4(1)
	f.SrcMAC, f.DstMAC = peerMAC, dst
	return f.UDP([]byte("payload"))
}

func same(tb testing.TB, when string, got []linktest.Written, want ...[]byte) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Errorf("%s: %d frames, want %d", when, len(got), len(want))
		return
	}
	for i := range want {
		if !bytes.Equal(got[i].Frame, want[i]) {
			tb.Errorf("%s: frame %d:\n%x, want\n%x", when, i, got[i].Frame, want[i])
		}
	}
}

// What a device sends is the ordinary tagged frame, with both kinds of tag, with
// priorities, and stacked; what the trunk sends has no tag.
func TestSend(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	trunk := newTrunk(t, r)
	five := add(t, trunk, q(5), vlan.Options{})
	service := add(t, trunk, ad(5), vlan.Options{Priority: 3})
	own := add(t, trunk, q(6), vlan.Options{LinkAddress: ownMAC, PriorityOf: vlan.ClassSelector, Priority: 1})
	inner := newTrunk(t, service)
	stacked := add(t, inner, q(5), vlan.Options{Priority: 7})

	plain := from(baseMAC)
	expedited := from(ownMAC)
	expedited[15] = 46 << 2 // DSCP EF
	header.IPv4(expedited[14:]).SetChecksum(0)
	header.IPv4(expedited[14:]).SetChecksum(^header.IPv4(expedited[14:]).CalculateChecksum())
	for _, tt := range []struct {
		name        string
		ep          stack.LinkEndpoint
		frame, want []byte
		room        uint16
	}{
		{"trunk", trunk, plain, plain, 14},
		{"802.1Q", five, plain, linktest.VLAN(plain, 0x8100, 5), 18},
		{"802.1ad", service, plain, linktest.VLAN(plain, 0x88a8, 3<<13|5), 18},
		{"own address", own, expedited, linktest.VLAN(expedited, 0x8100, 5<<13|6), 18},
		{"stacked", stacked, plain, linktest.VLAN(linktest.VLAN(plain, 0x8100, 7<<13|5), 0x88a8, 3<<13|5), 22},
		{"trunk on a device", inner, plain, linktest.VLAN(plain, 0x88a8, 3<<13|5), 18},
	} {
		send(t, tt.ep, tt.frame, tt.frame)
		same(t, tt.name, r.Drain(), tt.want, tt.want)
		if got := tt.ep.MaxHeaderLength(); got != tt.room {
			t.Errorf("%s: MaxHeaderLength() = %d, want %d", tt.name, got, tt.room)
		}
		// Who makes the header himself makes a plain one; the bytes are the same.
		short := r.Calls().Write
		linktest.Write(tt.ep, tt.frame, tt.frame)
		same(t, tt.name+", plain", r.Drain(), tt.want, tt.want)
		if got := r.Calls().Write - short; got != 1 {
			t.Errorf("%s: a list was written in %d calls", tt.name, got)
		}
	}
	linktest.Write(five, plain[:13], plain)
	same(t, "short", r.Drain(), linktest.VLAN(plain, 0x8100, 5))
	if got := trunk.Stats().Short; got != 1 {
		t.Errorf("Short is %d", got)
	}
	five.Close()
	if n, err := linktest.Write(five, plain); n != 0 || !link.Gone(err) {
		t.Errorf("a closed device's WritePackets() = %d, %v", n, err)
	}
}

// A list of which the link takes a part has that part taken, also where frames of
// it were made anew.
func TestSendPart(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	five := add(t, newTrunk(t, r), q(5), vlan.Options{})
	plain := from(baseMAC)
	list := [][]byte{plain, linktest.VLAN(plain, 0x8100, 5), plain[:10], plain, plain}
	for take, want := range []int{0, 1, 3, 4, 5} {
		r.Script(linktest.WriteStep{Take: take, Err: &tcpip.ErrNoBufferSpace{}})
		n, err := linktest.Write(five, list...)
		if full := take == 4; n != want || (err == nil) != full {
			t.Errorf("the link takes %d: WritePackets() = %d, %v, want %d", take, n, err, want)
		}
	}
}

// A frame with other tags than the device's path, as a VLAN device on a bond on
// the device makes it, gets the device's outside.
func TestSendForeignTag(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	five := add(t, newTrunk(t, r), q(5), vlan.Options{})
	other := linktest.VLAN(from(baseMAC), 0x8100, 6)
	linktest.Write(five, other)
	same(t, "other tag", r.Drain(), linktest.VLAN(other, 0x8100, 5))
	if err := five.AddVLAN(q(6), five.LinkAddress); err != nil {
		t.Error(err)
	}
	if err := five.AddVLAN(q(5), five.LinkAddress); err == nil {
		t.Error("the device's own tag is accepted above a bond on it")
	}
}

// Frames go where their tags say, marked with what they are there, and what
// reaches nobody is counted.
func TestReceive(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	trunk := newTrunk(t, r)
	var up, five, zero, stacked linktest.Sink
	service := add(t, trunk, ad(5), vlan.Options{})
	inner := newTrunk(t, service)
	sinks := map[string]*linktest.Sink{"up": &up, "five": &five, "zero": &zero, "stacked": &stacked}
	trunk.Attach(&up)
	add(t, trunk, q(5), vlan.Options{}).Attach(&five)
	add(t, inner, q(5), vlan.Options{}).Attach(&stacked)
	plain := to(baseMAC)
	tag := func(frame []byte, tags ...uint16) []byte {
		for _, id := range tags {
			frame = linktest.VLAN(frame, 0x8100, id)
		}
		return frame
	}
	// check wants the frame without its first tags, or with a nil one, nowhere.
	check := func(name string, frame, want []byte, sink string, proto tcpip.NetworkProtocolNumber, stats vlan.Stats) {
		t.Helper()
		before := trunk.Stats()
		innerBefore := inner.Stats()
		r.Inject(frame)
		for s, at := range sinks {
			got := at.Drain()
			if s != sink {
				if len(got) != 0 {
					t.Errorf("%s: %s got %+v", name, s, got)
				}
				continue
			}
			if len(got) != 1 || got[0].Protocol != proto || !bytes.Equal(got[0].Frame, want) || got[0].LinkHeader != 14 {
				t.Errorf("%s: %s got %+v, want %#x with %x", name, s, got, proto, want)
			}
		}
		after := trunk.Stats()
		in := inner.Stats()
		if got := (vlan.Stats{
			UnknownVLAN: after.UnknownVLAN - before.UnknownVLAN + in.UnknownVLAN - innerBefore.UnknownVLAN,
			Truncated:   after.Truncated - before.Truncated + in.Truncated - innerBefore.Truncated,
			Nested:      after.Nested - before.Nested, OtherHost: after.OtherHost - before.OtherHost,
			Unattached: after.Unattached - before.Unattached + in.Unattached - innerBefore.Unattached,
		}); got != stats {
			t.Errorf("%s: counted %+v, want %+v", name, got, stats)
		}
	}
	const ip = header.IPv4ProtocolNumber
	check("untagged", plain, plain, "up", ip, vlan.Stats{})
	check("tagged", tag(plain, 5), plain, "five", ip, vlan.Stats{})
	check("priority bits", tag(plain, 7<<13|1<<12|5), plain, "five", ip, vlan.Stats{})
	check("priority tag", tag(plain, 6<<13), plain, "up", ip, vlan.Stats{})
	check("priority tag in front", tag(plain, 5, 0), plain, "five", ip, vlan.Stats{})
	check("priority tag behind", tag(plain, 0, 5), tag(plain, 0), "five", 0x8100, vlan.Stats{})
	check("eight priority tags", tag(plain, 0, 0, 0, 0, 0, 0, 0, 0), plain, "up", ip, vlan.Stats{})
	check("nine", tag(plain, 0, 0, 0, 0, 0, 0, 0, 0, 0), nil, "", 0, vlan.Stats{Nested: 1})
	check("unknown", tag(plain, 4094), tag(plain, 4094), "up", 0x8100, vlan.Stats{UnknownVLAN: 1})
	check("unknown behind a priority tag", tag(plain, 4094, 0), tag(plain, 4094), "up", 0x8100, vlan.Stats{UnknownVLAN: 1})
	check("802.1ad, stacked", linktest.VLAN(tag(plain, 5), 0x88a8, 5), plain, "stacked", ip, vlan.Stats{})
	check("802.1ad, nobody inside", linktest.VLAN(tag(plain, 6), 0x88a8, 5), nil, "", 0, vlan.Stats{UnknownVLAN: 1})
	check("802.1ad alone", linktest.VLAN(plain, 0x88a8, 5), nil, "", 0, vlan.Stats{Unattached: 1})
	for n := 14; n < 18; n++ {
		check("cut off", tag(plain, 5)[:n], nil, "", 0, vlan.Stats{Truncated: 1})
	}
	check("nothing behind the tag", tag(plain, 5)[:18], plain[:14], "five", ip, vlan.Stats{})

	// A device for VLAN 0 takes the priority tagged.
	add(t, trunk, q(0), vlan.Options{}).Attach(&zero)
	check("priority tag", tag(plain, 6<<13), plain, "zero", ip, vlan.Stats{})

	trunk.Device(q(5)).Attach(nil)
	check("detached", tag(plain, 5), nil, "", 0, vlan.Stats{Unattached: 1})
	trunk.Device(q(5)).Close()
	check("closed", tag(plain, 5), tag(plain, 5), "up", 0x8100, vlan.Stats{UnknownVLAN: 1})
	trunk.Attach(nil)
	check("no NIC", plain, nil, "", 0, vlan.Stats{Unattached: 1})
	check("no NIC, unknown", tag(plain, 9), nil, "", 0, vlan.Stats{UnknownVLAN: 1})
}

// Each gets the unicast frames for its own address, and nobody else's.
func TestAddresses(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	trunk := newTrunk(t, r)
	follows, own := add(t, trunk, q(1), vlan.Options{}), add(t, trunk, q(2), vlan.Options{LinkAddress: ownMAC})
	const more = tcpip.LinkAddress("\x02\x00\x00\x00\x77\x02")
	if got := r.Calls().Filter; fmt.Sprint(got) != fmt.Sprint(map[tcpip.LinkAddress]int{ownMAC: 1}) {
		t.Errorf("the link was told %v", got)
	}
	eps := []stack.LinkEndpoint{trunk, follows, own}
	tags := []func([]byte) []byte{
		func(b []byte) []byte { return b },
		func(b []byte) []byte { return linktest.VLAN(b, 0x8100, 1) },
		func(b []byte) []byte { return linktest.VLAN(b, 0x8100, 2) },
	}
	var sinks [3]linktest.Sink
	for i, ep := range eps {
		ep.Attach(&sinks[i])
	}
	check := func(when string, dst tcpip.LinkAddress, want ...any) {
		t.Helper()
		for i := range eps {
			r.Inject(tags[i](to(dst)))
			got := sinks[i].Drain()
			if w, ok := want[i].(tcpip.PacketType); ok != (len(got) == 1) || ok && got[0].PktType != w {
				t.Errorf("%s, to %s: %d got %+v, want %v", when, dst, i, got, want[i])
			}
		}
	}
	const host, other = tcpip.PacketHost, tcpip.PacketOtherHost
	const multi = tcpip.LinkAddress("\x01\x00\x5e\x00\x00\x05")
	check("at first", baseMAC, host, host, nil)
	check("at first", ownMAC, nil, nil, host)
	check("at first", multi, tcpip.PacketMulticast, tcpip.PacketMulticast, tcpip.PacketMulticast)
	check("at first", header.EthernetBroadcastAddress, tcpip.PacketBroadcast, tcpip.PacketBroadcast, tcpip.PacketBroadcast)

	follows.AddLinkAddress(more)
	own.AddLinkAddress(more)
	check("added", more, nil, host, host)
	own.RemoveLinkAddress(more)
	check("removed", more, nil, host, nil)
	if got := r.Calls().Filter[more]; got != 1 {
		t.Errorf("the link has the address %d times, want once", got)
	}
	follows.RemoveLinkAddress(more)

	if err := own.SetPromiscuous(true); err != nil {
		t.Fatal(err)
	}
	check("one is promiscuous", peerMAC, nil, nil, other)
	check("one is promiscuous", baseMAC, host, host, other)
	trunk.SetPromiscuous(true)
	own.SetPromiscuous(false)
	check("the other is", ownMAC, other, nil, host)
	trunk.SetPromiscuous(false)
	if got := fmt.Sprint(r.Calls().Promiscuous); got != "[true false]" {
		t.Errorf("the link was told %s", got)
	}

	// The link's address changes: those that follow it do.
	r.SetLinkAddress(peerMAC)
	if follows.LinkAddress() != peerMAC || own.LinkAddress() != ownMAC || trunk.LinkAddress() != peerMAC {
		t.Errorf("addresses are %s, %s, %s", follows.LinkAddress(), own.LinkAddress(), trunk.LinkAddress())
	}
	check("new address", peerMAC, host, host, nil)
	// An own address that is the link's is both's.
	own.SetLinkAddress(peerMAC)
	check("the link's", peerMAC, host, host, host)
	check("old own", ownMAC, other, other, nil) // nobody has it: the link decides
	own.SetLinkAddress("")
	if got := r.Calls().Filter; len(got) != 0 {
		t.Errorf("the link still has %v", got)
	}
	own.SetLinkAddress("\x01\x00\x00\x00\x00\x01")
	if own.LinkAddress() != peerMAC {
		t.Errorf("a group's address was taken: %s", own.LinkAddress())
	}
	own.SetLinkAddress(ownMAC)
	own.Close()
	if got := r.Calls().Filter; len(got) != 0 {
		t.Errorf("after Close the link still has %v", got)
	}
}

// fullFilter is a link that has no room for another address.
type fullFilter struct{ *linktest.Recorder }

func (fullFilter) AddLinkAddress(tcpip.LinkAddress) error { return fmt.Errorf("no room") }

// Where the link takes no further address it is made promiscuous, and nobody gets
// the frames that this lets through.
func TestAddressByPromiscuity(t *testing.T) {
	r := fullFilter{linktest.NewRecorder(linktest.RecorderOptions{})}
	trunk := newTrunk(t, r)
	own := add(t, trunk, q(2), vlan.Options{LinkAddress: ownMAC})
	var up, dev linktest.Sink
	trunk.Attach(&up)
	own.Attach(&dev)
	r.Inject(to(ownMAC))
	r.Inject(to(peerMAC))
	r.Inject(linktest.VLAN(to(peerMAC), 0x8100, 2))
	if len(up.Drain()) != 0 || len(dev.Drain()) != 0 || trunk.Stats().OtherHost != 3 {
		t.Errorf("frames for others were delivered: %+v", trunk.Stats())
	}
	r.Inject(linktest.VLAN(to(ownMAC), 0x8100, 2))
	r.Inject(to(baseMAC))
	if len(up.Drain()) != 1 || len(dev.Drain()) != 1 {
		t.Error("own frames were not delivered")
	}
	own.Close()
	if got := fmt.Sprint(r.Calls().Promiscuous); got != "[true false]" {
		t.Errorf("the link was told %s", got)
	}
}

// The MTU is the link's unless a smaller one is set, and never more (T62).
func TestMTU(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{MTU: 2000})
	trunk := newTrunk(t, r)
	follows, fixed := add(t, trunk, q(1), vlan.Options{}), add(t, trunk, q(2), vlan.Options{MTU: 1800})
	want := func(when string, f, x uint32) {
		t.Helper()
		if follows.MTU() != f || fixed.MTU() != x {
			t.Errorf("%s: MTUs are %d and %d, want %d and %d", when, follows.MTU(), fixed.MTU(), f, x)
		}
	}
	want("at first", 2000, 1800)
	if got := add(t, trunk, q(3), vlan.Options{MTUReserve: 4}).MTU(); got != 1996 {
		t.Errorf("with a reserve of 4 the MTU is %d, want 1996", got)
	}
	trunk.SetMTU(1500)
	want("a smaller link", 1500, 1500)
	r.SetMTU(2000)
	want("as before", 2000, 1800)
	fixed.SetMTU(2001)
	fixed.SetMTU(67)
	want("out of range", 2000, 1800)
	fixed.SetMTU(68)
	want("the least", 2000, 68)
	if least, greatest := fixed.MTURange(); least != 68 || greatest != 2000 {
		t.Errorf("MTURange() = %d, %d", least, greatest)
	}
}

func TestErrors(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	if _, err := vlan.NewTrunk(nil); err == nil {
		t.Error("a nil link is taken")
	}
	r.Attach(&linktest.Sink{})
	if _, err := vlan.NewTrunk(r); err == nil || !strings.Contains(err.Error(), "attached already") {
		t.Errorf("an attached link: %v", err)
	}
	r.Attach(nil)
	trunk := newTrunk(t, r)
	d := add(t, trunk, q(5), vlan.Options{})
	for _, tt := range []struct {
		tag  link.VLANTag
		o    vlan.Options
		want string
	}{
		{q(5), vlan.Options{}, "VLAN 5: there is a device already"},
		{q(4095), vlan.Options{}, "VLAN ID 4095 is out of range: allowed are 0 to 4094"},
		{link.VLANTag{Protocol: 0x9100, ID: 5}, vlan.Options{}, "VLAN protocol 0x9100 is not known"},
		{q(6), vlan.Options{MTU: 1501}, "MTU 1501 is out of range: allowed are 68 to 1500"},
		{q(6), vlan.Options{MTU: 67}, "MTU 67"},
		{q(6), vlan.Options{MTUReserve: 65}, "MTU reserve 65 is out of range: allowed are 0 to 64"},
		{q(6), vlan.Options{Priority: 8}, "priority 8 is out of range: allowed are 0 to 7"},
		{q(6), vlan.Options{LinkAddress: "\x01\x00\x00\x00\x00\x01"}, "cannot be a device's"},
		{q(6), vlan.Options{LinkAddress: "x"}, "cannot be a device's"},
	} {
		if _, err := trunk.Add(tt.tag, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Add(%v, %+v) = %v, want %q", tt.tag, tt.o, err, tt.want)
		}
	}
	stacked := add(t, newTrunk(t, d), q(5), vlan.Options{})
	if _, err := vlan.NewTrunk(stacked); err == nil || !strings.Contains(err.Error(), "2 tags") {
		t.Errorf("a third tag: %v", err)
	}
	trunk.Close()
	if _, err := trunk.Add(q(7), vlan.Options{}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed trunk: %v", err)
	}
}

// The link is attached while something above it is, and closing goes down from
// the trunk and up from the link.
func TestLifecycle(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	trunk := newTrunk(t, r)
	a, b := add(t, trunk, q(1), vlan.Options{}), add(t, trunk, q(2), vlan.Options{})
	var sink linktest.Sink
	attached := func(when string, base, up, first bool) {
		t.Helper()
		if r.IsAttached() != base || trunk.IsAttached() != up || a.IsAttached() != first {
			t.Errorf("%s: attached are link %v, trunk %v, device %v", when, r.IsAttached(), trunk.IsAttached(), a.IsAttached())
		}
	}
	attached("at first", false, false, false)
	a.Attach(&sink)
	attached("a device", true, false, true)
	trunk.Attach(&sink)
	a.Attach(nil)
	attached("the trunk", true, true, false)
	trunk.Attach(nil)
	attached("none", false, false, false)
	a.Attach(&sink)
	b.Attach(&sink)
	closed := map[string]int{}
	for name, ep := range map[string]stack.LinkEndpoint{"trunk": trunk, "a": a, "b": b} {
		ep.SetOnCloseAction(func() { closed[name]++ })
	}
	b.Close()
	b.Close()
	b.Attach(&sink)
	attached("one left", true, false, true)
	if s := b.LinkState(); s.Up || s.Carrier || b.IsAttached() {
		t.Errorf("a closed device is %+v, attached %v", s, b.IsAttached())
	}
	trunk.Close()
	attached("closed", false, false, false)
	a.Attach(&sink)
	attached("closed", false, false, false)
	a.Close()
	trunk.Close()
	if c := r.Calls(); fmt.Sprint(closed) != "map[a:1 b:1 trunk:1]" || c.Close != 1 {
		t.Errorf("close actions %v, the link was closed %d times", closed, c.Close)
	}
}

// Somebody else closes the link, or the device below: the devices end.
func TestLinkIsClosed(t *testing.T) {
	b, err := bonding.New(bonding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trunk := newTrunk(t, b)
	d := add(t, trunk, q(1), vlan.Options{})
	stacked := add(t, newTrunk(t, d), q(1), vlan.Options{})
	told := 0
	stacked.SetOnCloseAction(func() { told++ })
	b.Close()
	if told != 1 || d.LinkState().Up || stacked.LinkState().Up {
		t.Errorf("told %d times, device up %v, stacked up %v", told, d.LinkState().Up, stacked.LinkState().Up)
	}
}

// Carrier follows the link (T61), and what it tells is passed on.
func TestState(t *testing.T) {
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	d := add(t, newTrunk(t, r), q(1), vlan.Options{})
	told := 0
	cancel := d.SubscribeLinkState(func() { told++ })
	r.SetCarrier(false)
	if s := d.LinkState(); told != 1 || s.Carrier || !s.Up || s.Speed != 10000 {
		t.Errorf("told %d times, state %+v", told, s)
	}
	r.SetCarrier(true)
	cancel()
	if told != 2 || !d.LinkState().Usable() || r.Subscribers() != 0 {
		t.Errorf("told %d times, state %+v, %d subscribers", told, d.LinkState(), r.Subscribers())
	}
	plain := add(t, newTrunk(t, linktest.Plain(r)), q(1), vlan.Options{})
	if plain.LinkState() != link.AlwaysUp || plain.SupportedGSO() != stack.GSONotSupported {
		t.Errorf("on a link that knows nothing: %+v, GSO %v", plain.LinkState(), plain.SupportedGSO())
	}
	plain.SubscribeLinkState(nil)()
	plain.SubscribeNotifyPeers(nil)()
	plain.SubscribeResendMemberships(nil)()
	plain.SubscribeChanges(nil)()
	plain.UseRoutes(nil)()
}
