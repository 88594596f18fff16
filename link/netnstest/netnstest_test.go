package netnstest

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
)

func TestVethCarriesTraffic(t *testing.T) {
	a, b := New(t), New(t)
	Veth(t, a, "left", b, "right")
	a.AddAddress("left", "10.9.0.1/24")
	b.AddAddress("right", "10.9.0.2/24")
	var l net.Listener
	b.Do(func() {
		var err error
		if l, err = net.Listen("tcp", "10.9.0.2:0"); err != nil {
			t.Fatalf("listen inside: %v", err)
		}
	})
	defer l.Close()
	a.Do(func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatalf("dial inside: %v", err)
		}
		c.Close()
	})
}

// An IPv6 address can be listened on at once, on a busy machine too.
func TestIPv6AddressIsNotTentative(t *testing.T) {
	ns := New(t)
	Veth(t, ns, "one", ns, "two")
	for i := range 50 {
		ip := fmt.Sprintf("fd00:9::%x", i+1)
		ns.AddAddress("one", ip+"/64")
		ns.Do(func() {
			l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
			if err != nil {
				t.Fatalf("address %d: %v", i, err)
			}
			l.Close()
		})
	}
}

func TestBridgeJoinsItsMembers(t *testing.T) {
	a, b, sw := New(t), New(t), New(t)
	Veth(t, a, "left", sw, "port0")
	Veth(t, b, "right", sw, "port1")
	sw.Bridge("br0", "port0", "port1")
	a.AddAddress("left", "10.9.0.1/24")
	b.AddAddress("right", "10.9.0.2/24")
	var l net.Listener
	b.Do(func() { l, _ = net.Listen("tcp", "10.9.0.2:0") })
	if l == nil {
		t.Fatal("no listener inside")
	}
	defer l.Close()
	a.Do(func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatalf("dial through the bridge: %v", err)
		}
		c.Close()
	})
}

func TestInterfaceDeeds(t *testing.T) {
	ns := New(t)
	Veth(t, ns, "one", ns, "two")
	ns.SetMTU("one", 1400)
	ns.Down("one")
	ns.Rename("one", "three")
	if out := ns.Run("ip", "link", "show", "three"); !strings.Contains(out, "mtu 1400") {
		t.Errorf("after renaming: %q has no mtu 1400", out)
	}
	if len(ns.HardwareAddress("three")) != 6 {
		t.Errorf("HardwareAddress(three) = %v, want 6 bytes", ns.HardwareAddress("three"))
	}
	ns.Delete("two")
	if out, err := ns.TryRun("ip", "link", "show", "three"); err == nil {
		t.Errorf("the pair is still there after its peer was deleted: %q", out)
	}
}

func TestDoComesHome(t *testing.T) {
	ns := New(t)
	before := interfaces(t)
	ns.Do(func() {
		if got := interfaces(t); got != "lo" {
			t.Errorf("inside: interfaces %q, want lo", got)
		}
	})
	if after := interfaces(t); after != before {
		t.Errorf("after Do: interfaces %q, want %q", after, before)
	}
}

func TestStartedCommandEndsWithTheTest(t *testing.T) {
	var cmd *exec.Cmd
	t.Run("inner", func(t *testing.T) {
		ns := New(t)
		cmd = exec.Command("sleep", "60")
		ns.Start(cmd)
	})
	if cmd != nil && cmd.ProcessState == nil {
		t.Error("the command still runs after its test")
	}
}

func interfaces(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}
