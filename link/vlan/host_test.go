package vlan_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"
	"bondstack/link/wire"
	"bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// patience is how long a test waits for what is bound to happen.
const patience = 60 * time.Second

func soon(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// host is one end of a test: a bond with a trunk, VLAN 5 and, in the service VLAN
// 7, another VLAN 5. Host N has 10.0.0.N, 10.5.0.N and 10.75.0.N.
type host struct {
	bond   *bonding.Bond
	trunk  *vlan.Trunk
	stack  *stack.Host
	ifaces map[string]*stack.Interface
	links  []*wire.Endpoint
}

// newHosts makes two hosts on bonds of n wires.
func newHosts(tb testing.TB, n int) [2]*host {
	tb.Helper()
	var hosts [2]*host
	for i := range hosts {
		b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup, Name: "bond0"})
		if err != nil {
			tb.Fatal(err)
		}
		hosts[i] = &host{bond: b, trunk: newTrunk(tb, b), ifaces: map[string]*stack.Interface{}}
	}
	for k := range n {
		x, y, err := wire.New(wire.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		for i, end := range []*wire.Endpoint{x, y} {
			tb.Cleanup(end.Close)
			hosts[i].links = append(hosts[i].links, end)
			if err := hosts[i].bond.Enslave(fmt.Sprintf("eth%d", k), end, bonding.SlaveOptions{}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for i, h := range hosts {
		n := byte(i + 1)
		address := func(net byte) []netip.Prefix {
			return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, net, 0, n}), 24)}
		}
		var err error
		h.stack, err = stack.NewHost(h.trunk, stack.HostOptions{Name: "bond0", Addresses: address(0), DADTransmits: -1})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { h.stack.Close() })
		single := add(tb, h.trunk, q(5), vlan.Options{})
		service := add(tb, h.trunk, ad(7), vlan.Options{LinkAddress: tcpip.LinkAddress([]byte{2, 0, 0, 7, 0, n})})
		double := add(tb, newTrunk(tb, service), q(5), vlan.Options{})
		h.link(tb, "bond0.5", single, address(5))
		h.link(tb, "bond0.7.5", double, address(75))
	}
	return hosts
}

func (h *host) link(tb testing.TB, name string, ep netstack.LinkEndpoint, addresses []netip.Prefix) {
	tb.Helper()
	i, err := h.stack.AddLink(name, ep, stack.LinkOptions{Addresses: addresses})
	if err != nil {
		tb.Fatal(err)
	}
	h.ifaces[name] = i
}

// digests has a host answer on a port with the hash of what it receives.
func digests(tb testing.TB, h *stack.Host, at string) {
	tb.Helper()
	l, err := h.Listen("tcp", at)
	if err != nil {
		tb.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				sum := sha256.New()
				if _, err := io.Copy(sum, c); err == nil {
					c.Write(sum.Sum(nil))
				}
			}()
		}
	}()
}

// transfer sends n bytes to who digests them, and calls halfway in the middle.
func transfer(ctx context.Context, h *stack.Host, to string, n int, halfway func()) error {
	c, err := h.DialContext(ctx, "tcp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	sum := sha256.New()
	data := io.LimitReader(rand.NewChaCha8([32]byte{1}), int64(n))
	if _, err := io.CopyN(io.MultiWriter(c, sum), data, int64(n/2)); err != nil {
		return err
	}
	halfway()
	if _, err := io.Copy(io.MultiWriter(c, sum), data); err != nil {
		return err
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return err
	}
	switch got, err := io.ReadAll(c); {
	case err != nil:
		return err
	case !bytes.Equal(got, sum.Sum(nil)):
		return fmt.Errorf("%d bytes arrived changed", n)
	}
	return nil
}

// TCP crosses a bond without a tag, with one and with two, with GSO, while the
// active slave is cut.
func TestTCPThroughFailover(t *testing.T) {
	linktest.CheckGoroutines(t)
	hosts := newHosts(t, 2)
	digests(t, hosts[1].stack, ":7")
	cut := 0
	var wg sync.WaitGroup
	var once sync.Once
	for _, to := range []string{"10.0.0.2:7", "10.5.0.2:7", "10.75.0.2:7"} {
		wg.Go(func() {
			err := transfer(soon(t), hosts[0].stack, to, 24<<20, func() {
				once.Do(func() { cut++; hosts[0].links[0].SetUp(false) })
			})
			if err != nil {
				t.Errorf("to %s: %v", to, err)
			}
		})
	}
	wg.Wait()
	s := hosts[0].bond.Status()
	if cut != 1 || s.ActiveSlave != "eth1" {
		t.Errorf("the active slave is %s", s.ActiveSlave)
	}
	// Whole GSO packets: few frames for the bytes.
	for _, slave := range s.Slaves {
		if c := slave.Counters; c.TxPackets > 0 && c.TxBytes/c.TxPackets < 3000 {
			t.Errorf("%s sent %d bytes in %d packets", slave.Name, c.TxBytes, c.TxPackets)
		}
	}
	for i, h := range hosts {
		// Not UnknownVLAN: the first host announces itself before the second has its devices.
		if s := h.trunk.Stats(); s.Truncated+s.Nested+s.Short != 0 {
			t.Errorf("host %d: %+v", i, s)
		}
	}
	for _, h := range hosts {
		h.stack.Close()
	}
}

// ping sends echo requests until one is answered: a bond that has only just come up
// may lose the first.
func ping(tb testing.TB, h *stack.Host, to netip.Addr) {
	tb.Helper()
	for end := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		_, err := h.Ping(ctx, to)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			tb.Fatal(err)
		}
	}
}

// Everything else works over the further interfaces by routing, zones and ends
// among it.
func TestInterfaces(t *testing.T) {
	linktest.CheckGoroutines(t)
	hosts := newHosts(t, 1)
	a, b := hosts[0], hosts[1]
	for _, to := range []string{"10.0.0.2", "10.5.0.2", "10.75.0.2"} {
		ping(t, a.stack, netip.MustParseAddr(to))
	}
	// The VLANs are apart: an address of one is not in another.
	if err := a.ifaces["bond0.5"].AddRoute(stack.Route{Destination: netip.MustParsePrefix("10.75.0.2/32")}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	if _, err := a.stack.Ping(ctx, netip.MustParseAddr("10.75.0.2")); err == nil {
		t.Error("an address is reached in another VLAN")
	}
	cancel()
	// Link-local addresses need a zone to be told apart. bond0.5's is bond0's.
	for _, name := range []string{"bond0", "bond0.5", "bond0.7.5"} {
		to := b.stack.Addresses()[0].Prefix.Addr()
		if name == "bond0.7.5" {
			to = b.ifaces[name].Addresses()[0].Prefix.Addr()
		}
		ping(t, a.stack, to.WithZone(name))
	}
	if _, err := a.stack.Dial("tcp", "[fe80::1%bond1]:7"); err == nil || !strings.Contains(err.Error(), "the interfaces are bond0, bond0.5, bond0.7.5") {
		t.Errorf("an unknown zone: %v", err)
	}
	udp, err := b.stack.ListenPacket("udp", "10.5.0.2:9")
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.stack.Dial("udp", "10.5.0.2:9")
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("hello"))
	udp.SetDeadline(time.Now().Add(patience))
	buf := make([]byte, 10)
	if n, from, err := udp.ReadFrom(buf); err != nil || string(buf[:n]) != "hello" || !strings.HasPrefix(from.String(), "10.5.0.1:") {
		t.Errorf("ReadFrom() = %q, %v, %v", buf[:n], from, err)
	}
	for _, tt := range []struct{ name, want string }{
		{"", "needs a name"}, {"bond0.5", "has an interface of that name"}, {"a/b", "not an interface name"},
	} {
		d := add(t, a.trunk, q(99), vlan.Options{})
		if _, err := a.stack.AddLink(tt.name, d, stack.LinkOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("AddLink(%q) = %v, want %q", tt.name, err, tt.want)
		}
		d.Close()
	}
	d := add(t, a.trunk, q(99), vlan.Options{})
	if _, err := a.stack.AddLink("x", d, stack.LinkOptions{Gateway: netip.MustParseAddr("10.99.0.1")}); err == nil || d.IsAttached() {
		t.Errorf("a gateway off the link: %v, attached %v", err, d.IsAttached())
	}
	if _, err := a.stack.AddLink("x", d, stack.LinkOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.99.0.9/24")},
		Routes: []stack.Route{{Destination: netip.MustParsePrefix("10.98.0.0/16"), Gateway: netip.MustParseAddr("10.99.0.1")}}}); err != nil {
		t.Fatal(err)
	}
	if got := len(a.stack.Interfaces()); got != 4 {
		t.Errorf("%d interfaces, want 4", got)
	}
	a.stack.Close()
	b.stack.Close()
	if a.bond.IsAttached() {
		t.Error("a closed host's bond is attached")
	}
}

// Closing an interface, or its device, ends what is there, and nothing else.
func TestInterfaceEnds(t *testing.T) {
	linktest.CheckGoroutines(t)
	hosts := newHosts(t, 1)
	a, b := hosts[0], hosts[1]
	connect := func(to string) net.Conn {
		t.Helper()
		c, err := a.stack.DialContext(soon(t), "tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	digests(t, b.stack, ":7")
	first, single, double := connect("10.0.0.2:7"), connect("10.5.0.2:7"), connect("10.75.0.2:7")
	read := make(chan error)
	go func() {
		_, err := single.Read(make([]byte, 1))
		read <- err
	}()
	if err := a.ifaces["bond0.5"].Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("a read over the closed interface returns %v", err)
	}
	a.ifaces["bond0.5"].Close()
	if a.trunk.Device(q(5)) != nil || len(a.stack.Interfaces()) != 2 {
		t.Error("the device is still there")
	}
	if _, err := a.stack.DialContext(soon(t), "tcp", "10.5.0.2:7"); err == nil {
		t.Error("the network is still there")
	}
	// The same again from below.
	go func() {
		_, err := double.Read(make([]byte, 1))
		read <- err
	}()
	a.trunk.Device(ad(7)).Close()
	if err := <-read; err == nil {
		t.Error("a read over the closed device returns nothing")
	}
	first.SetDeadline(time.Now().Add(patience))
	first.Write([]byte("x"))
	first.(interface{ CloseWrite() error }).CloseWrite()
	if got, err := io.ReadAll(first); err != nil || len(got) != 32 {
		t.Errorf("the connection without a tag: %d bytes, %v", len(got), err)
	}
	// A device comes anew.
	a.link(t, "bond0.5", add(t, a.trunk, q(5), vlan.Options{}), []netip.Prefix{netip.MustParsePrefix("10.5.0.3/24")})
	ping(t, a.stack, netip.MustParseAddr("10.5.0.2"))
	for _, h := range hosts {
		h.stack.Close()
	}
}

// A device can be the only link of a stack: the bond is up with it, and told its
// ways.
func TestStandalone(t *testing.T) {
	b, err := bonding.New(bonding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := linktest.NewRecorder(linktest.RecorderOptions{})
	if err := b.Enslave("eth0", r, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	trunk := newTrunk(t, b)
	d := add(t, trunk, q(5), vlan.Options{})
	h, err := stack.NewHost(d, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.5.0.1/24")}, DADTransmits: -1})
	if err != nil {
		t.Fatal(err)
	}
	if !b.IsAttached() {
		t.Error("the bond is not attached")
	}
	r.Drain()
	h.Announce()
	for _, w := range r.Drain() {
		if binary.BigEndian.Uint32(w.Frame[12:]) != 0x81000005 {
			t.Errorf("%x has another tag", w.Frame)
		}
	}
	h.Close()
	if b.IsAttached() || trunk.Device(q(5)) != nil {
		t.Error("the bond is still attached, or the device there")
	}
	trunk.Close()
}

// routeUser is a link that keeps the routes it is given.
type routeUser struct {
	*linktest.Recorder
	mu     sync.Mutex
	routes []link.Routes
}

func (u *routeUser) UseRoutes(r link.Routes) func() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.routes = append(u.routes, r)
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.routes = slices.DeleteFunc(u.routes, func(o link.Routes) bool { return o == r })
	}
}

// The link is told by which VLANs an address is reached, from which address, and
// what the stack's own addresses are.
func TestRoutes(t *testing.T) {
	u := &routeUser{Recorder: linktest.NewRecorder(linktest.RecorderOptions{})}
	trunk := newTrunk(t, u)
	host, err := stack.NewHost(trunk, stack.HostOptions{DADTransmits: -1,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")}})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	service := add(t, trunk, ad(7), vlan.Options{})
	add5 := func(name string, on *vlan.Trunk, address string) *stack.Interface {
		i, err := host.AddLink(name, add(t, on, q(5), vlan.Options{}), stack.LinkOptions{
			Addresses: []netip.Prefix{netip.MustParsePrefix(address)}})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	add5("a", trunk, "10.5.0.1/24")
	double := add5("b", newTrunk(t, service), "10.75.0.1/24")
	elsewhere := linktest.NewRecorder(linktest.RecorderOptions{})
	if _, err := host.AddLink("c", elsewhere, stack.LinkOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24")}}); err != nil {
		t.Fatal(err)
	}
	if len(u.routes) != 1 {
		t.Fatalf("the link has %d routes", len(u.routes))
	}
	routes := u.routes[0]
	check := func(target, want string) {
		t.Helper()
		way, ok := routes.Route(netip.MustParseAddr(target))
		got := fmt.Sprintf("%v%v", way.Source, way.Tags)
		if !ok {
			got = "elsewhere"
		}
		if got != want {
			t.Errorf("Route(%s) is %s, want %s", target, got, want)
		}
	}
	check("10.0.0.2", "10.0.0.1[]")
	check("fd00::2", "fd00::1[]")
	check("10.5.0.2", "10.5.0.1[5]")
	check("10.75.0.2", "10.75.0.1[802.1ad:7 5]")
	check("10.9.0.2", "elsewhere")
	check("10.5.0.1", "elsewhere") // our own
	check("192.0.2.1", "invalid IP[]")
	if err := host.AddRoute(stack.Route{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("10.0.0.254")}); err != nil {
		t.Fatal(err)
	}
	check("192.0.2.1", "10.0.0.1[]")
	for addr, want := range map[string]bool{"10.0.0.1": true, "10.5.0.1": true, "10.75.0.1": true, "fd00::1": true,
		"10.9.0.1": false, "10.0.0.2": false} {
		if got := routes.Owns(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Owns(%s) is %v", addr, got)
		}
	}
	double.Close()
	check("10.75.0.2", "10.0.0.1[]")
	host.Close()
	if len(u.routes) != 0 {
		t.Errorf("after Close the link has %d routes", len(u.routes))
	}
}

// announcements are the gratuitous ARPs and neighbour advertisements among
// frames, sorted.
func announcements(frames [][]byte) (list []string) {
	for _, f := range frames {
		payload, typ := f[14:], binary.BigEndian.Uint16(f[12:])
		if typ == 0x8100 {
			payload, typ = f[18:], binary.BigEndian.Uint16(f[16:])
		}
		if typ == 0x0806 && f[0] == 0xff || typ == 0x86dd && payload[6] == 58 && payload[40] == 136 {
			list = append(list, fmt.Sprintf("%x", f))
		}
	}
	slices.Sort(list)
	return list
}

// abRig is an active-backup bond on a manual clock with a host and VLAN 10.
type abRig struct {
	clock *faketime.ManualClock
	bond  *bonding.Bond
	links map[string]*linktest.Recorder
	host  *stack.Host
}

func newABRig(t *testing.T, o bonding.Options, announcements string, addresses []netip.Prefix, tagged netip.Prefix) *abRig {
	t.Helper()
	r := &abRig{clock: faketime.NewManualClock(), links: map[string]*linktest.Recorder{}}
	var err error
	o.Mode, o.Clock = bonding.ActiveBackup, r.clock
	r.bond, err = bonding.New(o)
	if err != nil {
		t.Fatal(err)
	}
	trunk := newTrunk(t, r.bond)
	for _, name := range []string{"eth0", "eth1"} {
		r.links[name] = linktest.NewRecorder(linktest.RecorderOptions{Address: tcpip.LinkAddress([]byte{2, 0, 0, 0, 0xee, name[3]})})
		if err := r.bond.Enslave(name, r.links[name], bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"primary": "eth0", "num_grat_arp": announcements, "miimon": "50"} {
		if err := r.bond.SetOption(name, value); err != nil {
			t.Fatal(err)
		}
	}
	r.host, err = stack.NewHost(trunk, stack.HostOptions{Clock: r.clock, DADTransmits: -1, Addresses: addresses})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.host.Close() })
	if _, err := r.host.AddLink("bond0.10", add(t, trunk, q(10), vlan.Options{}), stack.LinkOptions{Addresses: []netip.Prefix{tagged}}); err != nil {
		t.Fatal(err)
	}
	r.pass(5 * time.Second)
	return r
}

// pass has time pass, and returns the announcements that the slaves have sent in
// it.
func (r *abRig) pass(d time.Duration) map[string][]string {
	for end := time.Duration(0); end < d; end += 10 * time.Millisecond {
		r.clock.Advance(10 * time.Millisecond)
	}
	return r.sent()
}

func (r *abRig) sent() map[string][]string {
	got := map[string][]string{}
	for name, l := range r.links {
		var frames [][]byte
		for _, w := range l.Drain() {
			frames = append(frames, w.Frame)
		}
		got[name] = announcements(frames)
	}
	return got
}

// The announcements after a failover and a return to the primary are those that a
// real Linux bond with a VLAN device sent, byte for byte.
func TestRecordedAnnouncements(t *testing.T) {
	capture := map[string][][]byte{}
	var mac tcpip.LinkAddress
	for i, name := range []string{"eth0", "eth1"} {
		for _, c := range linktest.ReadPcap(t, fmt.Sprintf("../../testdata/active-backup/failover.link%d.tx.pcap", i)) {
			capture[name] = append(capture[name], c.Frame)
			mac = tcpip.LinkAddress(c.Frame[6:12])
		}
	}
	// The kernel of the capture sends one announcement less than it is told: 2.
	r := newABRig(t, bonding.Options{LinkAddress: mac}, "2", []netip.Prefix{netip.MustParsePrefix("10.1.0.2/24"), netip.MustParsePrefix("fd00:1::2/64")},
		netip.MustParsePrefix("10.2.0.2/24"))
	check := func(name string, got []string) {
		t.Helper()
		want := announcements(capture[name])
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s announced\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	r.links["eth0"].SetCarrier(false)
	got := r.pass(time.Second)
	check("eth1", got["eth1"])
	if len(got["eth0"]) != 0 {
		t.Errorf("the slave without a link announced %v", got["eth0"])
	}
	r.links["eth0"].SetCarrier(true)
	check("eth0", r.pass(time.Second)["eth0"])
}

// Two IPv4 addresses, one of IPv6 and one in a VLAN: each is announced as often
// as asked, at failover and failback, by the new slave alone (A13).
func TestAnnouncementCounts(t *testing.T) {
	for asked, want := range map[string]int{"3": 3, "0": 0, "1": 1} {
		r := newABRig(t, bonding.Options{LinkAddress: "\x02\x00\x00\x00\x00\x13"}, asked, []netip.Prefix{netip.MustParsePrefix("10.1.0.2/24"),
			netip.MustParsePrefix("10.1.0.3/24"), netip.MustParsePrefix("fd00:1::2/64")}, netip.MustParsePrefix("10.2.0.2/24"))
		for _, tt := range []struct {
			up       bool
			now, not string
		}{{false, "eth1", "eth0"}, {true, "eth0", "eth1"}} {
			r.links["eth0"].SetCarrier(tt.up)
			got := r.pass(time.Second)
			count := map[string]int{}
			tagged := 0
			for _, f := range got[tt.now] {
				count[f]++
				if f[24:32] == "8100000a" {
					tagged++
				}
			}
			// bond0: 2 + 1 and its link-local address; bond0.10: 1 and its.
			if frames := map[bool]int{true: 6, false: 0}[want > 0]; len(count) != frames || tagged != 2*want || len(got[tt.not]) != 0 {
				t.Errorf("num_grat_arp %s, eth0 up %v: %d different frames, %d tagged, %d by the other slave", asked, tt.up, len(count), tagged, len(got[tt.not]))
			}
			for f, n := range count {
				if n != want {
					t.Errorf("num_grat_arp %s, eth0 up %v: %s was sent %d times", asked, tt.up, f, n)
				}
			}
		}
	}
}

// Where the bond's address changes with the active slave, the device's does, and
// its VLAN is told so.
func TestAddressFollowsFailover(t *testing.T) {
	r := newABRig(t, bonding.Options{FailOverMAC: bonding.FailOverMACActive}, "1", []netip.Prefix{netip.MustParsePrefix("10.1.0.2/24")},
		netip.MustParsePrefix("10.2.0.2/24"))
	for _, tt := range []struct {
		up  bool
		now string
	}{{false, "eth1"}, {true, "eth0"}} {
		r.links["eth0"].SetCarrier(tt.up)
		mac := fmt.Sprintf("020000%02x%02x%02x", 0, 0xee, tt.now[3])
		var tagged []string
		for _, f := range r.pass(time.Second)[tt.now] {
			if f[24:32] == "8100000a" {
				tagged = append(tagged, f)
			}
		}
		// A gratuitous ARP request and a neighbour advertisement.
		if len(tagged) != 2 {
			t.Fatalf("%s announced %v in the VLAN", tt.now, tagged)
		}
		for _, f := range tagged {
			if f[12:24] != mac || strings.Count(f, mac) != 2 {
				t.Errorf("%s announced %s, want its address %s as source and sender", tt.now, f, mac)
			}
		}
	}
}

// BenchmarkTCP compares TCP over a bond with one and two tags to that without.
func BenchmarkTCP(b *testing.B) {
	hosts := newHosts(b, 2)
	sink, err := hosts[1].stack.Listen("tcp", ":9")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			c, err := sink.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()
	block := make([]byte, 1<<20)
	for _, tt := range []struct{ name, to string }{{"untagged", "10.0.0.2:9"}, {"tagged", "10.5.0.2:9"}, {"stacked", "10.75.0.2:9"}} {
		b.Run(tt.name, func(b *testing.B) {
			c, err := hosts[0].stack.DialContext(soon(b), "tcp", tt.to)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.SetBytes(int64(len(block)))
			for b.Loop() {
				if _, err := c.Write(block); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
