package dhcp

import (
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// Ports of DHCP (RFC 2131, section 4.1).
const (
	ServerPort = 67
	ClientPort = 68
)

// maxMessage is the size of message that the client says it takes: what fits into
// an Ethernet frame without fragments.
const maxMessage = 1472

// wanted are the options that servers are asked for.
var wanted = []dhcpv4.OptionCode{
	dhcpv4.OptionSubnetMask,
	dhcpv4.OptionClasslessStaticRoute, // before routers, as RFC 3442 asks
	dhcpv4.OptionRouter,
	dhcpv4.OptionDomainNameServer,
	dhcpv4.OptionDomainName,
	dhcpv4.OptionDNSDomainSearchList,
	dhcpv4.OptionIPAddressLeaseTime,
	dhcpv4.OptionRenewTimeValue,
	dhcpv4.OptionRebindingTimeValue,
}

// message makes a request of a type with what all have.
func (m *Machine) message(kind dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	d := &dhcpv4.DHCPv4{
		OpCode:        dhcpv4.OpcodeBootRequest,
		HWType:        iana.HWTypeEthernet,
		TransactionID: m.xid,
		NumSeconds:    uint16(min((m.now-m.began)/time.Second, 0xffff)),
		ClientHWAddr:  net.HardwareAddr(m.opts.MAC),
		ClientIPAddr:  net.IPv4zero,
		YourIPAddr:    net.IPv4zero,
		ServerIPAddr:  net.IPv4zero,
		GatewayIPAddr: net.IPv4zero,
		Options:       make(dhcpv4.Options),
	}
	d.UpdateOption(dhcpv4.OptMessageType(kind))
	// RFC 2132, section 9.14: a hardware type and the address.
	d.UpdateOption(dhcpv4.OptClientIdentifier(append([]byte{byte(iana.HWTypeEthernet)}, m.opts.MAC...)))
	if kind != dhcpv4.MessageTypeDecline {
		d.UpdateOption(dhcpv4.OptMaxMessageSize(maxMessage))
		d.UpdateOption(dhcpv4.OptParameterRequestList(wanted...))
		if m.opts.HostName != "" {
			d.UpdateOption(dhcpv4.OptHostName(m.opts.HostName))
		}
	}
	return d
}

// broadcast sends a message to every server on the link, from no address, or from
// the client's own where it has one.
func (m *Machine) broadcast(d *dhcpv4.DHCPv4, from netip.Addr) {
	if !from.IsValid() {
		d.SetBroadcast()
	}
	m.user.Send(d.ToBytes(), from, netip.AddrFrom4([4]byte{255, 255, 255, 255}))
}

func (m *Machine) discover() {
	m.broadcast(m.message(dhcpv4.MessageTypeDiscover), netip.Addr{})
}

// request asks a server for the address that it offered.
func (m *Machine) request() {
	d := m.message(dhcpv4.MessageTypeRequest)
	d.UpdateOption(dhcpv4.OptRequestedIPAddress(m.lease.Prefix.Addr().AsSlice()))
	d.UpdateOption(dhcpv4.OptServerIdentifier(m.lease.Server.AsSlice()))
	m.broadcast(d, netip.Addr{})
}

// reboot asks any server whether the address may be kept here. It goes out from no
// address, since it might be another's on this network.
func (m *Machine) reboot() {
	d := m.message(dhcpv4.MessageTypeRequest)
	d.UpdateOption(dhcpv4.OptRequestedIPAddress(m.lease.Prefix.Addr().AsSlice()))
	m.broadcast(d, netip.Addr{})
}

// extend asks for more time: the lease's server, or any.
func (m *Machine) extend() {
	d := m.message(dhcpv4.MessageTypeRequest)
	own := m.lease.Prefix.Addr()
	d.ClientIPAddr = own.AsSlice()
	if m.state == Rebinding {
		m.broadcast(d, own)
		return
	}
	m.user.Send(d.ToBytes(), own, m.lease.Server)
}

// decline tells the server that its address is another's.
func (m *Machine) decline() {
	d := m.message(dhcpv4.MessageTypeDecline)
	d.UpdateOption(dhcpv4.OptRequestedIPAddress(m.lease.Prefix.Addr().AsSlice()))
	d.UpdateOption(dhcpv4.OptServerIdentifier(m.lease.Server.AsSlice()))
	m.broadcast(d, netip.Addr{})
}
