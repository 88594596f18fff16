package kernel

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// threadNamespace is the network namespace of the calling thread.
const threadNamespace = "/proc/thread-self/ns/net"

// Namespace is a network namespace with what all endpoints in it share: the
// kernel's news of its interfaces, and a socket to ask about them.
type Namespace struct {
	key  namespaceKey
	file *os.File
	// news is subscribed to the links of the namespace. closing is set before
	// it is closed.
	news    *nl.NetlinkSocket
	closing atomic.Bool

	// askMu is read-locked over the use of ask, so that its number is not
	// closed and used again meanwhile. ask is -1 after that.
	askMu sync.RWMutex
	ask   int

	// mu guards the following.
	mu       sync.Mutex
	watchers map[*Monitor]struct{}
	// done is closed when the goroutine that hands news out ends; nil before
	// it was started.
	done chan struct{}
}

// namespaceKey identifies a namespace while it exists.
type namespaceKey struct{ dev, ino uint64 }

// namespaces are those in use in this process.
var namespaces = struct {
	sync.Mutex
	users map[*Namespace]int
	byKey map[namespaceKey]*Namespace
}{users: map[*Namespace]int{}, byKey: map[namespaceKey]*Namespace{}}

// AcquireNamespace returns the namespace of the calling thread. The caller
// releases it.
func AcquireNamespace() (*Namespace, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	key, err := currentNamespace()
	if err != nil {
		return nil, err
	}
	namespaces.Lock()
	defer namespaces.Unlock()
	n := namespaces.byKey[key]
	if n == nil {
		if n, err = newNamespace(key); err != nil {
			return nil, err
		}
		namespaces.byKey[key] = n
	}
	namespaces.users[n]++
	return n, nil
}

// currentNamespace identifies the namespace of the calling thread, which is
// locked.
func currentNamespace() (namespaceKey, error) {
	var st unix.Stat_t
	if err := unix.Stat(threadNamespace, &st); err != nil {
		return namespaceKey{}, fmt.Errorf("look at the thread's network namespace: %w", err)
	}
	return namespaceKey{uint64(st.Dev), uint64(st.Ino)}, nil
}

// newNamespace opens what a namespace is made of, on a thread that is in it.
func newNamespace(key namespaceKey) (*Namespace, error) {
	n := &Namespace{key: key, ask: -1, watchers: map[*Monitor]struct{}{}}
	var err error
	if n.file, err = os.Open(threadNamespace); err != nil {
		return nil, fmt.Errorf("open the thread's network namespace: %w", err)
	}
	if n.ask, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		n.close()
		return nil, fmt.Errorf("open a socket to ask about interfaces: %w", err)
	}
	if n.news, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK); err != nil {
		n.close()
		return nil, fmt.Errorf("subscribe to the news of links: %w", err)
	}
	return n, nil
}

// Release gives the namespace back; the last one closes it.
func (n *Namespace) Release() {
	namespaces.Lock()
	namespaces.users[n]--
	last := namespaces.users[n] == 0
	if last {
		delete(namespaces.users, n)
		delete(namespaces.byKey, n.key)
	}
	namespaces.Unlock()
	if last {
		n.close()
	}
}

// close closes what is open and waits for the goroutine.
func (n *Namespace) close() {
	n.closing.Store(true)
	if n.news != nil {
		n.news.Close()
	}
	n.mu.Lock()
	done := n.done
	n.mu.Unlock()
	if done != nil {
		<-done
	}
	n.askMu.Lock()
	if n.ask >= 0 {
		unix.Close(n.ask)
		n.ask = -1
	}
	n.askMu.Unlock()
	n.file.Close()
}

// InUse returns how many namespaces are in use in this process.
func InUse() int {
	namespaces.Lock()
	defer namespaces.Unlock()
	return max(len(namespaces.byKey), len(namespaces.users))
}

// watch has the monitor told when an interface of its name or index changed.
func (n *Namespace) watch(m *Monitor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watchers[m] = struct{}{}
	if n.done == nil {
		n.done = make(chan struct{})
		go n.handOut()
	}
}

// Unwatch undoes watch.
func (n *Namespace) Unwatch(m *Monitor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.watchers, m)
}

// handOut hands news out until the subscription is closed. What it passes on
// is only that something changed: the monitors ask for the truth, so lost or
// late news cannot leave a wrong state behind.
func (n *Namespace) handOut() {
	defer close(n.done)
	for {
		msgs, _, err := n.news.Receive()
		if n.closing.Load() {
			return
		}
		if err != nil {
			// News were lost (ENOBUFS). The pause is for an error that stays.
			n.tell(func(*Monitor) bool { return true })
			time.Sleep(time.Millisecond)
			continue
		}
		for _, msg := range msgs {
			index, name := parseLinkNews(msg.Data)
			n.tell(func(m *Monitor) bool { return m.name == name || m.bound.Load() == index })
		}
	}
}

// tell wakes those monitors that the news are for.
func (n *Namespace) tell(concerns func(*Monitor) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for m := range n.watchers {
		if concerns(m) {
			m.Wake()
		}
	}
}

// parseLinkNews reads the index and the name from the body of an RTM_NEWLINK
// or RTM_DELLINK message: struct ifinfomsg, and attributes behind it.
func parseLinkNews(b []byte) (index int32, name string) {
	if len(b) < unix.SizeofIfInfomsg {
		return 0, ""
	}
	index = int32(binary.NativeEndian.Uint32(b[4:]))
	return index, linkName(b[unix.SizeofIfInfomsg:])
}

// linkName finds the name among attributes (struct rtattr, each aligned to four
// bytes), or returns nothing.
func linkName(b []byte) string {
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			break
		}
		if binary.NativeEndian.Uint16(b[2:]) == unix.IFLA_IFNAME {
			return unix.ByteSliceToString(b[unix.SizeofRtAttr:size])
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return ""
}

// Do runs f on a thread that is in the namespace and returns its error.
func (n *Namespace) Do(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		key, err := currentNamespace()
		switch {
		case err != nil:
		case key == n.key:
			err = f()
		default:
			// The thread stays locked: it ends with this goroutine.
			if err = unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
				err = fmt.Errorf("enter the endpoint's network namespace: %w", err)
			} else {
				err = f()
			}
			result <- err
			return
		}
		runtime.UnlockOSThread()
		result <- err
	}()
	return <-result
}
