package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// probes is how often an address is asked for.
const probes = 3

// Detect asks by a device whether another host has one of some addresses, and
// returns a Taken for the first one that is heard of within a time. The device is
// to have none of them yet.
func (n *Network) Detect(ctx context.Context, device string, addrs []netip.Addr, within time.Duration) error {
	if within <= 0 || len(addrs) == 0 {
		return nil
	}
	err := n.do(func() error {
		found, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		d, err := newDetector(found, addrs)
		if err != nil {
			return err
		}
		defer unix.Close(d.fd)
		for i := range probes {
			d.ask()
			if err := d.listen(ctx, within*time.Duration(i+1)/probes-within*time.Duration(i)/probes); err != nil {
				return err
			}
		}
		return nil
	})
	var taken Taken
	var interrupted Interrupted
	if err != nil && !errors.As(err, &taken) && !errors.As(err, &interrupted) {
		err = fmt.Errorf("ask at %s who has its addresses: %w", device, err)
	}
	return err
}

// detector asks and listens by a packet socket.
type detector struct {
	fd    int
	own   tcpip.LinkAddress
	addrs []netip.Addr
	frame [2048]byte
}

// allProtocols is ETH_P_ALL in the byte order of sockaddr_ll.
var allProtocols = binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})

func newDetector(device netlink.Link, addrs []netip.Addr) (*detector, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	at := device.Attrs()
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: allProtocols, Ifindex: at.Index}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	// The groups that solicitations and advertisements go to.
	m := unix.PacketMreq{Ifindex: int32(at.Index), Type: unix.PACKET_MR_ALLMULTI}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &detector{fd: fd, own: tcpip.LinkAddress(at.HardwareAddr), addrs: addrs}, nil
}

// ask sends a probe for each address. One that is not sent is as one that is lost.
func (d *detector) ask() {
	for _, a := range d.addrs {
		_, _ = unix.Write(d.fd, probe(d.own, a))
	}
}

// listen hears whether another speaks for an address, for a time.
func (d *detector) listen(ctx context.Context, within time.Duration) error {
	for end := time.Now().Add(within); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		limit := unix.NsecToTimespec(int64(min(left, 20*time.Millisecond)))
		if n, err := unix.Ppoll([]unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLIN}}, &limit, nil); n <= 0 || err != nil {
			continue
		}
		size, from, err := unix.Recvfrom(d.fd, d.frame[:], 0)
		if source, ok := from.(*unix.SockaddrLinklayer); err != nil || ok && source.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if t, ok := claim(d.frame[:size]); ok && t.By != d.own && slices.Contains(d.addrs, t.Addr) {
			return t
		}
	}
}
