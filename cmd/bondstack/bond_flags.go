package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"strings"
	"syscall"

	"bondstack/bonding"

	"github.com/spf13/pflag"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// bondSettings are what the flags say that all commands with a bond have.
type bondSettings struct {
	name    string
	slaves  []slaveSpec
	joining map[string]bonding.SlaveOptions // what slaves join with, by name
	options map[string]string
	bond    bonding.Options
	control string
	// quiet has no control socket be opened where --control names none.
	quiet  bool
	insist bool
	link   linkOptions
	seeing seeing
	log    logging
}

// define defines the flags. read reads their values once they are parsed.
func (s *bondSettings) define(fs *pflag.FlagSet) (read func(*faults)) {
	s.options = map[string]string{}
	slaves := fs.StringArray("slave", nil, "a slave, `[KIND:]NAME`; may be given again")
	mode := fs.String("mode", "", "the bond's `MODE`, by name or number")
	options := fs.StringArrayP("option", "o", nil, "an option of the bond, `NAME=VALUE`; may be given again")
	mac := fs.String("mac", "", "the bond's `MAC` address (default that of the first slave)")
	fs.Uint32Var(&s.bond.MTU, "mtu", 0, "the bond's MTU, `N` bytes (default that of the first slave)")
	fs.StringVar(&s.name, "name", "bond0", "the bond's `NAME`")
	fs.StringVar(&s.control, "control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	fs.BoolVar(&s.insist, "require-slaves", false, "fail when a slave is not there")
	fs.BoolVar(&s.link.exclusive, "exclusive", false, "keep received frames from the host's own stack")
	fs.BoolVar(&s.link.hardwareAddress, "hardware-address", false, "set the slaves' MAC addresses on the host's interfaces too, until the end")
	readSeeing := s.seeing.define(fs)
	readLog := s.log.define(fs)
	return func(f *faults) {
		readSeeing(f)
		readLog(f)
		s.bond.Name = s.name
		f.each("--slave", *slaves, s.parseSlave)
		f.add("--slave", given(*slaves, "--slave eth1"))
		f.add("--mode", s.parseMode(*mode))
		f.each("--option", *options, s.parseOption)
		f.add("--mac", s.parseMAC(*mac))
		f.add("", s.tryBond())
		if s.control == "" && !s.quiet {
			s.control = defaultSocket()
		}
	}
}

// faults collects what is wrong with flags.
type faults []error

func (f *faults) add(flag string, err error) {
	switch {
	case err == nil:
	case flag == "":
		*f = append(*f, err)
	default:
		*f = append(*f, fmt.Errorf("%s: %w", flag, err))
	}
}

// each reads all the values of a flag that may be given again.
func (f *faults) each(flag string, values []string, parse func(string) error) {
	for _, v := range values {
		f.add(flag, parse(v))
	}
}

// given wants at least one value of a flag.
func given[T any](values []T, example string) error {
	if len(values) == 0 {
		return errors.New("missing, for instance " + example)
	}
	return nil
}

func (s *bondSettings) parseMode(text string) (err error) {
	if text == "" {
		return fmt.Errorf("missing; allowed are %s", strings.Join(bonding.ModeNames(), ", "))
	}
	s.bond.Mode, err = bonding.ParseMode(text)
	return err
}

// parseOption reads NAME=VALUE. Which names and values are right is the bond's
// to say.
func (s *bondSettings) parseOption(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q has no =, the form is NAME=VALUE", text)
	}
	if name == "mode" {
		return fmt.Errorf("%q: the mode is set by --mode", text)
	}
	if old, twice := s.options[name]; twice {
		return fmt.Errorf("%s is given twice, as %q and %q", name, old, value)
	}
	s.options[name] = value
	return nil
}

// tryBond reports what a bond finds wrong with its settings, before anything is
// opened. What depends on the slaves, such as active_slave, is for the start.
func (s *bondSettings) tryBond() error {
	b, err := bonding.New(s.bond)
	if err != nil {
		// The options have their own faults.
		var modeErr error
		if b, modeErr = bonding.New(bonding.Options{Mode: s.bond.Mode}); modeErr != nil {
			return err
		}
	}
	defer b.Close()
	forBond, forSlaves := s.splitOptions()
	err = errors.Join(err, b.SetOptions(forBond))
	if wrong := b.SetOptions(forSlaves); errors.Is(wrong, bonding.ErrMode) {
		err = errors.Join(err, wrong)
	}
	return err
}

func (s *bondSettings) parseMAC(text string) error {
	if text == "" {
		return nil
	}
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		return fmt.Errorf("%q is not a MAC address, such as 02:00:00:00:00:01", text)
	}
	s.bond.LinkAddress = tcpip.LinkAddress(mac)
	return nil
}

// splitOptions parts the options that name a slave, which have to wait until it
// is there, from the others.
func (s *bondSettings) splitOptions() (forBond, forSlaves map[string]string) {
	forBond, forSlaves = map[string]string{}, map[string]string{}
	for name, value := range s.options {
		if name == "active_slave" || name == "queue_id" {
			forSlaves[name] = value
		} else {
			forBond[name] = value
		}
	}
	return forBond, forSlaves
}

// opened is a bond with the slaves that were there, and what belongs to it.
type opened struct {
	bond    *bonding.Bond
	joiner  *joiner
	control *controlSocket
	state   *runState // what is told, once all of it is there
}

// open makes the bond. What it returns without an error has to be closed.
func (s *bondSettings) open(log *slog.Logger, kinds map[string]openFunc) (*opened, error) {
	o := &opened{}
	if err := o.open(s, log, kinds); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// open is bondSettings.open that leaves it to the caller to close what it has
// opened before an error.
func (o *opened) open(s *bondSettings, log *slog.Logger, kinds map[string]openFunc) (err error) {
	s.bond.Logger = log
	s.userLinks().options.Logger = log
	if o.bond, err = bonding.New(s.bond); err != nil {
		return err
	}
	o.joiner = &joiner{bond: o.bond, kinds: distinct(o.bond, kinds), link: s.link, log: log, missing: s.slaves, options: s.joining}
	forBond, forSlaves := s.splitOptions()
	if err := o.bond.SetOptions(forBond); err != nil {
		return err
	}
	if s.control != "" {
		if o.control, err = listenControl(s.control); err != nil {
			return err
		}
	}
	if err := o.joiner.joinFirst(s.insist); err != nil {
		return err
	}
	return o.bond.SetOptions(forSlaves)
}

// close stops answering, and closes the bond with its slaves.
func (o *opened) close() {
	if o.control != nil {
		o.control.close()
	}
	if o.bond != nil {
		o.bond.Close()
	}
	if o.joiner != nil {
		o.joiner.link.user.close()
	}
}

// runUntilSignal runs a command that goes on until it is interrupted, and returns
// its exit code.
func runUntilSignal(name string, stderr io.Writer, l logging, run func(context.Context, *slog.Logger) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log, _ := l.logger(stderr)
	if err := run(ctx, log); err != nil {
		return failure(name, stderr, err)
	}
	return exitOK
}
