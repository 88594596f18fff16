package vlan_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"
	"bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// The ARP monitor asks its targets where they are: without a tag, in VLAN 10, and in
// VLAN 20 of VLAN 10, from the address that the stack has there. While they answer
// no slave fails; when those in VLANs fall silent with the others, the active one
// does (T26, T29).
func TestProbesInVLANs(t *testing.T) {
	clock := faketime.NewManualClock()
	b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	trunk := newTrunk(t, b)
	links := map[string]*linktest.Recorder{}
	for _, name := range []string{"eth0", "eth1"} {
		links[name] = linktest.NewRecorder(linktest.RecorderOptions{})
		if err := b.Enslave(name, links[name], bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SetOptions(map[string]string{"miimon": "0", "arp_interval": "200", "arp_validate": "active",
		"arp_ip_target": "10.1.0.254,10.10.0.254,10.20.0.254", "arp_all_targets": "all"}); err != nil {
		t.Fatal(err)
	}
	host, err := stack.NewHost(trunk, stack.HostOptions{Clock: clock, DADTransmits: -1,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24")}})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	ten := add(t, trunk, q(10), vlan.Options{})
	inner := newTrunk(t, ten)
	twenty := add(t, inner, q(20), vlan.Options{LinkAddress: ownMAC})
	for address, ep := range map[string]netstack.LinkEndpoint{"10.10.0.1/24": inner, "10.20.0.1/24": twenty} {
		if _, err := host.AddLink(address[:5], ep, stack.LinkOptions{Addresses: []netip.Prefix{netip.MustParsePrefix(address)}}); err != nil {
			t.Fatal(err)
		}
	}

	seen := map[string]int{}
	// pass has time pass, while targets for which answers returns true answer.
	pass := func(d time.Duration, answers func(target string) bool) {
		clear(seen)
		for end := time.Duration(0); end < d; end += 20 * time.Millisecond {
			clock.Advance(20 * time.Millisecond)
			for _, r := range links {
				for _, w := range r.Drain() {
					if key, reply := answerTo(w.Frame); key != "" {
						seen[key]++
						if answers(key) {
							r.Inject(reply)
						}
					}
				}
			}
		}
	}
	failures := func() (n uint32) {
		for _, s := range b.Status().Slaves {
			n += s.LinkFailureCount
		}
		return n
	}
	all := func(string) bool { return true }
	pass(time.Second, all) // the first slave is found
	before := failures()
	pass(10*time.Second, all)
	if n := failures() - before; n != 0 {
		t.Errorf("%d failures while all targets answer", n)
	}
	const plain, single, double = "10.1.0.1 asks 10.1.0.254", "8100000a 10.10.0.1 asks 10.10.0.254", "8100000a 81000014 10.20.0.1 asks 10.20.0.254"
	for _, key := range []string{plain, single, double} {
		if seen[key] < 45 {
			t.Errorf("%q %d times in 10 s, want 50", key, seen[key])
		}
	}
	if len(seen) != 3 {
		t.Errorf("seen are %v", seen)
	}
	pass(3*time.Second, func(key string) bool { return key == plain })
	if failures() == before {
		t.Error("no failure though targets in VLANs are silent")
	}
}

// answerTo describes an ARP request by its tags, sender and target, and returns the
// answer; it returns nothing for another frame.
func answerTo(frame []byte) (key string, reply []byte) {
	at := 12
	var tags [][]byte
	for bytes.Equal(frame[at:at+2], []byte{0x81, 0}) {
		tags = append(tags, frame[at:at+4])
		at += 4
	}
	if binary.BigEndian.Uint16(frame[at:]) != linktest.EtherTypeARP {
		return "", nil
	}
	request := header.ARP(frame[at+2:])
	if request.Op() != header.ARPRequest || bytes.Equal(request.ProtocolAddressSender(), request.ProtocolAddressTarget()) {
		return "", nil
	}
	sender, _ := netip.AddrFromSlice(request.ProtocolAddressSender())
	target, _ := netip.AddrFromSlice(request.ProtocolAddressTarget())
	mac := tcpip.LinkAddress(request.HardwareAddressSender())
	reply = linktest.Ethernet(mac, peerMAC, linktest.EtherTypeARP, linktest.ARP(linktest.ARPReply, peerMAC, target, mac, sender))
	for i := len(tags) - 1; i >= 0; i-- {
		key = hex.EncodeToString(tags[i]) + " " + key
		reply = linktest.VLAN(reply, link.TagProtocolQ, binary.BigEndian.Uint16(tags[i][2:]))
	}
	return key + sender.String() + " asks " + target.String(), reply
}
