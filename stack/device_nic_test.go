package stack_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"
)

func newNetstack(t testing.TB) *netstack.Stack {
	s := netstack.New(netstack.Options{
		NetworkProtocols:   []netstack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []netstack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
		HandleLocal:        false,
	})
	t.Cleanup(s.Destroy)
	return s
}

func newRecorder() *linktest.Recorder { return linktest.NewRecorder(linktest.RecorderOptions{}) }

func withAddress(t testing.TB, s *netstack.Stack, index tcpip.NICID, address string) {
	t.Helper()
	p := prefix(address)
	a := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{
		Address: tcpip.AddrFromSlice(p.Addr().AsSlice()), PrefixLen: p.Bits()}}
	if err := s.AddProtocolAddress(index, a, netstack.AddressProperties{}); err != nil {
		t.Fatal(err)
	}
	s.AddRoute(tcpip.Route{Destination: a.AddressWithPrefix.Subnet(), NIC: index})
}

// A device is a NIC; deleting it takes its addresses and routes, and closes the
// link.
func TestDeviceNIC(t *testing.T) {
	s := newNetstack(t)
	d := newTable(t, stack.DevicesOptions{Stack: s})
	ep := newRecorder()
	index := mustAdd(t, d, stack.NewDevice{Name: "eth%d", Link: ep})
	withAddress(t, s, index, "10.0.0.1/24")
	other := mustAdd(t, d, stack.NewDevice{Name: "eth%d", Link: newRecorder()})
	withAddress(t, s, other, "10.0.1.1/24")
	if !s.CheckNIC(index) || !ep.IsAttached() || s.FindNICNameFromID(index) != "" {
		t.Errorf("NIC %d: enabled %v, attached %v, name %q", index, s.CheckNIC(index), ep.IsAttached(), s.FindNICNameFromID(index))
	}
	if err := d.SetUp(index, false); err != nil || s.CheckNIC(index) {
		t.Errorf("SetUp(false) = %v, enabled %v", err, s.CheckNIC(index))
	}
	if err := d.SetUp(index, true); err != nil || !s.CheckNIC(index) {
		t.Errorf("SetUp(true) = %v, enabled %v", err, s.CheckNIC(index))
	}
	for _, n := range []stack.NewDevice{
		{Name: "again", Link: ep},                   // attached
		{Name: "eth0", Link: newRecorder()},         // taken
		{Name: "nil"},                               // no link
		{Name: "x", Link: newRecorder(), Index: 1},  // used
		{Name: "x", Link: newRecorder(), Index: -1}, // negative
		{Name: "x", Link: newRecorder(), NIC: &netstack.NICOptions{Name: "x"}},
	} {
		if _, err := d.Add(n); err == nil {
			t.Errorf("Add(%+v) succeeds", n)
		}
	}
	if err := d.Delete(index); err != nil {
		t.Fatal(err)
	}
	if calls := ep.Calls(); s.HasNIC(index) || ep.IsAttached() || calls.Close != 1 || calls.Wait != 1 {
		t.Errorf("after Delete: NIC %v, attached %v, %+v", s.HasNIC(index), ep.IsAttached(), calls)
	}
	if routes := s.GetRouteTable(); len(routes) != 1 || routes[0].NIC != other {
		t.Errorf("routes %v", routes)
	}
	mustBe(t, d.Delete(index), stack.ErrNoDevice)
	mustBe(t, d.Rename(index, "x"), syscall.ENODEV)
	if got := mustAdd(t, d, stack.NewDevice{Name: "eth0", Link: newRecorder()}); got <= other {
		t.Errorf("index %d is used again", got)
	}
}

// A batch that fails leaves no NIC, and the links open.
func TestAddUnwinds(t *testing.T) {
	s := newNetstack(t)
	d := newTable(t, stack.DevicesOptions{Stack: s})
	var g refuser
	d.AddGuard(&g)
	links := []*linktest.Recorder{newRecorder(), newRecorder(), newRecorder()}
	batch := func(names ...string) (list []stack.NewDevice) {
		for i, name := range names {
			list = append(list, stack.NewDevice{Name: name, Link: links[i]})
		}
		return list
	}
	g.name = "c"
	twice := batch("a", "b", "d")
	twice[2].Link = links[0]
	for what, list := range map[string][]stack.NewDevice{
		"vetoed": batch("a", "b", "c"), "name taken": batch("a", "b", "a"), "link twice": twice,
	} {
		if _, err := d.AddAll(list); err == nil {
			t.Errorf("%s: AddAll succeeds", what)
		}
		if len(s.NICInfo()) != 0 || d.Table().Len() != 0 || d.Table().Version() != 0 {
			t.Errorf("%s: NICs %v, %d devices, version %d", what, s.NICInfo(), d.Table().Len(), d.Table().Version())
		}
		for _, l := range links {
			if l.IsAttached() || l.Calls().Close != 0 {
				t.Errorf("%s: a link is attached %v, %+v", what, l.IsAttached(), l.Calls())
			}
		}
	}
	// A NIC that somebody else made is stepped around, and not given away.
	foreign := d.Table().Version() + 20
	if err := s.CreateNIC(tcpip.NICID(foreign), newRecorder()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Add(stack.NewDevice{Name: "x", Link: links[0], Index: tcpip.NICID(foreign)}); !errors.Is(err, stack.ErrIndex) {
		t.Errorf("Add with the index of a foreign NIC = %v", err)
	}
	mustAdd(t, d, stack.NewDevice{Name: "x", Link: links[0], Index: tcpip.NICID(foreign - 1)})
	if got := mustAdd(t, d, stack.NewDevice{Name: "y", Link: links[1]}); got != tcpip.NICID(foreign+1) {
		t.Errorf("index %d, want %d", got, foreign+1)
	}
}

// Cases T230 and T232, with full NICs.
func TestThousandDevices(t *testing.T) {
	linktest.CheckGoroutines(t)
	s := newNetstack(t)
	d := newTable(t, stack.DevicesOptions{Stack: s})
	list := make([]stack.NewDevice, 1000)
	for i := range list {
		list[i] = stack.NewDevice{Name: "dev%d", Link: newRecorder()}
	}
	devices, err := d.AddAll(list)
	if err != nil {
		t.Fatal(err)
	}
	var indexes []tcpip.NICID
	for i, dev := range devices {
		if dev.Name() != fmt.Sprint("dev", i) || !s.CheckNIC(dev.Index()) || i > 0 && dev.Index() <= indexes[i-1] {
			t.Fatalf("device %d is %s, index %d", i, dev.Name(), dev.Index())
		}
		indexes = append(indexes, dev.Index())
		s.AddRoute(tcpip.Route{Destination: defaultSubnet, NIC: dev.Index()})
	}
	if d.Table().Version() != 1 {
		t.Errorf("version %d after one batch", d.Table().Version())
	}
	if err := d.DeleteAll(append(indexes[:5:5], indexes[4])); !errors.Is(err, stack.ErrNoDevice) || d.Table().Len() != 1000 {
		t.Errorf("DeleteAll with a device twice = %v, %d devices left", err, d.Table().Len())
	}
	if err := d.DeleteAll(indexes); err != nil {
		t.Fatal(err)
	}
	if d.Table().Len() != 0 || len(s.NICInfo()) != 0 || len(s.GetRouteTable()) != 0 {
		t.Errorf("%d devices, %d NICs, %d routes left", d.Table().Len(), len(s.NICInfo()), len(s.GetRouteTable()))
	}
}

var defaultSubnet = func() tcpip.Subnet {
	s, err := tcpip.NewSubnet(tcpip.AddrFrom4([4]byte{}), tcpip.MaskFrom("\x00\x00\x00\x00"))
	if err != nil {
		panic(err)
	}
	return s
}()

// Nothing is left after 10,000 rounds of adding and deleting: no goroutine, no
// descriptor, no packet buffer (TestMain), no memory to speak of.
func TestAddDeleteRounds(t *testing.T) {
	rounds := 10_000
	if raceEnabled {
		rounds = 1_000
	}
	linktest.CheckGoroutines(t)
	s := newNetstack(t)
	d := newTable(t, stack.DevicesOptions{Stack: s})
	before, descriptors := heap(), openFiles()
	for n := range rounds {
		var ep netstack.LinkEndpoint = newRecorder()
		if n%10 == 0 {
			a, b := newWire(t, wire.Options{})
			ep = a
			b.Close()
		}
		index := mustAdd(t, d, stack.NewDevice{Name: "t%d", Link: ep})
		if n%3 == 0 {
			withAddress(t, s, index, "10.0.0.1/24")
		}
		if err := d.Rename(index, "renamed"); err != nil {
			t.Fatal(err)
		}
		if err := d.Delete(index); err != nil {
			t.Fatal(err)
		}
	}
	if after := openFiles(); after > descriptors {
		t.Errorf("%d descriptors are open, before it were %d", after, descriptors)
	}
	if grown := int64(heap()) - int64(before); grown > 8<<20 {
		t.Errorf("the heap has grown by %d bytes in %d rounds", grown, rounds)
	}
	if d.Table().Len() != 0 || len(s.NICInfo()) != 0 {
		t.Errorf("%d devices and %d NICs left", d.Table().Len(), len(s.NICInfo()))
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // no such thing here
	}
	return len(list)
}

// A link that is closed by somebody else takes its device with it.
func TestLinkClosedElsewhere(t *testing.T) {
	s := newNetstack(t)
	d := newTable(t, stack.DevicesOptions{Stack: s})
	w := d.Watch(8)
	ep, far := newWire(t, wire.Options{})
	defer far.Close()
	index := mustAdd(t, d, stack.NewDevice{Name: "eth0", Link: ep})
	ep.Close()
	for {
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == stack.DeviceDeleted {
			break
		}
	}
	d.Close()
	if _, ok := d.ByName("eth0"); ok || s.HasNIC(index) {
		t.Error("the device is still there")
	}
	_, err := d.Add(stack.NewDevice{Name: "x", Link: newRecorder()})
	mustBe(t, err, net.ErrClosed)
	mustBe(t, d.Rename(index, "x"), net.ErrClosed)
	mustBe(t, d.Delete(index), net.ErrClosed)
	mustBe(t, d.SetUp(index, true), net.ErrClosed)
}

// Everything at once, on NICs: whatever the order, the end is empty.
func TestDevicesRace(t *testing.T) {
	linktest.CheckGoroutines(t)
	a, b := stack.NewDevices(stack.DevicesOptions{Stack: newNetstack(t)}), stack.NewDevices(stack.DevicesOptions{Stack: newNetstack(t)})
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for n := range 100 {
				d, other := a, b
				if (n+w)%2 == 0 {
					d, other = b, a
				}
				ep := newRecorder()
				closer, far := newWire(t, wire.Options{})
				far.Close()
				n2 := stack.NewDevice{Name: "t%d", Link: ep}
				if n%5 == 0 {
					n2.Link = closer
				}
				dev, err := d.Add(n2)
				if err != nil {
					t.Error(err)
					return
				}
				watch := d.Watch(4)
				ep.SetState(link.State{Up: true})
				d.Rename(dev.Index(), fmt.Sprint("w", w))
				d.AddAltName(dev.Index(), fmt.Sprint("alias", w))
				d.SetMTU(dev.Index(), 1400)
				d.SetUp(dev.Index(), n%3 == 0)
				if n%2 == 0 {
					if moved, err := d.Move(dev.Index(), other, "m%d"); err == nil {
						d, dev = other, moved
					}
				}
				if n%5 == 0 {
					workers.Go(closer.Close)
				} else {
					closer.Close()
				}
				d.Delete(dev.Index())
				watch.Close()
			}
		})
	}
	workers.Wait()
	a.Close()
	b.Close()
	for _, d := range []*stack.Devices{a, b} {
		if d.Table().Len() != 0 {
			t.Errorf("%d devices left", d.Table().Len())
		}
	}
}

// Sockets bound to a device stay bound over a renaming, and end clearly when
// it is deleted.
func TestBind(t *testing.T) {
	s := newNetstack(t)
	d := newTable(t, stack.DevicesOptions{Stack: s})
	left, right := newWire(t, wire.Options{})
	h := newHost(t, right, stack.HostOptions{Addresses: []netip.Prefix{prefix("10.0.0.2/24")}})
	index := mustAdd(t, d, stack.NewDevice{Name: "eth0", Link: left})
	withAddress(t, s, index, "10.0.0.1/24")
	packets := mustListenPacket(t, h, "udp", ":53")

	var queue waiter.Queue
	ep, terr := s.NewEndpoint(udp.ProtocolNumber, ipv4.ProtocolNumber, &queue)
	if terr != nil {
		t.Fatal(terr)
	}
	defer ep.Close()
	b, err := d.Bind(ep, index)
	if err != nil {
		t.Fatal(err)
	}
	send := func() tcpip.Error {
		_, err := ep.Write(strings.NewReader("x"), tcpip.WriteOptions{To: &tcpip.FullAddress{Addr: tcpip.AddrFrom4([4]byte{10, 0, 0, 2}), Port: 53}})
		return err
	}
	for _, name := range []string{"eth1", "bond0"} {
		if err := d.Rename(index, name); err != nil {
			t.Fatal(err)
		}
		if err := send(); err != nil {
			t.Errorf("write on %s: %v", name, err)
		}
		if _, _, err := packets.ReadFrom(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		if dev, err := b.Device(); err != nil || dev.Name() != name || ep.SocketOptions().GetBindToDevice() != int32(index) {
			t.Errorf("bound to %v, %v", dev, err)
		}
	}
	entry, hungUp := waiter.NewChannelEntry(waiter.EventHUp | waiter.EventErr | waiter.ReadableEvents)
	queue.EventRegister(&entry)
	if err := d.Delete(index); err != nil {
		t.Fatal(err)
	}
	<-b.Gone()
	<-hungUp
	mustBe(t, b.Err(), stack.ErrNoDevice)
	if err := send(); err == nil {
		t.Error("write on a deleted device succeeds")
	}
	_, err = d.Bind(ep, index)
	mustBe(t, err, syscall.ENODEV)
	unattached := mustAdd(t, d, stack.NewDevice{Name: "slave", Link: newRecorder(), Unattached: true})
	_, err = d.Bind(ep, unattached)
	mustBe(t, err, stack.ErrNoDevice)
}

// A TCP connection bound to a device that is deleted is aborted.
func TestBindTCP(t *testing.T) {
	s := newNetstack(t)
	d := newTable(t, stack.DevicesOptions{Stack: s})
	left, right := newWire(t, wire.Options{})
	h := newHost(t, right, stack.HostOptions{Addresses: []netip.Prefix{prefix("10.0.0.2/24")}})
	index := mustAdd(t, d, stack.NewDevice{Name: "eth0", Link: left})
	withAddress(t, s, index, "10.0.0.1/24")
	l := mustListen(t, h, "10.0.0.2:80")
	var queue waiter.Queue
	ep, terr := s.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, &queue)
	if terr != nil {
		t.Fatal(terr)
	}
	defer ep.Close()
	b, err := d.Bind(ep, index)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ready, connected := waiter.NewChannelEntry(waiter.WritableEvents)
	queue.EventRegister(&ready)
	if err := ep.Connect(tcpip.FullAddress{Addr: tcpip.AddrFrom4([4]byte{10, 0, 0, 2}), Port: 80}); err != nil {
		if _, ok := err.(*tcpip.ErrConnectStarted); !ok {
			t.Fatal(err)
		}
	}
	<-connected
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hup, hungUp := waiter.NewChannelEntry(waiter.EventHUp)
	queue.EventRegister(&hup)
	if err := d.Delete(index); err != nil {
		t.Fatal(err)
	}
	<-hungUp
	if _, err := ep.Write(strings.NewReader("x"), tcpip.WriteOptions{}); err == nil {
		t.Error("write succeeds")
	}
	mustBe(t, b.Err(), stack.ErrNoDevice)
}

func newUDP(t testing.TB, s *netstack.Stack) tcpip.Endpoint {
	t.Helper()
	ep, err := s.NewEndpoint(udp.ProtocolNumber, ipv4.ProtocolNumber, new(waiter.Queue))
	if err != nil {
		t.Fatal(err)
	}
	return ep
}
