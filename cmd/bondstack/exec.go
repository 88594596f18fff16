package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"

	"bondstack/cmd/bondstack/sandbox"
	"bondstack/link/user"
	"bondstack/stack"

	"github.com/spf13/pflag"
)

const execHelp = `
Usage: bondstack exec --slave [KIND:]NAME ... --mode M --address CIDR ... [FLAGS] -- COMMAND [ARG...]

Runs a command, unmodified, in a network namespace of its own that has only lo and
bond0: a kernel device that is a bond. The command has the terminal, the files and
the environment that bondstack has; it gets the signals that bondstack gets, and
its exit code is bondstack's. All that it leaves running ends with it. Nothing is
left of the namespace, the device and the addresses, however bondstack ends.

It needs Linux and /dev/net/tun. Root can give slaves of any kind. Without root
the command runs in a user namespace, and slaves are of the kinds
  user:    a link to a stack in this process that passes connections on by
           ordinary sockets (bondstack run --help tells its settings); its name
           is user0, user1 and so on. With no other slaves there, --address,
           --gateway and --dns may be left out
  fd:N     a descriptor that bondstack was started with: a packet socket on an
           interface, a TAP device, or a unix socket (SOCK_SEQPACKET or
           SOCK_DGRAM) that carries a frame a message; its name is fdN

The command starts when a slave is usable and nobody answered for the addresses
(--wait, --detect say how long each may take). A slave that is not there is an
error, except with --require-slaves=false. There is no control socket unless
--control names one.

Exit codes: the command's; 128+N where signal N ended it; 125 where bondstack
itself failed, 126 where the command cannot be executed, 127 where there is none.

Examples:
  bondstack exec --slave eth1 --slave eth2 --mode active-backup --address 10.0.0.2/24 \
    --gateway 10.0.0.1 --dns 10.0.0.53 -- curl https://example.com/
  bondstack exec --slave eth1 --slave eth2 --mode 802.3ad --address 10.0.0.2/24 -- bash
  bondstack exec --slave user: --slave user: --mode balance-rr -- curl https://example.com/
  bondstack exec --slave fd:3 --slave fd:4 --mode balance-rr --address 10.0.0.2/24 \
    -- iperf3 -c 10.0.0.1`

// execSettings are what the flags say.
type execSettings struct {
	tapSettings
	gateways []netip.Addr
	dns      []netip.Addr
	asRoot   bool
	verbose  bool
	// relay is the descriptor of the relay in the process that has a user
	// namespace, 0 in others.
	relay   int
	command []string
}

func runExec(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s, code, done := parseExec(args, stdout, stderr)
	if done {
		return code
	}
	code, err := s.exec(args, s.logger(stderr), linkKinds)
	var interrupted sandbox.Interrupted
	switch {
	case errors.As(err, &interrupted):
		return interrupted.Code()
	case err != nil:
		failure("exec", stderr, err)
		return sandbox.CodeFailure
	}
	return code
}

// logger logs warnings, since the output is the command's, and all with --verbose.
func (s *execSettings) logger(stderr io.Writer) *slog.Logger {
	l := s.log
	switch {
	case l.level != "":
	case s.verbose:
		l.level = "info"
	default:
		l.level = "warn"
	}
	log, _ := l.logger(stderr)
	return log
}

// parseExec reads the flags, and reports every fault at once. done is true where
// there is nothing to run. Wrong usage has the exit code of our own failures.
func parseExec(args []string, stdout, stderr io.Writer) (s *execSettings, code int, done bool) {
	flags, command, split := cutCommand(args)
	s = &execSettings{command: command}
	s.quiet = true
	fs := newFlags("exec")
	read := s.define(fs)
	readDevice := s.defineDevice(fs)
	readExec := s.defineExec(fs)
	if code, done := parseFlags(fs, execHelp, flags, stdout, stderr); done {
		if code == exitUsage {
			code = sandbox.CodeFailure
		}
		return nil, code, true
	}
	var f faults
	read(&f)
	readDevice(&f)
	if s.onlyUser() && !fs.Changed("address") && !fs.Changed("gateway") && !fs.Changed("dns") {
		s.useUserNetwork()
	}
	readExec(&f)
	f.add("--address", given(s.addresses, "--address 10.0.0.2/24"))
	if !split || len(command) == 0 {
		f.add("COMMAND", errors.New("missing; give it last, behind --, for instance -- curl http://10.0.0.1/"))
	}
	if err := errors.Join(f...); err != nil {
		usageError("exec", stderr, err)
		return nil, sandbox.CodeFailure, true
	}
	return s, exitOK, false
}

// cutCommand parts the arguments at the first "--".
func cutCommand(args []string) (flags, command []string, split bool) {
	i := slices.Index(args, "--")
	if i < 0 {
		return args, nil, false
	}
	return args[:i], args[i+1:], true
}

// defineExec defines the flags that only exec has, and what it does otherwise
// than other commands. read reads their values once they are parsed.
func (s *execSettings) defineExec(fs *pflag.FlagSet) (read func(*faults)) {
	s.insist = true
	fs.Lookup("require-slaves").DefValue = "true"
	fs.Lookup("control").Usage = "the control `SOCKET` (default none)"
	gateways := fs.StringArray("gateway", nil, "the default router, `IP`; one for each of IPv4 and IPv6")
	dns := fs.StringArray("dns", nil, "a name server for the command's resolv.conf, `IP`; may be given again")
	fs.BoolVar(&s.asRoot, "map-root", false, "without root: have the command see itself as root")
	fs.BoolVar(&s.verbose, "verbose", false, "tell of changes of the bond too, not only of what is wrong")
	fs.IntVar(&s.relay, "relay", 0, "")
	fs.MarkHidden("relay")
	return func(f *faults) {
		f.each("--gateway", *gateways, s.parseGateway)
		f.each("--dns", *dns, s.parseDNS)
	}
}

func (s *execSettings) parseGateway(text string) error {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("%q is not an IP address", text)
	}
	if slices.ContainsFunc(s.gateways, func(g netip.Addr) bool { return g.Is4() == a.Is4() }) {
		return fmt.Errorf("%s: there is one for its IP version already", a)
	}
	if slices.ContainsFunc(s.addresses, func(p netip.Prefix) bool { return p.Addr() == a }) {
		return fmt.Errorf("%s is an address of the device's own", a)
	}
	if err := stack.CheckAddress(s.networkOf(a)); err != nil {
		return fmt.Errorf("%s is no router's: %w", a, err)
	}
	near := func(p netip.Prefix) bool { return p.Contains(a) }
	if !slices.ContainsFunc(s.addresses, near) && !(a.Is6() && a.IsLinkLocalUnicast()) {
		return fmt.Errorf("%s is in the network of none of the addresses %v", a, s.addresses)
	}
	s.gateways = append(s.gateways, a)
	return nil
}

// networkOf returns an address with the length of its prefix in a network of the
// device, or alone where that has none of it.
func (s *execSettings) networkOf(a netip.Addr) netip.Prefix {
	for _, p := range s.addresses {
		if p.Contains(a) {
			return netip.PrefixFrom(a, p.Bits())
		}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

func (s *execSettings) parseDNS(text string) error {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("%q is not an IP address", text)
	}
	if a.IsUnspecified() || a.IsMulticast() {
		return fmt.Errorf("%s is no server's", a)
	}
	s.dns = append(s.dns, a)
	return nil
}

// useUserNetwork takes addresses of that network, and its routers, which are its
// name servers too.
func (s *execSettings) useUserNetwork() {
	s.addresses = userAddresses()
	s.gateways = []netip.Addr{user.DefaultGateway, user.DefaultGateway6}
	s.dns = []netip.Addr{user.DefaultGateway}
}

// unprivilegedKinds are the kinds of slaves that need no rights.
var unprivilegedKinds = []string{fdKind, userKind}
