package xdp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// explainAttach says what an error of attaching to an interface means.
func explainAttach(err error, index int32) error {
	switch {
	case err == nil:
		return nil
	case inUse(err):
		return fmt.Errorf("attach the XDP program: another one is on the interface%s: %w", occupant(index), err)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("attach the XDP program: %w: %w", ErrNotSupported, err)
	}
	return fmt.Errorf("attach the XDP program: %w", err)
}

// attachedIn are the words of ip for where a program is, by IFLA_XDP_ATTACHED of
// linux/if_link.h.
var attachedIn = map[uint32]string{1: "xdpdrv", 2: "xdpgeneric", 3: "xdpoffload"}

// occupant says which program is on an interface and how to be rid of it, as far
// as the kernel tells.
func occupant(index int32) string {
	l, err := netlink.LinkByIndex(int(index))
	if err != nil || l.Attrs().Xdp == nil || l.Attrs().Xdp.ProgId == 0 {
		return ""
	}
	id, in := l.Attrs().Xdp.ProgId, attachedIn[l.Attrs().Xdp.AttachMode]
	if in == "" {
		in = "xdp"
	}
	return fmt.Sprintf(", %q with id %d (end the process that holds it; `ip link set dev %s %s off` removes one that none holds)",
		programName(ebpf.ProgramID(id)), id, l.Attrs().Name, in)
}

// programName returns the name that a program was loaded by.
func programName(id ebpf.ProgramID) string {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ""
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return ""
	}
	return info.Name
}
