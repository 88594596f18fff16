package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"bondstack/link/tap"
	"bondstack/link/tap/bridge"
	"bondstack/stack"

	"github.com/spf13/pflag"
)

const tapHelp = `
Usage: bondstack tap --slave [KIND:]NAME ... --mode M [--name bond0] [--netns NAME] [FLAGS]

Makes a network device of the kernel, a TAP, whose frames go out by a bond of
interfaces and come in from it, until it is interrupted. Any program uses the bond
by that device, where the kernel has no bonding driver as well. It needs Linux,
root (or CAP_NET_ADMIN and CAP_NET_RAW), and /dev/net/tun.

With --netns the device is in a network namespace of "ip netns", or in the one of a
file such as /proc/PID/ns/net. The slaves are in the namespace that bondstack runs
in. Without --netns the device is beside its slaves, and frames that the slaves
receive are kept from the host's own stack (--exclusive), which would answer them a
second time; --exclusive=false leaves them to it.

The device has the bond's MAC address, MTU, carrier and speed at all times. Its
addresses are given by --address, or by whoever sees it: "ip address add", a DHCP
client. One given that another host answers for is an error (--wait, --detect say how
long each may take). The bond announces them at the start and after a failover. Device, addresses and routes are
gone when bondstack ends, however it ends.

Options of the bond are set with -o by their Linux names, as with bondstack run.

Examples:
  bondstack tap --slave eth1 --slave eth2 --mode active-backup --address 10.0.0.2/24
  bondstack tap --slave eth1 --slave eth2 --mode 802.3ad -o lacp_rate=fast --name bond1
  ip netns add box; bondstack tap --slave eth1 --slave eth2 --mode balance-xor \
    -o xmit_hash_policy=layer3+4 --netns box --address 10.0.0.2/24 --queues 4`

// tapSettings are what the flags say.
type tapSettings struct {
	bondSettings
	netns     string
	queues    int
	addresses []netip.Prefix
	// wait is how long to wait for a usable slave, detect how long to listen
	// whether others have the addresses.
	wait, detect time.Duration
}

const (
	defaultWait   = 10 * time.Second
	defaultDetect = 200 * time.Millisecond
	// waitOfMany is the wait of a bond of a configuration file, where the others
	// wait for it.
	waitOfMany = time.Second
)

func runTap(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s, code, done := parseTap(args, stdout, stderr)
	if done {
		return code
	}
	return runUntilSignal("tap", stderr, s.log, func(ctx context.Context, log *slog.Logger) error {
		return s.run(ctx, log, linkKinds)
	})
}

// parseTap reads the flags, and reports every fault at once. done is true where
// there is nothing to run.
func parseTap(args []string, stdout, stderr io.Writer) (s *tapSettings, code int, done bool) {
	s = &tapSettings{}
	fs := newFlags("tap")
	read := s.define(fs)
	fs.StringVar(&s.netns, "netns", "", "the network namespace of the device, `NAME` or file (default that of bondstack)")
	readDevice := s.defineDevice(fs)
	if code, done := parseFlags(fs, tapHelp, args, stdout, stderr); done {
		return nil, code, true
	}
	var f faults
	read(&f)
	ofHost := func(spec slaveSpec) bool { return !slices.Contains(unprivilegedKinds, spec.kind) }
	if s.netns == "" && !fs.Changed("exclusive") && slices.ContainsFunc(s.slaves, ofHost) {
		s.link.exclusive = true
	}
	readDevice(&f)
	if err := errors.Join(f...); err != nil {
		return nil, usageError("tap", stderr, err), true
	}
	return s, exitOK, false
}

// defineDevice defines the flags of the device. read reads their values once they
// are parsed.
func (s *tapSettings) defineDevice(fs *pflag.FlagSet) (read func(*faults)) {
	addresses := fs.StringArray("address", nil, "an address of the device, `CIDR`; may be given again")
	fs.IntVar(&s.queues, "queues", 1, "how many queues the device has, `N`")
	fs.DurationVar(&s.wait, "wait", defaultWait, "how long to wait until a slave is usable and others can be asked for the addresses, `TIME`; it starts then anyway")
	fs.DurationVar(&s.detect, "detect", defaultDetect, "how long to listen whether another host has an address, `TIME`; 0 for not at all")
	return func(f *faults) {
		f.each("--address", *addresses, s.parseAddress)
		f.add("--name", tap.CheckName(s.name))
		f.add("--queues", s.checkQueues())
		if s.wait < 0 || s.detect < 0 {
			f.add("", errors.New("--wait, --detect: a time may not be negative"))
		}
		if s.bond.MTU > tap.MaxMTU {
			f.add("--mtu", fmt.Errorf("%d is more than a TAP device takes, allowed are 68 to %d", s.bond.MTU, tap.MaxMTU))
		}
	}
}

func (s *tapSettings) checkQueues() error {
	if s.queues < 1 || s.queues > tap.MaxQueues {
		return fmt.Errorf("%d is out of range, allowed are 1 to %d", s.queues, tap.MaxQueues)
	}
	return nil
}

func (s *tapSettings) parseAddress(text string) error {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("%q is not an address with a prefix length, such as 10.0.0.2/24", text)
	}
	if err := stack.CheckAddress(p); err != nil {
		return err
	}
	if slices.ContainsFunc(s.addresses, func(other netip.Prefix) bool { return other.Addr() == p.Addr() }) {
		return fmt.Errorf("%s is given twice", p)
	}
	s.addresses = append(s.addresses, p)
	return nil
}

// deviceStatus is what an instance tells of its device.
type deviceStatus struct {
	Name   string       `json:"name"`
	NetNS  string       `json:"netns,omitempty"`
	Queues int          `json:"queues"`
	Device tap.Stats    `json:"device"`
	Bridge bridge.Stats `json:"bridge"`
}

// text is the status for people.
func (d *deviceStatus) text() string {
	where := ""
	if d.NetNS != "" {
		where = " in network namespace " + d.NetNS
	}
	t := d.Device
	return fmt.Sprintf("  device %s%s: %d frames out, %d in, %d dropped\n", d.Name, where, d.Bridge.Out, d.Bridge.In,
		t.TXDroppedNoBuffer+t.TXDroppedInvalid+t.TXRefusedDown+t.RXDroppedKernel+t.RXDroppedMalformed+t.RXDroppedOversize+t.RXDroppedUnattached+d.Bridge.OutMalformed)
}
