package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/link/linktest"
	"bondstack/link/netnstest"
)

// tapLAN is a lan whose bond is the kernel device bond0 in the namespace box, with
// the addresses that the bond has in a lan.
type tapLAN struct {
	*lan
	box *netnstest.Namespace
}

func newTapLAN(t testing.TB) *tapLAN {
	t.Helper()
	l := &tapLAN{newLAN(t), netnstest.New(t)}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("needs a TUN device: %v", err)
	}
	return l
}

// pathOf is a file by which a namespace can be named.
func pathOf(ns *netnstest.Namespace) string { return fmt.Sprintf("/proc/self/fd/%d", ns.File().Fd()) }

// launchTap begins to run the command, with a device in a namespace.
func launchTap(t testing.TB, kinds map[string]openFunc, at *netnstest.Namespace, args ...string) *instance {
	t.Helper()
	socket := tempSocket(t)
	var out bytes.Buffer
	s, code, done := parseTap(append(args, "--control", socket, "--netns", pathOf(at)), &out, &out)
	if done {
		t.Fatalf("tap %q: exit code %d, %s", args, code, &out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i := &instance{t: t, socket: socket, stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(i.ended)
		i.err = s.run(ctx, slog.New(slog.NewTextHandler(&i.log, nil)), kinds)
	}()
	t.Cleanup(func() {
		i.end()
		if t.Failed() {
			t.Logf("log of the instance:\n%s", &i.log)
		}
	})
	return i
}

// tap launches the command on s0 and s1, and waits until it answers and the
// kernel has its addresses.
func (l *tapLAN) tap(args ...string) *instance {
	l.t.Helper()
	i := launchTap(l.t, l.kinds(), l.box, slices.Concat([]string{"--slave", "s0", "--slave", "s1"}, args, lanAddresses)...)
	eventually(l.t, "the instance answers", func() bool {
		select {
		case <-i.ended:
			l.t.Fatalf("tap %q = %v", args, i.err)
		default:
		}
		st, err := askStatus(i.socket)
		return err == nil && len(st.Addresses) >= 2 && !slices.ContainsFunc(st.Addresses, func(a hostAddress) bool { return a.State != "assigned" })
	})
	return i
}

// serve has a namespace serve the files of a folder at port 80.
func serve(t testing.TB, at *netnstest.Namespace, dir string) {
	t.Helper()
	var l net.Listener
	at.Do(func() {
		var err error
		if l, err = net.Listen("tcp", ":80"); err != nil {
			t.Fatal(err)
		}
	})
	server := &http.Server{Handler: http.FileServer(http.Dir(dir))}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
}

// shows waits until the device is there and the kernel shows all the parts of it.
func (l *tapLAN) shows(parts ...string) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("bond0 shows %q", parts), func() bool {
		out, err := l.box.TryRun("ip", "link", "show", "bond0")
		return err == nil && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(out, p) })
	})
}

// Each mode that needs no partner carries ping and 10 MB both ways, with one queue
// and with four, over IPv4 and IPv6.
func TestTapModes(t *testing.T) {
	const size = 10 << 20
	for n, mode := range []string{"active-backup", "balance-xor", "balance-rr", "broadcast", "balance-tlb", "balance-alb"} {
		t.Run(mode, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			l := newTapLAN(t)
			// A switch that knows nothing of the bond is no place for the modes
			// that send by several links from one address: here the bridge
			// floods, and the far kernel sees copies.
			i := l.tap("--mode", mode, "--queues", fmt.Sprint(1+3*(n%2)))
			if mode == "balance-xor" || mode == "balance-rr" || mode == "broadcast" {
				l.far.Run("ip", "link", "set", "br0", "type", "bridge", "ageing_time", "0")
			}
			dir, sum := writeRandom(t, size)
			serve(t, l.box, dir)
			serve(t, l.far, dir)
			for _, c := range []struct{ far, box string }{{"10.9.0.1", "10.9.0.2"}, {"[fd00:9::1]", "[fd00:9::2]"}} {
				l.box.Run("ping", "-n", "-i", "0.01", "-c", "5", strings.Trim(c.far, "[]"))
				out := l.box.Run("sh", "-c", "curl --silent --show-error --fail --max-time 60 http://"+c.far+"/file | sha256sum")
				if !strings.HasPrefix(out, sum) {
					t.Errorf("from %s came %s, want %s", c.far, out, sum)
				}
				l.curl("http://" + c.box + "/file").finish(sum)
			}
			st := i.status()
			if st.Device == nil || st.Device.Bridge.Out == 0 || st.Device.Bridge.OutMalformed != 0 || st.Device.Device.TXDroppedInvalid != 0 {
				t.Errorf("device %+v", st.Device)
			}
			if err := i.end(); err != nil {
				t.Error(err)
			}
			if out, err := l.box.TryRun("ip", "link", "show", "bond0"); err == nil {
				t.Errorf("at the end there is still %s", out)
			}
		})
	}
}

// A cut of the active link in mid-run is mended while a download goes on, each
// way, and the far kernel's neighbour table follows the address of the bond.
func TestTapCut(t *testing.T) {
	const size = 60 << 20
	for _, policy := range []string{"none", "active"} {
		t.Run("fail_over_mac="+policy, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			l := newTapLAN(t)
			i := l.tap("--mode", "active-backup", "-o", "fail_over_mac="+policy)
			dir, sum := writeRandom(t, size)
			serve(t, l.box, dir)
			p := l.ping("10.9.0.2")
			l.far.Run("ping", "-n", "-i", "0.01", "-c", "2", "fd00:9::2") // an advertisement makes no neighbour
			d := l.curl("http://10.9.0.2/file")
			for range 3 {
				d.take(size / 8)
				active := i.status().ActiveSlave
				l.far.Down(peer(active))
				i.await("failover", func(st instanceStatus) bool { return st.ActiveSlave != active })
				mac := i.status().MACAddress
				l.shows(mac)
				eventually(t, "the far kernel knows "+mac, func() bool {
					return l.neighbor("10.9.0.2") == mac && l.neighbor("fd00:9::2") == mac || policy == "none"
				})
				p.awaitReplies(10)
				l.far.Up(peer(active))
				i.await("both up", func(st instanceStatus) bool { return st.up("s0", "s1") })
			}
			d.finish(sum)
			lost, duplicates := p.stop()
			t.Logf("3 cuts, pings at 10 ms: lost %v", lost)
			if duplicates != 0 {
				t.Errorf("%d duplicates", duplicates)
			}
			if st := i.status(); st.Device.Bridge.Announcements == 0 {
				t.Errorf("nothing was announced: %+v", st.Device)
			}
		})
	}
}

// The device shows the bond's carrier, speed and MTU.
func TestTapFollowsTheBond(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	for n := range 2 {
		l.near.SetMTU(fmt.Sprint("s", n), 9000)
		l.far.SetMTU(fmt.Sprint("p", n), 9000)
	}
	l.far.SetMTU("br0", 9000)
	i := l.tap("--mode", "balance-tlb")
	l.shows("mtu 9000", "LOWER_UP", i.status().MACAddress)
	l.box.Run("ping", "-n", "-i", "0.01", "-c", "3", "-M", "do", "-s", "8972", "10.9.0.1")
	if out := l.box.Run("ethtool", "bond0"); !strings.Contains(out, "Speed: 20000Mb/s") {
		t.Errorf("ethtool tells %s", out)
	}
	l.far.Down("p0")
	eventually(t, "the speed of one", func() bool { return strings.Contains(l.box.Run("ethtool", "bond0"), "Speed: 10000Mb/s") })
	l.far.Down("p1")
	l.shows("NO-CARRIER")
	l.far.Up("p1")
	l.shows("LOWER_UP")
	l.box.Run("ping", "-n", "-i", "0.01", "-c", "3", "10.9.0.1")
}

// The ARP monitor asks from the namespace's address, and hears the answers.
func TestTapARPMonitor(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	i := l.tap("--mode", "active-backup", "-o", "miimon=0", "-o", "arp_interval=50", "-o", "arp_ip_target=10.9.0.1", "-o", "arp_validate=all")
	i.await("both slaves up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	active := i.status().ActiveSlave
	l.far.Sysctl("net.ipv4.conf.all.arp_ignore", "1")
	l.far.Run("ip", "link", "set", peer(active), "nomaster") // the link stays, the target is away
	i.await("failover", func(st instanceStatus) bool { return st.ActiveSlave != "" && st.ActiveSlave != active })
	l.box.Run("ping", "-n", "-i", "0.01", "-c", "5", "10.9.0.1")
	for _, w := range i.status().Warnings {
		t.Errorf("warning %q", w)
	}
}

// A kernel's bridge that snoops learns by the namespace's own reports where its
// groups are after a failover.
func TestTapMemberships(t *testing.T) {
	if _, err := exec.LookPath("bridge"); err != nil {
		t.Skip("needs root and the tool bridge: ", err)
	}
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	i := l.tap("--mode", "active-backup", "-o", "primary=s0", "-o", "miimon=10")
	if out, err := l.box.TryRun("ip", "address", "add", "239.1.2.3/32", "dev", "bond0", "autojoin"); err != nil {
		t.Skipf("the kernel does not join for ip: %v %s", err, out)
	}
	for _, c := range []struct{ cut, port string }{{"", "p0"}, {"p0", "p1"}} {
		if c.cut != "" {
			l.far.Down(c.cut)
			i.await("failover", func(st instanceStatus) bool { return peer(st.ActiveSlave) == c.port })
		}
		for _, group := range []string{"239.1.2.3", "ff02::1:ff00:2"} {
			eventually(t, group+" is behind "+c.port, func() bool {
				return strings.Contains(l.far.Run("bridge", "mdb", "show", "dev", "br0"), "port "+c.port+" grp "+group+" ")
			})
		}
	}
}

// Beside its slaves, in one namespace, the device has each frame once.
func TestTapBesideItsSlaves(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	l.box = l.near
	l.near.Sysctl("net.ipv6.conf.default.disable_ipv6", "0")
	i := launchTap(t, l.kinds(), l.near, append([]string{"--slave", "s0", "--slave", "s1", "--mode", "active-backup", "--exclusive"}, lanAddresses...)...)
	eventually(t, "the instance answers", func() bool {
		select {
		case <-i.ended:
			t.Skipf("needs root and TCX: %v", i.err)
		default:
		}
		_, err := askStatus(i.socket)
		return err == nil
	})
	for _, address := range []string{"10.9.0.2", "fd00:9::2"} {
		p := l.ping(address)
		p.awaitReplies(50)
		if lost, duplicates := p.stop(); len(lost)+duplicates != 0 {
			t.Errorf("%s: lost %v, %d duplicates", address, lost, duplicates)
		}
	}
}

// The device is a port of a kernel's bridge: a host behind it is heard, and the
// far switch learns where it is after a failover, though it says nothing.
func TestTapBehindBridge(t *testing.T) {
	if _, err := exec.LookPath("bridge"); err != nil {
		t.Skip("needs root and the tool bridge: ", err)
	}
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	i := l.tap("--mode", "active-backup", "-o", "miimon=20", "-o", "num_grat_arp=50")
	guest := netnstest.New(t)
	netnstest.Veth(t, guest, "eth0", l.box, "guest0")
	l.box.Run("ip", "address", "flush", "dev", "bond0")
	l.box.Bridge("br1", "bond0", "guest0")
	guest.AddAddress("eth0", "10.9.0.50/24")
	guest.Run("ping", "-n", "-i", "0.01", "-c", "5", "10.9.0.1")
	mac := guest.HardwareAddress("eth0").String()
	guest.Down("eth0") // from here on it says nothing
	for _, c := range []struct{ cut, port string }{{"p0", "p1"}, {"p1", "p0"}} {
		l.far.Down(c.cut)
		i.await("failover", func(st instanceStatus) bool { return peer(st.ActiveSlave) == c.port })
		eventually(t, "the far bridge knows that the guest is behind "+c.port, func() bool {
			return strings.Contains(l.far.Run("bridge", "fdb", "show", "br", "br0"), mac+" dev "+c.port+" ")
		})
		l.far.Up(c.cut)
		i.await("both up", func(st instanceStatus) bool { return st.up("s0", "s1") })
	}
}

// A bond whose slaves are not there yet has a device, without a carrier until one
// comes.
func TestTapSlavesComeLater(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	i := launchTap(t, l.kinds(), l.box, append([]string{"--slave", "s7", "--mode", "active-backup"}, lanAddresses...)...)
	eventually(t, "the instance answers", func() bool {
		select {
		case <-i.ended:
			t.Fatalf("tap = %v", i.err)
		default:
		}
		_, err := askStatus(i.socket)
		return err == nil
	})
	l.shows("NO-CARRIER")
	l.plug(7)
	l.shows("LOWER_UP", l.near.HardwareAddress("s7").String())
	l.box.Run("ping", "-n", "-i", "0.01", "-c", "3", "10.9.0.1")
}

// Each failure says what is wrong and what helps.
func TestTapFailures(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	fails := func(what string, want []string, args ...string) {
		t.Helper()
		i := launchTap(t, l.kinds(), l.box, append([]string{"--mode", "active-backup"}, args...)...)
		<-i.ended
		for _, w := range want {
			if i.err == nil || !strings.Contains(i.err.Error(), w) {
				t.Errorf("%s: %v, want %q", what, i.err, w)
			}
		}
		if out, err := l.box.TryRun("ip", "link", "show", "bond0"); err == nil {
			t.Errorf("%s leaves %s", what, out)
		}
	}
	netnstest.Veth(t, l.box, "taken0", l.box, "taken1")
	fails("a name that is taken", []string{"taken0", "already", "--name", "ip link delete"}, "--slave", "s0", "--name", "taken0")
	fails("no such slave", []string{"nosuch0", "no such interface"}, "--slave", "nosuch0", "--require-slaves")
	inUse := func(addr string) []string {
		return []string{addr + " is in use: the host with the Ethernet address 02:00:00:00:00:b0 has it", "--detect=0"}
	}
	fails("an address that is taken", inUse("10.9.0.1"), "--slave", "s0", "--address", "10.9.0.1/24")
	fails("an IPv6 address that is taken", inUse("fd00:9::1"), "--slave", "s0", "--address", "fd00:9::1/64")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	fails("a port that is taken, before the name is found to be", []string{"--metrics", "another program listens"}, "--slave", "s0", "--name", "taken0", "--metrics", busy.Addr().String())
}

// The device is no slave of its own bond, around which frames would go for ever:
// not at first, and not later by control. Nor is an interface a slave twice.
func TestTapIsNotItsOwnSlave(t *testing.T) {
	l := newTapLAN(t)
	const why = `interface "bond0" is the bond's own device`
	launch := func(slaves ...string) (cmd *exec.Cmd, socket string, errs *bytes.Buffer) {
		socket, errs = tempSocket(t), new(bytes.Buffer)
		cmd = selfCommand(append([]string{"tap", "--mode", "active-backup", "--exclusive=false", "--control", socket}, slaves...)...)
		cmd.Stderr = errs
		l.near.Start(cmd)
		late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		t.Cleanup(func() { late.Stop() })
		return cmd, socket, errs
	}
	cmd, _, errs := launch("--slave", "s0", "--slave", "bond0")
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitFailure || !strings.Contains(errs.String(), why) {
		t.Errorf("exit code %d, %s", code, errs)
	}
	l.near.Run("ip", "link", "property", "add", "dev", "s0", "altname", "other0")
	cmd, socket, _ := launch("--slave", "s0")
	eventually(t, "the instance answers", func() bool {
		_, err := askStatus(socket)
		return err == nil
	})
	var out bytes.Buffer
	if code := run([]string{"add-slave", "--control", socket, "bond0"}, nil, &out, &out); code != exitFailure || !strings.Contains(out.String(), why) {
		t.Errorf("add-slave: exit code %d, %s", code, &out)
	}
	out.Reset()
	const twice = `interface "other0" is a slave already: s0 is another name of it`
	if code := run([]string{"add-slave", "--control", socket, "other0"}, nil, &out, &out); code != exitFailure || !strings.Contains(out.String(), twice) {
		t.Errorf("add-slave by another name: exit code %d, %s", code, &out)
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
}

func TestTapNoSuchNamespace(t *testing.T) {
	if _, err := os.Stat("/dev/net/tun"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and a TUN device")
	}
	var out bytes.Buffer
	code := run([]string{"tap", "--slave", "s0", "--mode", "1", "--netns", "no-such-namespace", "--control", tempSocket(t)}, nil, &out, &out)
	if code != exitFailure || !strings.Contains(out.String(), "ip netns add") {
		t.Errorf("exit code %d, %s", code, &out)
	}
}

// Where somebody deletes the device the command ends, and says why.
func TestTapDeleted(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	i := l.tap("--mode", "active-backup")
	l.box.Delete("bond0")
	<-i.ended
	if i.err == nil || !strings.Contains(i.err.Error(), "device bond0 was deleted") {
		t.Errorf("the command ended with %v", i.err)
	}
}

// Rounds leave neither device nor descriptor; nor does a process that is killed.
func TestTapLeavesNothing(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newTapLAN(t)
	l.tap("--mode", "active-backup").end()
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := count()
	for range 10 {
		l.tap("--mode", "balance-alb", "--queues", "2").end()
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	for range 3 {
		cmd := exec.Command(os.Args[0], slices.Concat([]string{"tap", "--control", tempSocket(t), "--slave", "s0", "--slave", "s1",
			"--mode", "active-backup", "--netns", "/proc/self/fd/3"}, lanAddresses)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		cmd.ExtraFiles = []*os.File{l.box.File()}
		l.near.Start(cmd)
		eventually(t, "bond0 has a carrier", func() bool {
			out, err := l.box.TryRun("ip", "link", "show", "bond0")
			return err == nil && strings.Contains(out, "LOWER_UP")
		})
		cmd.Process.Kill()
		cmd.Wait()
		if out := l.box.Run("ip", "-o", "link"); strings.Count(out, "\n") != 1 {
			t.Errorf("a killed process leaves %s", out)
		}
	}
}

// Where nobody can be asked for the addresses, or is not to be, the device has them all
// the same.
func TestTapWithoutDetection(t *testing.T) {
	l := newTapLAN(t)
	for _, flags := range [][]string{
		{"--slave", "s0", "--detect", "0", "--address", "10.9.0.1/24"},
		{"--slave", "s7", "--require-slaves=false", "--wait", "1ms", "--address", "10.9.0.1/24"},
	} {
		i := launchTap(t, l.kinds(), l.box, append([]string{"--mode", "active-backup"}, flags...)...)
		l.shows("bond0")
		eventually(t, "the device has the address", func() bool {
			return strings.Contains(l.box.Run("ip", "address", "show", "bond0"), "inet 10.9.0.1/24")
		})
		if err := i.end(); err != nil {
			t.Errorf("%q: %v", flags, err)
		}
	}
}
