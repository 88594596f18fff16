package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"bondstack/cmd/bondstack/sandbox"
	"bondstack/link/packet"
	"bondstack/link/tap"
	"bondstack/link/tap/bridge"
)

// namespaceFolder is where "ip netns" has its namespaces.
const namespaceFolder = "/run/netns"

// run has the device there until ctx ends, or somebody deletes it.
func (s *tapSettings) run(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) error {
	k, err := s.start(ctx, log, kinds)
	if err != nil {
		return err
	}
	defer k.close()
	return k.wait(ctx)
}

// start makes the device and its bond. What it returns has to be closed.
func (s *tapSettings) start(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) (running, error) {
	namespace, err := s.openNamespace()
	if err != nil {
		return nil, err
	}
	defer namespace.Close() // of nil too
	k, err := s.openDevice(namespace, log, kinds)
	if err != nil {
		return nil, err
	}
	k.serve(s, log)
	err = s.bringUp(ctx, sandbox.NetworkAt(namespace), k, log)
	if err != nil && ctx.Err() == nil {
		k.close()
		return nil, err
	}
	log.Info("running", "bond", k.bond.Name(), "mode", k.bond.Mode(), "device", s.name, "netns", s.netns, "addresses", s.addresses, "control", s.control)
	return k, nil
}

// wait has missing slaves join, until ctx ends or the device is gone.
func (k *kernelBond) wait(ctx context.Context) error {
	if untilGone(ctx, k.device, k.joiner.run) {
		return fmt.Errorf("device %s was deleted", k.device.Name())
	}
	k.joiner.log.Info("stopping", "bond", k.bond.Name())
	return nil
}

// kernelBond is a bond with its kernel device, which follows it.
type kernelBond struct {
	*opened
	device *tap.Endpoint
	bridge *bridge.Bridge
	pages  *pages
}

// openDevice makes the device, down, in a namespace (nil for this one), and the
// bond with the slaves that are there. Before that it begins to listen where it is to
// be shown.
func (s *tapSettings) openDevice(namespace *os.File, log *slog.Logger, kinds map[string]openFunc) (k *kernelBond, err error) {
	k = &kernelBond{}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	if k.pages, err = s.seeing.listen(); err != nil {
		return k, err
	}
	if k.device, err = s.newDevice(namespace); err != nil {
		return k, err
	}
	if k.opened, err = s.open(log, k.guard(kinds)); err != nil {
		return k, s.explain(err)
	}
	k.bridge, err = bridge.New(k.device, k.bond, bridge.Options{Logger: log})
	return k, err
}

// guard has the kinds refuse the device as a slave of its own bond, around which
// frames would go for ever. It does so whenever a slave joins.
func (k *kernelBond) guard(kinds map[string]openFunc) map[string]openFunc {
	return vetted(kinds, func(name string) error {
		if k.device.Is(name) {
			return fmt.Errorf("interface %q is the bond's own device, and cannot be its slave", name)
		}
		return nil
	})
}

// close closes what was opened.
func (k *kernelBond) close() {
	if k.pages != nil {
		k.pages.close()
	}
	if k.bridge != nil {
		k.bridge.Close()
	}
	if k.opened != nil {
		k.opened.close()
	}
	if k.device != nil {
		k.device.Close()
	}
}

// serve begins to answer, where there is a control socket.
func (k *kernelBond) serve(s *tapSettings, log *slog.Logger) {
	k.state = &runState{bond: k.bond, joiner: k.joiner, device: func() (deviceStatus, []hostAddress) {
		return deviceStatus{s.name, s.netns, s.queues, k.device.Stats(), k.bridge.Stats()}, deviceAddresses(k.device)
	}}
	k.pages.show(k.state, log)
	if k.control != nil {
		k.control.serve(k.state)
	}
}

// untilGone runs f until ctx ends, or the device is deleted, which it reports.
func untilGone(ctx context.Context, device *tap.Endpoint, f func(context.Context)) (gone bool) {
	inner, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-device.Gone():
			gone = true
			cancel()
		case <-inner.Done():
		}
	}()
	f(inner)
	cancel()
	<-watched
	return gone && ctx.Err() == nil
}

// openNamespace opens the namespace that the device is to be in; nil for this one.
func (s *tapSettings) openNamespace() (*os.File, error) {
	if s.netns == "" {
		return nil, nil
	}
	path := s.netns
	if !strings.Contains(path, "/") {
		path = filepath.Join(namespaceFolder, path)
	}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--netns %s: there is no such namespace; make it with \"ip netns add\", or name a file such as /proc/PID/ns/net", s.netns)
	}
	if err != nil {
		return nil, fmt.Errorf("--netns %s: %w", s.netns, err)
	}
	return file, nil
}

// newDevice makes the device, which follows the bond later.
func (s *tapSettings) newDevice(namespace *os.File) (*tap.Endpoint, error) {
	device, err := tap.New(s.name, tap.Options{Queues: s.queues, PassChecksums: true, Namespace: namespace})
	switch {
	case errors.Is(err, tap.ErrExists):
		return nil, fmt.Errorf("%w; choose another --name, or delete it with \"ip link delete %s\"", err, s.name)
	case errors.Is(err, tap.ErrPermission):
		return nil, fmt.Errorf("%w; run bondstack as root, or with CAP_NET_ADMIN and CAP_NET_RAW and a /dev/net/tun that you may open (chmod 666 /dev/net/tun, as distributions have it)", err)
	}
	return device, err
}

// explain adds the way out where the exclusion of the host's own stack, which
// nobody asked for, may be what failed.
func (s *tapSettings) explain(err error) error {
	refused := errors.Is(err, packet.ErrNotSupported) || errors.Is(err, os.ErrPermission)
	if s.netns == "" && s.link.exclusive && refused {
		return fmt.Errorf("%w (frames of the slaves are kept from the host's own stack; --exclusive=false does without, --netns needs none)", err)
	}
	return err
}

// bringUp brings the device up, with addresses that nobody else has, as far as it can
// be asked: that waits for a slave, and no longer than it may.
func (s *tapSettings) bringUp(ctx context.Context, network *sandbox.Network, k *kernelBond, log *slog.Logger) error {
	if err := k.device.SetUp(); err != nil {
		return err
	}
	var addrs []netip.Addr
	for _, p := range s.addresses {
		addrs = append(addrs, p.Addr())
	}
	if len(addrs) == 0 {
		return nil // it is somebody else's matter
	}
	running, err := network.AwaitRunning(ctx, s.name, s.wait)
	if err != nil {
		return err
	}
	if running {
		if err := network.Detect(ctx, s.name, addrs, s.detect); err != nil {
			return explainTaken(err)
		}
	} else {
		log.Warn("no slave is usable yet; nobody was asked for the addresses", "bond", k.bond.Name(), "waited", s.wait)
	}
	if err := s.addAddresses(k.device, running && s.detect > 0); err != nil {
		return err
	}
	if running {
		k.bridge.Introduce()
	}
	return nil
}

// explainTaken adds the way out to the error of an address that is in use.
func explainTaken(err error) error {
	var taken sandbox.Taken
	if !errors.As(err, &taken) {
		return err
	}
	return fmt.Errorf("%w; choose another --address, or start with --detect=0 where that is meant to be", err)
}

// addAddresses gives the device its addresses. The kernel looks for others that
// have an IPv6 address unless unique is set.
func (s *tapSettings) addAddresses(device *tap.Endpoint, unique bool) error {
	for _, p := range s.addresses {
		bits := p.Addr().BitLen()
		ip := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), bits)}
		if err := device.AddAddress(ip, unique); err != nil {
			return err
		}
	}
	return nil
}

// deviceAddresses are the addresses that the namespace has on the device.
func deviceAddresses(device *tap.Endpoint) []hostAddress {
	list, _ := device.Addresses() // none when the device is gone
	var addresses []hostAddress
	for _, a := range list {
		state := "assigned"
		if a.Tentative {
			state = "tentative"
		}
		addresses = append(addresses, hostAddress{netip.PrefixFrom(a.Addr, a.Bits), state})
	}
	return addresses
}
