package tap

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// sockets are those of a device's namespace: handle and news for netlink, ask for
// ioctls.
type sockets struct {
	index  int
	handle *netlink.Handle
	ask    int
	news   *nl.NetlinkSocket
	// namespace is the device's; nil where it could not be opened.
	namespace *os.File
}

// openSockets opens those of the calling thread's namespace, where the device has
// a name. close must be called, also after an error.
func openSockets(name string) (s sockets, err error) {
	s.namespace, _ = os.Open("/proc/thread-self/ns/net")
	if s.ask, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return s, fmt.Errorf("open a socket to ask about interfaces: %w", err)
	}
	if s.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return s, fmt.Errorf("open netlink: %w", err)
	}
	found, err := s.handle.LinkByName(name)
	if err != nil {
		return s, fmt.Errorf("look it up: %w", err)
	}
	s.index = found.Attrs().Index
	s.news, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return s, fmt.Errorf("subscribe to the kernel's news: %w", err)
	}
	return s, nil
}

// endNews has no further news come; it may be called again.
func (s *sockets) endNews() {
	if s.news != nil {
		s.news.Close()
	}
}

// close closes what is open.
func (s *sockets) close() {
	s.endNews()
	if s.handle != nil {
		s.handle.Close()
	}
	if s.ask > 0 {
		unix.Close(s.ask)
	}
	if s.namespace != nil {
		s.namespace.Close()
	}
	*s = sockets{ask: -1}
}

// move follows the device into the namespace where somebody has put it. It
// reports false where the device is in none (it is gone), or in one that this
// process may not enter: then nothing changes.
func (d *device) move() bool {
	namespace, name, err := d.whereabouts()
	if err != nil {
		return false
	}
	defer namespace.Close()
	var there sockets
	err = inNamespace(namespace, func() (err error) {
		there, err = openSockets(name)
		return err
	})
	d.askMu.Lock()
	defer d.askMu.Unlock()
	if err == nil && !d.closing.Load() {
		d.sockets, there = there, d.sockets
	} else {
		err = os.ErrClosed
	}
	there.close()
	return err == nil
}

// whereabouts asks the TUN device, which the kernel's end stays with, where that
// is and what it is called.
func (d *device) whereabouts() (namespace *os.File, name string, err error) {
	d.askMu.RLock()
	defer d.askMu.RUnlock()
	if d.tun < 0 {
		return nil, "", os.ErrClosed
	}
	request, err := unix.NewIfreq("")
	if err == nil {
		err = unix.IoctlIfreq(d.tun, unix.TUNGETIFF, request)
	}
	if err != nil {
		return nil, "", err
	}
	fd, err := unix.IoctlRetInt(d.tun, unix.TUNGETDEVNETNS)
	if err != nil {
		return nil, "", err
	}
	return os.NewFile(uintptr(fd), "the device's namespace"), request.Name(), nil
}
