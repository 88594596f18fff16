package tap_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/netnstest"
	"bondstack/link/tap"
	"bondstack/stack"

	"golang.org/x/sys/unix"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// patience is how long tests wait for what must happen: never reached where all
// is well.
const patience = 20 * time.Second

// addresses of the tests: the stack's and the kernel's.
const (
	stackV4, kernelV4 = "10.9.0.1", "10.9.0.2"
	stackV6, kernelV6 = "fd00:9::1", "fd00:9::2"
)

// newTAP makes a device in a namespace, up, with the kernel's addresses. The test
// is skipped where the machine has no TUN device.
func newTAP(t testing.TB, ns *netnstest.Namespace, o tap.Options) *tap.Endpoint {
	t.Helper()
	o.Namespace = ns.File()
	e, err := tap.New("tap0", o)
	if errors.Is(err, tap.ErrNotSupported) {
		t.Skipf("needs a TUN device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	ns.AddAddress("tap0", kernelV4+"/24")
	ns.AddAddress("tap0", kernelV6+"/64")
	if err := e.SetUp(); err != nil {
		t.Fatal(err)
	}
	return e
}

// newHost makes a stack on an endpoint.
func newHost(t testing.TB, e netstack.LinkEndpoint) *stack.Host {
	t.Helper()
	h, err := stack.NewHost(e, stack.HostOptions{
		Name:      "stack0",
		Addresses: []netip.Prefix{netip.MustParsePrefix(stackV4 + "/24"), netip.MustParsePrefix(stackV6 + "/64")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// block is a stream of n bytes that is the same each time.
func block(n int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), n) }

func sum(r io.Reader) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return fmt.Sprintf("%d bytes, %x", n, h.Sum(nil)), err
}

// A stack and the kernel send each other 10 MB, over IPv4 and IPv6, in large
// frames.
func TestTCPBothWays(t *testing.T) {
	for _, o := range []tap.Options{{}, {Queues: 4}, {NoGSO: true}} {
		t.Run(fmt.Sprintf("queues %d, no GSO %v", o.Queues, o.NoGSO), func(t *testing.T) {
			linktest.CheckGoroutines(t)
			ns := netnstest.New(t)
			e := newTAP(t, ns, o)
			h := newHost(t, e)
			const size = 10 << 20
			want, _ := sum(block(size))
			for _, ip := range []string{kernelV4, kernelV6} {
				near, far := connect(t, ns, h, ip)
				for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
					go func() {
						io.Copy(way[0], block(size))
						way[0].(interface{ CloseWrite() error }).CloseWrite()
					}()
					if got, err := sum(way[1]); got != want || err != nil {
						t.Errorf("by %s: %s, %v, want %s", ip, got, err, want)
					}
				}
			}
			s := e.Stats()
			if large := s.RXBytes / s.RXPackets; !o.NoGSO && large < 3000 {
				t.Errorf("frames of the kernel have %d bytes on average, want TSO: %+v", large, s)
			}
			if s.RXDroppedChecksum+s.RXDroppedMalformed+s.RXDroppedOversize+s.TXDroppedInvalid != 0 {
				t.Errorf("drops: %+v", s)
			}
		})
	}
}

// connect connects the stack to the kernel.
func connect(t testing.TB, ns *netnstest.Namespace, h *stack.Host, ip string) (near, far net.Conn) {
	t.Helper()
	var l net.Listener
	ns.Do(func() {
		var err error
		if l, err = net.Listen("tcp", net.JoinHostPort(ip, "0")); err != nil {
			t.Fatal(err)
		}
	})
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	near, err := h.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	l.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return near, far
}

// Datagrams of the kernel, with a partial checksum and segmented, arrive each by
// itself and whole.
func TestDatagrams(t *testing.T) {
	ns := netnstest.New(t)
	e := newTAP(t, ns, tap.Options{})
	h := newHost(t, e)
	pc, err := h.ListenPacket("udp", ":9")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	pc.SetReadDeadline(time.Now().Add(patience))
	payload := bytes.Repeat([]byte("datagram"), 500)
	for _, ip := range []string{stackV4, stackV6} {
		ns.Do(func() {
			c, err := net.Dial("udp", net.JoinHostPort(ip, "9"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			raw, _ := c.(*net.UDPConn).SyscallConn()
			raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, 1200) })
			if _, err := c.Write(payload); err != nil {
				t.Fatal(err)
			}
		})
		var got []byte
		for _, want := range []int{1200, 1200, 1200, 400} {
			b := make([]byte, 4000)
			n, _, err := pc.ReadFrom(b)
			if err != nil || n != want {
				t.Fatalf("%s: a datagram of %d bytes, %v, want %d", ip, n, err, want)
			}
			got = append(got, b[:n]...)
		}
		if !bytes.Equal(got, payload) {
			t.Errorf("%s: datagrams differ from what was sent", ip)
		}
	}
}

// What is set at this end shows at the kernel's.
func TestWhatTheKernelShows(t *testing.T) {
	ns := netnstest.New(t)
	e := newTAP(t, ns, tap.Options{DeviceAddress: "\x02\x00\x00\x00\x00\x07", MTU: 9000})
	if a := ns.HardwareAddress("tap0").String(); a != "02:00:00:00:00:07" || e.DeviceAddress().String() != a || e.LinkAddress() == e.DeviceAddress() {
		t.Errorf("the kernel's end has %s, this one %s", a, e.LinkAddress())
	}
	shows := func(parts ...string) {
		t.Helper()
		out := ns.Run("ip", "-d", "link", "show", "tap0")
		for _, p := range parts {
			if !strings.Contains(out, p) {
				t.Errorf("the kernel shows %s, want %q in it", out, p)
			}
		}
	}
	shows("mtu 9000", "LOWER_UP")
	for _, err := range []error{e.ChangeMTU(1280), e.SetDeviceAddress("\x02\x00\x00\x00\x00\x08"), e.SetCarrier(false), e.SetSpeed(25000, link.DuplexFull)} {
		if err != nil {
			t.Error(err)
		}
	}
	shows("mtu 1280", "02:00:00:00:00:08", "NO-CARRIER")
	if out := ns.Run("ethtool", "tap0"); !strings.Contains(out, "25000Mb/s") || !strings.Contains(out, "Duplex: Full") {
		t.Errorf("ethtool tells %s", out)
	}
	if s := e.LinkState(); s.Speed != 25000 || s.Duplex != link.DuplexFull || !s.Up {
		t.Errorf("state %+v", s)
	}
	for _, err := range []error{e.ChangeMTU(67), e.ChangeMTU(65522), e.SetDeviceAddress("\x01\x00\x00\x00\x00\x08")} {
		if err == nil {
			t.Error("no error of what is not allowed")
		}
	}
	if err := e.SetCarrier(true); err != nil {
		t.Error(err)
	}
	shows("LOWER_UP")
	if e.MTU() != 1280 {
		t.Errorf("MTU() = %d", e.MTU())
	}
	ns.Run("ip", "link", "set", "tap0", "promisc", "on")
	if !e.Promiscuous() {
		t.Error("Promiscuous() = false")
	}
}

// The link's state follows the device, and its news are told.
func TestStateIsTold(t *testing.T) {
	ns := netnstest.New(t)
	e := newTAP(t, ns, tap.Options{})
	told := make(chan struct{}, 100)
	cancel := e.SubscribeLinkState(func() { told <- struct{}{} })
	defer cancel()
	for _, up := range []bool{false, true, false} {
		if up {
			ns.Up("tap0")
		} else {
			ns.Down("tap0")
		}
		for e.LinkState().Up != up || e.LinkState().Carrier != up {
			select {
			case <-told:
			case <-time.After(patience):
				t.Fatalf("not told that up is %v", up)
			}
		}
	}
	if n, err := linktest.Write(e, make([]byte, 60)); n != 0 || !link.Gone(err) {
		t.Errorf("a device that is down took %d, %v", n, err)
	}
	if s := e.Stats(); s.TXRefusedDown != 1 {
		t.Errorf("counters %+v", s)
	}
}

// Routes and addresses are the namespace's, also those of a VLAN device.
func TestRoutesOfTheNamespace(t *testing.T) {
	ns := netnstest.New(t)
	e := newTAP(t, ns, tap.Options{})
	_, noVLAN := ns.TryRun("ip", "link", "add", "link", "tap0", "name", "v5", "type", "vlan", "id", "5")
	if noVLAN == nil {
		ns.AddAddress("v5", "10.5.0.2/24")
		ns.Up("v5")
	} else {
		t.Logf("VLAN devices are left out: %v", noVLAN)
	}
	ns.Run("ip", "route", "add", "10.77.0.0/16", "via", "10.9.0.254")
	tags := []link.VLANTag{{Protocol: link.TagProtocolQ, ID: 5}}
	for _, c := range []struct {
		target, source string
		tags           []link.VLANTag
		ok             bool
	}{
		{"10.9.0.3", kernelV4, nil, true},
		{"10.77.1.1", kernelV4, nil, true},
		{"fd00:9::3", kernelV6, nil, true},
		{"10.5.0.3", "10.5.0.2", tags, true},
		{"192.0.2.1", "invalid IP", nil, true}, // no route: an empty way
		{kernelV4, "invalid IP", nil, false},   // its own
		{"127.0.0.5", "invalid IP", nil, false},
	} {
		if c.tags != nil && noVLAN != nil {
			continue
		}
		way, ok := e.Route(netip.MustParseAddr(c.target))
		if ok != c.ok || ok && (way.Source.String() != c.source || fmt.Sprint(way.Tags) != fmt.Sprint(c.tags)) {
			t.Errorf("Route(%s) = %+v, %v, want %+v", c.target, way, ok, c)
		}
	}
	for addr, want := range map[string]bool{kernelV4: true, "10.5.0.2": noVLAN == nil, "127.0.0.1": false, stackV4: false} {
		if got := e.Owns(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Owns(%s) = %v", addr, got)
		}
	}
	list, err := e.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, a := range list {
		found[a.Addr.String()] = fmt.Sprint(a.Tags)
	}
	if found[kernelV4] != "[]" || noVLAN == nil && found["10.5.0.2"] != "[5]" || found[kernelV6] != "[]" || found["127.0.0.1"] != "" {
		t.Errorf("addresses %v", found)
	}
}

// Each refusal says what is wrong.
func TestRefusals(t *testing.T) {
	if _, err := tap.New("a/b", tap.Options{}); !errors.Is(err, tap.ErrName) {
		t.Errorf("a name with a slash: %v", err)
	}
	if _, err := tap.New("tap0", tap.Options{MTU: 1}); err == nil || !strings.Contains(err.Error(), "MTU 1") {
		t.Errorf("MTU 1: %v", err)
	}
	ns := netnstest.New(t)
	small := newTAP(t, ns, tap.Options{})
	small.SetMTU(1279)
	address := &net.IPNet{IP: net.ParseIP("fd00::5"), Mask: net.CIDRMask(64, 128)}
	if err := small.AddAddress(address, false); err == nil || !strings.Contains(err.Error(), "IPv6 needs an MTU of 1280, this is 1279") {
		t.Errorf("an IPv6 address with an MTU of 1279: %v", err)
	}
	netnstest.Veth(t, ns, "veth0", ns, "veth1")
	ns.Run("ip", "tuntap", "add", "kept0", "mode", "tap")
	for _, name := range []string{"tap0", "veth0", "kept0", "lo"} {
		if _, err := tap.New(name, tap.Options{Namespace: ns.File()}); !errors.Is(err, tap.ErrExists) || !strings.Contains(err.Error(), name) {
			t.Errorf("name %s is taken: %v", name, err)
		}
	}
	no, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer no.Close()
	if _, err := tap.New("tap1", tap.Options{Namespace: no}); err == nil || !strings.Contains(err.Error(), "enter network namespace") {
		t.Errorf("a namespace that is none: %v", err)
	}
}

// Where somebody deletes the device while frames pass, the link is down for good
// and says so.
func TestDeletedUnderLoad(t *testing.T) {
	linktest.CheckGoroutines(t)
	ns := netnstest.New(t)
	e := newTAP(t, ns, tap.Options{Queues: 2})
	newHost(t, e)
	ping := exec.Command("ping", "-q", "-f", stackV4)
	ns.Start(ping)
	for e.Stats().RXPackets < 200 {
		time.Sleep(time.Millisecond)
	}
	ns.Delete("tap0")
	select {
	case <-e.Gone():
	case <-time.After(patience):
		t.Fatal("not told that the device is gone")
	}
	if s := e.LinkState(); s.Up || s.Carrier {
		t.Errorf("state %+v of a device that is gone", s)
	}
	if _, err := linktest.Write(e, make([]byte, 60)); !link.Gone(err) {
		t.Errorf("a write gives %v", err)
	}
}

// Rounds of opening and closing, with frames under way, leave neither device nor
// descriptor nor goroutine.
func TestRoundsLeaveNothing(t *testing.T) {
	linktest.CheckGoroutines(t)
	ns := netnstest.New(t)
	newTAP(t, ns, tap.Options{}).Close()
	before := descriptors(t)
	for i := range 50 {
		e, err := tap.New("round0", tap.Options{Namespace: ns.File(), Queues: 1 + i%3})
		if err != nil {
			t.Fatal(err)
		}
		e.Attach(&linktest.Counter{})
		if err := e.SetUp(); err != nil {
			t.Fatal(err)
		}
		linktest.Write(e, make([]byte, 60))
		e.Attach(nil)
		e.Attach(&linktest.Counter{})
		e.Wait() // returns at once
		e.Close()
		e.Close()
		e.Wait()
		if e.SetCarrier(true) == nil || e.ChangeMTU(1400) == nil || e.SetSpeed(1, link.DuplexFull) == nil {
			t.Error("a closed endpoint takes settings")
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	if out := ns.Run("ip", "link"); strings.Contains(out, "round0") {
		t.Errorf("there is still %s", out)
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
