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

	"bondstack/link/packet"
	"bondstack/link/tap"
	"bondstack/link/tap/bridge"
)

// namespaceFolder is where "ip netns" has its namespaces.
const namespaceFolder = "/run/netns"

// run has the device there until ctx ends, or somebody deletes it.
func (s *tapSettings) run(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) error {
	device, err := s.newDevice()
	if err != nil {
		return err
	}
	defer device.Close()
	o, err := s.open(log, kinds)
	if err != nil {
		return s.explain(err)
	}
	defer o.close()
	b, err := bridge.New(device, o.bond, bridge.Options{Logger: log})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := s.bringUp(device); err != nil {
		return err
	}
	o.control.serve(&runState{bond: o.bond, joiner: o.joiner, device: func() (deviceStatus, []hostAddress) {
		return deviceStatus{s.name, s.netns, s.queues, device.Stats(), b.Stats()}, deviceAddresses(device)
	}})
	log.Info("running", "bond", o.bond.Name(), "mode", o.bond.Mode(), "device", s.name, "netns", s.netns, "addresses", s.addresses, "control", s.control)
	if untilGone(ctx, device, o.joiner.run) {
		return fmt.Errorf("device %s was deleted", s.name)
	}
	log.Info("stopping", "bond", o.bond.Name())
	return nil
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

// newDevice makes the device, which follows the bond later.
func (s *tapSettings) newDevice() (*tap.Endpoint, error) {
	o := tap.Options{Queues: s.queues, PassChecksums: true}
	if s.netns != "" {
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
		defer file.Close()
		o.Namespace = file
	}
	device, err := tap.New(s.name, o)
	switch {
	case errors.Is(err, tap.ErrExists):
		return nil, fmt.Errorf("%w; choose another --name, or delete it with \"ip link delete %s\"", err, s.name)
	case errors.Is(err, tap.ErrPermission):
		return nil, fmt.Errorf("%w; run bondstack tap as root, or with CAP_NET_ADMIN and CAP_NET_RAW", err)
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

// bringUp brings the device up, with its addresses.
func (s *tapSettings) bringUp(device *tap.Endpoint) error {
	for _, p := range s.addresses {
		bits := p.Addr().BitLen()
		ip := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), bits)}
		if err := device.AddAddress(ip, false); err != nil {
			return err
		}
	}
	return device.SetUp()
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
