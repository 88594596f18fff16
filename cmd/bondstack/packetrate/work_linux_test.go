package packetrate

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/packet"
	"bondstack/link/xdp"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// job is what a process of ours is to do: "forward xdp active-backup", say. The
// mode is "none" for one interface without a bond.
type job struct{ role, kind, mode string }

// work does a job, and what comes by the standard input: "start SIZE", "stop" and
// "count", each of which it answers by a line. It ends with its input.
func work(text string) {
	var j job
	if _, err := fmt.Sscan(text, &j.role, &j.kind, &j.mode); err != nil {
		panic(err)
	}
	ep := j.link()
	var sink counter
	switch j.role {
	case "receive":
		ep.Attach(&sink)
	case "send":
		ep.Attach(&sink)
	case "forward":
		join(ep, j.open("q0"))
	}
	stop := func() {}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		command, argument, _ := strings.Cut(in.Text(), " ")
		switch {
		case command == "start" && j.role == "send":
			stop = pump(ep, argument)
		case command == "stop":
			stop()
			stop = func() {}
		}
		fmt.Println(sink.Load())
	}
}

// open opens an interface.
func (j job) open(name string) (ep stack.LinkEndpoint) {
	var err error
	if j.kind == "xdp" {
		ep, err = xdp.New(name, xdp.Options{})
	} else {
		ep, err = packet.New(name, packet.Options{})
	}
	if err != nil {
		panic(err)
	}
	return ep
}

// link returns the bond, or the one interface.
func (j job) link() stack.LinkEndpoint {
	o := bonding.Options{Mode: bonding.ActiveBackup, XmitHashPolicy: xmithash.Layer34}
	switch j.mode {
	case "none":
		return j.open("g0")
	case "balance-xor":
		o.Mode = bonding.BalanceXOR
	}
	bond, err := bonding.New(o)
	if err != nil {
		panic(err)
	}
	for _, name := range slaves {
		if err := bond.Enslave(name, j.open(name), bonding.SlaveOptions{}); err != nil {
			panic(err)
		}
	}
	return bond
}

// counter is a dispatcher that counts.
type counter struct{ atomic.Uint64 }

var _ link.ListDispatcher = (*counter)(nil)

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (c *counter) DeliverNetworkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) { c.Add(1) }

// DeliverLinkPacket implements stack.NetworkDispatcher.
func (*counter) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// DeliverList implements link.ListDispatcher.
func (c *counter) DeliverList(list stack.PacketBufferList) { c.Add(uint64(list.Len())) }

// join forwards what comes by each of two links to the other one, whomever it is
// for.
func join(a, b stack.LinkEndpoint) {
	for _, ep := range []stack.LinkEndpoint{a, b} {
		if err := ep.(link.FilterEndpoint).SetPromiscuous(true); err != nil {
			panic(err)
		}
	}
	a.Attach(&forwarder{to: b})
	b.Attach(&forwarder{to: a})
}

// forwarder is a dispatcher that sends on. What is not taken the link counts.
type forwarder struct{ to stack.LinkEndpoint }

var _ link.ListDispatcher = (*forwarder)(nil)

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (f *forwarder) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	var list stack.PacketBufferList
	list.PushBack(pkt)
	f.to.WritePackets(list)
}

// DeliverLinkPacket implements stack.NetworkDispatcher.
func (*forwarder) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// DeliverList implements link.ListDispatcher.
func (f *forwarder) DeliverList(list stack.PacketBufferList) { f.to.WritePackets(list) }

// pump writes frames of a size, 64 at a time, until it is stopped.
func pump(ep stack.LinkEndpoint, size string) (stop func()) {
	var n int
	if _, err := fmt.Sscan(size, &n); err != nil {
		panic(err)
	}
	list := linktest.Packets(framesFor("", n)...)
	var ending atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer list.Reset()
		for !ending.Load() {
			ep.WritePackets(list)
		}
	})
	return func() { ending.Store(true); wg.Wait() }
}
