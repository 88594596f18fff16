package main

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"bondstack/link/netnstest"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// With Linux's own driver as the partner, LACP brings both ports of the bond of a
// kernel device up, the kernel's programs exchange bytes over it, and go on when
// one link is cut.
func TestTapLACP(t *testing.T) {
	t.Parallel()
	l := newLACPLab(t, 2, "linux.uml")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("needs a TUN device: %v", err)
	}
	box := netnstest.New(t)
	p := &linuxPartner{l, "fast", stateFolder(t)}
	p.start()
	defer p.stop()
	l.us = launchTap(t, kindsIn(l.near), box, "--slave", "s0", "--slave", "s1", "--mode", "802.3ad",
		"-o", "lacp_rate=fast", "-o", "xmit_hash_policy=layer3+4", "--address", "10.9.0.2/24")
	eventually(t, "the instance answers", func() bool {
		_, err := askStatus(l.us.socket)
		return err == nil
	})
	l.awaitPorts(p, "at first", true, true)
	serveKernelEcho(t, box)
	if err := p.exchange(); err != nil {
		t.Errorf("exchange: %v", err)
	}
	l.cut(0)
	l.us.await("one port is left", func(st instanceStatus) bool { return st.up("s1") })
	if err := p.exchange(); err != nil {
		t.Errorf("exchange with one link: %v", err)
	}
	if out := box.Run("ethtool", "bond0"); !strings.Contains(out, "10000Mb/s") {
		t.Errorf("with one link ethtool tells %s", out)
	}
}

// kindsIn opens slaves in a namespace.
func kindsIn(ns *netnstest.Namespace) map[string]openFunc {
	kinds := map[string]openFunc{}
	for kind, open := range linkKinds {
		kinds[kind] = func(name string, o linkOptions) (ep netstack.LinkEndpoint, warnings []string, err error) {
			ns.Do(func() { ep, warnings, err = open(name, o) })
			return ep, warnings, err
		}
	}
	return kinds
}

// serveKernelEcho has the kernel's TCP in a namespace send back what it receives
// at port 7.
func serveKernelEcho(t testing.TB, at *netnstest.Namespace) {
	t.Helper()
	var l net.Listener
	at.Do(func() {
		var err error
		if l, err = net.Listen("tcp", ":7"); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { l.Close() })
	go serveEach(l, func(c net.Conn) { io.Copy(c, c) })
}
