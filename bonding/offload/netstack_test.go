package offload_test

import (
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

// judge is a netstack that checks all checksums by itself. Its statistics tell
// what it thinks of a packet.
type judge struct {
	st *stack.Stack
	ep *channel.Endpoint
}

func newJudge(t *testing.T) *judge {
	j := &judge{
		st: stack.New(stack.Options{
			NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
		}),
		ep: channel.New(64, 65535, "\x02\x00\x00\x00\x00\x01"),
	}
	if err := j.st.CreateNIC(1, j.ep); err != nil {
		t.Fatal(err)
	}
	for _, a := range []struct {
		proto tcpip.NetworkProtocolNumber
		addr  tcpip.Address
	}{{ipv4.ProtocolNumber, addr4B}, {ipv6.ProtocolNumber, addr6B}} {
		err := j.st.AddProtocolAddress(1, tcpip.ProtocolAddress{Protocol: a.proto, AddressWithPrefix: a.addr.WithPrefix()}, stack.AddressProperties{})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		j.st.Close()
		j.st.Wait()
		j.ep.Close()
	})
	return j
}

// accepts reports whether netstack finds nothing wrong with an IP packet.
func (j *judge) accepts(proto tcpip.NetworkProtocolNumber, packet []byte) bool {
	faults := func() uint64 {
		s := j.st.Stats()
		return s.IP.MalformedPacketsReceived.Value() + s.NICs.MalformedL4RcvdPackets.Value() +
			s.UDP.ChecksumErrors.Value() + s.TCP.ChecksumErrors.Value()
	}
	before := faults()
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: bufferOf(packet, []int{len(packet)})})
	j.ep.InjectInbound(proto, pkt)
	pkt.DecRef()
	j.ep.Drain()
	return faults() == before
}
