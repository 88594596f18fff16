package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/packet"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// both are the pairs of kinds that a bond of two slaves can have.
var both = [][2]string{{"packet", "packet"}, {"fdbased", "packet"}, {"packet", "fdbased"}, {"fdbased", "fdbased"}}

// withXDP are those with AF_XDP.
var withXDP = [][2]string{{"xdp", "packet"}, {"xdp", "xdp"}}

// checkGoroutinesOf is linktest.CheckGoroutines, but for gVisor's fdbased, whose
// own goroutines outlive it.
func checkGoroutinesOf(t *testing.T, kinds [2]string) {
	t.Helper()
	if !slices.Contains(kinds[:], "fdbased") {
		linktest.CheckGoroutines(t)
	}
}

// A server of the kernel on the far side, with offloads at their defaults:
// what it sends has partial checksums (A26).
func TestDownloadFromKernel(t *testing.T) {
	const size = 10 << 20
	for _, kinds := range append(slices.Clone(both), withXDP...) {
		t.Run(kinds[0]+" and "+kinds[1], func(t *testing.T) {
			checkGoroutinesOf(t, kinds)
			l := newLAN(t)
			dir, sum := writeRandom(t, size)
			var listener net.Listener
			l.far.Do(func() {
				var err error
				if listener, err = net.Listen("tcp", ":80"); err != nil {
					t.Fatal(err)
				}
			})
			server := &http.Server{Handler: http.FileServer(http.Dir(dir))}
			go server.Serve(listener)
			defer server.Close()
			b, h := l.host(bonding.Options{Mode: bonding.ActiveBackup}, slaveSpec{kinds[0], "s0"}, slaveSpec{kinds[1], "s1"})
			transport := &http.Transport{DialContext: h.DialContext, DisableKeepAlives: true}
			client := &http.Client{Transport: transport, Timeout: patience}
			for _, active := range []string{"s0", "s1"} {
				if err := b.SetOption("active_slave", active); err != nil {
					t.Fatal(err)
				}
				for _, url := range []string{"http://10.9.0.1/file", "http://[fd00:9::1]/file"} {
					if got := fetch(t, client, url); got != sum {
						t.Errorf("%s by %s has hash %s, want %s", url, active, got, sum)
					}
				}
			}
			if drops := b.Status().Counters.Drops; drops["rx_checksum"] != 0 {
				t.Errorf("drops %v, want none for checksums", drops)
			}
		})
	}
}

// fetch returns the hash of what a URL gives.
func fetch(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	h := sha256.New()
	if _, err := io.Copy(h, resp.Body); err != nil {
		t.Errorf("%s: %v", url, err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Both slaves are in one bridge, so each hears what the other sends (A28).
func TestSlavesInOneBridge(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	i := l.run("--slave", "s0", "--slave", "s1", "--mode", "active-backup")
	var local string
	for _, a := range i.status().Addresses { // run waits until all are assigned
		if a.Prefix.Addr().IsLinkLocalUnicast() {
			local = a.Prefix.Addr().String()
		}
	}
	for _, address := range []string{"10.9.0.2", "fd00:9::2", local + "%br0"} {
		if err := l.far.Ping(address, 100); err != nil {
			t.Error(err)
		}
	}
}

// Frames of 9000 bytes pass whole, and a slave that has less is refused by
// name (A25).
func TestJumboFrames(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	for n := range 2 {
		l.near.SetMTU(fmt.Sprintf("s%d", n), 9000)
		l.far.SetMTU(fmt.Sprintf("p%d", n), 9000)
	}
	l.far.SetMTU("br0", 9000)
	i := l.run("--slave", "s0", "--slave", "s1", "--mode", "active-backup")
	if st := i.status(); st.MTU != 9000 {
		t.Errorf("the bond's MTU is %d, want 9000", st.MTU)
	}
	for range 2 {
		active := i.status().ActiveSlave
		l.far.Run("ping", "-n", "-i", "0.01", "-c", "3", "-M", "do", "-s", "8972", "10.9.0.2")
		l.far.Down(peer(active))
		i.await("failover", func(st instanceStatus) bool { return st.ActiveSlave != active })
		l.far.Up(peer(active))
		i.await("both up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	}
	i.end()
	l.near.SetMTU("s1", 1500)
	refused := launch(t, tempSocket(t), l.kinds(), append([]string{"--slave", "s0", "--slave", "s1", "--mode", "active-backup"}, lanAddresses...)...)
	<-refused.ended
	if refused.err == nil || !strings.Contains(refused.err.Error(), "s1") || !strings.Contains(refused.err.Error(), "9000") {
		t.Errorf("a slave of 1500 bytes in a bond of 9000: %v", refused.err)
	}
}

// resets is a dispatcher that counts TCP resets.
type resets struct{ n, segments atomic.Int64 }

func (r *resets) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *netstack.PacketBuffer) {
	if protocol != header.IPv4ProtocolNumber {
		return
	}
	b := pkt.Data().AsRange().ToSlice()
	ip := header.IPv4(b)
	if len(b) < header.IPv4MinimumSize || ip.Protocol() != uint8(header.TCPProtocolNumber) || len(b) < int(ip.HeaderLength())+header.TCPMinimumSize {
		return
	}
	r.segments.Add(1)
	if header.TCP(b[ip.HeaderLength():]).Flags().Contains(header.TCPFlagRst) {
		r.n.Add(1)
	}
}

func (*resets) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *netstack.PacketBuffer) {}

// watch counts the resets that arrive at either end of both cables.
func (l *lan) watch() *resets {
	l.t.Helper()
	r := &resets{}
	for n := range 2 {
		for _, at := range []struct {
			do   func(func())
			name string
		}{{l.near.Do, fmt.Sprintf("s%d", n)}, {l.far.Do, fmt.Sprintf("p%d", n)}} {
			at.do(func() {
				ep, err := packet.New(at.name, packet.Options{})
				if err != nil {
					l.t.Fatal(err)
				}
				ep.SetPromiscuous(true)
				ep.Attach(r)
				l.t.Cleanup(ep.Close)
			})
		}
	}
	return r
}

// connect has the far kernel make n connections to the echo service in turn.
func (l *lan) connect(n int) (failed int) {
	l.t.Helper()
	for range n {
		c := l.dial("10.9.0.2:7")
		c.SetDeadline(time.Now().Add(patience))
		c.Write([]byte("hello"))
		c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
			failed++
		}
		c.Close()
	}
	return failed
}

// The host's kernel is silent where it has no address on the slaves; where it
// has the same address as the bonded stack the start warns of it, with reason
// (A29).
func TestHostWithTheSameAddress(t *testing.T) {
	args := []string{"--slave", "s0", "--slave", "s1", "--mode", "active-backup", "--serve", "echo:7"}
	t.Run("without", func(t *testing.T) {
		l := newLAN(t)
		i := l.run(args...)
		if log := i.log.String(); strings.Contains(log, "WARN") {
			t.Errorf("the log warns:\n%s", log)
		}
		i.end()
		_, h := l.host(bonding.Options{Mode: bonding.ActiveBackup}, slaveSpec{"packet", "s0"}, slaveSpec{"packet", "s1"})
		if _, err := (service{kind: "echo", port: 7}).start(t.Context(), h, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		r := l.watch()
		if failed := l.connect(100); failed != 0 {
			t.Errorf("%d of 100 connections failed", failed)
		}
		// gVisor's own, for a last acknowledgement that comes twice, is no fault.
		own := int64(h.Stack().Stats().TCP.ResetsSent.Value())
		if n := r.n.Load(); n > own || r.segments.Load() < 500 {
			t.Errorf("%d resets in %d segments on the wire, %d of them the bonded stack's: want no others in at least 500", n, r.segments.Load(), own)
		}
	})
	t.Run("with", func(t *testing.T) {
		l := newLAN(t)
		l.near.AddAddress("s0", "10.9.0.2/24")
		r := l.watch()
		i := l.run(args...)
		for _, want := range []string{"WARN", "s0", "10.9.0.2/24", "exclusive"} {
			if log := i.log.String(); !strings.Contains(log, want) {
				t.Errorf("the log has no %q:\n%s", want, log)
			}
		}
		// The kernel's reset comes first, or after the handshake.
		l.far.Do(func() {
			if c, err := net.DialTimeout("tcp", "10.9.0.2:7", patience); err == nil {
				c.SetDeadline(time.Now().Add(patience))
				io.ReadAll(c)
				c.Close()
			}
		})
		eventually(t, "a reset on the wire: else this test would see none without the address either", func() bool { return r.n.Load() > 0 })
	})
	t.Run("with, exclusive", func(t *testing.T) {
		l := newLAN(t)
		l.near.AddAddress("s0", "10.9.0.2/24")
		i := launch(t, tempSocket(t), l.kinds(), append(append(args, "--exclusive"), lanAddresses...)...)
		eventually(t, "the instance answers", func() bool {
			select {
			case <-i.ended:
				t.Skipf("needs root and TCX: %v", i.err)
			default:
			}
			_, err := askStatus(i.socket)
			return err == nil
		})
		if failed := l.connect(20); failed != 0 {
			t.Errorf("%d of 20 connections failed", failed)
		}
	})
}

// The command as a process: it serves, says its number to a second one, ends
// in order by a signal, and where it is killed the next takes its place.
func TestProcess(t *testing.T) {
	l := newLAN(t)
	socket := tempSocket(t)
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		return cmd
	}
	args := append([]string{"run", "--control", socket, "--slave", "s0", "--slave", "s1", "--mode", "active-backup",
		"--serve", "echo:7"}, lanAddresses...)
	begin := func() *exec.Cmd {
		cmd := command(args...)
		l.near.Start(cmd)
		eventually(t, "the process answers", func() bool {
			st, err := askStatus(socket)
			return err == nil && st.PID == cmd.Process.Pid
		})
		return cmd
	}
	first := begin()
	if failed := l.connect(1); failed != 0 {
		t.Error("no echo")
	}
	second := command(args...)
	out, err := second.CombinedOutput()
	if second.ProcessState.ExitCode() != exitFailure || !strings.Contains(string(out), fmt.Sprintf("process %d holds it", first.Process.Pid)) {
		t.Errorf("a second process: %v, %s", err, out)
	}
	out, err = command("show", "--control", socket).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "s1     backup  up") {
		t.Errorf("show: %v, %s", err, out)
	}
	first.Process.Kill()
	first.Wait()
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("a killed process leaves no socket behind, this test is for nothing: %v", err)
	}
	third := begin()
	third.Process.Signal(os.Interrupt)
	if err := third.Wait(); err != nil {
		t.Errorf("an interrupted process ends with %v", err)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("an interrupted process leaves its socket behind: %v", err)
	}
}
