package wire_test

import (
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

func TestFilter(t *testing.T) {
	const own, more, other = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01"), tcpip.LinkAddress("\x02\x00\x00\x00\x00\x02"), tcpip.LinkAddress("\x02\x00\x00\x00\x00\x03")
	x := newBench(t, wire.Options{B: wire.EndOptions{Address: own}})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	// passes writes a frame for each of four kinds of address.
	passes := func() []tcpip.PacketType {
		for _, dst := range []tcpip.LinkAddress{own, more, other, "\xff\xff\xff\xff\xff\xff", "\x33\x33\x00\x00\x00\x01"} {
			x.write(t, linktest.Ethernet(dst, "\x02\x00\x00\x00\x00\x09", 0x88b5, nil))
		}
		var types []tcpip.PacketType
		for _, d := range x.sink.Drain() {
			types = append(types, d.PktType)
		}
		return types
	}
	const host, stranger, broadcast, multicast = tcpip.PacketHost, tcpip.PacketOtherHost, tcpip.PacketBroadcast, tcpip.PacketMulticast
	for _, step := range []struct {
		name   string
		change func()
		want   []tcpip.PacketType
	}{
		{"promiscuous from the start", func() {}, []tcpip.PacketType{host, stranger, stranger, broadcast, multicast}},
		{"own address", func() { must(x.b.SetPromiscuous(false)) }, []tcpip.PacketType{host, broadcast, multicast}},
		{"one more", func() { must(x.b.AddLinkAddress(more)) }, []tcpip.PacketType{host, host, broadcast, multicast}},
		{"one less", func() { must(x.b.RemoveLinkAddress(more)); must(x.b.RemoveLinkAddress(other)) }, []tcpip.PacketType{host, broadcast, multicast}},
		{"other own", func() { x.b.SetLinkAddress(other) }, []tcpip.PacketType{host, broadcast, multicast}},
		{"promiscuous", func() { must(x.b.SetPromiscuous(true)) }, []tcpip.PacketType{stranger, stranger, host, broadcast, multicast}},
	} {
		step.change()
		if got := passes(); !slices.Equal(got, step.want) {
			t.Errorf("%s: passed %v, want %v", step.name, got, step.want)
		}
	}
	if n := x.b.Stats().Rx.Filtered; n != 2+1+2+2 {
		t.Errorf("Rx.Filtered = %d, want 7", n)
	}
}

func TestBadAddresses(t *testing.T) {
	a, _ := newWire(t, wire.Options{A: wire.EndOptions{Address: "\x02\x00\x00\x00\x00\x01"}})
	for _, addr := range []tcpip.LinkAddress{"", "abc", "\x02\x00\x00\x00\x00\x01\x02", "\x01\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff"} {
		if a.SetLinkAddress(addr); a.LinkAddress() != "\x02\x00\x00\x00\x00\x01" {
			t.Fatalf("SetLinkAddress(%v) was not ignored", addr)
		}
	}
	for _, addr := range []tcpip.LinkAddress{"", "abc", "abcdefg"} {
		if a.AddLinkAddress(addr) == nil || a.RemoveLinkAddress(addr) == nil {
			t.Errorf("address %v was accepted", addr)
		}
	}
}
