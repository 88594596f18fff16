package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"

	"bondstack/bonding/metrics"
	"bondstack/cmd/bondstack/config"
	"bondstack/cmd/bondstack/readonly"
	"bondstack/cmd/bondstack/systemd"
)

// program is what run does with a configuration file: the bonds of it, in one
// process.
type program struct {
	path    string
	file    *config.File // as it is in force
	control string       // of --control; "" is what the file says
	level   *slog.LevelVar
	byFlag  bool // the level is that of --log-level
	log     *slog.Logger
	kinds   map[string]openFunc
	members []*member // in the order of the file
	bonds   *metrics.Collector
	ended   chan *member
	shown   atomic.Pointer[[]*runState] // of the members, for the page
}

// member is a bond of a program.
type member struct {
	config config.Bond // as it is in force
	running
	cancel context.CancelFunc
	done   chan struct{} // closed when wait has ended with err
	err    error
}

// run runs the bonds until ctx ends, or one of them does. What comes from reload
// has the file read again.
func (p *program) run(ctx context.Context, reload <-chan os.Signal) error {
	p.ended, p.bonds = make(chan *member), metrics.New()
	pages, err := p.listen()
	if err != nil {
		return err
	}
	defer p.closeAll()
	defer pages.close()
	for i := range p.file.Bonds {
		m, err := p.start(ctx, i, p.file)
		if err != nil {
			return fmt.Errorf("bond %s: %w", p.file.Bonds[i].Name, err)
		}
		p.members = append(p.members, m)
	}
	p.showThese(p.members)
	pages.serve(func() []*runState { return *p.shown.Load() }, p.log)
	p.log.Info("ready", "file", p.path, "bonds", len(p.members))
	p.notify(systemd.Ready)
	defer p.notify(systemd.Stopping)
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-p.ended:
			if ctx.Err() == nil && slices.Contains(p.members, m) {
				return fmt.Errorf("bond %s: %w", m.config.Name, m.err)
			}
		case <-reload:
			p.notify(systemd.Reloading)
			p.reload(ctx)
			p.notify(systemd.Ready)
		}
	}
}

// listen begins to listen where the file wants something shown.
func (p *program) listen() (*pages, error) {
	s := seeing{bonds: p.bonds}
	for _, l := range []struct {
		text string
		to   *readonly.Listener
	}{{p.file.Metrics, &s.metrics}, {p.file.Web, &s.web}} {
		if l.text == "" {
			continue
		}
		var err error
		if *l.to, err = readonly.ParseListen(l.text); err != nil {
			return nil, err
		}
	}
	return s.listen()
}

// showThese has the page show the bonds of members.
func (p *program) showThese(members []*member) {
	states := make([]*runState, len(members))
	for i, m := range members {
		states[i] = m.core().state
	}
	p.shown.Store(&states)
}

func (p *program) notify(state string) {
	if err := systemd.Notify(state); err != nil {
		p.log.Warn("the service manager cannot be told", "state", state, "error", err)
	}
}

// start starts a bond of a file.
func (p *program) start(ctx context.Context, i int, f *config.File) (*member, error) {
	b := &f.Bonds[i]
	s, err := settingsOf(b, socketOf(i, b.Name))
	if err != nil {
		return nil, err
	}
	base := s.base()
	if p.control != "" && i == 0 {
		base.control = p.control
	}
	base.seeing.bonds = p.bonds
	r, err := s.start(ctx, p.log, p.kinds)
	if err != nil {
		return nil, err
	}
	m := &member{config: *b, running: r, done: make(chan struct{})}
	own, cancel := context.WithCancel(ctx)
	m.cancel = cancel
	go func() {
		m.err = m.wait(own)
		close(m.done)
		if m.err != nil {
			select {
			case p.ended <- m:
			case <-own.Done():
			}
		}
	}()
	return m, nil
}

// stop ends a bond, with all that is on it.
func (m *member) stop() {
	m.cancel()
	<-m.done
	m.close()
}

// closeAll ends the bonds, the last first.
func (p *program) closeAll() {
	for _, m := range slices.Backward(p.members) {
		m.stop()
	}
}
