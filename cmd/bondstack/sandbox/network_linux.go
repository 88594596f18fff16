package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Network is a network namespace without a name. It lasts while it is open, or a
// process is in it.
type Network struct{ file *os.File }

// NewNetwork makes a namespace whose loopback interface is up.
func NewNetwork() (*Network, error) {
	n := &Network{}
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return explainNamespaces(fmt.Errorf("make it: %w", err), "net")
		}
		if n.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err != nil {
			return fmt.Errorf("bring lo up: %w", err)
		}
		return nil
	})
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	return n, nil
}

// NetworkAt is the namespace of an open file, which stays the caller's; nil for the
// one that the callers of its methods are in. It needs no Close.
func NetworkAt(file *os.File) *Network { return &Network{file} }

// Close lets go of the namespace.
func (n *Network) Close() {
	if n.file != nil {
		n.file.Close()
	}
}

// File is the open namespace.
func (n *Network) File() *os.File { return n.file }

// enter puts the calling thread, which is locked, into the namespace.
func (n *Network) enter() error {
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace: %w", err)
	}
	return nil
}

// do runs f on a thread in the namespace. That one may be in already needs no right to
// enter.
func (n *Network) do(f func() error) error {
	if n.file == nil {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return f()
	}
	return onThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return f()
	})
}

// onThread runs f on a thread of its own, which ends after it.
func onThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		result <- f()
	}()
	return <-result
}

// AddDefaultRoute makes a router the way to all that is not near, by a device.
func (n *Network) AddDefaultRoute(device string, router netip.Addr) error {
	err := n.do(func() error {
		found, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		all := &net.IPNet{IP: make(net.IP, router.BitLen()/8), Mask: make(net.IPMask, router.BitLen()/8)}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: found.Attrs().Index, Dst: all, Gw: router.AsSlice()})
	})
	if err != nil {
		return fmt.Errorf("route by %s: %w", router, err)
	}
	return nil
}

// lookEvery is how often AwaitRunning looks.
const lookEvery = 2 * time.Millisecond

// AwaitRunning waits until the kernel sends by a device, which it does some time
// after that has a carrier. It is false where it does not within a time.
func (n *Network) AwaitRunning(ctx context.Context, device string, within time.Duration) (bool, error) {
	running := false
	err := n.do(func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		request, err := unix.NewIfreq(device)
		if err != nil {
			return err
		}
		for end := time.Now().Add(within); ; {
			if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
				return err
			}
			running = request.Uint16()&unix.IFF_RUNNING != 0
			if running || time.Now().After(end) {
				return nil
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(lookEvery):
			}
		}
	})
	var interrupted Interrupted
	if err != nil && !errors.As(err, &interrupted) {
		err = fmt.Errorf("wait for a carrier at %s: %w", device, err)
	}
	return running, err
}
