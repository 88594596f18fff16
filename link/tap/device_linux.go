package tap

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// tunDevice is where the kernel makes TUN and TAP devices.
const tunDevice = "/dev/net/tun"

// The offloads that a device may be asked for (TUN_F_ of linux/if_tun.h): what
// the kernel may leave undone in frames that come out of it.
const (
	offloadChecksum  = 0x01
	offloadTCPv4     = 0x02
	offloadTCPv6     = 0x04
	offloadTCPECN    = 0x08
	offloadDatagrams = 0x20 | 0x40 // Linux 6.2

	offloadTCP = offloadChecksum | offloadTCPv4 | offloadTCPv6 | offloadTCPECN
)

// openQueues makes the device of a name in the calling thread's namespace, and
// opens its queues. On an error nothing is left.
func openQueues(name string, o Options) (queues []*queue, err error) {
	defer func() {
		if err != nil {
			closeQueues(queues)
			queues = nil
		}
	}()
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if o.Queues > 1 {
		flags |= unix.IFF_MULTI_QUEUE
	}
	for i := range o.Queues {
		q, err := newQueue()
		if err != nil {
			return queues, err
		}
		queues = append(queues, q)
		exclusive := uint16(0)
		if i == 0 {
			exclusive = unix.IFF_TUN_EXCL // not one that somebody else has made
		}
		if err := q.join(name, flags|exclusive); err != nil {
			return queues, err
		}
	}
	if !o.NoGSO {
		err = queues[0].askOffloads()
	}
	return queues, err
}

// newQueue opens the TUN device.
func newQueue() (*queue, error) {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return nil, fmt.Errorf("%w: %s does not open: %w; load the kernel's module tun, or give the container that device", ErrNotSupported, tunDevice, err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("%w: %s does not open: %w", ErrPermission, tunDevice, err)
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", tunDevice, err)
	}
	q := &queue{fd: fd, wakeup: -1}
	if q.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		q.close()
		return nil, fmt.Errorf("open an eventfd: %w", err)
	}
	return q, nil
}

// join makes the queue one of the device of a name.
func (q *queue) join(name string, flags uint16) error {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrName, err)
	}
	request.SetUint16(flags)
	err = unix.IoctlIfreq(q.fd, unix.TUNSETIFF, request)
	switch {
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return ErrExists
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: making the device needs root, or CAP_NET_ADMIN in its network namespace: %w", ErrPermission, err)
	case errors.Is(err, unix.EINVAL) && flags&unix.IFF_TUN_EXCL != 0 && indexIn(name) != 0:
		return ErrExists
	case errors.Is(err, unix.ENOTTY):
		return fmt.Errorf("%w: %s is something else than the kernel's TUN device (mknod %s c 10 200 makes that)", ErrNotSupported, tunDevice, tunDevice)
	case err != nil:
		return fmt.Errorf("make the device: %w", err)
	}
	return nil
}

// indexIn returns the index of the interface that has a name, or another name, in
// the calling thread's namespace; 0 where there is none.
func indexIn(name string) int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil || unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request) != nil {
		return 0
	}
	return int(request.Uint32())
}

// askOffloads has frames come out whole where the kernel can.
func (q *queue) askOffloads() error {
	if unix.IoctlSetInt(q.fd, unix.TUNSETOFFLOAD, offloadTCP|offloadDatagrams) == nil {
		return nil
	}
	if err := unix.IoctlSetInt(q.fd, unix.TUNSETOFFLOAD, offloadTCP); err != nil {
		return fmt.Errorf("ask for segmentation offload: %w", err)
	}
	return nil
}

// inNamespace runs f on a thread that is in a network namespace, the caller's
// own thread where there is none.
func inNamespace(ns *os.File, f func() error) error {
	if ns == nil {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return f()
	}
	result := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("enter network namespace %s: %w", ns.Name(), err)
			return
		}
		result <- f()
	}()
	return <-result
}
