// Package user is a network that needs no rights: its links lead, in memory, to a
// TCP/IP stack that passes connections and datagrams on through ordinary sockets
// of the host, as slirp does. So an unprivileged user can have a bond, of two such
// links for instance, and reach the world by it.
//
//	n, err := user.NewNetwork(user.Options{})
//	a, err := n.NewLink()
//	b, err := n.NewLink()
//	bond.Enslave("user0", a, bonding.SlaveOptions{})
//	bond.Enslave("user1", b, bonding.SlaveOptions{})
//	...
//	bond.Close() // closes a and b
//	n.Close()
//
// All links lead to the same stack, as cables of one switch do: frames of a
// connection may come by any of them, and are answered by the one by which the
// bond's address was last seen. A link is cut and mended with Link.SetCarrier.
//
// # What is reached
//
// The stack answers for every address, so any address and prefix will do for the
// bond, and any router of that prefix. TCP connections, UDP datagrams and, where
// the host allows ping sockets (Linux: net.ipv4.ping_group_range), ICMP echoes
// reach all that the user of this process reaches, the networks of the host's
// other interfaces and the host's own addresses there included. Where it does not
// allow them echoes stay unanswered, and are counted.
//
// Refused are this host (127.0.0.0/8, ::1, 0.0.0.0/8), link-local addresses
// (169.254.0.0/16, where clouds keep their secrets, and fe80::/10), the other
// addresses of clouds for that, groups and broadcasts, and addresses of IPv6 that
// stand for one of these (RFC 3056, 4291, 6052 and 8215). The gateways (10.0.2.2 and fd00::2, unless the options say
// otherwise) are the stack itself: they answer ICMP echoes, pass port 53 on to the
// host's name server, and with Options.Loopback every other port to the same port
// of the host's loopback address.
//
// # Limits
//
// Nothing reaches the bond that it did not ask for: there is no way in but the
// answers. There is no DHCP and no router advertisement. Each UDP flow has a
// socket of its own, with a port of the host's choice. Raw IP, IGMP and what else
// is neither TCP, UDP nor ICMP echo goes nowhere. A connection that the host
// refused is reset; so is one that the host cannot reach. The limits of package
// relay hold for all links together; echoes count as UDP. Where a bond sends each
// frame by every slave (broadcast mode) datagrams reach the host that often.
package user

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/relay"
	"bondstack/link/wire"
)

// DefaultMTU is that of the links unless it is set.
const DefaultMTU = 1500

// The gateways unless they are set, those of slirp.
var (
	DefaultGateway  = netip.MustParseAddr("10.0.2.2")
	DefaultGateway6 = netip.MustParseAddr("fd00::2")
)

// linkLocalGateway is a third address of the stack, for those who name their
// IPv6 router by a link-local address.
var linkLocalGateway = netip.MustParseAddr("fe80::2")

const minMTU = 1280 // RFC 8200, section 5

// Options say what a network is like. The zero value of each field is its default.
type Options struct {
	// MTU is that of the links, 1,280 to wire.MaxMTU. Zero is DefaultMTU.
	MTU uint32
	// Gateway and Gateway6 are the addresses that are the stack itself. The zero
	// Addr is the default.
	Gateway, Gateway6 netip.Addr
	// DNS is where port 53 of the gateways leads. Zero is the first name server
	// of /etc/resolv.conf, read for each flow anew.
	DNS netip.AddrPort
	// Loopback has the other ports of the gateways lead to the host's loopback
	// address, whose services may trust those who come from there.
	Loopback bool
	// Relay are the limits and times of what is passed on. Its Logger is ours.
	Relay relay.Options
	// Logger is told what is refused. Nil is none.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.MTU == 0 {
		o.MTU = DefaultMTU
	}
	if !o.Gateway.IsValid() {
		o.Gateway = DefaultGateway
	}
	if !o.Gateway6.IsValid() {
		o.Gateway6 = DefaultGateway6
	}
	o.Relay.Logger = o.Logger
}

func (o *Options) validate() error {
	var errs []error
	if o.MTU < minMTU || o.MTU > wire.MaxMTU {
		errs = append(errs, fmt.Errorf("user: mtu is %d, allowed is %d to %d", o.MTU, minMTU, wire.MaxMTU))
	}
	if !o.Gateway.Is4() || !o.Gateway.IsGlobalUnicast() {
		errs = append(errs, fmt.Errorf("user: gateway is %v, allowed is an IPv4 address of a host", o.Gateway))
	}
	if !o.Gateway6.Is6() || o.Gateway6.Is4In6() || !o.Gateway6.IsGlobalUnicast() {
		errs = append(errs, fmt.Errorf("user: gateway6 is %v, allowed is an IPv6 address of a host that is not link-local", o.Gateway6))
	}
	return errors.Join(errs...)
}

// Stats counts what a network has done since it was made.
type Stats struct {
	// Relay counts connections and datagrams. The near side is the bond.
	Relay relay.Stats `json:"relay"`
	// Denied counts connections and datagrams to what may not be reached.
	Denied uint64 `json:"denied"`
	// Unanswered counts echoes for which the host gave no ping socket.
	Unanswered uint64 `json:"unanswered"`
	// Ignored counts requests for a connection beyond the 512 that may be on
	// their way to the host.
	Ignored uint64 `json:"ignored"`
	// Malformed counts datagrams with a wrong length or checksum.
	Malformed uint64 `json:"malformed"`
	// NoLink counts frames for the bond while no link was up, and those that
	// a link had no room for.
	NoLink uint64 `json:"no_link"`
	// Claims counts ARP requests and neighbour solicitations that asked for an
	// address of the bond's own, and got no answer.
	Claims uint64 `json:"claims"`
}

// Network is a stack and the links to it. Its methods may be called by any
// goroutine.
type Network struct {
	opts  Options
	hub   *hub
	stack *stack.Stack
	relay *relay.Relay
	udp   *relay.Associations[stack.TransportEndpointID]
	pings *relay.Associations[pingKey]

	closed                        atomic.Bool
	denied, unanswered, malformed atomic.Uint64
}

// NewNetwork makes a network without links. It returns an error that names every
// option that is out of range. Close it when done, after its links.
func NewNetwork(opts Options) (*Network, error) {
	opts.setDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	n := &Network{opts: opts, hub: newHub(opts.MTU, opts.Gateway, opts.Gateway6), relay: relay.New(opts.Relay)}
	n.udp = relay.NewAssociations(n.relay, n.dialUDP, n.replyUDP)
	n.pings = relay.NewAssociations(n.relay, n.openPing, n.replyPing)
	if err := n.startStack(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Link is a link to a network, for a bond. Close takes it away from the network.
type Link struct {
	*wire.Endpoint
	port *port
}

// NewLink makes a link, up and with carrier.
func (n *Network) NewLink() (*Link, error) {
	if n.closed.Load() {
		return nil, relay.ErrClosed
	}
	near, far, err := wire.New(wire.Options{
		MTU: n.opts.MTU, QueueBytes: queueBytes,
		B: wire.EndOptions{Address: n.hub.LinkAddress()},
	})
	if err != nil {
		return nil, err
	}
	return &Link{Endpoint: near, port: n.hub.add(near, far)}, nil
}

// queueBytes bounds what waits in each direction of a link.
const queueBytes = 16 << 20

// Close implements stack.LinkEndpoint, as wire.Endpoint.Close does.
func (l *Link) Close() {
	l.Endpoint.Close()
	l.port.close()
}

// Stats returns the counters.
func (n *Network) Stats() Stats {
	return Stats{
		Relay: n.relay.Stats(), Denied: n.denied.Load(), Unanswered: n.unanswered.Load(), Malformed: n.malformed.Load(),
		Ignored: n.stack.Stats().TCP.ForwardMaxInFlightDrop.Value(),
		NoLink:  n.hub.noLink.Load(), Claims: n.hub.claims.Load(),
	}
}

// abortEvery is how often Close aborts handshakes that began meanwhile.
const abortEvery = 5 * time.Millisecond

// Close resets all connections, and returns when nothing of the network is left
// but its links, which go nowhere. It is idempotent.
func (n *Network) Close() {
	if n.closed.Swap(true) {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.relay.Close()
	}()
	// The relay waits for handshakes with the bond, which nothing else ends.
	for tick := time.NewTicker(abortEvery); ; {
		for _, ep := range n.stack.RegisteredEndpoints() {
			ep.Abort()
		}
		select {
		case <-done:
			tick.Stop()
			n.hub.closePorts()
			n.stack.Destroy()
			return
		case <-tick.C:
		}
	}
}

// dial connects to where a flow to an address of this network leads.
func (n *Network) dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	target, err := n.opts.target(to)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, network, target.String())
}

// deny counts a flow that may not be.
func (n *Network) deny(transport string, id stack.TransportEndpointID, err error) {
	if n.denied.Add(1) == 1 && n.opts.Logger != nil {
		n.opts.Logger.Warn("refused, as will be others like it", "transport", transport, "from", remoteOf(id), "to", localOf(id), "reason", err)
	}
}

// localOf and remoteOf are the two ends of a flow as the stack sees it: the local
// one is what the bond's side wants to reach.
func localOf(id stack.TransportEndpointID) netip.AddrPort {
	return netip.AddrPortFrom(toAddr(id.LocalAddress), id.LocalPort)
}

func remoteOf(id stack.TransportEndpointID) netip.AddrPort {
	return netip.AddrPortFrom(toAddr(id.RemoteAddress), id.RemotePort)
}

func toAddr(a tcpip.Address) netip.Addr {
	addr, _ := netip.AddrFromSlice(a.AsSlice())
	return addr.Unmap()
}
