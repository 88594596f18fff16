package wire

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// maxPorts is the limit of a Switch: a bridge port's number has 12 bits at most
// in IEEE 802.1D.
const maxPorts = 4095

// SwitchOptions says what a Switch is like. Only Ports must be set.
type SwitchOptions struct {
	// Ports is how many ports there are, 1 to 4,095.
	Ports int
	// Wire is what the cable at each port is like. Its end A is the device's,
	// which Switch.Port returns; B is the switch's. MTU is the device's; the
	// switch takes frames of up to MaxMTU. Seed is that of port 0, the next
	// port has the next number. A.Address must be empty.
	Wire Options
	// TableSize is how many addresses the switch learns at most. When the
	// table is full, frames to further addresses are flooded. Zero is 8,192.
	TableSize int
	// Ageing is how long an address is remembered without a frame from it, by
	// Wire.Clock. Zero is until its port loses carrier.
	Ageing time.Duration
}

// validate returns an error that names every option that is out of range.
func (o *SwitchOptions) validate() error {
	var errs []error
	if o.Ports < 1 || o.Ports > maxPorts {
		errs = append(errs, fmt.Errorf("wire: ports is %d, allowed is 1 to %d", o.Ports, maxPorts))
	}
	if o.TableSize < 0 {
		errs = append(errs, fmt.Errorf("wire: table size is %d, allowed is 0 (the default) and more", o.TableSize))
	}
	if o.Ageing < 0 {
		errs = append(errs, fmt.Errorf("wire: ageing is %v, allowed is 0 (never) and more", o.Ageing))
	}
	if o.Wire.A.Address != "" {
		errs = append(errs, errors.New("wire: address of end a is set for all ports of a switch, allowed is empty"))
	}
	return errors.Join(append(errs, o.Wire.validate())...)
}

// Switch is a learning Ethernet switch, a model of the far side of a bond: it
// learns on which port each source address is, forgets a port's addresses when the
// port loses carrier, forwards frames for a known address to its port alone and
// floods the others. GSO frames pass whole. Frames for the reserved group
// addresses 01:80:c2:00:00:00 to 0f (LACP, spanning tree) are not forwarded, as
// IEEE 802.1D clause 7.12.6 has it. It knows no VLANs and no spanning tree: do not
// make loops.
//
// A frame passes the switch in the goroutine that writes it, unless the device's
// end has impairments that take time, and is queued once, at the port that it
// leaves by. With Options.Synchronous it is delivered in that goroutine too.
type Switch struct {
	ports []*port
	table table
}

// port is one port of a switch, and the dispatcher of its end of the cable.
type port struct {
	sw          *Switch
	number      int
	device, end *Endpoint

	forwarded, flooded, samePort, reserved atomic.Uint64
}

var _ stack.NetworkDispatcher = (*port)(nil)

// NewSwitch makes a switch and the cables at its ports. It returns an error that
// names every option that is out of range. Close it when done.
func NewSwitch(opts SwitchOptions) (*Switch, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.Wire.Clock == nil {
		opts.Wire.Clock = tcpip.NewStdClock()
	}
	sw := &Switch{}
	sw.table.init(opts.TableSize, opts.Ageing, opts.Wire.Clock)
	for i := range opts.Ports {
		o := opts.Wire
		o.Seed += uint64(i)
		o.B.Promiscuous = true
		a, b := newWire(o, true)
		b.SetMTU(MaxMTU)
		sw.ports = append(sw.ports, &port{sw: sw, number: i, device: a, end: b})
	}
	devices := make([]*Endpoint, len(sw.ports))
	for i, p := range sw.ports {
		devices[i] = p.device
	}
	for _, p := range sw.ports {
		p.end.spread = devices
		p.end.SubscribeLinkState(p.stateChanged)
		p.end.Attach(p)
	}
	if opts.Wire.A.Impairments.Corrupt > 0 {
		sw.ports[0].end.doubt()
	}
	return sw, nil
}

// Port returns the device's end of the cable at a port. Ports are numbered from 0;
// it panics when there is no such port.
func (sw *Switch) Port(i int) *Endpoint { return sw.ports[i].device }

// Far returns the switch's end of the cable at a port, to set its impairments
// (those of frames to the device) and its state. The switch receives by it: do not
// attach anything, nor close it.
func (sw *Switch) Far(i int) *Endpoint { return sw.ports[i].end }

// Lookup returns the port at which an address was learned, or false.
func (sw *Switch) Lookup(addr tcpip.LinkAddress) (port int, ok bool) {
	if len(addr) != 6 {
		return 0, false
	}
	return sw.table.lookup(mac([]byte(addr)))
}

// Close closes both ends of the cables at all ports, as Endpoint.Close does.
func (sw *Switch) Close() {
	for _, p := range sw.ports {
		p.device.Close()
		p.end.Close()
	}
}

// stateChanged forgets the addresses at a port that lost its carrier.
func (p *port) stateChanged() {
	if !p.end.LinkState().Usable() {
		p.sw.table.flush(p.number)
	}
}

// DeliverLinkPacket implements stack.NetworkDispatcher. It does nothing.
func (*port) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// DeliverNetworkPacket implements stack.NetworkDispatcher: it passes a frame on.
func (p *port) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	eth := pkt.LinkHeader().Slice()
	dst, src := mac(eth), mac(eth[6:])
	p.sw.table.learn(src, p.number)
	switch {
	case dst&^0xf == reservedGroup:
		p.reserved.Add(1)
	case dst&groupBit != 0:
		p.flood(pkt)
	default:
		to, ok := p.sw.table.lookup(dst)
		switch {
		case !ok:
			p.flood(pkt)
		case to == p.number:
			p.samePort.Add(1)
		default:
			p.forwarded.Add(1)
			p.sw.ports[to].end.writeOne(pkt)
		}
	}
}

// reservedGroup is the first of the 16 group addresses that a bridge does not
// forward, as a number made by mac.
const reservedGroup = 0x0180c2000000

// flood passes a frame on to every other port that is usable.
func (p *port) flood(pkt *stack.PacketBuffer) {
	p.flooded.Add(1)
	for _, to := range p.sw.ports {
		if to != p && to.end.LinkState().Usable() {
			to.end.writeOne(pkt)
		}
	}
}
