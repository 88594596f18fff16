package bonding_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"time"

	"bondstack/bonding"
	"bondstack/link/packet"
	"bondstack/link/wire"
	"bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
)

// An http server on a bond of two wires to a switch. A cut of the wire in use
// is not noticed by the client: its connection goes on by the other.
func Example() {
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer sw.Close()

	b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup})
	if err != nil {
		log.Fatal(err)
	}
	for i, name := range []string{"eth0", "eth1"} {
		if err := b.Enslave(name, sw.Port(i), bonding.SlaveOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	server, err := stack.NewHost(b, stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	l, err := server.Listen("tcp", ":80")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "hello by %s", b.Status().ActiveSlave)
	}))

	host, err := stack.NewHost(sw.Port(2), stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close()
	transport := &http.Transport{DialContext: host.DialContext}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	get := func() {
		resp, err := client.Get("http://10.0.0.1/")
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		fmt.Println(string(body), err)
	}

	get()
	sw.Far(0).SetCarrier(false)
	get()
	// Output:
	// hello by eth0 <nil>
	// hello by eth1 <nil>
}

// A bond in a netstack of one's own: it is a stack.LinkEndpoint like any other.
func ExampleBond_createNIC() {
	b, err := bonding.New(bonding.Options{Mode: bonding.BalanceXOR})
	if err != nil {
		log.Fatal(err)
	}
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer sw.Close()
	for i, name := range []string{"eth0", "eth1"} {
		if err := b.Enslave(name, sw.Port(i), bonding.SlaveOptions{}); err != nil {
			log.Fatal(err)
		}
	}

	s := netstack.New(netstack.Options{
		NetworkProtocols:   []netstack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol},
		TransportProtocols: []netstack.TransportProtocolFactory{icmp.NewProtocol4},
	})
	defer s.Destroy()
	if err := s.CreateNIC(1, b); err != nil {
		log.Fatal(err)
	}
	defer s.RemoveNIC(1) // closes the bond and its slaves
	address := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddrFrom4([4]byte{10, 0, 0, 1}).WithPrefix(),
	}
	if err := s.AddProtocolAddress(1, address, netstack.AddressProperties{}); err != nil {
		log.Fatal(err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})

	peer, err := stack.NewHost(sw.Port(2), stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}})
	if err != nil {
		log.Fatal(err)
	}
	defer peer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = peer.Ping(ctx, netip.MustParseAddr("10.0.0.1"))
	fmt.Println("answered:", err == nil)
	// Output: answered: true
}

// A bond of a kernel interface and a wire in memory: slaves may differ in what
// they can. It needs Linux and the right to open packet sockets.
func ExampleBond_Enslave() {
	eth1, err := packet.New("eth1", packet.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range eth1.Warnings() {
		log.Print(w)
	}
	near, far, err := wire.New(wire.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer far.Close()

	b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth1"})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close() // and with it the slaves
	if err := b.Enslave("eth1", eth1, bonding.SlaveOptions{Priority: 10}); err != nil {
		log.Fatal(err)
	}
	if err := b.Enslave("wire0", near, bonding.SlaveOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Status().ActiveSlave)
}
