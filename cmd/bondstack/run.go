package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"bondstack/stack"
)

const runHelp = `
Usage: bondstack run --slave [KIND:]NAME ... --mode M --address CIDR ... [FLAGS]
       bondstack run --config FILE [--control SOCKET] [--log-level L] [--log-format F]

Hosts a TCP/IP stack on a bond of kernel interfaces until it is interrupted. The
interfaces stay the host's: the stack is beside the host's own, with addresses of
its own. It needs Linux, and the right to open packet sockets (root, or
CAP_NET_RAW and CAP_NET_ADMIN).

KIND is packet (the default), xdp (AF_XDP: the host sees no more what the slave
takes; it needs CAP_BPF too), or fdbased, gVisor's own endpoint; only the first
colon separates it from the NAME. A slave that is not there does not stop the
rest: it joins when it appears.

Slaves of kind user need no rights and no interface: they lead to a network in
memory that passes connections on by ordinary sockets of the host. --slave user:
gives them the names user0, user1 and so on. Settings for all of them follow the
first: --slave user:,loopback=on (gateway=IP, gateway6=IP, dns=IP[:PORT], mtu=N).
With no other slaves, --address, --gateway and --dns may be left out.
--slave fd:N, named fdN, is a descriptor that a helper passed: a packet socket, a TAP
device, or a unix socket that carries a frame a message.

Addresses are given, or come by DHCP (--address dhcp) and from router
advertisements (--address auto), with their routes and name servers; both are asked
anew after a failover.

A VLAN device is a further interface of the stack, with frames that have a tag:
--vlan 5=10.5.0.2/24 for 802.1Q, --vlan 802.1ad:7/5=10.75.0.2/24 for VLAN 5 in the
service VLAN 7, --vlan 5@3 for priority 3.

Options of the bond are set with -o by their Linux names, all of them or none.
Services run on the bonded stack:
  --serve echo:PORT        sends back what it receives
  --serve discard:PORT     receives and forgets
  --serve iperf3:PORT      a server of iperf3's protocol
  --serve http:PORT=DIR    serves the files of a folder

Connections are passed on, both ways, TCP and UDP:
  --forward tcp:PORT=HOST:PORT
                           from a port of the stack to where the host can reach
  --forward host:tcp:[ADDRESS:]PORT=HOST:PORT
                           from a port of the host (of 127.0.0.1) to where the
                           stack can reach; udp: in place of tcp: for datagrams
  --socks [ADDRESS:]PORT   a SOCKS5 proxy on the host into the stack

With --config all of that is in a file, for one bond or several; bondstack check
finds its faults. On SIGHUP the file is read again, and what has changed is put into
force, all of it or nothing.

Examples:
  bondstack run --config /etc/bondstack.yaml
  bondstack run --slave eth1 --slave eth2 --mode active-backup --address 10.0.0.2/24
  bondstack run --slave eth1 --slave eth2 --mode balance-xor -o xmit_hash_policy=layer3+4 \
    --address 10.0.0.2/24 --address fd00::2/64 --gateway 10.0.0.1 --serve http:80=/srv/www
  bondstack run --slave eth1 --slave eth2 --mode active-backup --address dhcp --address auto
  bondstack run --slave user: --slave user: --mode active-backup --metrics 9090 --socks 1080
  bondstack run --slave packet:eth1 --mode active-backup -o primary=eth1 -o updelay=200 \
    --address 10.0.0.2/24 --forward tcp:2222=127.0.0.1:22`

// runSettings are what the flags say.
type runSettings struct {
	bondSettings
	host     stack.HostOptions
	vlans    []vlanSpec
	services []service
	relaySettings
	file string // of --config; where it is set, all but the log and the control socket is there
}

func runRun(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s, code, done := parseRun(args, stdout, stderr)
	if done {
		return code
	}
	if s.file != "" {
		return runFile(s.file, s.control, s.log, stderr)
	}
	return runUntilSignal("run", stderr, s.log, func(ctx context.Context, log *slog.Logger) error {
		return s.run(ctx, log, linkKinds)
	})
}

// parseRun reads the flags, and reports every fault at once. done is true where
// there is nothing to run.
func parseRun(args []string, stdout, stderr io.Writer) (s *runSettings, code int, done bool) {
	s = &runSettings{}
	fs := newFlags("run")
	fs.StringVarP(&s.file, "config", "c", "", "take everything from the configuration `FILE`, and again on SIGHUP")
	read, readRelay := s.bondSettings.define(fs), s.relaySettings.define(fs)
	addresses := fs.StringArray("address", nil, "an address of the stack, `CIDR`, or dhcp, or auto for those that IPv6 routers advertise; may be given again")
	gateways := fs.StringArray("gateway", nil, "a router, `IP`; one for each of IPv4 and IPv6")
	dns := fs.StringArray("dns", nil, "a name server, `IP`; may be given again")
	search := fs.StringArray("search", nil, "a `DOMAIN` in which names are looked up; may be given again")
	fs.IntVar(&s.host.TransmitQueue, "tx-queue", 0, "have up to `N` packets wait for a goroutine that sends several at once (default 0: none waits)")
	fs.StringVar(&s.host.HostName, "host-name", "", "the `NAME` that DHCP servers are told (default nothing)")
	vlans := fs.StringArray("vlan", nil, "a VLAN device of the stack, `[802.1ad:]ID[@PRIORITY][/...][=CIDR,...]`; may be given again")
	serve := fs.StringArray("serve", nil, "a service, `KIND:PORT[=DIR]`; may be given again")
	if code, done := parseFlags(fs, runHelp, args, stdout, stderr); done {
		return nil, code, true
	}
	if s.file != "" {
		if err := besideFile(fs); err != nil {
			return nil, usageError("run", stderr, err), true
		}
		return s, exitOK, false
	}
	var f faults
	read(&f)
	s.host.Name = s.name
	f.each("--address", *addresses, s.parseAddress)
	if s.onlyUser() && !fs.Changed("address") && !fs.Changed("gateway") && !fs.Changed("dns") {
		s.useUserNetwork()
	} else {
		f.add("--address", given(*addresses, "--address 10.0.0.2/24"))
	}
	f.each("--gateway", *gateways, s.parseGateway)
	f.each("--dns", *dns, s.parseDNS)
	s.host.DNS.Search = *search
	f.each("--vlan", *vlans, s.parseVLAN)
	f.each("--serve", *serve, s.parseService)
	readRelay(&f)
	f.add("", s.host.Validate())
	if err := errors.Join(f...); err != nil {
		return nil, usageError("run", stderr, err), true
	}
	return s, exitOK, false
}

func (s *runSettings) parseAddress(text string) error {
	switch text {
	case "dhcp":
		s.host.DHCP = true
		return nil
	case "auto":
		s.host.SLAAC = true
		return nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("%q is not an address with a prefix length, such as 10.0.0.2/24, nor dhcp, nor auto", text)
	}
	s.host.Addresses = append(s.host.Addresses, p)
	return nil
}

func (s *runSettings) parseDNS(text string) error {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("%q is not an IP address", text)
	}
	s.host.DNS.Servers = append(s.host.DNS.Servers, a)
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
