package bonding_test

import (
	"net/netip"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"
	"bondstack/link/wire"
	"bondstack/stack"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// taggedHost is a host with the interfaces bond0, VLAN 10 and, in it, VLAN 20:
// 10.0.N.H for interface N of host H.
func taggedHost(t *testing.T, below netstack.LinkEndpoint, h byte) *stack.Host {
	t.Helper()
	trunk := newVLANTrunk(t, below)
	addresses := func(n byte) []netip.Prefix {
		return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, n, h}), 24), netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 14: n, 15: h}), 120)}
	}
	host, err := stack.NewHost(trunk, stack.HostOptions{Addresses: addresses(0), DADTransmits: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	outer, err := trunk.Add(link.VLANTag{Protocol: 0x8100, ID: 10}, vlan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nested := newVLANTrunk(t, outer)
	inner, err := nested.Add(link.VLANTag{Protocol: 0x8100, ID: 20}, vlan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n, ep := range []netstack.LinkEndpoint{nested, inner} {
		if _, err := host.AddLink([]string{"bond0.10", "bond0.10.20"}[n], ep, stack.LinkOptions{Addresses: addresses(byte(n + 1))}); err != nil {
			t.Fatal(err)
		}
	}
	return host
}

func newVLANTrunk(t *testing.T, below netstack.LinkEndpoint) *vlan.Trunk {
	t.Helper()
	trunk, err := vlan.NewTrunk(below)
	if err != nil {
		t.Fatal(err)
	}
	return trunk
}

// With netstack above: targets on the bond, on a VLAN device and on one stacked
// on that, of both families, and a link-local one, are each asked with the tags
// of their way, and each answer counts (T26, T28, T29).
func TestARPTargetsBehindVLANs(t *testing.T) {
	linktest.CheckGoroutines(t)
	near, far, err := wire.New(wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(far.Close)
	addr := netip.MustParseAddr
	farMAC := far.LinkAddress()
	linkLocal := netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: farMAC[0] ^ 2, 9: farMAC[1], 10: farMAC[2], 11: 0xff, 12: 0xfe, 13: farMAC[3], 14: farMAC[4], 15: farMAC[5]})
	b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup, ARPInterval: 20 * time.Millisecond, ARPMissedMax: 20,
		ARPIPTargets: []netip.Addr{addr("10.0.0.2"), addr("10.0.1.2"), addr("10.0.2.2")},
		NSIP6Targets: []netip.Addr{addr("fd00::2"), addr("fd00::102"), addr("fd00::202"), linkLocal},
		ARPValidate:  bonding.ValidateAll, ARPAllTargets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Enslave("eth0", near, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	taggedHost(t, far, 2)
	taggedHost(t, b, 1)
	up := func() bool { return b.Status().Slaves[0].MIIStatus == "up" }
	for end := time.Now().Add(hostPatience); !up(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never up: %+v", b.Status().Slaves)
		}
	}
	// Up at first is what each slave is; it stays so only if all are heard.
	failures := b.Status().Slaves[0].LinkFailureCount
	sent := b.Status().Counters.TxPackets
	for end := time.Now().Add(hostPatience); b.Status().Counters.TxPackets < sent+7*50; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no more probes: %+v", b.Status().Slaves)
		}
	}
	if n := b.Status().Slaves[0].LinkFailureCount - failures; n != 0 || !up() {
		t.Errorf("failed %d times in 50 intervals, up is %t", n, up())
	}
	if err := b.SetOption("ns_ip6_target", "+fd00::99"); err != nil { // there is nobody
		t.Fatal(err)
	}
	for end := time.Now().Add(hostPatience); up(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("up, though a target is not there")
		}
	}
}
