package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// The defaults and bounds, which are those of the usual resolvers.
const (
	// DefaultTimeout is how long a server has to answer.
	DefaultTimeout = 2 * time.Second
	// DefaultAttempts is how often the servers are gone through.
	DefaultAttempts = 2
	// maxServers and maxSearch bound what a server of DHCP or a router can make
	// a look-up cost.
	maxServers = 6
	maxSearch  = 6
	// maxChain is how many aliases are followed.
	maxChain = 8
)

// Config is whom to ask.
type Config struct {
	// Servers are asked in this order, until one answers.
	Servers []netip.Addr
	// Search are domains that are appended to names without a dot, and tried
	// for others after the name itself.
	Search []string
}

// Resolver looks up names. Config and Dial must be set. Its methods may be called
// from any goroutine.
type Resolver struct {
	// Config is called for each look-up.
	Config func() Config
	// Dial connects to a server: "udp" or "tcp", and its address with port 53.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout is how long a server has to answer. Default 2 s.
	Timeout time.Duration
	// Attempts is how often the servers are gone through. Default 2.
	Attempts int
}

// errNoServers is what a look-up finds where nothing is configured.
var errNoServers = errors.New("no name servers are known: give some, or have DHCP or a router do so")

// LookupNetIP returns the addresses of a name, in the order of the answer, IPv4
// first. The network is "ip", "ip4" or "ip6". A literal address is its own answer.
// Errors are *net.DNSError.
func (r *Resolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	types, ok := map[string][]dnsmessage.Type{
		"ip":  {dnsmessage.TypeA, dnsmessage.TypeAAAA},
		"ip4": {dnsmessage.TypeA},
		"ip6": {dnsmessage.TypeAAAA},
	}[network]
	if !ok {
		return nil, net.UnknownNetworkError(network)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if !validName(host) {
		return nil, notFound(host, "not a domain name")
	}
	config := r.Config()
	if len(config.Servers) == 0 {
		return nil, &net.DNSError{Err: errNoServers.Error(), Name: host, UnwrapErr: errNoServers}
	}
	config.Servers = config.Servers[:min(len(config.Servers), maxServers)]
	err := error(notFound(host, "no such host"))
	for _, name := range candidates(host, config.Search) {
		var addrs []netip.Addr
		if addrs, err = r.lookup(ctx, config, name, types); len(addrs) > 0 {
			return addrs, nil
		}
		if !isNotFound(err) {
			break // no answer is not the answer no
		}
	}
	return nil, named(err, host)
}

// candidates returns the full names to try for one, as resolv.conf(5) has it with
// ndots:1.
func candidates(host string, search []string) []string {
	if strings.HasSuffix(host, ".") {
		return []string{host}
	}
	var list []string
	for _, domain := range search[:min(len(search), maxSearch)] {
		if name := host + "." + strings.Trim(domain, ".") + "."; validName(name) {
			list = append(list, name)
		}
	}
	if strings.Contains(host, ".") {
		return append([]string{host + "."}, list...)
	}
	return append(list, host+".")
}

// validName reports whether a name can be asked for: labels of 1 to 63 bytes that
// are printable, 253 in all (RFC 1035, section 2.3.4).
func validName(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return false
		}
	}
	return true
}

// lookup asks for all types of addresses of a full name at once.
func (r *Resolver) lookup(ctx context.Context, config Config, name string, types []dnsmessage.Type) ([]netip.Addr, error) {
	results := make([][]netip.Addr, len(types))
	faults := make([]error, len(types))
	var wg sync.WaitGroup
	for i, t := range types {
		wg.Go(func() { results[i], faults[i] = r.follow(ctx, config, name, t) })
	}
	wg.Wait()
	addrs := slices.Concat(results...)
	if len(addrs) > 0 {
		return addrs, nil
	}
	for _, err := range faults {
		if !isNotFound(err) {
			return nil, err
		}
	}
	return nil, faults[0]
}

// follow asks for a name, and for its alias where the answer ends with one.
func (r *Resolver) follow(ctx context.Context, config Config, name string, t dnsmessage.Type) ([]netip.Addr, error) {
	for range maxChain {
		addrs, alias, err := r.ask(ctx, config, name, t)
		switch {
		case err != nil:
			return nil, err
		case len(addrs) > 0:
			return addrs, nil
		case alias == name:
			return nil, notFound(name, "no such host")
		}
		name = alias
	}
	return nil, &net.DNSError{Err: "too many aliases", Name: name}
}

// ask asks the servers in turn. It returns the addresses, or the name at which the
// answer's aliases end.
func (r *Resolver) ask(ctx context.Context, config Config, name string, t dnsmessage.Type) ([]netip.Addr, string, error) {
	var last error
	for range or(r.Attempts, DefaultAttempts) {
		for _, server := range config.Servers {
			addrs, alias, err := r.query(ctx, server, name, t)
			if err == nil || isNotFound(err) {
				return addrs, alias, err
			}
			if ctx.Err() != nil {
				return nil, "", &net.DNSError{Err: ctx.Err().Error(), Name: name, IsTimeout: errors.Is(ctx.Err(), context.DeadlineExceeded), UnwrapErr: ctx.Err()}
			}
			last = err
		}
	}
	return nil, "", last
}

func or[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

func notFound(name, why string) *net.DNSError {
	return &net.DNSError{Err: why, Name: strings.TrimSuffix(name, "."), IsNotFound: true}
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

// named has an error tell of the name that was asked for, and not of the one with a
// domain to search.
func named(err error, host string) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		e.Name = host
	}
	return err
}
