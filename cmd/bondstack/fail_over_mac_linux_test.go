package main

import (
	"strings"
	"testing"

	"bondstack/link/linktest"
)

// neighbor is the MAC address that the far kernel has for an address.
func (l *lan) neighbor(address string) string {
	l.t.Helper()
	words := strings.Fields(l.far.Run("ip", "neigh", "show", address, "dev", "br0"))
	for i, w := range words {
		if w == "lladdr" && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// With fail_over_mac=active a kernel's neighbour table follows the bond's
// address, by gratuitous ARP and unsolicited advertisements alone, and a
// download goes on over each failover and each return.
func TestKernelFollowsFailOverMAC(t *testing.T) {
	const size, rounds = 60 << 20, 3
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	dir, sum := writeRandom(t, size)
	i := l.run("--slave", "s0", "--slave", "s1", "--mode", "active-backup", "-o", "fail_over_mac=active", "-o", "primary=s0", "--serve", "http:80="+dir)
	i.await("both slaves up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	p := l.ping("fd00:9::2")
	d := l.curl("http://10.9.0.2/file")
	mac := map[string]string{"s0": l.near.HardwareAddress("s0").String(), "s1": l.near.HardwareAddress("s1").String()}
	follows := func(slave string) {
		t.Helper()
		i.await(slave+" is active", func(st instanceStatus) bool { return st.ActiveSlave == slave && st.MACAddress == mac[slave] })
		for _, address := range []string{"10.9.0.2", "fd00:9::2"} {
			eventually(t, address+" is at "+mac[slave], func() bool { return l.neighbor(address) == mac[slave] })
		}
		d.take(size / (2*rounds + 2))
		p.awaitReplies(5)
	}
	follows("s0")
	for range rounds {
		l.far.Down("p0")
		follows("s1")
		l.far.Up("p0")
		follows("s0")
	}
	d.finish(sum)
	if _, duplicates := p.stop(); duplicates != 0 {
		t.Errorf("%d duplicate replies", duplicates)
	}
	for slave, want := range mac {
		if got := l.near.HardwareAddress(slave).String(); got != want {
			t.Errorf("interface %s has %s, had %s", slave, got, want)
		}
	}
}

// With fail_over_mac=follow and --hardware-address the kernel's interfaces
// exchange their addresses at each failover, and have their own at the end.
func TestHardwareAddressFollows(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	own := [2]string{l.near.HardwareAddress("s0").String(), l.near.HardwareAddress("s1").String()}
	i := l.run("--slave", "s0", "--slave", "s1", "--mode", "active-backup", "-o", "fail_over_mac=follow", "--hardware-address")
	i.await("both slaves up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	want := func(when, s0, s1 string) {
		t.Helper()
		if got := [2]string{l.near.HardwareAddress("s0").String(), l.near.HardwareAddress("s1").String()}; got != [2]string{s0, s1} {
			t.Errorf("%s: the interfaces have %v, want %s and %s", when, got, s0, s1)
		}
		if got := i.status().MACAddress; got != own[0] {
			t.Errorf("%s: the bond has %s, want %s", when, got, own[0])
		}
	}
	want("start", own[0], own[1])
	p := l.ping("10.9.0.2")
	l.far.Down("p0")
	i.await("s1 is active", func(st instanceStatus) bool { return st.ActiveSlave == "s1" })
	want("failover", own[1], own[0])
	p.awaitReplies(5)
	p.stop()
	if err := i.end(); err != nil {
		t.Errorf("run = %v", err)
	}
	if got := [2]string{l.near.HardwareAddress("s0").String(), l.near.HardwareAddress("s1").String()}; got != own {
		t.Errorf("at the end the interfaces have %v, had %v", got, own)
	}
}
