package stack

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
)

// UDPConn sends and receives UDP datagrams of a Host: those of anybody
// (ListenPacket) or of one peer (Dial). Datagrams have up to 65,507 bytes with
// IPv4 and 65,527 with IPv6, and are sent in fragments where the link's MTU is
// smaller. A datagram that is longer than Read's buffer is cut.
type UDPConn struct {
	*socket
	local net.Addr
	// remote is the peer, nil for anybody.
	remote net.Addr
}

var (
	_ net.Conn       = (*UDPConn)(nil)
	_ net.PacketConn = (*UDPConn)(nil)
)

func newUDPConn(s *socket, remote net.Addr) *UDPConn {
	c := &UDPConn{socket: s, remote: remote}
	if local, err := s.ep.GetLocalAddress(); err == nil {
		c.local = netAddr("udp", s.localAddr(local))
	}
	return c
}

// localAddr is addrPort for a socket's own address, which may be any.
func (s *socket) localAddr(full tcpip.FullAddress) netip.AddrPort {
	switch {
	case full.Addr.Len() > 0:
		return s.host.addrPort(full)
	case s.proto == ipv6.ProtocolNumber:
		return netip.AddrPortFrom(netip.IPv6Unspecified(), full.Port)
	default:
		return netip.AddrPortFrom(netip.IPv4Unspecified(), full.Port)
	}
}

// ReadFromUDPAddrPort receives one datagram and says who sent it.
func (c *UDPConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	c.rd.mu.Lock()
	defer c.rd.mu.Unlock()
	for {
		if err := c.begin(&c.rd); err != nil {
			return 0, netip.AddrPort{}, c.opError("read", nil, err)
		}
		c.rd.writer = b
		res, err := c.ep.Read(&c.rd.writer, tcpip.ReadOptions{NeedRemoteAddr: true})
		c.rd.writer = nil
		if _, none := err.(*tcpip.ErrBadBuffer); none && len(b) == 0 {
			err = nil // a datagram was received, and all of it cut
		}
		switch err.(type) {
		case nil:
			return res.Count, c.host.addrPort(res.RemoteAddr), nil
		case *tcpip.ErrWouldBlock:
			if err := c.wait(&c.rd, nil); err != nil {
				return 0, netip.AddrPort{}, c.opError("read", nil, err)
			}
		default:
			return 0, netip.AddrPort{}, c.opError("read", nil, c.reason("read", err))
		}
	}
}

// ReadFrom implements net.PacketConn. The address is a *net.UDPAddr.
func (c *UDPConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromUDPAddrPort(b)
	if err != nil {
		return n, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// Read implements net.Conn: it receives one datagram.
func (c *UDPConn) Read(b []byte) (int, error) {
	n, _, err := c.ReadFromUDPAddrPort(b)
	return n, err
}

// Write implements net.Conn: it sends one datagram to the peer. It returns an
// error that wraps syscall.EDESTADDRREQ when there is no peer, and
// syscall.ECONNREFUSED when the peer said so to an earlier datagram.
func (c *UDPConn) Write(b []byte) (int, error) {
	return c.write(b, nil, c.remote)
}

// WriteTo implements net.PacketConn: it sends one datagram. The address must be
// a *net.UDPAddr; a connection with one peer returns net.ErrWriteToConnected.
func (c *UDPConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	to, ok := addr.(*net.UDPAddr)
	if !ok || to == nil {
		return 0, c.opError("write", addr, fmt.Errorf("address %v is a %T: a *net.UDPAddr is needed", addr, addr))
	}
	return c.writeTo(b, to.AddrPort(), addr)
}

// WriteToUDPAddrPort is WriteTo with an address of another form.
func (c *UDPConn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	return c.writeTo(b, to, nil)
}

func (c *UDPConn) writeTo(b []byte, to netip.AddrPort, addr net.Addr) (int, error) {
	if addr == nil {
		addr = net.UDPAddrFromAddrPort(to)
	}
	if c.remote != nil {
		return 0, c.opError("write", addr, net.ErrWriteToConnected)
	}
	nic, err := c.host.interfaceOf(to.Addr().Zone())
	if err != nil {
		return 0, c.opError("write", addr, fmt.Errorf("address %s: %w", to, err))
	}
	if !to.Addr().IsValid() || to.Addr().IsUnspecified() || to.Port() == 0 {
		return 0, c.opError("write", addr, errors.New("a datagram needs an address and a port to go to"))
	}
	full := c.host.fullAddress(to, nic)
	return c.write(b, &full, addr)
}

func (c *UDPConn) write(b []byte, to *tcpip.FullAddress, addr net.Addr) (int, error) {
	c.wr.mu.Lock()
	defer c.wr.mu.Unlock()
	for {
		if err := c.begin(&c.wr); err != nil {
			return 0, c.opError("write", addr, err)
		}
		c.wr.reader.Reset(b)
		n, err := c.ep.Write(&c.wr.reader, tcpip.WriteOptions{To: to})
		c.wr.reader.Reset(nil)
		switch err.(type) {
		case nil:
			return int(n), nil
		case *tcpip.ErrWouldBlock:
			if err := c.wait(&c.wr, nil); err != nil {
				return 0, c.opError("write", addr, err)
			}
		default:
			return 0, c.opError("write", addr, c.reason("write", err))
		}
	}
}

// Close implements net.Conn and net.PacketConn.
func (c *UDPConn) Close() error {
	if err := c.close(); err != nil {
		return c.opError("close", nil, err)
	}
	return nil
}

// LocalAddr implements net.Conn and net.PacketConn.
func (c *UDPConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn. It is nil for a connection with anybody.
func (c *UDPConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn and net.PacketConn.
func (c *UDPConn) SetDeadline(t time.Time) error { return c.set(t, &c.rd, &c.wr) }

// SetReadDeadline implements net.Conn and net.PacketConn.
func (c *UDPConn) SetReadDeadline(t time.Time) error { return c.set(t, &c.rd) }

// SetWriteDeadline implements net.Conn and net.PacketConn.
func (c *UDPConn) SetWriteDeadline(t time.Time) error { return c.set(t, &c.wr) }

func (c *UDPConn) set(t time.Time, directions ...*direction) error {
	if err := c.setDeadline(t, directions...); err != nil {
		return c.opError("set", nil, err)
	}
	return nil
}

func (c *UDPConn) opError(op string, addr net.Addr, err error) error {
	if addr == nil {
		addr = c.remote
	}
	return opError(op, c.network, c.local, addr, err)
}
