package main

import (
	"os/exec"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
)

// A kernel's bridge that snoops learns by the reports after each failover behind
// which port the groups are now.
func TestKernelBridgeLearnsGroups(t *testing.T) {
	if _, err := exec.LookPath("bridge"); err != nil {
		t.Skip("needs root and the tool bridge: ", err)
	}
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	b, h := l.host(bonding.Options{Mode: bonding.ActiveBackup, Primary: "s0"}, slaveSpec{"packet", "s0"}, slaveSpec{"packet", "s1"})
	for group, proto := range map[tcpip.Address]tcpip.NetworkProtocolNumber{
		tcpip.AddrFrom4([4]byte{239, 1, 2, 3}):                 ipv4.ProtocolNumber,
		tcpip.AddrFrom16([16]byte{0: 0xff, 1: 0x15, 15: 0x77}): ipv6.ProtocolNumber,
	} {
		if err := h.Stack().JoinGroup(proto, h.NICID(), group); err != nil {
			t.Fatal(err)
		}
	}
	behind := func(port string) {
		t.Helper()
		for _, group := range []string{"239.1.2.3", "ff15::77", "ff02::1:ff00:2"} { // the last is that of fd00:9::2
			eventually(t, group+" is behind "+port, func() bool {
				return strings.Contains(l.far.Run("bridge", "mdb", "show", "dev", "br0"), "port "+port+" grp "+group+" ")
			})
		}
	}
	behind("p0")
	for range 3 {
		l.far.Down("p0")
		eventually(t, "s1 is active", func() bool { return b.Status().ActiveSlave == "s1" })
		behind("p1")
		l.far.Up("p0")
		eventually(t, "s0 is active", func() bool { return b.Status().ActiveSlave == "s0" })
		behind("p0")
		l.far.Down("p1") // a port that goes down loses its groups
		l.far.Up("p1")
		eventually(t, "s1 is up", func() bool { return b.Status().Slaves[1].MIIStatus == "up" })
	}
}
