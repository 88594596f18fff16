package drill

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"bondstack/stack"
)

// answerWithin is for how long a peer may take to answer before the drill.
const answerWithin = 2 * time.Second

// findPeers returns the peers that are to be asked, each of which answers; close has to
// be called for each. Those that are named have to answer; of those that are not, one.
func findPeers(ctx context.Context, h *stack.Host, named []netip.Addr) ([]*peer, error) {
	if h == nil {
		if len(named) > 0 {
			return nil, errors.New("peers: this instance has no stack of its own to ask them from: leave them out, and the bond's own record is reported")
		}
		return nil, nil
	}
	addrs := named
	if len(named) == 0 {
		addrs = likelyPeers(h)
	}
	for _, a := range named {
		if slices.ContainsFunc(h.Addresses(), func(own stack.Address) bool { return own.Prefix.Addr() == a.WithZone("") }) {
			return nil, fmt.Errorf("peers: %v is this host's own address", a)
		}
	}
	peers, errs := answering(ctx, h, addrs)
	switch {
	case len(named) > 0 && len(errs) > 0:
		closeAll(peers)
		return nil, fmt.Errorf("peers: not all answer before the drill: %w", errors.Join(errs...))
	case len(peers) == 0 && len(addrs) == 0:
		return nil, errors.New("peers: no gateway and no neighbour is known: name a host that answers pings (--peer)")
	case len(peers) == 0:
		return nil, fmt.Errorf("peers: none of %s answers pings: name a host that does (--peer)", texts(addrs))
	}
	return peers, nil
}

func texts(addrs []netip.Addr) string {
	var s []string
	for _, a := range addrs {
		s = append(s, a.String())
	}
	return strings.Join(s, ", ")
}

// likelyPeers returns the gateways and the neighbours, as many as may be asked.
func likelyPeers(h *stack.Host) []netip.Addr {
	var addrs []netip.Addr
	add := func(a netip.Addr) {
		if a.IsValid() && len(addrs) < MaxPeers && !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	for _, r := range h.Routes() {
		add(r.Gateway)
	}
	for _, a := range h.Neighbors() {
		add(a)
	}
	return addrs
}

// answering asks all addresses at once, and returns those that answer, in order.
func answering(ctx context.Context, h *stack.Host, addrs []netip.Addr) (peers []*peer, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	found, faults := make([]*peer, len(addrs)), make([]error, len(addrs))
	var all sync.WaitGroup
	for i, a := range addrs {
		all.Go(func() { found[i], faults[i] = newPeer(ctx, h, a) })
	}
	all.Wait()
	for i := range addrs {
		if faults[i] != nil {
			errs = append(errs, faults[i])
			continue
		}
		peers = append(peers, found[i])
	}
	return peers, errs
}

// newPeer makes a peer that has answered.
func newPeer(ctx context.Context, h *stack.Host, a netip.Addr) (*peer, error) {
	p, err := h.NewPinger(ctx, a, stack.PingOptions{})
	if err != nil {
		return nil, err
	}
	rtt := time.Duration(0)
	for range 2 { // the first may have waited for the neighbour's address
		if rtt, err = p.Ping(ctx); err != nil {
			p.Close()
			return nil, err
		}
	}
	return &peer{addr: a, pinger: p, rtt: rtt}, nil
}

func closeAll(peers []*peer) {
	for _, p := range peers {
		p.pinger.Close()
	}
}
