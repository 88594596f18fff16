package offload_test

import (
	"testing"

	"bondstack/bonding/offload"

	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// gsoEndpoint is an endpoint with the given GSO.
type gsoEndpoint struct {
	stack.LinkEndpoint
	kind stack.SupportedGSO
}

func (e gsoEndpoint) GSOMaxSize() uint32               { return 12345 }
func (e gsoEndpoint) SupportedGSO() stack.SupportedGSO { return e.kind }

func TestRoom(t *testing.T) {
	plain := channel.New(1, 1500, "")
	defer plain.Close()
	for _, c := range []struct {
		name string
		ep   stack.LinkEndpoint
		want uint32
	}{
		{"no interface", struct{ stack.LinkEndpoint }{plain}, 0},
		{"none", gsoEndpoint{plain, stack.GSONotSupported}, 0},
		{"gvisor", gsoEndpoint{plain, stack.GVisorGSOSupported}, 0},
		{"host", gsoEndpoint{plain, stack.HostGSOSupported}, 12345},
	} {
		if got := offload.Room(c.ep); got != c.want {
			t.Errorf("%s: room %d, want %d", c.name, got, c.want)
		}
	}
}

func TestNeeds(t *testing.T) {
	const heads = 14 + 20 + 20
	for _, c := range []struct {
		name    string
		typ     stack.GSOType
		csum    bool
		payload int
		room    uint32
		want    offload.Need
	}{
		{"plain", stack.GSONone, false, 1000, 0, offload.Nothing},
		{"plain, partial by mistake", stack.GSONone, true, 1000, 0, offload.Nothing},
		{"cut by netstack", stack.GSOGvisor, false, 1000, 0, offload.Nothing},
		{"long, host", stack.GSOTCPv4, true, 5000, 65536, offload.Nothing},
		{"just fits host", stack.GSOTCPv4, true, 5000, 5000 + heads, offload.Nothing},
		{"too long for host", stack.GSOTCPv4, true, 5000, 5000 + heads - 1, offload.Cut},
		{"short, too long for host", stack.GSOTCPv4, true, 900, 100, offload.Checksum},
		{"long, none", stack.GSOTCPv6, true, 1001, 0, offload.Cut},
		{"one frame, none", stack.GSOTCPv6, true, 1000, 0, offload.Checksum},
		{"empty, none", stack.GSOTCPv4, true, 0, 0, offload.Checksum},
		{"one frame, summed, none", stack.GSOTCPv4, false, 1000, 0, offload.Nothing},
	} {
		s := spec{mss: 1000, payload: make([]byte, c.payload), cuts: []int{c.payload}}
		pkt := s.build()
		pkt.GSOOptions.Type, pkt.GSOOptions.NeedsCsum = c.typ, c.csum
		if got := offload.Needs(pkt, c.room); got != c.want {
			t.Errorf("%s: need %d, want %d", c.name, got, c.want)
		}
		pkt.DecRef()
	}
}
