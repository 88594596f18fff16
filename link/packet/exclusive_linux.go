package packet

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// tcActShot is TC_ACT_SHOT of linux/pkt_cls.h: drop the frame.
const tcActShot = 2

// exclude drops the received frames of an interface before the host's own stack
// sees them. The packet sockets have had their copy by then. It lasts until the
// link is closed, by the process or at its end. It runs in the interface's
// namespace.
func exclude(index int32) (link.Link, error) {
	// Kernels before 5.11 count the program's memory against this limit.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("exclusive: %w", err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "bondstack_drop",
		Type:         ebpf.SchedCLS,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, tcActShot), asm.Return()},
		License:      "Apache-2.0",
	})
	if err != nil {
		return nil, fmt.Errorf("exclusive: load the program that drops frames: %w", err)
	}
	defer program.Close() // the link keeps it
	l, err := link.AttachTCX(link.TCXOptions{
		Interface: int(index), Program: program, Attach: ebpf.AttachTCXIngress,
	})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return nil, fmt.Errorf("exclusive: %w: the kernel has no TCX, which came with Linux 6.6: %w", ErrNotSupported, err)
	}
	if err != nil {
		return nil, fmt.Errorf("exclusive: attach at the interface's ingress: %w", err)
	}
	return l, nil
}
