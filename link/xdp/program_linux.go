package xdp

import (
	"errors"
	"fmt"

	"bondstack/link/internal/kernel"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Facts of linux/bpf.h.
const (
	// xdpPass is XDP_PASS: the frame goes to the host's stack.
	xdpPass = 2
	// Where in struct xdp_md the program finds what it looks at.
	offsetData, offsetEnd, offsetQueue = 0, 4, 16
)

// maxAddresses is how many addresses the program can tell apart.
const maxAddresses = 4096

// anyAddress is the key that stands for all addresses: no station has it.
var anyAddress uint64

// program takes frames from the driver.
type program struct {
	// sockets has the socket of each queue.
	sockets *ebpf.Map
	// addresses has the addresses of frames to take as keys; nil where all are
	// taken. present is what is in it.
	addresses *ebpf.Map
	present   map[uint64]struct{}
	link      link.Link
}

// attach attaches a program to an interface in the namespace of the calling
// thread. It takes no frame before a socket is added. reason says why the mode
// is not a better one.
func attach(index int32, queues int, o Options) (p *program, mode Mode, reason string, err error) {
	// Kernels before 5.11 count the memory of maps against this limit.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, 0, "", err
	}
	p = &program{}
	loaded, err := p.load(queues, o.Share)
	if err != nil {
		p.close()
		return nil, 0, "", err
	}
	defer loaded.Close() // the link keeps it
	mode, reason, err = p.attach(loaded, index, o.Mode)
	if err != nil {
		p.close()
		return nil, 0, "", err
	}
	return p, mode, reason, nil
}

// attach attaches the program in the driver, or where that cannot be and is not
// insisted on, in the stack.
func (p *program) attach(loaded *ebpf.Program, index int32, wanted Mode) (mode Mode, reason string, err error) {
	in := func(flags link.XDPAttachFlags) error {
		return insist(func() (err error) {
			p.link, err = link.AttachXDP(link.XDPOptions{Program: loaded, Interface: int(index), Flags: flags})
			return err
		})
	}
	mode = wanted
	if wanted != ModeGeneric {
		err = in(link.XDPDriverMode)
		if err == nil || wanted != ModeAuto || inUse(err) || errors.Is(err, unix.EPERM) {
			return mode, "", explainAttach(err, index)
		}
		reason = fmt.Sprintf("the driver takes no XDP program: %v", err)
	}
	return ModeGeneric, reason, explainAttach(in(link.XDPGenericMode), index)
}

// load makes the maps and loads the program.
func (p *program) load(queues int, share Share) (*ebpf.Program, error) {
	var err error
	p.sockets, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "bondstack_xsks", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queues),
	})
	if err != nil {
		return nil, fmt.Errorf("make the map of sockets: %w", err)
	}
	code := takeAll(p.sockets.FD())
	if share == ShareOthers {
		p.present = map[uint64]struct{}{}
		p.addresses, err = ebpf.NewMap(&ebpf.MapSpec{
			Name: "bondstack_macs", Type: ebpf.Hash, KeySize: 8, ValueSize: 1, MaxEntries: maxAddresses,
		})
		if err != nil {
			return nil, fmt.Errorf("make the map of addresses: %w", err)
		}
		code = takeOurs(p.sockets.FD(), p.addresses.FD())
	}
	loaded, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "bondstack_xdp", Type: ebpf.XDP, Instructions: code, License: "Apache-2.0",
	})
	if err != nil {
		return nil, fmt.Errorf("load the XDP program: %w", err)
	}
	return loaded, nil
}

// take gives the frame to the socket of its queue, or where there is none to
// the host. The context is in R6.
func take(sockets int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R6, offsetQueue, asm.Word).WithSymbol("take"),
		asm.LoadMapPtr(asm.R1, sockets),
		asm.Mov.Imm(asm.R3, xdpPass), // what comes of a queue without socket
		asm.FnRedirectMap.Call(),
		asm.Return(),
	}
}

// takeAll is the program that takes every frame.
func takeAll(sockets int) asm.Instructions {
	return append(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, take(sockets)...)
}

// takeOurs is the program that takes frames for groups and for the addresses of
// the map, and for all stations while the map has anyAddress.
func takeOurs(sockets, addresses int) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, offsetData, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, offsetEnd, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R7),
		asm.Add.Imm(asm.R4, 14),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"),

		asm.LoadMem(asm.R5, asm.R7, 0, asm.Byte), // the group bit of the destination
		asm.And.Imm(asm.R5, 1),
		asm.JNE.Imm(asm.R5, 0, "take"),

		// The key is the six bytes of the destination, and two of zero.
		asm.Mov.Imm(asm.R4, 0),
		asm.StoreMem(asm.RFP, -8, asm.R4, asm.DWord),
		asm.LoadMem(asm.R4, asm.R7, 0, asm.Word),
		asm.StoreMem(asm.RFP, -8, asm.R4, asm.Word),
		asm.LoadMem(asm.R4, asm.R7, 4, asm.Half),
		asm.StoreMem(asm.RFP, -4, asm.R4, asm.Half),
	}
	lookUp := asm.Instructions{
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -8),
		asm.LoadMapPtr(asm.R1, addresses),
		asm.FnMapLookupElem.Call(),
		asm.JNE.Imm(asm.R0, 0, "take"),
	}
	code = append(code, lookUp...)
	code = append(code, asm.Mov.Imm(asm.R4, 0), asm.StoreMem(asm.RFP, -8, asm.R4, asm.DWord))
	code = append(code, lookUp...)
	code = append(code,
		asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("pass"),
		asm.Return(),
	)
	return append(code, take(sockets)...)
}

// add has the program give the frames of a queue to a socket.
func (p *program) add(queue int, s *socket) error {
	if err := p.sockets.Put(uint32(queue), uint32(s.fd)); err != nil {
		return fmt.Errorf("give queue %d its socket: %w", queue, err)
	}
	return nil
}

// follow has the program take frames for the addresses of a filter.
func (p *program) follow(state *kernel.FilterState) error {
	if p.addresses == nil {
		return nil
	}
	wanted := map[uint64]struct{}{}
	unicast, promiscuous := state.Addresses()
	for _, mac := range unicast {
		wanted[keyOf(mac)] = struct{}{}
	}
	if promiscuous {
		wanted[anyAddress] = struct{}{}
	}
	for key := range wanted {
		if _, ok := p.present[key]; ok {
			continue
		}
		if err := p.addresses.Put(key, uint8(1)); err != nil {
			return fmt.Errorf("take frames for another address (%d are allowed): %w", maxAddresses, err)
		}
		p.present[key] = struct{}{}
	}
	for key := range p.present {
		if _, ok := wanted[key]; ok {
			continue
		}
		if err := p.addresses.Delete(key); err != nil {
			return fmt.Errorf("leave frames for an address to the host: %w", err)
		}
		delete(p.present, key)
	}
	return nil
}

// close detaches the program: no frame is taken any more.
func (p *program) close() {
	if p.link != nil {
		p.link.Close()
	}
	if p.sockets != nil {
		p.sockets.Close()
	}
	if p.addresses != nil {
		p.addresses.Close()
	}
}
