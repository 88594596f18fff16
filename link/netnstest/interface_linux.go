package netnstest

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Veth joins two namespaces, or one with itself, by a veth pair and brings both
// ends up.
func Veth(t testing.TB, a *Namespace, nameA string, b *Namespace, nameB string) {
	t.Helper()
	VethQueues(t, a, nameA, b, nameB, 1)
}

// VethQueues is Veth with a number of queues in each direction.
func VethQueues(t testing.TB, a *Namespace, nameA string, b *Namespace, nameB string, queues int) {
	t.Helper()
	a.Do(func() {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = nameA
		pair := &netlink.Veth{LinkAttrs: attrs, PeerName: nameB}
		if queues > 1 {
			pair.NumRxQueues, pair.NumTxQueues = queues, queues
			pair.PeerNumRxQueues, pair.PeerNumTxQueues = uint32(queues), uint32(queues)
		}
		if a != b {
			pair.PeerNamespace = netlink.NsFd(b.file.Fd())
		}
		if err := netlink.LinkAdd(pair); err != nil {
			t.Fatalf("netnstest: make veth pair %s, %s: %v", nameA, nameB, err)
		}
	})
	a.Up(nameA)
	b.Up(nameB)
}

// Bridge makes a bridge, makes the members its ports, and brings it up. It
// learns addresses and forwards at once (no spanning tree).
func (ns *Namespace) Bridge(name string, members ...string) {
	ns.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	ns.must("make bridge "+name, func(h *netlink.Handle) error {
		bridge := &netlink.Bridge{LinkAttrs: attrs}
		if err := h.LinkAdd(bridge); err != nil {
			return err
		}
		for _, member := range members {
			port, err := h.LinkByName(member)
			if err != nil {
				return err
			}
			if err := h.LinkSetMaster(port, bridge); err != nil {
				return err
			}
		}
		return h.LinkSetUp(bridge)
	})
}

// Up sets an interface administratively up.
func (ns *Namespace) Up(name string) {
	ns.t.Helper()
	ns.mustLink("bring up", name, (*netlink.Handle).LinkSetUp)
}

// Down sets an interface administratively down. For one end of a veth pair it
// is the loss of carrier at the other.
func (ns *Namespace) Down(name string) {
	ns.t.Helper()
	ns.mustLink("bring down", name, (*netlink.Handle).LinkSetDown)
}

// Delete deletes an interface, and with one end of a veth pair the other.
func (ns *Namespace) Delete(name string) {
	ns.t.Helper()
	ns.mustLink("delete", name, (*netlink.Handle).LinkDel)
}

// Rename renames an interface. The kernel may want it down (before Linux 6.2).
func (ns *Namespace) Rename(name, to string) {
	ns.t.Helper()
	ns.mustLink("rename", name, func(h *netlink.Handle, l netlink.Link) error {
		return h.LinkSetName(l, to)
	})
}

// SetMTU sets an interface's MTU in bytes.
func (ns *Namespace) SetMTU(name string, mtu int) {
	ns.t.Helper()
	ns.mustLink("set the MTU of", name, func(h *netlink.Handle, l netlink.Link) error {
		return h.LinkSetMTU(l, mtu)
	})
}

// AddAddress gives an interface an address with its prefix length, such as
// 10.0.0.1/24 or fd00::1/64.
func (ns *Namespace) AddAddress(name, cidr string) {
	ns.t.Helper()
	ns.mustLink("add address "+cidr+" to", name, func(h *netlink.Handle, l netlink.Link) error {
		addr, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		if addr.IP.To4() == nil {
			// Without detection too it is tentative for a moment, and cannot
			// be listened on.
			addr.Flags |= unix.IFA_F_NODAD
		}
		return h.AddrAdd(l, addr)
	})
}

// HardwareAddress returns an interface's Ethernet address.
func (ns *Namespace) HardwareAddress(name string) net.HardwareAddr {
	ns.t.Helper()
	var addr net.HardwareAddr
	ns.mustLink("look up", name, func(_ *netlink.Handle, l netlink.Link) error {
		addr = l.Attrs().HardwareAddr
		return nil
	})
	return addr
}

// mustLink does a deed to the interface of a name, or fails the test.
func (ns *Namespace) mustLink(deed, name string, f func(*netlink.Handle, netlink.Link) error) {
	ns.t.Helper()
	ns.must(deed+" "+name, func(h *netlink.Handle) error {
		l, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		return f(h, l)
	})
}

// must does a deed by a netlink handle of the namespace, or fails the test.
func (ns *Namespace) must(deed string, f func(*netlink.Handle) error) {
	ns.t.Helper()
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.file.Fd()))
	if err != nil {
		ns.t.Fatalf("netnstest: open netlink: %v", err)
	}
	defer h.Close()
	if err := f(h); err != nil {
		ns.t.Fatalf("netnstest: %s: %v", deed, err)
	}
}
