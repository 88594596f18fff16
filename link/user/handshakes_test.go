package user

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"bondstack/link/linktest"
)

// Requests for connections beyond those that may be on their way are counted.
func TestHandshakes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // and nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n, err := NewNetwork(Options{Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	s := newStation(t, n, 1)
	from, to := netip.MustParseAddr("192.0.2.5"), netip.AddrPortFrom(DefaultGateway, l.Addr().(*net.TCPAddr).AddrPort().Port())
	const beyond = 3
	for port := range uint16(maxHandshakes + beyond) { // none gets its last ACK
		segment := linktest.TCP(netip.AddrPortFrom(from, 1024+port), to, linktest.Segment{Flags: header.TCPFlagSyn})
		linktest.Write(s.link, linktest.Ethernet(s.hub, s.mac, linktest.EtherTypeIPv4, linktest.IP(from, to.Addr(), uint8(header.TCPProtocolNumber), segment)))
	}
	for end := time.Now().Add(20 * time.Second); n.Stats().Ignored < beyond; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the requests beyond are not counted: %+v", n.Stats())
		}
	}
	if got := n.Stats(); got.Ignored != beyond || got.Denied != 0 {
		t.Errorf("%+v, want %d ignored", got, beyond)
	}
}
