package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/config"
	"bondstack/cmd/bondstack/forward"
	"bondstack/link"
	"bondstack/link/relay"

	"github.com/spf13/pflag"
)

// besideFile refuses flags that are not given together with --config, and finds the
// faults of the others.
func besideFile(fs *pflag.FlagSet) error {
	var f faults
	fs.Visit(func(given *pflag.Flag) {
		switch given.Name {
		case "config", "control":
		case "log-level", "log-format":
			f.add("--"+given.Name, checkLog(given.Name, given.Value.String()))
		default:
			f.add("--"+given.Name, errors.New("this is not given together with --config: it is for the file to say"))
		}
	})
	return errors.Join(f...)
}

// runFile runs the bonds of a file until a signal comes.
func runFile(path, control string, l logging, stderr io.Writer) int {
	f, faults, err := readConfig(path)
	if err != nil {
		return failure("run", stderr, err)
	}
	for _, fault := range faults {
		fmt.Fprintf(stderr, "%s:%s\n", path, fault.Error())
	}
	if n := len(faults.Errors()); n > 0 {
		return failure("run", stderr, fmt.Errorf("%s has %s", path, faultsText(n)))
	}
	if control != "" && len(f.Bonds) > 1 {
		return usageError("run", stderr, fmt.Errorf("--control names one socket, and %s has %d bonds: they name theirs by their key control", path, len(f.Bonds)))
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	p := &program{path: path, file: f, control: control, byFlag: l.level != "", kinds: linkKinds}
	if l.level == "" {
		l.level = f.Log.Level
	}
	if l.format == "" {
		l.format = f.Log.Format
	}
	p.log, p.level = l.logger(stderr)
	return runUntilSignal("run", stderr, l, func(ctx context.Context, _ *slog.Logger) error { return p.run(ctx, hangup) })
}

// settings are what a bond runs by, of run or tap.
type settings interface {
	// start starts all of it. What it returns has to be closed.
	start(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) (running, error)
	base() *bondSettings
}

func (s *bondSettings) base() *bondSettings { return s }

// settingsOf makes what the flags of run or tap make, of a bond of a file that was
// checked. control is its socket where the file names none.
func settingsOf(b *config.Bond, control string) (settings, error) {
	s := bondSettings{name: b.Name, options: b.Options, bond: b.BondOptions(), control: b.Control, insist: b.RequireSlaves,
		joining: map[string]bonding.SlaveOptions{}, link: linkOptions{exclusive: b.KeepsFrames(), hardwareAddress: b.SetAddresses}}
	if s.control == "" {
		s.control = control
	}
	s.link.user = &userLinks{} // a reload may bring the first slave of it
	if b.UserNetwork != "" {
		if err := s.link.user.options.Set(b.UserNetwork); err != nil {
			return nil, fmt.Errorf("user_network: %w", err)
		}
	}
	for i := range b.Slaves {
		sl := &b.Slaves[i]
		s.slaves = append(s.slaves, slaveSpec{sl.KindOrDefault(), sl.Name})
		s.joining[sl.Name] = sl.Options()
	}
	if b.Tap() {
		return &tapSettings{bondSettings: s, netns: b.NetNS, queues: max(b.Queues, 1), addresses: config.Static(b.Addresses),
			wait: waitOfMany, detect: defaultDetect}, nil
	}
	r := &runSettings{bondSettings: s}
	r.host.Name = b.Name
	r.host.HostName = b.HostName
	r.host.Addresses = config.Static(b.Addresses)
	r.host.DHCP = slices.Contains(b.Addresses, config.AddressDHCP)
	r.host.SLAAC = slices.Contains(b.Addresses, config.AddressAuto)
	r.host.Routes = config.Routes(b.Routes)
	if b.DNS != nil {
		for _, text := range b.DNS.Servers {
			if a, err := netip.ParseAddr(text); err == nil {
				r.host.DNS.Servers = append(r.host.DNS.Servers, a)
			}
		}
		r.host.DNS.Search = b.DNS.Search
	}
	r.vlans = vlansOf(b.VLANs, nil)
	for _, text := range b.Serve {
		if svc, err := parseService(text); err == nil {
			r.services = append(r.services, svc)
		}
	}
	for _, text := range b.Forwards {
		if f, err := forward.Parse(text); err == nil {
			r.forwards = append(r.forwards, f)
		}
	}
	r.host.TransmitQueue = b.TxQueue
	r.limits = relay.Options{MaxTCP: b.FlowLimit, MaxUDP: b.FlowLimit, TCPIdle: time.Duration(b.TCPIdle) * time.Millisecond,
		UDPIdle: time.Duration(b.UDPIdle) * time.Millisecond}
	if err := r.parseSocks(b.Socks, b.SocksUsers); err != nil {
		return nil, fmt.Errorf("socks: %w", err)
	}
	return r, nil
}

// vlansOf makes specs of VLANs inside of others, whose tags are outer.
func vlansOf(vlans []config.VLAN, outer []vlanTag) []vlanSpec {
	var specs []vlanSpec
	for i := range vlans {
		v := &vlans[i]
		tag := vlanTag{VLANTag: link.VLANTag{Protocol: link.TagProtocolQ, ID: v.ID}, priority: v.Priority}
		if v.ProtocolOrDefault() == "802.1ad" {
			tag.Protocol = link.TagProtocolAD
		}
		tags := append(slices.Clone(outer), tag)
		if v.Interface() {
			specs = append(specs, vlanSpec{tags: tags, addresses: config.Static(v.Addresses), routes: config.Routes(v.Routes),
				dhcp: slices.Contains(v.Addresses, config.AddressDHCP), slaac: slices.Contains(v.Addresses, config.AddressAuto)})
		}
		specs = append(specs, vlansOf(v.VLANs, tags)...)
	}
	return specs
}

// socketOf is the control socket of a bond that names none: the usual one for the
// first, and one beside it for each other.
func socketOf(i int, name string) string {
	if i == 0 {
		return defaultSocket()
	}
	return filepath.Join(filepath.Dir(defaultSocket()), name+".sock")
}

func faultsText(n int) string {
	if n == 1 {
		return "1 fault"
	}
	return fmt.Sprintf("%d faults", n)
}
