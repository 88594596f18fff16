package packet

import (
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// passSocket opens a packet socket on veth0 as a helper would, for all protocols or
// none.
func (p *pair) passSocket(protocol uint16) int {
	p.t.Helper()
	fd := -1
	p.near.Do(func() {
		var err error
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			p.t.Fatal(err)
		}
		request, err := unix.NewIfreq("veth0")
		if err == nil {
			err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request)
		}
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: int(request.Uint32())})
		}
		if err != nil {
			p.t.Fatal(err)
		}
	})
	p.t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// A stack exchanges bytes with the kernel by a socket that somebody else opened, for
// whatever protocol; after that is closed here, another endpoint can have it.
func TestFromDescriptor(t *testing.T) {
	p := newPair(t)
	for _, protocol := range []uint16{allProtocols, 0} {
		fd := p.passSocket(protocol)
		var e *Endpoint
		p.near.Do(func() {
			var err error
			if e, err = FromDescriptor(fd, Options{}); err != nil {
				t.Fatal(err)
			}
		})
		if e.Name() != "veth0" || !e.LinkState().Usable() || e.Info().Queues != 1 {
			t.Errorf("name %q, state %+v, %+v", e.Name(), e.LinkState(), e.Info())
		}
		h := newHost(t, e)
		l := p.listenPeer(peerV4)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			c.Write([]byte("hello"))
		}()
		var b [5]byte
		c := h.dial(peerV4, l.Addr().(*net.TCPAddr).Port)
		if _, err := io.ReadFull(c, b[:]); err != nil || string(b[:]) != "hello" {
			t.Errorf("read %q, %v", b, err)
		}
		h.s.RemoveNIC(1)
		e.Close()
		if _, err := unix.Getsockname(fd); err != nil {
			t.Errorf("the given descriptor is closed: %v", err)
		}
	}
}

// The error says what cannot be used.
func TestFromDescriptorRefused(t *testing.T) {
	p := newPair(t)
	fd := p.passSocket(allProtocols)
	unbound, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(unbound)
	for _, c := range []struct {
		fd      int
		options Options
		away    bool // from the interface's namespace
		want    string
	}{
		{fd, Options{}, true, `interface "veth0"`},
		{unbound, Options{}, false, "not a packet socket that is bound to an interface"},
		{fd, Options{Queues: 2}, false, "one queue is allowed"},
		{fd, Options{Exclusive: true}, false, "one queue is allowed"},
		{1 << 20, Options{}, false, "bad file descriptor"},
	} {
		at := p.near
		if c.away {
			at = p.peer
		}
		at.Do(func() {
			if _, err := FromDescriptor(c.fd, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, want %q in it", c.options, err, c.want)
			}
		})
	}
}
