package stack

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/stack/dns"
)

// The defaults of HostOptions.
const (
	// DefaultName is the interface's name.
	DefaultName = "bond0"
	// DefaultBacklog is Linux's net.core.somaxconn, which Go's net package
	// uses as well.
	DefaultBacklog = 4096
	// DefaultDADTransmits is that of RFC 4862, section 5.1.
	DefaultDADTransmits = 1
	// DefaultDADInterval is a tenth of the second that RFC 4862 asks for: on a
	// LAN the holder of an address answers within milliseconds, and a program
	// that starts a host wants its addresses.
	DefaultDADInterval = 100 * time.Millisecond
	// DefaultCongestionControl is Reno: on one stream it is as fast as CUBIC,
	// on four on a near link it had 35 to 41 Gbit/s where CUBIC had 16 to 24
	// (medians of five interleaved rounds of BenchmarkThroughput on 2 cores).
	DefaultCongestionControl = "reno"
	// DefaultRecovery finds losses by duplicate and selective acknowledgements
	// alone. gVisor's RACK (RFC 8985), at the version pinned, sends about two
	// segments each retransmission timeout of 200 ms once a whole window is
	// lost, which is what a failover does: see BenchmarkCuts.
	DefaultRecovery = "dupack"
)

// The limits of HostOptions.
const (
	maxHostName      = 255 // an option of DHCP
	maxName          = 15  // IFNAMSIZ less the final zero, as in Linux
	maxTransmitQueue = 1 << 16
	maxBacklog       = 1 << 16 // a count of half-open connections, each with memory of its own
	maxBuffer        = 1 << 30 // the greatest window that TCP can scale to (RFC 7323, section 2.3)
	minBuffer        = 4 << 10 // gVisor's least
	maxDAD           = 255
	minIPv6MTU       = 1280 // RFC 8200, section 5
	minIPv4MTU       = 68   // RFC 791, section 3.2
	minDADTimeout    = time.Millisecond
)

// BufferSize is the size in bytes of a TCP connection's send or receive buffer.
// It starts at Default and is tuned up to Max as the connection needs it. A
// zero field has its own default.
type BufferSize struct {
	Min     int `json:"min"`
	Default int `json:"default"`
	Max     int `json:"max"`
}

// The default buffer sizes. A great Max is good for far links and bad for the
// caches. With 2, 4, 8 and 16 MiB two stacks on a near link had 44, 46, 40 and
// 32 Gbit/s on one stream, 45, 41, 31 and 19 on four (docs/performance.md), and at
// a round trip of 10 ms 0.8 Gbit/s with 4 MiB, as many times more as Max is
// greater. With 4 MiB two stacks that echo 4 MiB on each of eight streams locked
// each other out at a zero window in 2 of 20 runs, with 8 MiB in none of 24.
var (
	DefaultSendBuffer    = BufferSize{Min: 4 << 10, Default: 1 << 20, Max: 8 << 20}
	DefaultReceiveBuffer = BufferSize{Min: 4 << 10, Default: 1 << 20, Max: 8 << 20}
)

// HostOptions say how a Host is made. The zero value of each field is its
// default.
type HostOptions struct {
	// Name is the interface's name, 1 to 15 bytes, none of them a slash, a
	// colon or white space. Default "bond0".
	Name string

	// Addresses are the host's addresses, each with the length of its
	// network's prefix; the network is reached through the link. IPv6 hosts
	// have a link-local address as well, made from the link's MAC (RFC 4291,
	// appendix A).
	Addresses []netip.Prefix

	// Gateway is the router for everything that no route reaches, of either
	// IP version: an address in one of the networks of Addresses, or an IPv6
	// link-local address. Default none.
	Gateway netip.Addr
	// Gateway6 is the IPv6 router of a host whose Gateway is an IPv4 one.
	// Default none.
	Gateway6 netip.Addr
	// Routes are further routes.
	Routes []Route

	// DHCP has the host ask for an IPv4 address, with routes and name servers
	// (RFC 2131), and again after a failover. Default false.
	DHCP bool
	// SLAAC has the host take IPv6 addresses, routes and name servers from
	// router advertisements (RFC 4862, RFC 8106), which it solicits, again after
	// a failover. Default false. Hosts whose link is too small for IPv6 cannot.
	SLAAC bool
	// HostName is what DHCP servers are told. Default nothing.
	HostName string
	// DNS are the servers that Dial asks for names, and the domains that it
	// searches; those of DHCP and SLAAC come after them.
	DNS dns.Config
	// Logger is told of addresses that come and go by DHCP and SLAAC. Default
	// nobody.
	Logger *slog.Logger

	// Backlog is how many connections a listener holds that Accept has not
	// yet taken, 1 to 65536. Default 4096.
	Backlog int

	// TransmitQueue is how many packets wait at most, up to 65536, for a goroutine
	// of the interface's own that hands them to the link, several at once where
	// it is behind. TCP then goes on while the kernel sends, which takes less of
	// the processors on links of the kernel. What there is no room for is dropped,
	// and counted in the NIC's statistics; so the queue should hold the windows
	// of its connections. Default 0: there is no queue.
	TransmitQueue int

	// SendBuffer and ReceiveBuffer are the sizes of TCP's buffers, from 4 KiB
	// to 1 GiB. Default DefaultSendBuffer and DefaultReceiveBuffer.
	SendBuffer, ReceiveBuffer BufferSize

	// CongestionControl is TCP's: "reno" or "cubic". Default "reno".
	CongestionControl string
	// Recovery is how TCP finds losses: "dupack", by duplicate and selective
	// acknowledgements, or "rack", by time as well. Default "dupack".
	Recovery string

	// DADTransmits is how many neighbour solicitations are sent to find out
	// whether another host has an IPv6 address already (RFC 4862), up to 255.
	// Negative means none: addresses are usable at once. Default 1.
	DADTransmits int
	// DADInterval is the time from one solicitation to the next, and from the
	// last to the address's use; at least 1 ms. Default 100 ms.
	DADInterval time.Duration

	// Clock drives the stack's timers and the deadlines of its connections.
	// Default the system's clock.
	Clock tcpip.Clock
}

// withDefaults returns the options with each default filled in.
func (o HostOptions) withDefaults() HostOptions {
	o.Name = or(o.Name, DefaultName)
	o.Backlog = or(o.Backlog, DefaultBacklog)
	o.CongestionControl = or(o.CongestionControl, DefaultCongestionControl)
	o.Recovery = or(o.Recovery, DefaultRecovery)
	o.DADTransmits = or(o.DADTransmits, DefaultDADTransmits)
	o.DADInterval = or(o.DADInterval, DefaultDADInterval)
	o.SendBuffer = o.SendBuffer.withDefaults(DefaultSendBuffer)
	o.ReceiveBuffer = o.ReceiveBuffer.withDefaults(DefaultReceiveBuffer)
	if o.Clock == nil {
		o.Clock = tcpip.NewStdClock()
	}
	return o
}

// withDefaults keeps the defaults in order around a field that is set: a Max
// below the default Default brings that down with it.
func (b BufferSize) withDefaults(d BufferSize) BufferSize {
	b.Max = or(b.Max, max(d.Max, b.Default, b.Min))
	b.Default = or(b.Default, min(max(d.Default, b.Min), b.Max))
	b.Min = or(b.Min, min(d.Min, b.Default))
	return b
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Validate reports every fault of the options, joined by errors.Join; each
// names its field, the value and what is allowed.
func (o HostOptions) Validate() error {
	o = o.withDefaults()
	var faults []error
	check := func(field string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("stack: %s: %w", field, err))
		}
	}
	check("Name", checkInterfaceName(o.Name))
	for i, p := range o.Addresses {
		check(fmt.Sprintf("Addresses[%d]", i), CheckAddress(p))
		for j, q := range o.Addresses[:i] {
			if p.Addr() == q.Addr() {
				check(fmt.Sprintf("Addresses[%d]", i), fmt.Errorf("%s is Addresses[%d] already", p, j))
			}
		}
	}
	faults = append(faults, o.routeFaults()...)
	for i, a := range o.DNS.Servers {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
			check(fmt.Sprintf("DNS.Servers[%d]", i), fmt.Errorf("%s is no name server's address", a))
		}
	}
	check("HostName", checkRange(len(o.HostName), 0, maxHostName))
	check("Backlog", checkRange(o.Backlog, 1, maxBacklog))
	check("TransmitQueue", checkRange(o.TransmitQueue, 0, maxTransmitQueue))
	check("SendBuffer", o.SendBuffer.validate())
	check("ReceiveBuffer", o.ReceiveBuffer.validate())
	if o.CongestionControl != "reno" && o.CongestionControl != "cubic" {
		check("CongestionControl", fmt.Errorf("%q is not known: allowed are reno and cubic", o.CongestionControl))
	}
	if o.Recovery != "dupack" && o.Recovery != "rack" {
		check("Recovery", fmt.Errorf("%q is not known: allowed are dupack and rack", o.Recovery))
	}
	if o.DADTransmits > maxDAD {
		check("DADTransmits", fmt.Errorf("%d is out of range: allowed are at most %d, or negative for none", o.DADTransmits, maxDAD))
	}
	if o.DADInterval < minDADTimeout {
		check("DADInterval", fmt.Errorf("%v is out of range: allowed are %v and more", o.DADInterval, minDADTimeout))
	}
	return errors.Join(faults...)
}

func (b BufferSize) validate() error {
	if b.Min < minBuffer || b.Max > maxBuffer || b.Min > b.Default || b.Default > b.Max {
		return fmt.Errorf("min %d, default %d, max %d: allowed are %d <= min <= default <= max <= %d",
			b.Min, b.Default, b.Max, minBuffer, maxBuffer)
	}
	return nil
}

func checkRange(v, least, greatest int) error {
	if v < least || v > greatest {
		return fmt.Errorf("%d is out of range: allowed are %d to %d", v, least, greatest)
	}
	return nil
}

// checkInterfaceName has Linux's rules for an interface's name.
func checkInterfaceName(name string) error {
	if len(name) > maxName || name == "" || name == "." || name == ".." {
		return fmt.Errorf("%q is not an interface name: neither . nor .. is allowed, nor other than 1 to %d bytes", name, maxName)
	}
	for i := range len(name) {
		switch name[i] {
		case '/', ':', ' ', '\t', '\n', '\v', '\f', '\r':
			return fmt.Errorf("%q is not an interface name: %q is not allowed", name, name[i])
		}
	}
	return nil
}
