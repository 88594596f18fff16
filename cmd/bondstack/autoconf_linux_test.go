package main

import (
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/stack"
)

// dnsmasq runs it in the far namespace: DHCP for 10.9.0.50 to .60, advertisements of
// fd00:9::/64, and the names in test. It ends with the test.
func (l *lan) dnsmasq() {
	l.t.Helper()
	path, err := exec.LookPath("dnsmasq")
	if err != nil {
		l.t.Skip("needs root and dnsmasq (apt-get install dnsmasq-base)")
	}
	dir := l.t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // it gives up root
		l.t.Fatal(err)
	}
	cmd := exec.Command(path, "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces", "--interface=br0",
		"--user=root", "--dhcp-range=10.9.0.50,10.9.0.60,1h", "--dhcp-authoritative", "--dhcp-no-override", "--no-ping",
		"--dhcp-leasefile="+filepath.Join(dir, "leases"), "--pid-file=",
		"--enable-ra", "--dhcp-range=fd00:9::,ra-only,64,1h", "--dhcp-option=option6:dns-server,[fd00:9::1]",
		"--domain=test", "--address=/web.test/10.9.0.1", "--address=/web.test/fd00:9::1")
	l.far.Do(func() { err = cmd.Start() })
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// TestAutoconfWithKernel: a host with nothing but slaves gets an address, routes and
// names of either IP version from dnsmasq, reaches what it names, keeps all that over
// a failover, and dnsmasq hears of it.
func TestAutoconfWithKernel(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	l.dnsmasq()
	b, h := l.hostWith(bonding.Options{Mode: bonding.ActiveBackup}, stack.HostOptions{DHCP: true, SLAAC: true, HostName: "box"},
		slaveSpec{"packet", "s0"}, slaveSpec{"packet", "s1"})
	if _, err := h.AwaitAddress(t.Context(), func(a stack.Address) bool {
		return netip.MustParsePrefix("fd00:9::/64").Contains(a.Prefix.Addr()) && a.State == stack.Assigned
	}); err != nil {
		t.Fatal(err)
	}
	lease, _ := h.Interfaces()[0].Lease()
	if want := netip.MustParsePrefix("10.9.0.0/24"); lease.Prefix.Masked() != want || !slices.Contains(lease.Search, "test") {
		t.Errorf("lease %+v, want an address of %s and the domain test", lease, want)
	}
	var listener net.Listener
	l.far.Do(func() {
		var err error
		if listener, err = net.Listen("tcp", ":80"); err != nil {
			t.Fatal(err)
		}
	})
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, c.RemoteAddr().(*net.TCPAddr).IP.String())
			c.Close()
		}
	}()
	for range 2 {
		for network, from := range map[string]netip.Prefix{"tcp4": lease.Prefix.Masked(), "tcp6": netip.MustParsePrefix("fd00:9::/64")} {
			c, err := h.Dial(network, "web:80") // in the domain test
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(c)
			c.Close()
			if a, bad := netip.ParseAddr(string(got)); err != nil || bad != nil || !from.Contains(a) {
				t.Errorf("%s to web came from %q, %v, want an address of %s", network, got, err, from)
			}
		}
		active := b.Status().ActiveSlave
		l.far.Down(peer(active))
		eventually(t, "failover", func() bool { return b.Status().ActiveSlave != active })
		l.far.Up(peer(active))
		if again, ok := h.Interfaces()[0].Lease(); !ok || again.Prefix != lease.Prefix {
			t.Errorf("after a failover the lease is %+v, %v, want %s", again, ok, lease.Prefix)
		}
	}
}

// TestRunWithDHCP: the command takes dhcp and auto for addresses, and shows them.
func TestRunWithDHCP(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	l.dnsmasq()
	i := start(t, l.kinds(), "--slave", "s0", "--slave", "s1", "--mode", "active-backup", "--address", "dhcp", "--address", "auto", "--serve", "echo:7")
	i.await("addresses", func(st instanceStatus) bool {
		have := map[bool]bool{}
		for _, a := range st.Addresses {
			if !a.Prefix.Addr().IsLinkLocalUnicast() && a.State == "assigned" {
				have[a.Prefix.Addr().Is4()] = true
			}
		}
		return have[true] && have[false]
	})
	for _, a := range i.status().Addresses {
		address := a.Prefix.Addr().String()
		if a.Prefix.Addr().IsLinkLocalUnicast() {
			address += "%br0"
		}
		if out := l.far.Run("ping", "-n", "-c", "1", address); !strings.Contains(out, " 1 received,") {
			t.Errorf("ping %s: %s", address, out)
		}
	}
}
