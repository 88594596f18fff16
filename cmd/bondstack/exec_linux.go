package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"bondstack/cmd/bondstack/sandbox"

	"golang.org/x/sys/unix"
)

// exec runs the command and returns its exit code. args are those of bondstack
// exec.
func (s *execSettings) exec(args []string, log *slog.Logger, kinds map[string]openFunc) (code int, err error) {
	var relay *sandbox.Relay
	if s.relay != 0 {
		relay = sandbox.AdoptRelay(s.relay)
	} else {
		if relay, err = sandbox.NewRelay(); err != nil {
			return 0, err
		}
		relay.Forward()
		restore := sandbox.HoldTerminal()
		defer func() { restore(code) }()
	}
	defer relay.Close()
	if sandbox.Privileged() {
		return s.execHere(relay, log, kinds)
	}
	if err := s.checkUnprivileged(); err != nil {
		return 0, err
	}
	if s.relay != 0 {
		return 0, fmt.Errorf("a user namespace was made, and gives no rights over it; AppArmor or another security module may be why: allow it there, or run bondstack as root")
	}
	return sandbox.RunInUserNamespace(relay, s.asRoot, func(far string) []string {
		return append([]string{"bondstack", "exec", "--relay=" + far}, args...)
	})
}

// execHere runs the command with the rights that this process has.
func (s *execSettings) execHere(relay *sandbox.Relay, log *slog.Logger, kinds map[string]openFunc) (int, error) {
	ctx, unwatch, err := relay.Watch(context.Background())
	if err != nil {
		return 0, err
	}
	watching := true
	stopWatching := func() {
		if watching {
			unwatch()
		}
		watching = false
	}
	defer stopWatching()
	network, err := sandbox.NewNetwork()
	if err != nil {
		return 0, err
	}
	defer network.Close()
	k, err := s.openDevice(network.File(), log, kinds)
	if err != nil {
		return 0, err
	}
	defer k.close()
	if err := s.prepare(ctx, network, k, log); err != nil {
		return 0, err
	}
	k.serve(&s.tapSettings, log)
	log.Info("running", "bond", k.bond.Name(), "mode", k.bond.Mode(), "device", s.name, "addresses", s.addresses, "command", s.command)
	join, stopJoining := context.WithCancel(context.Background())
	defer stopJoining()
	go func() {
		if untilGone(join, k.device, k.joiner.run) {
			log.Warn("the device was deleted: the command is without a network", "device", s.name)
		}
	}()
	stopWatching()
	for _, spec := range s.slaves {
		if n, err := numberOfFD(spec.name); err == nil && spec.kind == fdKind {
			unix.CloseOnExec(n)
		}
	}
	return sandbox.Run(relay, network, sandbox.Command{
		Args:        s.command,
		Resolver:    sandbox.Resolver(s.dns),
		MustResolve: len(s.dns) > 0,
		DropRights:  s.relay != 0 && !s.asRoot,
	})
}

// prepare brings the device up, with addresses that nobody else has, and routes.
func (s *execSettings) prepare(ctx context.Context, network *sandbox.Network, k *kernelBond, log *slog.Logger) error {
	if err := s.bringUp(ctx, network, k, log); err != nil {
		return err
	}
	for _, g := range s.gateways {
		if err := network.AddDefaultRoute(s.name, g); err != nil {
			return fmt.Errorf("--gateway: %w", err)
		}
	}
	return nil
}

// checkUnprivileged reports slaves that who is not root cannot open.
func (s *execSettings) checkUnprivileged() error {
	var f faults
	for _, spec := range s.slaves {
		if !slices.Contains(unprivilegedKinds, spec.kind) {
			f = append(f, fmt.Errorf("slave %s: kind %s needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN (user %d has them not); run bondstack as root, or give slaves of the kinds %s",
				spec.name, spec.kind, os.Geteuid(), strings.Join(unprivilegedKinds, ", ")))
		}
	}
	return errors.Join(f...)
}
