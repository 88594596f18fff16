package packetrate

import (
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"bondstack/link/linktest"
	"bondstack/link/netnstest"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// flows is how many flows traffic has, and how many frames a call sends.
const flows = 64

// framesFor returns a frame of a size of each flow, to a hardware address.
func framesFor(dst tcpip.LinkAddress, size int) [][]byte {
	const headers = 14 + 20 + 8
	payload := []byte(strings.Repeat("r", size-headers))
	var frames [][]byte
	for i := range flows {
		f := linktest.Flow4(i)
		if dst != "" {
			f.DstMAC = dst
		}
		frames = append(frames, f.UDP(payload))
	}
	return frames
}

// traffic sends frames by an interface of a namespace, as fast as may be.
type traffic struct {
	fd       int
	messages []message
}

// message is Linux's struct mmsghdr.
type message struct {
	header unix.Msghdr
	size   uint32
	_      [4]byte
}

// newTraffic opens the socket for traffic of an interface.
func newTraffic(t testing.TB, ns *netnstest.Namespace, name string, frames [][]byte) *traffic {
	t.Helper()
	w := &traffic{messages: make([]message, len(frames))}
	ns.Do(func() {
		i, err := net.InterfaceByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Bind(w.fd, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { unix.Close(w.fd) })
	if err := unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		t.Fatal(err)
	}
	for i, b := range frames {
		v := &unix.Iovec{Base: &b[0]}
		v.SetLen(len(b))
		w.messages[i].header.Iov = v
		w.messages[i].header.SetIovlen(1)
	}
	return w
}

// run sends on the first processor until it is stopped.
func (w *traffic) run() (stop func()) {
	var ending atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		onProcessor(0, func() {
			for !ending.Load() {
				unix.Syscall6(unix.SYS_SENDMMSG, uintptr(w.fd), uintptr(unsafe.Pointer(&w.messages[0])), uintptr(len(w.messages)), 0, 0, 0)
			}
		})
	})
	return func() { ending.Store(true); wg.Wait() }
}

// onProcessor runs f on one processor, as well as the processes that f starts.
func onProcessor(n int, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		panic(err)
	}
	set.Set(n)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		panic(err)
	}
	defer unix.SchedSetaffinity(0, &before)
	f()
}
