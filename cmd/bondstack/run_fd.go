package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bondstack/link/fd"
	"bondstack/link/packet"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// fdKind is the kind of slaves on descriptors that this process was started with.
const fdKind = "fd"

// parseFD reads the number of a descriptor, and returns the slave's name.
func parseFD(text string) (name string, err error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < 3 {
		return "", fmt.Errorf("%q is not the number of a descriptor that may be a slave, such as 3", text)
	}
	return fmt.Sprint(fdKind, n), nil
}

// numberOfFD returns the number of the descriptor of a slave's name.
func numberOfFD(name string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, fdKind))
	if err != nil {
		return 0, fmt.Errorf("the name %q is not that of a slave of kind fd, such as fd3", name)
	}
	return n, nil
}

// openFD opens a slave on a descriptor.
func openFD(name string, o linkOptions) (netstack.LinkEndpoint, []string, error) {
	if o.exclusive || o.hardwareAddress {
		return nil, nil, errors.New("--exclusive and --hardware-address are not for slaves of kind fd")
	}
	n, err := numberOfFD(name)
	if err != nil {
		return nil, nil, err
	}
	if isOurs(n) {
		return nil, nil, fmt.Errorf("descriptor %d was not passed: whoever starts bondstack has to pass it", n)
	}
	kind, err := fd.Probe(n)
	if err != nil {
		return nil, nil, err
	}
	if kind == fd.Packet {
		ep, err := packet.FromDescriptor(n, packet.Options{})
		if err != nil {
			return nil, nil, err
		}
		return ep, ep.Warnings(), nil
	}
	ep, err := fd.New(n, fd.Options{})
	if err != nil {
		return nil, nil, err
	}
	return ep, nil, nil
}
