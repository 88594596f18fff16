package stack_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"

	"bondstack/link/wire"
	"bondstack/stack"
)

const recorderMAC = tcpip.LinkAddress("\x02\x00\x00\xaa\xbb\xcc")

// newRecorded makes a host on a recorder, with no duplicate address detection
// unless change says so.
func newRecorded(t testing.TB, loop bool, change func(*stack.HostOptions)) (*stack.Host, *recorder) {
	t.Helper()
	checkGoroutines(t)
	ep, other := newWire(t, wire.Options{A: wire.EndOptions{Address: recorderMAC}})
	t.Cleanup(other.Close)
	opts := stack.HostOptions{DADTransmits: -1}
	if change != nil {
		change(&opts)
	}
	r := &recorder{LinkEndpoint: ep, loop: loop}
	return newHost(t, r, opts), r
}

// The frames are compared as a whole with ones that were written by hand from
// the RFCs (826 and 5227; 4861 and 4443). The checksums were summed apart.
func TestAnnouncements(t *testing.T) {
	h, r := newRecorded(t, false, func(o *stack.HostOptions) {
		o.Addresses = []netip.Prefix{prefix("10.0.0.1/24"), prefix("10.9.9.9/16"), prefix("fd00::1/64")}
	})
	notify := r.subscriber()
	if notify == nil {
		t.Fatal("the host did not subscribe")
	}
	arp := func(ip string) string {
		return "ffffffffffff" + "020000aabbcc" + "0806" +
			"0001" + "0800" + "06" + "04" + "0001" +
			"020000aabbcc" + ip + "000000000000" + ip
	}
	na := func(ip, flags, sum string) string {
		return "333300000001" + "020000aabbcc" + "86dd" +
			"60000000" + "0020" + "3a" + "ff" + ip + "ff020000000000000000000000000001" +
			"88" + "00" + sum + flags + "000000" + ip + "0201" + "020000aabbcc"
	}
	const (
		linkLocal = "fe800000000000000000" + "00fffeaabbcc"
		global    = "fd000000000000000000000000000001"
	)
	check := func(want ...string) {
		t.Helper()
		r.take()
		notify()
		got := r.take() // all that the call sent is there when it returns
		if len(got) != len(want) {
			t.Fatalf("%d frames, want %d", len(got), len(want))
		}
		for i := range want {
			if hex.EncodeToString(got[i]) != want[i] {
				t.Errorf("frame %d:\ngot  %x\nwant %s", i, got[i], want[i])
			}
			checkAdvertisement(t, got[i])
		}
	}
	check(arp("0a000001"), arp("0a090909"), na(global, "20", "9e25"), na(linkLocal, "20", "243a"))

	// A router says so.
	h.Stack().SetNICForwarding(h.NICID(), ipv6.ProtocolNumber, true)
	check(arp("0a000001"), arp("0a090909"), na(global, "a0", "1e25"), na(linkLocal, "a0", "a439"))
	h.Stack().SetNICForwarding(h.NICID(), ipv6.ProtocolNumber, false)

	// Addresses come and go.
	if err := h.RemoveAddress(addr("10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	if err := h.AddAddress(prefix("10.7.0.1/24")); err != nil {
		t.Fatal(err)
	}
	check(arp("0a090909"), arp("0a070001"), na(global, "20", "9e25"), na(linkLocal, "20", "243a"))

	// The MAC is the link's at the time.
	r.SetLinkAddress("\x02\x00\x00\xaa\xbb\xcd")
	r.take()
	notify()
	for _, frame := range r.take() {
		if !bytes.Equal(frame[6:12], []byte("\x02\x00\x00\xaa\xbb\xcd")) || !bytes.Contains(frame[14:], frame[6:12]) {
			t.Errorf("frame %x, want sender MAC 02:00:00:aa:bb:cd in both places", frame)
		}
	}

	h.Close()
	if r.subscriber() != nil {
		t.Error("a closed host is still subscribed")
	}
	r.take()
	notify() // one that was under way
	if got := r.take(); len(got) != 0 {
		t.Errorf("a closed host sent %d frames", len(got))
	}
}

// checkAdvertisement sums an advertisement as its receiver does.
func checkAdvertisement(t *testing.T, frame []byte) {
	t.Helper()
	if len(frame) < header.EthernetMinimumSize+header.IPv6MinimumSize || frame[12] != 0x86 {
		return
	}
	ip := header.IPv6(frame[header.EthernetMinimumSize:])
	pseudo := header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, ip.SourceAddress(), ip.DestinationAddress(), ip.PayloadLength())
	if sum := checksum.Checksum(ip.Payload(), pseudo); sum != 0xffff {
		t.Errorf("checksum of %x is wrong: it sums to %#x", frame, sum)
	}
}

// Another host learns from an announcement where an address has gone. (Of IPv6
// alone: gVisor, which is the other host here, pays no heed to gratuitous ARP
// requests. Kernels do.)
func TestAnnouncementMoves(t *testing.T) {
	a, b := newPair(t)
	if err := ping(t, a, "fd00::2"); err != nil {
		t.Fatal(err)
	}
	// The address gets a new MAC, which only the announcement tells.
	const newMAC = tcpip.LinkAddress("\x02\x00\x00\x00\x12\x34")
	if err := b.Stack().SetNICAddress(b.NICID(), newMAC); err != nil {
		t.Fatal(err)
	}
	b.Announce()
	// The other host hears this after the announcement, and answers to where
	// it believes the address to be.
	if err := ping(t, b, "fd00::1"); err != nil {
		t.Errorf("Ping() from an address that moved = %v", err)
	}
}

// Tentative and duplicate addresses are not announced.
func TestAnnouncementTentative(t *testing.T) {
	h, r := newRecorded(t, false, func(o *stack.HostOptions) {
		o.DADTransmits = 1
		o.DADInterval = patience // never ends
		o.Addresses = []netip.Prefix{prefix("10.0.0.1/24"), prefix("fd00::1/64")}
	})
	r.take()
	r.subscriber()()
	frames := r.take()
	announced := 0
	for _, f := range frames {
		if f[12] == 0x08 && f[13] == 0x06 {
			announced++
		} else if f[20] == 0x3a && f[54] == 136 {
			t.Errorf("a tentative address was announced: %x", f)
		}
	}
	if announced != 1 {
		t.Errorf("%d ARP announcements, want 1", announced)
	}
	for _, a := range h.Addresses()[:1] {
		if a.State != stack.Tentative {
			t.Errorf("%s is %s, want tentative", a.Prefix, a.State)
		}
	}
}

// Announcements race with everything else.
func TestAnnouncementRace(t *testing.T) {
	h, r := newRecorded(t, false, nil)
	notify := r.subscriber()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}), 24)
			for range 50 {
				h.AddAddress(p)
				notify()
				h.RemoveAddress(p.Addr())
			}
		})
	}
	wg.Go(func() { h.Close() })
	wg.Wait()
}
