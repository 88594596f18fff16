package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os/signal"
	"strings"
	"syscall"

	"bondstack/bonding"
	"bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
)

const runHelp = `
Usage: bondstack run --slave [KIND:]NAME ... --mode M --address CIDR ... [FLAGS]

Hosts a TCP/IP stack on a bond of kernel interfaces until it is interrupted. The
interfaces stay the host's: the stack is beside the host's own, with addresses of
its own. It needs Linux, and the right to open packet sockets (root, or
CAP_NET_RAW and CAP_NET_ADMIN).

KIND is packet (the default) or fdbased, gVisor's own endpoint; only the first
colon separates it from the NAME. A slave that is not there does not stop the
rest: it joins when it appears.

A VLAN device is a further interface of the stack, with frames that have a tag:
--vlan 5=10.5.0.2/24 for 802.1Q, --vlan 802.1ad:7/5=10.75.0.2/24 for VLAN 5 in the
service VLAN 7, --vlan 5@3 for priority 3.

Options of the bond are set with -o by their Linux names, all of them or none.
Services run on the bonded stack:
  --serve echo:PORT        sends back what it receives
  --serve discard:PORT     receives and forgets
  --serve http:PORT=DIR    serves the files of a folder
  --forward tcp:PORT=HOST:PORT
                           passes connections on to where the host can reach

Examples:
  bondstack run --slave eth1 --slave eth2 --mode active-backup --address 10.0.0.2/24
  bondstack run --slave eth1 --slave eth2 --mode balance-xor -o xmit_hash_policy=layer3+4 \
    --address 10.0.0.2/24 --address fd00::2/64 --gateway 10.0.0.1 --serve http:80=/srv/www
  bondstack run --slave packet:eth1 --mode active-backup -o primary=eth1 -o updelay=200 \
    --address 10.0.0.2/24 --forward tcp:2222=127.0.0.1:22`

// runSettings are what the flags say.
type runSettings struct {
	name     string
	slaves   []slaveSpec
	options  map[string]string
	bond     bonding.Options
	host     stack.HostOptions
	vlans    []vlanSpec
	services []service
	forwards []forward
	control  string
	insist   bool
	link     linkOptions
}

func runRun(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s, code, done := parseRun(args, stdout, stderr)
	if done {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := s.run(ctx, log, linkKinds); err != nil {
		return failure("run", stderr, err)
	}
	return exitOK
}

// parseRun reads the flags, and reports every fault at once. done is true where
// there is nothing to run.
func parseRun(args []string, stdout, stderr io.Writer) (s *runSettings, code int, done bool) {
	s = &runSettings{options: map[string]string{}}
	fs := newFlags("run")
	slaves := fs.StringArray("slave", nil, "a slave, `[KIND:]NAME`; may be given again")
	mode := fs.String("mode", "", "the bond's `MODE`, by name or number")
	options := fs.StringArrayP("option", "o", nil, "an option of the bond, `NAME=VALUE`; may be given again")
	addresses := fs.StringArray("address", nil, "an address of the stack, `CIDR`; may be given again")
	gateways := fs.StringArray("gateway", nil, "a router, `IP`; one for each of IPv4 and IPv6")
	vlans := fs.StringArray("vlan", nil, "a VLAN device of the stack, `[802.1ad:]ID[@PRIORITY][/...][=CIDR,...]`; may be given again")
	mac := fs.String("mac", "", "the bond's `MAC` address (default that of the first slave)")
	mtu := fs.Uint32("mtu", 0, "the bond's MTU, `N` bytes (default that of the first slave)")
	name := fs.String("name", "bond0", "the bond's `NAME`")
	serve := fs.StringArray("serve", nil, "a service, `KIND:PORT[=DIR]`; may be given again")
	forwards := fs.StringArray("forward", nil, "a forward, `tcp:PORT=HOST:PORT`; may be given again")
	control := fs.String("control", "", "the control `SOCKET` (default "+defaultSocketText+")")
	fs.BoolVar(&s.insist, "require-slaves", false, "fail when a slave is not there")
	fs.BoolVar(&s.link.exclusive, "exclusive", false, "keep received frames from the host's own stack")
	fs.BoolVar(&s.link.hardwareAddress, "hardware-address", false, "set the slaves' MAC addresses on the host's interfaces too, until the end")
	if code, done := parseFlags(fs, runHelp, args, stdout, stderr); done {
		return nil, code, true
	}
	s.name, s.control = *name, *control
	var f faults
	s.bond.Name, s.bond.MTU, s.host.Name = *name, *mtu, *name
	f.each("--slave", *slaves, s.parseSlave)
	f.add("--slave", given(*slaves, "--slave eth1"))
	f.add("--mode", s.parseMode(*mode))
	f.each("--option", *options, s.parseOption)
	f.each("--address", *addresses, s.parseAddress)
	f.add("--address", given(*addresses, "--address 10.0.0.2/24"))
	f.each("--gateway", *gateways, s.parseGateway)
	f.each("--vlan", *vlans, s.parseVLAN)
	f.add("--mac", s.parseMAC(*mac))
	f.each("--serve", *serve, s.parseService)
	f.each("--forward", *forwards, s.parseForward)
	f.add("", s.tryBond())
	f.add("", s.host.Validate())
	if s.control == "" {
		s.control = defaultSocket()
	}
	if err := errors.Join(f...); err != nil {
		return nil, usageError("run", stderr, err), true
	}
	return s, exitOK, false
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
func given(values []string, example string) error {
	if len(values) == 0 {
		return errors.New("missing, for instance " + example)
	}
	return nil
}

func (s *runSettings) parseMode(text string) (err error) {
	if text == "" {
		return fmt.Errorf("missing; allowed are %s", strings.Join(bonding.ModeNames(), ", "))
	}
	s.bond.Mode, err = bonding.ParseMode(text)
	return err
}

// parseOption reads NAME=VALUE. Which names and values are right is the bond's
// to say.
func (s *runSettings) parseOption(text string) error {
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
func (s *runSettings) tryBond() error {
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

func (s *runSettings) parseAddress(text string) error {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("%q is not an address with a prefix length, such as 10.0.0.2/24", text)
	}
	s.host.Addresses = append(s.host.Addresses, p)
	return nil
}

func (s *runSettings) parseGateway(text string) error {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not an IP address", text)
	case !s.host.Gateway.IsValid():
		s.host.Gateway = a
	case s.host.Gateway.Is4() && a.Is6() && !s.host.Gateway6.IsValid():
		s.host.Gateway6 = a
	case s.host.Gateway.Is6() && a.Is4():
		s.host.Gateway, s.host.Gateway6 = a, s.host.Gateway
	default:
		return fmt.Errorf("%s: there is one for its IP version already", a)
	}
	return nil
}

func (s *runSettings) parseMAC(text string) error {
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

// run hosts the stack until ctx ends.
func (s *runSettings) run(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) error {
	s.bond.Logger = log
	b, err := bonding.New(s.bond)
	if err != nil {
		return err
	}
	j := &joiner{bond: b, kinds: kinds, link: s.link, log: log, missing: s.slaves}
	defer b.Close()
	forBond, forSlaves := s.splitOptions()
	if err := b.SetOptions(forBond); err != nil {
		return err
	}
	control, err := listenControl(s.control)
	if err != nil {
		return err
	}
	defer control.close()
	if err := j.joinFirst(s.insist); err != nil {
		return err
	}
	if err := b.SetOptions(forSlaves); err != nil {
		return err
	}
	h, err := s.newHost(b)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := s.start(ctx, h, log); err != nil {
		return err
	}
	control.serve(&runState{bond: b, host: h, joiner: j, settings: s})
	log.Info("running", "bond", b.Name(), "mode", b.Mode(), "addresses", s.host.Addresses, "control", s.control, "stack", h.Settings().String())
	j.run(ctx)
	log.Info("stopping", "bond", b.Name())
	return nil
}

// splitOptions parts the options that name a slave, which have to wait until it
// is there, from the others.
func (s *runSettings) splitOptions() (forBond, forSlaves map[string]string) {
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

// start starts the services and forwards. They end with the host.
func (s *runSettings) start(ctx context.Context, h *stack.Host, log *slog.Logger) error {
	for _, svc := range s.services {
		if err := svc.start(h, log); err != nil {
			return fmt.Errorf("--serve %s: %w", svc, err)
		}
	}
	for _, f := range s.forwards {
		if err := f.start(ctx, h, log); err != nil {
			return fmt.Errorf("--forward %s: %w", f, err)
		}
	}
	return nil
}
