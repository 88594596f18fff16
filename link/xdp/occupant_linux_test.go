package xdp

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// passAll is somebody else's program, which passes every frame to the host.
func passAll(t *testing.T) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "somebodys", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpPass), asm.Return()}})
	if err != nil {
		t.Skipf("needs XDP: %v", err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// occupied is how somebody's program is on veth0: attached by netlink as ip does
// it, or by a link.
type occupied struct {
	name      string
	flags     int
	elsewhere Mode // whose program would be in the other place
	byLink    bool
}

var occupations = []occupied{
	{"xdpdrv", unix.XDP_FLAGS_DRV_MODE, ModeGeneric, false}, {"xdpgeneric", unix.XDP_FLAGS_SKB_MODE, ModeCopy, false},
	{"xdpdrv", unix.XDP_FLAGS_DRV_MODE, ModeGeneric, true}, {"xdpgeneric", unix.XDP_FLAGS_SKB_MODE, ModeCopy, true},
}

// occupy attaches a program to veth0, and returns what detaches it.
func (p *pair) occupy(by *ebpf.Program, how occupied) (leave func() error, err error) {
	p.near.Do(func() {
		var l netlink.Link
		if l, err = netlink.LinkByName("veth0"); err != nil {
			return
		}
		if how.byLink {
			var held link.Link
			if held, err = link.AttachXDP(link.XDPOptions{Program: by, Interface: l.Attrs().Index, Flags: link.XDPAttachFlags(how.flags)}); err == nil {
				leave = held.Close
			}
			return
		}
		// As ip without -force: one that is there is not replaced.
		err = netlink.LinkSetXdpFdWithFlags(l, by.FD(), how.flags|unix.XDP_FLAGS_UPDATE_IF_NOEXIST)
		leave = func() (err error) {
			p.near.Do(func() { err = netlink.LinkSetXdpFdWithFlags(l, -1, how.flags) })
			return err
		}
	})
	return leave, err
}

// programOn is the id of the program that is on veth0, 0 for none.
func (p *pair) programOn() (id uint32) {
	p.near.Do(func() {
		if l, err := netlink.LinkByName("veth0"); err == nil && l.Attrs().Xdp != nil {
			id = l.Attrs().Xdp.ProgId
		}
	})
	return id
}

// On an interface that somebody else's program is on, in whatever way and place, no
// endpoint opens: the error says whose it is and what to do, and the program stays. When
// it has gone, the interface can be had.
func TestOccupied(t *testing.T) {
	for _, how := range occupations {
		t.Run(fmt.Sprintf("%s, link %t", how.name, how.byLink), func(t *testing.T) {
			t.Parallel() // each attempt waits a second for a program that is about to leave
			testOccupied(t, how)
		})
	}
}

func testOccupied(t *testing.T, how occupied) {
	p := newPair(t, 1)
	leave, err := p.occupy(passAll(t), how)
	if err != nil {
		t.Fatal(err)
	}
	there := p.programOn()
	for _, mode := range []Mode{how.elsewhere, ModeAuto} {
		e, err := p.tryOpen(Options{Mode: mode})
		if err == nil {
			e.Close()
			t.Fatalf("mode %v opens", mode)
		}
		for _, want := range []string{`"veth0"`, fmt.Sprintf(`another one is on the interface, "somebodys" with id %d`, there), "ip link set dev veth0 " + how.name + " off"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("mode %v: %v, want it to say %s", mode, err, want)
			}
		}
		if now := p.programOn(); now != there || there == 0 {
			t.Errorf("mode %v: program %d is on the interface, %d was", mode, now, there)
		}
	}
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	e := p.open(Options{})
	hears(t, p, e)
	e.Close()
}

// A program that is about to leave the stack is waited for: the endpoint does not
// take its place there, but the better one in the driver.
func TestOccupantLeaves(t *testing.T) {
	p := newPair(t, 1)
	leave, err := p.occupy(passAll(t), occupied{"xdpgeneric", unix.XDP_FLAGS_SKB_MODE, ModeCopy, false})
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error)
	time.AfterFunc(50*time.Millisecond, func() { left <- leave() })
	e := p.open(Options{})
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if i := e.Info(); i.Mode != ModeCopy {
		t.Errorf("mode %v (%s), want %v", i.Mode, i.Reason, ModeCopy)
	}
}

// Nobody else gets in while an endpoint is there, and it goes on receiving.
func TestStaysAlone(t *testing.T) {
	p := newPair(t, 1)
	by := passAll(t)
	for _, mode := range []Mode{ModeAuto, ModeGeneric} {
		e := p.open(Options{Mode: mode})
		e.Attach(newRecorder())
		for _, how := range occupations {
			if _, err := p.occupy(by, how); !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EEXIST) {
				t.Errorf("mode %v: somebody's program, %+v: %v, want EBUSY or EEXIST", mode, how, err)
			}
		}
		hears(t, p, e)
		e.Close()
	}
}
