package tap

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"bondstack/link"
	"bondstack/link/internal/ethtool"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// device is the kernel's end: what may be asked and set there, and its news.
type device struct {
	// sockets are those of the device's namespace. They are replaced by hear,
	// with askMu held for writing.
	sockets
	// heard is closed when the goroutine that hears the news ends; nil before
	// it was started.
	heard chan struct{}
	// closing is set before news is closed.
	closing atomic.Bool

	// askMu is read-locked over the use of the sockets and of the tun
	// descriptor, so that their numbers are not closed and used again meanwhile.
	askMu sync.RWMutex
	tun   int

	states, addresses subscribers
	// mtu is the device's, as heard last.
	mtu atomic.Uint32

	// mu guards the following, which are kept since the kernel may be slow.
	mu     sync.Mutex
	speed  uint32
	duplex link.Duplex
}

// open opens the sockets, on a thread in the device's namespace. close must be
// called, also after an error.
func (d *device) open(name string, tun int) (err error) {
	d.tun, d.speed, d.duplex = tun, link.SpeedUnknown, link.DuplexUnknown
	if d.sockets, err = openSockets(name); err != nil {
		return err
	}
	if a := d.attributes(); a != nil {
		d.mtu.Store(uint32(a.MTU))
	}
	return nil
}

// follow begins to hear the news.
func (d *device) follow() {
	d.heard = make(chan struct{})
	go d.hear()
}

// close ends hearing and closes the sockets.
func (d *device) close() {
	d.closing.Store(true)
	d.askMu.RLock()
	d.endNews()
	d.askMu.RUnlock()
	if d.heard != nil {
		<-d.heard
	}
	d.askMu.Lock()
	defer d.askMu.Unlock()
	d.sockets.close()
	d.tun = -1
}

// hear tells subscribers of what concerns the device. It says only that
// something changed: who is told asks for the truth.
func (d *device) hear() {
	defer close(d.heard)
	for {
		messages, _, err := d.news.Receive()
		if d.closing.Load() {
			return
		}
		if err != nil { // news were lost (ENOBUFS)
			d.renew()
			d.addresses.call()
			continue
		}
		state, address := false, false
		for _, m := range messages {
			switch m.Header.Type {
			case unix.RTM_NEWLINK, unix.RTM_DELLINK:
				state = state || indexOf(m.Data) == d.index
			case unix.RTM_NEWADDR, unix.RTM_DELADDR:
				address = true // of a device on ours, perhaps
			}
		}
		if state {
			address = d.attributes() == nil && d.move() || address
			d.renew()
		}
		if address {
			d.addresses.call()
		}
	}
}

// renew reads what is kept, and tells those who want to know of changes.
func (d *device) renew() {
	if a := d.attributes(); a != nil {
		d.mtu.Store(uint32(a.MTU))
	}
	d.states.call()
}

// indexOf reads the index of an interface from struct ifinfomsg.
func indexOf(b []byte) int {
	if len(b) < unix.SizeofIfInfomsg {
		return 0
	}
	return int(nl.NativeEndian().Uint32(b[4:]))
}

// withLink runs f with the device as netlink has it.
func (d *device) withLink(deed string, f func(*netlink.Handle, netlink.Link) error) error {
	d.askMu.RLock()
	defer d.askMu.RUnlock()
	if d.handle == nil {
		return fmt.Errorf("%s: the endpoint is closed: %w", deed, os.ErrClosed)
	}
	found, err := d.handle.LinkByIndex(d.index)
	if err == nil {
		err = f(d.handle, found)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", deed, err)
	}
	return nil
}

// attributes returns what netlink says of the device, nil when it is gone.
func (d *device) attributes() *netlink.LinkAttrs {
	var a *netlink.LinkAttrs
	_ = d.withLink("", func(_ *netlink.Handle, l netlink.Link) error {
		a = l.Attrs()
		return nil
	})
	return a
}

// dropped returns how many frames the kernel dropped before the queue.
func (d *device) dropped() uint64 {
	if a := d.attributes(); a != nil && a.Statistics != nil {
		return a.Statistics.TxDropped
	}
	return 0
}

// MTU implements stack.LinkEndpoint. It is the device's.
func (e *Endpoint) MTU() uint32 { return e.device.mtu.Load() }

// SetMTU implements stack.LinkEndpoint. Values outside MTURange change nothing.
func (e *Endpoint) SetMTU(mtu uint32) { _ = e.ChangeMTU(mtu) } // the interface has no error

// ChangeMTU is SetMTU with an error.
func (e *Endpoint) ChangeMTU(mtu uint32) error {
	if mtu < minMTU || mtu > MaxMTU {
		return fmt.Errorf("tap: device %q: MTU %d: allowed are %d to %d", e.name, mtu, minMTU, MaxMTU)
	}
	return e.set(fmt.Sprintf("set the MTU to %d", mtu), func(h *netlink.Handle, l netlink.Link) error {
		err := h.LinkSetMTU(l, int(mtu))
		if err == nil {
			e.device.mtu.Store(mtu)
		}
		return err
	})
}

// MTURange implements link.MTUEndpoint: 68 to 65521.
func (*Endpoint) MTURange() (least, greatest uint32) { return minMTU, MaxMTU }

// Is reports whether the interface of a name, or of another name of it, in the
// calling thread's network namespace is the device, whatever that is called by now.
func (e *Endpoint) Is(name string) bool {
	d := &e.device
	d.askMu.RLock()
	defer d.askMu.RUnlock()
	if d.namespace == nil || indexIn(name) != d.index {
		return false
	}
	own, err := d.namespace.Stat()
	if err != nil {
		return false
	}
	here, err := os.Stat("/proc/thread-self/ns/net")
	return err == nil && os.SameFile(own, here)
}

// SetUp brings the device administratively up.
func (e *Endpoint) SetUp() error { return e.set("bring it up", (*netlink.Handle).LinkSetUp) }

// AddAddress gives the device an address with its prefix, as "ip address add"
// does. IPv6 addresses are not detected for duplicates where noDAD is set.
func (e *Endpoint) AddAddress(prefix *net.IPNet, noDAD bool) error {
	return e.set("add address "+prefix.String(), func(h *netlink.Handle, l netlink.Link) error {
		a := &netlink.Addr{IPNet: prefix}
		if noDAD && prefix.IP.To4() == nil {
			a.Flags |= unix.IFA_F_NODAD
		}
		err := h.AddrAdd(l, a)
		if mtu := l.Attrs().MTU; errors.Is(err, unix.EINVAL) && prefix.IP.To4() == nil && mtu < leastIPv6MTU {
			return fmt.Errorf("IPv6 needs an MTU of %d, this is %d: %w", leastIPv6MTU, mtu, err)
		}
		return err
	})
}

// DeviceAddress returns the address of the kernel's end; nothing when that is
// gone.
func (e *Endpoint) DeviceAddress() tcpip.LinkAddress {
	if a := e.device.attributes(); a != nil {
		return tcpip.LinkAddress(a.HardwareAddr)
	}
	return ""
}

// SetDeviceAddress sets the address of the kernel's end.
func (e *Endpoint) SetDeviceAddress(addr tcpip.LinkAddress) error {
	if err := checkAddress(addr); err != nil {
		return fmt.Errorf("tap: device %q: address: %w", e.name, err)
	}
	return e.set(fmt.Sprintf("set the address to %s", addr), func(h *netlink.Handle, l netlink.Link) error {
		return h.LinkSetHardwareAddr(l, net.HardwareAddr(addr))
	})
}

// set does a deed to the device.
func (e *Endpoint) set(deed string, f func(*netlink.Handle, netlink.Link) error) error {
	if err := e.device.withLink(deed, f); err != nil {
		return fmt.Errorf("tap: device %q: %w", e.name, err)
	}
	return nil
}

// SetCarrier sets whether the kernel's end has a carrier.
func (e *Endpoint) SetCarrier(on bool) error {
	value := 0
	if on {
		value = 1
	}
	d := &e.device
	d.askMu.RLock()
	defer d.askMu.RUnlock()
	err := error(os.ErrClosed)
	if d.tun >= 0 {
		err = unix.IoctlSetPointerInt(d.tun, unix.TUNSETCARRIER, value)
	}
	if err != nil {
		return fmt.Errorf("tap: device %q: set the carrier: %w", e.name, err)
	}
	return nil
}

// SetSpeed sets the speed in Mbit/s (link.SpeedUnknown) and the duplex mode that
// the kernel's end shows. A kernel that keeps none (before Linux 5.0) shows its own.
func (e *Endpoint) SetSpeed(speed uint32, duplex link.Duplex) error {
	a := e.device.attributes() // its name may be another now
	d := &e.device
	d.askMu.RLock()
	defer d.askMu.RUnlock()
	if a == nil || d.ask < 0 {
		return fmt.Errorf("tap: device %q: set the speed: %w", e.name, os.ErrClosed)
	}
	if err := ethtool.SetSpeed(d.ask, a.Name, speed, duplex); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("tap: %w", err)
	}
	d.mu.Lock()
	d.speed, d.duplex = speed, duplex
	d.mu.Unlock()
	return nil
}

// LinkState implements link.StateEndpoint. The link is up while the kernel's end
// is, and has a carrier then.
func (e *Endpoint) LinkState() link.State {
	up := false
	if a := e.device.attributes(); a != nil {
		up = a.Flags&net.FlagUp != 0
	}
	d := &e.device
	d.mu.Lock()
	defer d.mu.Unlock()
	return link.State{Up: up, Carrier: up, Speed: d.speed, Duplex: d.duplex}
}

// Promiscuous reports whether the kernel's end wants frames for any address, as
// a port of a bridge does.
func (e *Endpoint) Promiscuous() bool {
	a := e.device.attributes()
	return a != nil && a.Promisc > 0
}

// SubscribeLinkState implements link.StateEndpoint. f is also called when
// Promiscuous changes, and the device's MTU and address.
func (e *Endpoint) SubscribeLinkState(f func()) (cancel func()) { return e.device.states.add(f) }

// SubscribeAddresses has f called after each change of the IP addresses in the
// device's namespace, by a goroutine that holds no lock. cancel ends the
// subscription; a call already under way may still return after it.
func (e *Endpoint) SubscribeAddresses(f func()) (cancel func()) { return e.device.addresses.add(f) }

// subscribers are functions to call, with no lock held.
type subscribers struct {
	mu   sync.Mutex
	list []*func()
}

// add subscribes f until the function that it returns is called.
func (s *subscribers) add(f func()) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := &f
	s.list = append(slices.Clone(s.list), entry)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = slices.DeleteFunc(slices.Clone(s.list), func(e *func()) bool { return e == entry })
	}
}

// call calls every subscriber in order.
func (s *subscribers) call() {
	s.mu.Lock()
	list := s.list
	s.mu.Unlock()
	for _, f := range list {
		(*f)()
	}
}
