package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"bondstack/link/user"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// userKind is the kind of slaves that need no rights.
const userKind = "user"

// userLinks is the network that the slaves of kind user share. It is made for the
// first of them.
type userLinks struct {
	options user.Options
	setBy   string // the slave that has set the options

	mu      sync.Mutex
	network *user.Network // guarded by mu
}

// userLinks returns the network of the bond's slaves of kind user.
func (s *bondSettings) userLinks() *userLinks {
	if s.link.user == nil {
		s.link.user = &userLinks{}
	}
	return s.link.user
}

// onlyUser reports whether all slaves are links to the default network of kind user.
func (s *bondSettings) onlyUser() bool {
	other := func(spec slaveSpec) bool { return spec.kind != userKind }
	return len(s.slaves) > 0 && !slices.ContainsFunc(s.slaves, other) && !s.link.user.options.Gateway.IsValid() && !s.link.user.options.Gateway6.IsValid()
}

// userAddresses are what a bond has in that network unless told otherwise.
func userAddresses() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.0.2.15/24"), netip.MustParsePrefix("fd00::15/64")}
}

// useUserNetwork takes addresses of that network, and its routers, of which one is
// the name server too.
func (s *runSettings) useUserNetwork() {
	s.host.Addresses = userAddresses()
	s.host.Gateway, s.host.Gateway6 = user.DefaultGateway, user.DefaultGateway6
	s.host.DNS.Servers = []netip.Addr{user.DefaultGateway}
}

// parse reads what follows "user:", [NAME][,SETTING=VALUE...], and returns the
// slave's name: its own, or the first of user0, user1 and so on that is not taken.
func (u *userLinks) parse(text string, taken func(name string) bool) (name string, err error) {
	name, settings, has := strings.Cut(text, ",")
	for i := 0; name == ""; i++ {
		if next := fmt.Sprintf("user%d", i); !taken(next) {
			name = next
		}
	}
	if !has {
		return name, nil
	}
	if u.setBy != "" {
		return "", fmt.Errorf("all slaves of kind %s share one network, whose settings %s has: they are given once", userKind, u.setBy)
	}
	u.setBy = name
	return name, u.options.Set(settings)
}

// openUser opens a link to the network, and makes that at first.
func openUser(name string, o linkOptions) (netstack.LinkEndpoint, []string, error) {
	if o.exclusive || o.hardwareAddress {
		return nil, nil, fmt.Errorf("user:%s: --exclusive and --hardware-address are for interfaces of the host", name)
	}
	if o.user == nil {
		return nil, nil, errors.New("slaves of kind user are not for this command")
	}
	ep, err := o.user.open()
	if err != nil {
		return nil, nil, err
	}
	return ep, nil, nil
}

func (u *userLinks) open() (*user.Link, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.network == nil {
		n, err := user.NewNetwork(u.options)
		if err != nil {
			return nil, err
		}
		u.network = n
	}
	return u.network.NewLink()
}

// stats returns the network's counters, nil where there is none.
func (u *userLinks) stats() *user.Stats {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.network == nil {
		return nil
	}
	stats := u.network.Stats()
	return &stats
}

// userText tells people what the network did.
func userText(s *user.Stats) string {
	return forwardedText("user network's", &s.Relay) +
		fmt.Sprintf("  user network: %d denied, %d connection requests ignored, %d echoes unanswered, %d malformed, %d frames without a link\n",
			s.Denied, s.Ignored, s.Unanswered, s.Malformed, s.NoLink)
}

// close ends the network, after the bond whose slaves its links are.
func (u *userLinks) close() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.network != nil {
		u.network.Close()
		u.network = nil
	}
}
