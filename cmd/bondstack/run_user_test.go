package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"bondstack/cmd/bondstack/config"
	"bondstack/link/linktest"
)

// Slaves of kind user get names in the order of the command line, and their
// network's settings once.
func TestUserSlaves(t *testing.T) {
	for _, c := range []struct {
		slaves []string
		want   string // the names, or a part of the error
		ok     bool
	}{
		{[]string{"user:", "user:"}, "[user:user0 user:user1]", true},
		{[]string{"user:,loopback=on,mtu=9000", "user:wifi", "user:"}, "[user:user0 user:wifi user:user1]", true},
		{[]string{"user:user1", "user:", "user:"}, "[user:user1 user:user0 user:user2]", true},
		{[]string{"user:", "user:user0"}, "user0 is given twice", false},
		{[]string{"user:,loopback=on", "user:b,loopback=on"}, "user0 has", false},
		{[]string{"user:,loopback=maybe"}, "on and off", false},
		{[]string{"user:a-very-long-name"}, "15", false},
	} {
		var args []string
		for _, s := range c.slaves {
			args = append(args, "--slave", s)
		}
		var out bytes.Buffer
		s, _, done := parseRun(append(args, "--mode", "active-backup", "--address", "10.0.2.15/24"), &out, &out)
		got := out.String()
		if !done {
			got = fmt.Sprint(s.slaves)
		}
		if done == c.ok || c.ok && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q gives %s, want %s", c.slaves, got, c.want)
		}
	}
}

// With slaves of kind user alone the addresses are those of their network, unless
// something is said about that.
func TestUserNetworkByDefault(t *testing.T) {
	for args, want := range map[string]string{
		"--slave user: --slave user:":                        "[10.0.2.15/24 fd00::15/64] 10.0.2.2 fd00::2 [10.0.2.2]",
		"--slave user: --address 10.0.2.9/24":                "[10.0.2.9/24] invalid IP invalid IP []",
		"--slave user: --dns 10.0.2.2":                       "--address: missing",
		"--slave user:,gateway=10.9.0.1":                     "--address: missing",
		"--slave user: --slave eth1":                         "--address: missing",
		"--slave user: --address 10.0.2.9 --metrics nowhere": "nowhere",
	} {
		var out bytes.Buffer
		s, _, done := parseRun(append(strings.Fields(args), "--mode", "active-backup"), &out, &out)
		got := out.String()
		if !done {
			got = fmt.Sprint(s.host.Addresses, s.host.Gateway, s.host.Gateway6, s.host.DNS.Servers)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s gives %s, want %s", args, got, want)
		}
	}
}

// Who may not open a link is told what it needs, and what needs nothing.
func TestExplainRights(t *testing.T) {
	denied := fmt.Errorf("open a packet socket: %w", syscall.EPERM)
	for _, kind := range []string{defaultKind, "fdbased", "xdp"} {
		err := explainRights(kind, denied)
		for _, want := range []string{"packet socket: operation not permitted", "kind " + kind + " needs root", "CAP_NET_RAW", "--slave user:"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", kind, err, want)
			}
		}
	}
	for kind, err := range map[string]error{defaultKind: io.EOF, userKind: denied, fdKind: denied, "xdp": nil} {
		if got := explainRights(kind, err); got != err {
			t.Errorf("%s: %v becomes %v", kind, err, got)
		}
	}
}

// freePort returns a port of the loopback interface that was free just now.
func freePort(t *testing.T) string {
	t.Helper()
	l := listenLoopback(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// From the host into a bond of two links that need no rights, by a forward and by
// SOCKS, and out of it to the host again.
func TestUserLinks(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := listenLoopback(t)
	go serveEach(l, func(c net.Conn) { io.Copy(c, c) })
	_, server, _ := net.SplitHostPort(l.Addr().String())
	forward, socks := freePort(t), freePort(t)
	i := start(t, linkKinds, "--slave", "user:,loopback=on", "--slave", "user:", "--mode", "balance-rr",
		"--address", "10.0.2.15/24", "--forward", "host:tcp:"+forward+"=10.0.2.2:"+server, "--socks", socks)
	for at, hello := range map[string]string{
		forward: "",
		// CONNECT to a port of 10.0.2.2.
		socks: "\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x02\x02" + portBytes(l),
	} {
		c, err := net.Dial("tcp", "127.0.0.1:"+at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		if io.WriteString(c, hello); hello != "" {
			io.ReadFull(c, make([]byte, 2+10))
		}
		data := pattern(1_000_000)
		go func() {
			c.Write(data)
			c.(*net.TCPConn).CloseWrite()
		}()
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q: of %d bytes %d came back, %v", hello, len(data), len(got), err)
		}
	}
	i.await("both connections are counted", func(st instanceStatus) bool {
		return st.Forwarded.TCP.Opened == 2 && st.Forwarded.TCP.Open == 0 && st.User.Relay.TCP.Open == 0 && st.up("user0", "user1")
	})
	if text := runWith("", "show", "--control", i.socket).stdout; !strings.Contains(text, "forwarded connections: 0 open of 2") ||
		!strings.Contains(text, "user network's connections: 0 open of 2") || !strings.Contains(text, "0 denied") {
		t.Errorf("show does not say what was forwarded:\n%s", text)
	}
}

func portBytes(l net.Listener) string {
	port := l.Addr().(*net.TCPAddr).Port
	return string([]byte{byte(port >> 8), byte(port)})
}

// Slaves of kind user in a file lead to one network with the file's settings.
func TestUserNetworkOfFile(t *testing.T) {
	f, faults := config.Read([]byte("version: 1\nbonds:\n- {name: b, mode: 1, addresses: [10.0.2.15/24], slaves: [{name: u0, kind: user}], user_network: 'loopback=on,mtu=1400'}\n"), config.Checks{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	s, err := settingsOf(&f.Bonds[0], "")
	if err != nil {
		t.Fatal(err)
	}
	link := s.base().link
	if !link.user.options.Loopback {
		t.Error("the setting is not taken")
	}
	ep, _, err := openUser("u0", link)
	if err != nil {
		t.Fatal(err)
	}
	if ep.MTU() != 1400 {
		t.Errorf("MTU %d, want 1400", ep.MTU())
	}
	ep.Close()
	link.user.close()
}
