package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"bondstack/bonding"
	"bondstack/link/packet"
	"bondstack/link/xdp"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// slaveSpec is one --slave.
type slaveSpec struct{ kind, name string }

func (s slaveSpec) String() string { return s.kind + ":" + s.name }

// linkOptions are for every slave.
type linkOptions struct {
	exclusive       bool
	hardwareAddress bool
	user            *userLinks // of the slaves of kind user
}

// openFunc opens a slave's link, and returns what the user should know of it.
type openFunc func(name string, o linkOptions) (ep netstack.LinkEndpoint, warnings []string, err error)

// linkKinds are the kinds of slaves.
var linkKinds = map[string]openFunc{
	"packet":  openPacket,
	"fdbased": openFdbased,
	"xdp":     openXDP,
	userKind:  openUser,
	fdKind:    openFD,
}

const defaultKind = "packet"

// maxName is the length of the longest name of an interface in Linux.
const maxName = 15

func openPacket(name string, o linkOptions) (netstack.LinkEndpoint, []string, error) {
	ep, err := packet.New(name, packet.Options{Exclusive: o.exclusive, SetHardwareAddress: o.hardwareAddress})
	if err != nil {
		return nil, nil, err
	}
	return ep, ep.Warnings(), nil
}

func openFdbased(name string, o linkOptions) (netstack.LinkEndpoint, []string, error) {
	switch {
	case o.exclusive:
		return nil, nil, fmt.Errorf("fdbased:%s: --exclusive is for slaves of kind packet", name)
	case o.hardwareAddress:
		return nil, nil, fmt.Errorf("fdbased:%s: --hardware-address is for slaves of kind packet", name)
	}
	ep, err := packet.OpenFdbased(name, packet.Options{})
	if err != nil {
		return nil, nil, err
	}
	return ep, nil, nil
}

// openXDP opens a slave by AF_XDP. What it takes the host does not see: all frames
// with --exclusive, else those for groups and for the slave's addresses.
func openXDP(name string, o linkOptions) (netstack.LinkEndpoint, []string, error) {
	if o.hardwareAddress {
		return nil, nil, fmt.Errorf("xdp:%s: --hardware-address is for slaves of kind packet", name)
	}
	options := xdp.Options{Share: xdp.ShareOthers}
	if o.exclusive {
		options.Share = xdp.ShareNone
	}
	ep, err := xdp.New(name, options)
	if err != nil {
		return nil, nil, err
	}
	return ep, ep.Warnings(), nil
}

// parseSlave reads [KIND:]NAME.
func (s *bondSettings) parseSlave(text string) error {
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		kind, name = defaultKind, text
	}
	err := knownKind(text, kind)
	switch kind {
	case userKind:
		name, err = s.userLinks().parse(name, s.hasSlave)
	case fdKind:
		name, err = parseFD(name)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	if len(name) == 0 || len(name) > maxName {
		return fmt.Errorf("%q: the name %q has %d bytes, allowed are 1 to %d", text, name, len(name), maxName)
	}
	if s.hasSlave(name) {
		return fmt.Errorf("%q: slave %s is given twice", text, name)
	}
	s.slaves = append(s.slaves, slaveSpec{kind, name})
	return nil
}

// knownKind returns an error where there is no such kind of slaves. text is the whole.
func knownKind(text, kind string) error {
	if linkKinds[kind] != nil {
		return nil
	}
	kinds := slices.Sorted(maps.Keys(linkKinds))
	return fmt.Errorf("%q: unknown kind %q, allowed are %s", text, kind, strings.Join(kinds, ", "))
}

func (s *bondSettings) hasSlave(name string) bool {
	return slices.ContainsFunc(s.slaves, func(other slaveSpec) bool { return other.name == name })
}

// joinEvery is how often a missing slave is looked for.
const joinEvery = 500 * time.Millisecond

// joiner enslaves what is there, and later what appears.
type joiner struct {
	bond  *bonding.Bond
	kinds map[string]openFunc
	link  linkOptions
	log   *slog.Logger

	// mu guards the following. A reload holds it, so that no slave joins between
	// its changes.
	mu      sync.Mutex
	options map[string]bonding.SlaveOptions // by name; nil is as none
	missing []slaveSpec
	reasons map[string]string // why each is missing, as said last
}

// joinFirst enslaves the slaves that are there. A missing one is an error where
// insist is set; a slave that is there and cannot be enslaved always is.
func (j *joiner) joinFirst(insist bool) error {
	j.reasons = map[string]string{}
	var errs []error
	j.mu.Lock()
	defer j.mu.Unlock()
	var missing []slaveSpec
	for _, spec := range j.missing {
		absent, err := j.join(spec)
		switch {
		case err == nil:
		case absent && !insist:
			missing = append(missing, spec)
			j.say(spec, err)
		default:
			errs = append(errs, fmt.Errorf("slave %s: %w", spec.name, err))
		}
	}
	j.missing = missing
	return errors.Join(errs...)
}

// join opens and enslaves one slave. absent says that there is no such device.
func (j *joiner) join(spec slaveSpec) (absent bool, err error) {
	ep, warnings, err := j.kinds[spec.kind](spec.name, j.link)
	if err != nil {
		return isAbsent(err), explainRights(spec.kind, err)
	}
	if err := j.bond.Enslave(spec.name, ep, j.options[spec.name]); err != nil {
		ep.Close()
		return false, err
	}
	for _, w := range warnings {
		j.log.Warn(w, "slave", spec.name)
	}
	return false, nil
}

// explainRights says what to do where a link may not be opened.
func explainRights(kind string, err error) error {
	if !errors.Is(err, os.ErrPermission) || kind == userKind || kind == fdKind {
		return err
	}
	needs := "CAP_NET_RAW and CAP_NET_ADMIN"
	if kind == "xdp" {
		needs = "CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and CAP_SYS_RESOURCE"
	}
	return fmt.Errorf("%w: kind %s needs root, or %s; run bondstack as root, or give slaves that need no rights (--slave user:)", err, kind, needs)
}

// isAbsent reports whether a link could not be opened because there is none.
func isAbsent(err error) bool { return errors.Is(err, packet.ErrNoInterface) }

// open opens the link of a slave that is added by control.
func (j *joiner) open(kind, name string) (netstack.LinkEndpoint, error) {
	if kind == "" {
		kind = defaultKind
	}
	open := j.kinds[kind]
	if open == nil {
		return nil, fmt.Errorf("unknown kind %q, allowed are %s", kind, strings.Join(slices.Sorted(maps.Keys(j.kinds)), ", "))
	}
	ep, warnings, err := open(name, j.link)
	for _, w := range warnings {
		j.log.Warn(w, "slave", name)
	}
	return ep, explainRights(kind, err)
}

// say logs why a slave is missing, once for each reason.
func (j *joiner) say(spec slaveSpec, err error) {
	if j.reasons[spec.name] != err.Error() {
		j.reasons[spec.name] = err.Error()
		j.log.Warn("slave is missing; it joins when it appears", "slave", spec.name, "reason", err)
	}
}

// run looks for the missing slaves until ctx ends.
func (j *joiner) run(ctx context.Context) {
	tick := time.NewTicker(joinEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			j.joinMissing()
		}
	}
}

func (j *joiner) joinMissing() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.missing = slices.DeleteFunc(j.missing, func(spec slaveSpec) bool {
		_, err := j.join(spec)
		if err != nil {
			j.say(spec, err)
		}
		return err == nil || errors.Is(err, bonding.ErrSlaveExists) // somebody added it by control
	})
}

// absent returns the names of the slaves that have not appeared yet.
func (j *joiner) absent() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	names := []string{}
	for _, spec := range j.missing {
		names = append(names, spec.name)
	}
	return names
}
