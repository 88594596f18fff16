package user

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/wire"
)

var (
	_ stack.LinkEndpoint      = (*hub)(nil)
	_ stack.GSOEndpoint       = (*hub)(nil)
	_ stack.NetworkDispatcher = (*port)(nil)
)

// maxStations is how many addresses the hub learns. Frames for others are flooded.
const maxStations = 256

// gsoMaxSize is that of a wire.
const gsoMaxSize = 65536

// hub is the link below the network's stack: all the links' far ends as one. It
// takes frames from all of them, and sends by the one by which the destination was
// last seen, or, for groups and where that is unknown or down, by all.
type hub struct {
	address    tcpip.LinkAddress
	mtu        uint32
	gateway    netip.Addr
	gateway6   netip.Addr
	dispatcher atomic.Pointer[stack.NetworkDispatcher]

	// ports and stations are replaced, not changed, with mu held. The entries
	// of stations are written by whoever receives.
	ports    atomic.Pointer[[]*port]
	stations atomic.Pointer[map[mac]*atomic.Pointer[port]]

	noLink, claims atomic.Uint64

	mu     sync.Mutex
	owners owners
}

type mac [header.EthernetAddressSize]byte

// port is the far end of one link, and its dispatcher.
type port struct {
	hub       *hub
	near, far *wire.Endpoint
}

func newHub(mtu uint32, gateway, gateway6 netip.Addr) *hub {
	h := &hub{mtu: mtu, gateway: gateway, gateway6: gateway6, address: randomAddress()}
	h.ports.Store(&[]*port{})
	h.stations.Store(&map[mac]*atomic.Pointer[port]{})
	return h
}

// randomAddress returns a MAC address that is locally administered.
func randomAddress() tcpip.LinkAddress {
	bits := rand.Uint64()
	return tcpip.LinkAddress([]byte{2, byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24), byte(bits >> 32)})
}

// add has the hub use a further link.
func (h *hub) add(near, far *wire.Endpoint) *port {
	p := &port{hub: h, near: near, far: far}
	far.SetMTU(wire.MaxMTU) // the near end may have another than at first
	h.mu.Lock()
	ports := append(slices.Clone(*h.ports.Load()), p)
	h.ports.Store(&ports)
	h.mu.Unlock()
	far.Attach(p)
	return p
}

// close takes the port away.
func (p *port) close() {
	p.far.Attach(nil)
	h := p.hub
	h.mu.Lock()
	ports := slices.DeleteFunc(slices.Clone(*h.ports.Load()), func(other *port) bool { return other == p })
	h.ports.Store(&ports)
	h.mu.Unlock()
	p.far.Close()
}

func (h *hub) closePorts() {
	for _, p := range *h.ports.Load() {
		p.close()
	}
}

// learn notes by which port an address was seen.
func (h *hub) learn(m mac, p *port) {
	if station := (*h.stations.Load())[m]; station != nil {
		if station.Load() != p {
			station.Store(p)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	old := *h.stations.Load()
	if len(old) >= maxStations || m[0]&1 != 0 {
		return
	}
	station := old[m]
	if station == nil {
		station = new(atomic.Pointer[port])
	}
	station.Store(p)
	stations := maps.Clone(old)
	stations[m] = station
	h.stations.Store(&stations)
}

// DeliverNetworkPacket implements stack.NetworkDispatcher, for the far end of a
// link.
func (p *port) DeliverNetworkPacket(proto tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	h := p.hub
	h.learn(mac(pkt.LinkHeader().Slice()[6:12]), p)
	d := h.dispatcher.Load()
	if d == nil {
		return
	}
	changed, ok := h.neighbour(proto, pkt)
	switch {
	case !ok:
		h.claims.Add(1)
	case changed != nil:
		(*d).DeliverNetworkPacket(proto, changed)
		changed.DecRef()
	default:
		(*d).DeliverNetworkPacket(proto, pkt)
	}
}

// DeliverLinkPacket implements stack.NetworkDispatcher. It does nothing.
func (*port) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// WritePackets implements stack.LinkWriter. Runs of frames for one destination go
// out as one list. What cannot be sent is counted: the stack treats it as lost.
func (h *hub) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	list := pkts.AsSlice()
	for start := 0; start < len(list); {
		to := destination(list[start])
		end := start + 1
		for end < len(list) && destination(list[end]) == to {
			end++
		}
		run := pkts
		if end-start < len(list) {
			run = stack.PacketBufferList{}
			for _, pkt := range list[start:end] {
				run.PushBack(pkt)
			}
		}
		h.send(to, run, end-start)
		start = end
	}
	return len(list), nil
}

func destination(pkt *stack.PacketBuffer) mac { return mac(pkt.LinkHeader().Slice()[:6]) }

func (h *hub) send(to mac, pkts stack.PacketBufferList, n int) {
	if station := (*h.stations.Load())[to]; station != nil {
		if p := station.Load(); p.far.LinkState().Usable() {
			p.write(pkts, n)
			return
		}
	}
	sent := false
	for _, p := range *h.ports.Load() {
		if p.far.LinkState().Usable() {
			p.write(pkts, n)
			sent = true
		}
	}
	if !sent {
		h.noLink.Add(uint64(n))
	}
}

func (p *port) write(pkts stack.PacketBufferList, n int) {
	taken, err := p.far.WritePackets(pkts)
	if err != nil {
		p.hub.noLink.Add(uint64(n - taken))
	}
}

// MTU implements stack.LinkEndpoint: the least that a link's near end takes.
func (h *hub) MTU() uint32 {
	mtu := h.mtu
	for _, p := range *h.ports.Load() {
		mtu = min(mtu, p.near.MTU())
	}
	return mtu
}

// SetMTU implements stack.LinkEndpoint. The MTU is that of the links.
func (*hub) SetMTU(uint32) {}

// MaxHeaderLength implements stack.LinkEndpoint.
func (*hub) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// LinkAddress implements stack.LinkEndpoint.
func (h *hub) LinkAddress() tcpip.LinkAddress { return h.address }

// SetLinkAddress implements stack.LinkEndpoint. The address stays.
func (*hub) SetLinkAddress(tcpip.LinkAddress) {}

// Capabilities implements stack.LinkEndpoint.
func (*hub) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityResolutionRequired | stack.CapabilityRXChecksumOffload
}

// SupportedGSO implements stack.GSOEndpoint.
func (*hub) SupportedGSO() stack.SupportedGSO { return stack.HostGSOSupported }

// GSOMaxSize implements stack.GSOEndpoint.
func (*hub) GSOMaxSize() uint32 { return gsoMaxSize }

// ARPHardwareType implements stack.LinkEndpoint.
func (*hub) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// AddHeader implements stack.LinkEndpoint.
func (h *hub) AddHeader(pkt *stack.PacketBuffer) {
	header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize)).Encode(&header.EthernetFields{
		SrcAddr: h.address, DstAddr: pkt.EgressRoute.RemoteLinkAddress, Type: pkt.NetworkProtocolNumber,
	})
}

// ParseHeader implements stack.LinkEndpoint.
func (*hub) ParseHeader(pkt *stack.PacketBuffer) bool {
	_, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	return ok
}

// Attach implements stack.LinkEndpoint.
func (h *hub) Attach(d stack.NetworkDispatcher) {
	if d == nil {
		h.dispatcher.Store(nil)
		return
	}
	h.dispatcher.Store(&d)
}

// IsAttached implements stack.LinkEndpoint.
func (h *hub) IsAttached() bool { return h.dispatcher.Load() != nil }

// Wait implements stack.LinkEndpoint.
func (*hub) Wait() {}

// Close implements stack.LinkEndpoint. The links are the network's to close.
func (*hub) Close() {}

// SetOnCloseAction implements stack.LinkEndpoint. The hub is closed by nobody else.
func (*hub) SetOnCloseAction(func()) {}
