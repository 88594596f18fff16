package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"

	"bondstack/cmd/bondstack/config"
	"bondstack/cmd/bondstack/forward"
	"bondstack/cmd/bondstack/socks"
	"bondstack/link/relay"
	"bondstack/stack"
)

// host changes what is on a stack, but for addresses and routes that go: those go
// last. An address whose prefix length changes has to go before it comes.
func (r *reloading) host(h *hosted, c config.HostChange) error {
	var errs []error
	do := func(step, back func() error) { errs = append(errs, r.do(step, back)) }
	start := func(name string, s starter) func() error { return func() error { return h.startService(name, s) } }
	stop := func(name string) func() error {
		return func() error { h.stopService(name); return nil }
	}
	end := func(name string, s starter) { do(stop(name), start(name, s)) }
	begin := func(name string, s starter) { do(start(name, s), stop(name)) }
	h.each(c.Serve.Remove, c.Forwards.Remove, c.Socks.Remove, end)
	h.each(c.Serve.Add, c.Forwards.Add, c.Socks.Add, begin)
	for _, p := range c.Addresses.Add {
		if i := slices.IndexFunc(c.Addresses.Remove, func(old netip.Prefix) bool { return old.Addr() == p.Addr() }); i >= 0 {
			do(removeAddress(h.host, c.Addresses.Remove[i]), addAddress(h.host, c.Addresses.Remove[i]))
		}
		do(addAddress(h.host, p), removeAddress(h.host, p))
	}
	for _, rt := range c.Routes.Add {
		do(func() error { return h.host.AddRoute(rt) }, func() error { return h.host.RemoveRoute(rt) })
	}
	return errors.Join(errs...)
}

func addAddress(h *stack.Host, p netip.Prefix) func() error {
	return func() error { return h.AddAddress(p) }
}

func removeAddress(h *stack.Host, p netip.Prefix) func() error {
	return func() error { return h.RemoveAddress(p.Addr()) }
}

// each calls f for services, forwards and proxies of a file that was checked.
func (r *hosted) each(serve, forwards []string, proxies []config.Proxy, f func(name string, s starter)) {
	for _, text := range serve {
		if svc, err := parseService(text); err == nil {
			f("--serve "+svc.String(), svc)
		}
	}
	for _, text := range forwards {
		if fw, err := forward.Parse(text); err == nil {
			f("--forward "+fw.String(), relayed{fw, r.relay})
		}
	}
	for _, p := range proxies {
		if at, err := socks.Address(p.Address); err == nil { // as it is named at the start
			p.Address = at
		}
		f("--socks "+p.Address, fileProxy{p, r.relay})
	}
}

// remove takes away what goes last.
func (r *reloading) remove(h *hosted, c config.HostChange) {
	var errs []error
	for _, rt := range c.Routes.Remove {
		errs = append(errs, h.host.RemoveRoute(rt))
	}
	for _, p := range c.Addresses.Remove {
		if !slices.ContainsFunc(c.Addresses.Add, func(a netip.Prefix) bool { return a.Addr() == p.Addr() }) {
			errs = append(errs, h.host.RemoveAddress(p.Addr()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		r.log.Error("not all of what is not in the file any more could be removed", "bond", h.bond.Name(), "error", err)
	}
}

// fileProxy is a proxy of a file, whose users are read when it starts.
type fileProxy struct {
	config.Proxy
	relay *relay.Relay
}

// start is that of a starter.
func (p fileProxy) start(ctx context.Context, h *stack.Host, log *slog.Logger) (stop func(), err error) {
	var s relaySettings
	if err := s.parseSocks(p.Address, p.Users); err != nil {
		return nil, err
	}
	return proxy{&s, p.relay}.start(ctx, h, log)
}
