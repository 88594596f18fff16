package packet_test

import (
	"fmt"
	"log"

	"bondstack/link/packet"

	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// A netstack on a kernel interface, which tells when the link goes down.
func ExampleNew() {
	ep, err := packet.New("eth1", packet.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ep.Close()
	for _, w := range ep.Warnings() {
		log.Print(w)
	}
	cancel := ep.SubscribeLinkState(func() { fmt.Println("usable:", ep.LinkState().Usable()) })
	defer cancel()
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	if err := s.CreateNIC(1, ep); err != nil {
		log.Fatal(err)
	}
}
