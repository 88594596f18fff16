package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bondstack/link/linktest"
)

// backup are the flags of an active-backup bond of two devices.
var backup = []string{"--slave", "eth0", "--slave", "packet:eth1", "--mode", "active-backup",
	"--address", "10.0.0.2/24", "--address", "fd00::2/64"}

// pattern is n bytes of which no two blocks are alike.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*7 ^ byte(i>>16)*31
	}
	return b
}

func TestRunServices(t *testing.T) {
	linktest.CheckGoroutines(t)
	dir := t.TempDir()
	file := pattern(3_000_000)
	if err := os.WriteFile(filepath.Join(dir, "file"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), append(backup, "--serve", "echo:7", "--serve", "discard:9", "--serve", "http:80="+dir)...)

	t.Run("echo", func(t *testing.T) {
		for _, address := range []string{"10.0.0.2:7", "[fd00::2]:7"} {
			c := n.dial(address)
			data := pattern(1_000_000)
			go func() {
				c.Write(data)
				c.CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("echo by %s gave %d bytes of %d back, %v", address, len(got), len(data), err)
			}
		}
	})
	t.Run("discard", func(t *testing.T) {
		c := n.dial("10.0.0.2:9")
		if _, err := c.Write(pattern(1_000_000)); err != nil {
			t.Error(err)
		}
		c.CloseWrite()
		if got, err := io.ReadAll(c); len(got) != 0 || err != nil {
			t.Errorf("discard answered %d bytes, %v, want the end alone", len(got), err)
		}
	})
	t.Run("http", func(t *testing.T) {
		transport := &http.Transport{DialContext: n.host.DialContext}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: patience}
		resp, err := client.Get("http://10.0.0.2/file")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(got, file) {
			t.Errorf("the file came with %d bytes of %d, %v", len(got), len(file), err)
		}
		resp, err = client.Get("http://10.0.0.2/../../etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("a file outside of the folder: %s, want 404", resp.Status)
		}
	})
	if log := i.log.String(); !strings.Contains(log, "eth0 is in memory") || !strings.Contains(log, "eth1 is in memory") {
		t.Errorf("the links' warnings are not in the log:\n%s", log)
	}
}

// A stop takes everything with it, connections under way too.
func TestRunStop(t *testing.T) {
	linktest.CheckGoroutines(t)
	n := newNetwork(t, "eth0", "eth1")
	host := listenLoopback(t)
	i := start(t, n.kinds(), append(backup, "--serve", "echo:7", "--serve", "http:80="+t.TempDir(),
		"--forward", "tcp:22="+host.Addr().String())...)
	conns := []net.Conn{n.dial("10.0.0.2:7"), n.dial("10.0.0.2:80"), n.dial("10.0.0.2:22")}
	far, err := host.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := i.end(); err != nil {
		t.Errorf("run() = %v", err)
	}
	if _, err := os.Stat(i.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control socket is still there: %v", err)
	}
	far.SetDeadline(time.Now().Add(patience))
	if _, err := far.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the forward's far end reads %v, want that it is closed", err)
	}
	for _, c := range conns {
		c.Close()
	}
	// The place is free for another. Its links are new ones.
	again := newNetwork(t, "eth0", "eth1")
	second := launch(t, i.socket, again.kinds(), backup...)
	eventually(t, "the second instance answers", func() bool {
		_, err := askStatus(i.socket)
		return err == nil
	})
	if err := second.end(); err != nil {
		t.Error(err)
	}
}

// listenLoopback listens on the loopback interface of the machine.
func listenLoopback(t testing.TB) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// forwarded makes an instance that forwards, and returns both ends of a
// connection through it.
func forwarded(t *testing.T) (client net.Conn, server *net.TCPConn) {
	t.Helper()
	linktest.CheckGoroutines(t)
	n := newNetwork(t, "eth0", "eth1")
	l := listenLoopback(t)
	start(t, n.kinds(), append(backup, "--forward", "tcp:5000="+l.Addr().String())...)
	c := n.dial("10.0.0.2:5000")
	server, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	server.SetDeadline(time.Now().Add(patience))
	return c, server
}

type halfCloser interface{ CloseWrite() error }

// The client sends, half-closes, and the server answers 1 MB after that (A61).
// And the other way round.
func TestForwardHalfClose(t *testing.T) {
	for _, c := range []struct{ name, first string }{{"client first", "client"}, {"server first", "server"}} {
		t.Run(c.name, func(t *testing.T) {
			client, server := forwarded(t)
			first, second := net.Conn(client), net.Conn(server)
			if c.first == "server" {
				first, second = second, first
			}
			question, answer := []byte("a question"), pattern(1_000_000)
			first.Write(question)
			if err := first.(halfCloser).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(second); err != nil || !bytes.Equal(got, question) {
				t.Fatalf("the question came as %q, %v", got, err)
			}
			go func() {
				second.Write(answer)
				second.(halfCloser).CloseWrite()
			}()
			if got, err := io.ReadAll(first); err != nil || !bytes.Equal(got, answer) {
				t.Errorf("of an answer of %d bytes %d came, %v", len(answer), len(got), err)
			}
		})
	}
}

// A reset of one side reaches the other as a reset, not as an end.
func TestForwardReset(t *testing.T) {
	type lingerer interface{ SetLinger(int) error }
	for _, c := range []struct{ name, who string }{{"by the client", "client"}, {"by the server", "server"}} {
		t.Run(c.name, func(t *testing.T) {
			client, server := forwarded(t)
			breaks, reads := net.Conn(client), net.Conn(server)
			if c.who == "server" {
				breaks, reads = reads, breaks
			}
			breaks.Write([]byte("x"))
			if _, err := io.ReadFull(reads, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			breaks.(lingerer).SetLinger(0)
			breaks.Close()
			if n, err := reads.Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the other side reads %d, %v, want a reset", n, err)
			}
		})
	}
}

// Where nobody listens the client is reset and the log says why.
func TestForwardToNobody(t *testing.T) {
	l := listenLoopback(t)
	nobody := l.Addr().String()
	l.Close()
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), append(backup, "--forward", "tcp:5000="+nobody)...)
	c := n.dial("10.0.0.2:5000")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reads %v, want a reset", err)
	}
	if log := i.log.String(); !strings.Contains(log, "tcp:5000="+nobody) {
		t.Errorf("the log does not name the forward:\n%s", log)
	}
}

// A slave that is not there does not stop the rest (A34). It joins when it
// appears.
func TestMissingSlaveJoins(t *testing.T) {
	n := newNetwork(t, "eth1")
	i := start(t, n.kinds(), append(backup, "--serve", "echo:7")...)
	st := i.status()
	if !st.up("eth1") || fmt.Sprint(st.Absent) != "[eth0]" {
		t.Fatalf("slaves %+v, absent %v, want eth1 up and eth0 absent", st.Slaves, st.Absent)
	}
	if text := runWith("", "show", "--control", i.socket).stdout; !strings.Contains(text, "eth0  ") || !strings.Contains(text, "absent") {
		t.Errorf("show does not tell that eth0 is absent:\n%s", text)
	}
	c := n.dial("10.0.0.2:7")
	n.add("eth0")
	i.await("eth0 joins", func(st instanceStatus) bool { return st.up("eth1", "eth0") && len(st.Absent) == 0 })
	n.port("eth1").SetCarrier(false)
	i.await("eth0 takes over", func(st instanceStatus) bool { return st.ActiveSlave == "eth0" })
	c.Write([]byte("still here"))
	got := make([]byte, 10)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "still here" {
		t.Errorf("the connection gives %q, %v", got, err)
	}
	if log := i.log.String(); strings.Count(log, "slave is missing") != 1 {
		t.Errorf("the log tells other than once that eth0 is missing:\n%s", log)
	}
}

// Without any slave the stack is there, and waits.
func TestAllSlavesMissing(t *testing.T) {
	n := newNetwork(t)
	i := start(t, n.kinds(), append(backup, "--serve", "echo:7")...)
	if st := i.status(); len(st.Slaves) != 0 || st.Carrier || fmt.Sprint(st.Absent) != "[eth0 eth1]" {
		t.Errorf("slaves %+v, carrier %v, absent %v", st.Slaves, st.Carrier, st.Absent)
	}
	n.add("eth0")
	i.await("eth0 joins", func(st instanceStatus) bool { return st.Carrier && st.ActiveSlave == "eth0" })
	for _, address := range []string{"10.0.0.2:7", "[fd00::2]:7"} {
		c := n.dial(address)
		c.Write([]byte("x"))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// What stops the start, and what the error says.
func TestRunRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"a missing slave that is insisted on", append(backup, "--slave", "eth9", "--require-slaves"), []string{"eth9", "no such interface"}},
		{"an option that needs slaves", append(backup, "-o", "miimon=50", "-o", "active_slave=eth9"), []string{"active_slave", `"eth9"`, "eth0, eth1"}},
		{"two services on one port", append(backup, "--serve", "echo:7", "--serve", "discard:7"), []string{"--serve discard:7", "address already in use"}},
		{"a forward on a service's port", append(backup, "--serve", "echo:7", "--forward", "tcp:7=127.0.0.1:9"), []string{"--forward tcp:7=127.0.0.1:9", "address already in use"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			n := newNetwork(t, "eth0", "eth1")
			i := launch(t, tempSocket(t), n.kinds(), c.args...)
			<-i.ended
			if i.err == nil {
				t.Fatal("run() = nil")
			}
			for _, want := range c.want {
				if !strings.Contains(i.err.Error(), want) {
					t.Errorf("run() = %v, want %q in it", i.err, want)
				}
			}
			if _, err := os.Stat(i.socket); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the control socket is still there: %v", err)
			}
		})
	}
}

// Options are set by their Linux names before the slaves join.
func TestRunOptions(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), append(backup, "--name", "pair", "--mac", "02:00:00:00:00:99", "--mtu", "1400", "-o", "primary=eth1",
		"-o", "primary_reselect=failure", "-o", "miimon=20", "-o", "downdelay=50", "-o", "num_grat_arp=3")...)
	st := i.status()
	if st.Name != "pair" || st.MACAddress != "02:00:00:00:00:99" || st.MTU != 1400 || st.ActiveSlave != "eth1" || st.Primary != "eth1" ||
		st.PrimaryReselect != "failure" || st.MIIMonMs != 20 || st.DownDelayMs != 40 || st.Options["num_grat_arp"] != "3" {
		t.Errorf("status %+v", st)
	}
	for _, s := range st.Slaves {
		if s.MTU != 1400 || s.MACAddress != "02:00:00:00:00:99" {
			t.Errorf("slave %+v", s)
		}
	}
}

// Options that name a slave wait until the slaves are there. Before the host is,
// an active slave by hand needs another one that is up.
func TestRunSlaveOptions(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), append(backup, "-o", "active_slave=eth1", "-o", "queue_id=eth1:3")...)
	if st := i.status(); st.ActiveSlave != "eth1" || st.Slaves[1].QueueID != 3 {
		t.Errorf("active slave %s, queue ids of %+v, want eth1 with 3", st.ActiveSlave, st.Slaves)
	}
}

// The status tells what is, at each step, in every form alike (A62).
func TestStatusFollowsReality(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), backup...)
	check := func(step, active string, failures uint32, up ...string) {
		t.Helper()
		i.await(step, func(st instanceStatus) bool { return st.ActiveSlave == active && st.up(up...) })
		st := i.status()
		if got := st.Slaves[0].LinkFailureCount; got != failures {
			t.Errorf("%s: eth0 counts %d failures, want %d", step, got, failures)
		}
		text := runWith("", "show", "--control", i.socket).stdout
		proc := runWith("", "show", "--control", i.socket, "--proc").stdout
		for _, want := range []struct{ where, text, want string }{
			{"text", text, "active slave " + active + "\n"},
			{"proc", proc, "Currently Active Slave: " + active + "\n"},
			{"proc", proc, fmt.Sprintf("Link Failure Count: %d\n", failures)},
		} {
			if !strings.Contains(want.text, want.want) {
				t.Errorf("%s: %s does not have %q:\n%s", step, want.where, want.want, want.text)
			}
		}
		// The bond's line and one of each slave that is up.
		if got := strings.Count(proc, "MII Status: up\n"); got != 1+len(up) {
			t.Errorf("%s: proc has %d lines of links that are up, want %d:\n%s", step, got, 1+len(up), proc)
		}
	}
	check("at first", "eth0", 0, "eth0", "eth1")
	n.port("eth0").SetCarrier(false)
	check("cut", "eth1", 1, "eth1")
	n.port("eth0").SetCarrier(true)
	check("restored", "eth1", 1, "eth0", "eth1")
}
