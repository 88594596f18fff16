package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"bondstack/link/relay"
	"bondstack/stack"
)

// running is a bond that runs, with what is on it.
type running interface {
	core() *opened
	// wait has missing slaves join until ctx ends. An error says why it ended
	// before.
	wait(ctx context.Context) error
	close()
}

func (o *opened) core() *opened { return o }

// hosted is a bond that runs with a host on it.
type hosted struct {
	*opened
	settings *runSettings
	host     *stack.Host
	relay    *relay.Relay // of forwards and of the SOCKS proxy
	log      *slog.Logger
	ctx      context.Context
	end      context.CancelFunc
	pages    *pages
	services map[string]func() // what ends each, by what it is called in messages
}

// run hosts the stack until ctx ends.
func (s *runSettings) run(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) error {
	r, err := s.startHosted(ctx, log, kinds)
	if err != nil {
		return err
	}
	defer r.close()
	return r.wait(ctx)
}

// start is startHosted, for who does not need the host.
func (s *runSettings) start(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) (running, error) {
	r, err := s.startHosted(ctx, log, kinds)
	if err != nil {
		return nil, err // not a nil *hosted
	}
	return r, nil
}

// startHosted starts all that the settings say. What it returns has to be closed.
func (s *runSettings) startHosted(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) (*hosted, error) {
	r := &hosted{settings: s, log: log, services: map[string]func(){}}
	r.ctx, r.end = context.WithCancel(ctx)
	if err := r.start(kinds); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *hosted) start(kinds map[string]openFunc) (err error) {
	s := r.settings
	if r.pages, err = s.seeing.listen(); err != nil {
		return err
	}
	if r.opened, err = s.open(r.log, kinds); err != nil {
		return err
	}
	s.host.Logger = r.log
	if r.host, err = s.newHost(r.bond); err != nil {
		return err
	}
	for _, svc := range s.services {
		if err := r.startService("--serve "+svc.String(), svc); err != nil {
			return err
		}
	}
	r.relay = s.newRelay(r.log)
	for _, f := range s.forwards {
		if err := r.startService("--forward "+f.String(), relayed{f, r.relay}); err != nil {
			return err
		}
	}
	if s.socks != "" {
		if err := r.startService("--socks "+s.socks, proxy{&s.relaySettings, r.relay}); err != nil {
			return err
		}
	}
	r.state = &runState{bond: r.bond, joiner: r.joiner, host: r.host, relay: r.relay}
	r.pages.show(r.state, r.log)
	r.control.serve(r.state)
	r.log.Info("running", "bond", r.bond.Name(), "mode", r.bond.Mode(), "addresses", s.host.Addresses, "control", s.control, "stack", r.host.Settings().String())
	return nil
}

// starter is a service, a forward or a proxy.
type starter interface {
	// start begins to serve on the host, until stop is called, which leaves
	// connections be, or the host is closed. ctx ends connections too.
	start(ctx context.Context, h *stack.Host, log *slog.Logger) (stop func(), err error)
}

func (r *hosted) startService(name string, s starter) error {
	stop, err := s.start(r.ctx, r.host, r.log)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.services[name] = stop
	return nil
}

// stopService ends a service. It may be gone: a reload that was taken back could not
// start it again.
func (r *hosted) stopService(name string) {
	if stop := r.services[name]; stop != nil {
		stop()
		delete(r.services, name)
	}
}

// wait has missing slaves join, until ctx ends.
func (r *hosted) wait(ctx context.Context) error {
	r.joiner.run(ctx)
	r.log.Info("stopping", "bond", r.bond.Name())
	return nil
}

// close ends everything.
func (r *hosted) close() {
	r.end()
	if r.pages != nil {
		r.pages.close()
	}
	for _, name := range slices.Sorted(maps.Keys(r.services)) {
		r.stopService(name)
	}
	if r.relay != nil {
		r.relay.Close()
	}
	if r.host != nil {
		r.host.Close()
	}
	if r.opened != nil {
		r.opened.close()
	}
}
