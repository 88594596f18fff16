package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/bits"
	"net"
	"strings"
	"testing"

	"bondstack/link"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// The command's VLAN devices talk with the kernel's IP and TCP in the same VLANs,
// both ways, over a bond of two veth pairs with the kernel's offloads, and go on
// when the active slave is cut.
func TestVLANsWithKernel(t *testing.T) {
	q5 := link.VLANTag{Protocol: link.TagProtocolQ, ID: 5}
	ad7 := link.VLANTag{Protocol: link.TagProtocolAD, ID: 7}
	for name, tt := range map[string]struct {
		flag string
		tags []link.VLANTag
	}{
		"802.1Q":  {"5@3", []link.VLANTag{q5}},
		"802.1ad": {"802.1ad:7", []link.VLANTag{ad7}},
		"stacked": {"802.1ad:7@6/5@3", []link.VLANTag{ad7, q5}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLAN(t)
			l.intoVLAN("br0", tt.tags)
			if name != "802.1Q" {
				// A veth passes four bytes beyond the MTU, and packet sockets
				// only one 802.1Q tag.
				l.far.SetMTU("br0", 1496)
			}
			dir, want := writeRandom(t, 4<<20)
			i := start(t, l.kinds(), "--slave", "s0", "--slave", "s1", "--mode", "active-backup", "-o", "miimon=10",
				"--address", "10.8.0.2/24", "--vlan", tt.flag+"=10.9.0.2/24,fd00:9::2/64",
				"--serve", "http:80="+dir, "--serve", "echo:7")
			i.await("s0 is active", func(s instanceStatus) bool { return s.ActiveSlave == "s0" })
			l.talk("s0", want)
			l.far.Down(peer("s0"))
			i.await("the failover", func(s instanceStatus) bool { return s.ActiveSlave == "s1" })
			l.talk("s1", want)
			for _, s := range i.status().Slaves {
				d := s.Counters.Drops
				if d["tx_error"]+d["rx_checksum"]+d["tx_malformed"] != 0 {
					t.Errorf("%s dropped frames: %v", s.Name, d)
				}
				if c := s.Counters; c.TxPackets > 1000 && c.TxBytes/c.TxPackets < 2000 {
					t.Errorf("%s sent %d bytes in %d packets, want whole ones", s.Name, c.TxBytes, c.TxPackets)
				}
			}
		})
	}
}

// talk has the far kernel ping the bonded stack, get a file of a sum, and send what
// comes back, by IPv4 and IPv6.
func (l *lan) talk(by, sum string) {
	l.t.Helper()
	for _, to := range []string{"10.9.0.2", "fd00:9::2"} {
		if out, err := l.far.TryRun("busybox", "ping", "-c", "1", "-w", "10", to); err != nil {
			l.t.Fatalf("by %s: ping %s: %v: %s", by, to, err, out)
		}
		c := l.dial(net.JoinHostPort(to, "80"))
		io.WriteString(c, "GET /file HTTP/1.0\r\n\r\n")
		body, err := io.ReadAll(c)
		c.Close()
		if _, file, ok := strings.Cut(string(body), "\r\n\r\n"); err != nil || !ok || hashOf(strings.NewReader(file)) != sum {
			l.t.Errorf("by %s: %d bytes came from %s, %v", by, len(body), to, err)
		}
		c = l.dial(net.JoinHostPort(to, "7"))
		back := make(chan string)
		go func() { back <- hashOf(c) }()
		if _, err := io.Copy(c, random(1<<20)); err != nil {
			l.t.Errorf("by %s: to %s: %v", by, to, err)
		}
		c.(*net.TCPConn).CloseWrite()
		if got := <-back; got != hashOf(random(1<<20)) {
			l.t.Errorf("by %s: %s sends back something else", by, to)
		}
		c.Close()
	}
}

func hashOf(r io.Reader) string {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil))
}

// intoVLAN has an interface of the far namespace be in a VLAN, as a device of the
// kernel's for that is: what it sends gets tags, the last one first, and what it
// receives loses as many. It is done by programs at its ingress and egress, since
// not every kernel has VLAN devices. The test is skipped where there is no TCX.
func (l *lan) intoVLAN(name string, tags []link.VLANTag) {
	l.t.Helper()
	const ok = 0 // TC_ACT_OK
	push := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	pop := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	for i := len(tags) - 1; i >= 0; i-- {
		push = append(push, asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, int32(bits.ReverseBytes16(tags[i].Protocol))),
			asm.Mov.Imm(asm.R3, int32(tags[i].ID)), asm.FnSkbVlanPush.Call())
		pop = append(pop, asm.Mov.Reg(asm.R1, asm.R6), asm.FnSkbVlanPop.Call())
	}
	l.far.Do(func() {
		for attach, program := range map[ebpf.AttachType]asm.Instructions{ebpf.AttachTCXEgress: push, ebpf.AttachTCXIngress: pop} {
			if err := l.attach(name, attach, append(program, asm.Mov.Imm(asm.R0, ok), asm.Return())); err != nil {
				l.t.Skipf("the kernel has no TCX: %v", err)
			}
		}
	})
}

// attach attaches a program to an interface of the present namespace, until the
// test ends.
func (l *lan) attach(name string, at ebpf.AttachType, instructions asm.Instructions) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: instructions, License: "Apache-2.0"})
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer p.Close() // the link keeps it
	attached, err := ebpflink.AttachTCX(ebpflink.TCXOptions{Interface: iface.Index, Program: p, Attach: at})
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	l.t.Cleanup(func() { attached.Close() })
	return nil
}
