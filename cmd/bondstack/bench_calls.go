package main

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"bondstack/bonding"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// callResult is what a write of one packet costs on links that forget it: the
// time that passes, divided by the calls of all goroutines.
type callResult struct {
	Mode       bonding.Mode `json:"mode"`
	Goroutines int          `json:"goroutines"`
	LockNs     []float64    `json:"rwmutex_ns"`
	SnapshotNs []float64    `json:"snapshot_ns"`
	Ratio      *spreadOf    `json:"ratio"` // rwmutex / snapshot
}

// maxCallTime bounds how long calls are counted in each round.
const maxCallTime = 300 * time.Millisecond

// callers are the numbers of goroutines that call at once.
var callers = []int{1, 2, 4, 8, 16}

// compareCalls measures both bonds in turn.
func (s *benchSettings) compareCalls(modes []bonding.Mode, d time.Duration, p *progress) (list []callResult, err error) {
	for _, mode := range modes {
		if mode == bonding.IEEE8023AD {
			continue // sends nothing without a partner
		}
		var eps [2]netstack.LinkEndpoint
		for i, make := range []bondMaker{newLocked, newBond} {
			b, ep, err := s.bondOfNulls(mode, make)
			if err != nil {
				return nil, err
			}
			defer b.Close()
			eps[i] = ep
		}
		for _, n := range callers {
			p.step("%s: calls by %d goroutines", mode, n)
			res := callResult{Mode: mode, Goroutines: n}
			var ratios []float64
			for round := range s.Rounds {
				var ns [2]float64
				for k := range eps {
					k = (k + round) % 2
					ns[k] = nsPerCall(eps[k], n, d)
				}
				res.LockNs, res.SnapshotNs = append(res.LockNs, round3(ns[0])), append(res.SnapshotNs, round3(ns[1]))
				ratios = append(ratios, ns[0]/ns[1])
			}
			res.Ratio = spread(ratios)
			list = append(list, res)
		}
	}
	return list, nil
}

// nsPerCall writes one packet again and again on n goroutines.
func nsPerCall(ep netstack.LinkEndpoint, n int, d time.Duration) float64 {
	var calls atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	began := time.Now()
	for i := range n {
		wg.Go(func() {
			list := callPacket(i)
			defer list.DecRef()
			count := int64(0)
			for !stop.Load() {
				for range 64 {
					ep.WritePackets(list)
				}
				count += 64
			}
			calls.Add(count)
		})
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	return float64(time.Since(began).Nanoseconds()) / float64(calls.Load())
}

// callPacket returns a list of one UDP packet of a flow.
func callPacket(flow int) (list netstack.PacketBufferList) {
	pkt := netstack.NewPacketBuffer(netstack.PacketBufferOptions{
		ReserveHeaderBytes: header.EthernetMinimumSize + header.IPv4MinimumSize + header.UDPMinimumSize,
		Payload:            buffer.MakeWithData(make([]byte, 1400)),
	})
	udp := header.UDP(pkt.TransportHeader().Push(header.UDPMinimumSize))
	udp.Encode(&header.UDPFields{SrcPort: uint16(40000 + flow), DstPort: benchPort, Length: uint16(len(udp) + pkt.Data().Size())})
	ip := header.IPv4(pkt.NetworkHeader().Push(header.IPv4MinimumSize))
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(pkt.Size()), TTL: 64, Protocol: uint8(header.UDPProtocolNumber),
		SrcAddr: tcpip.AddrFrom4(netip.MustParseAddr("10.0.0.1").As4()), DstAddr: tcpip.AddrFrom4(netip.MustParseAddr("10.0.0.2").As4())})
	pkt.NetworkProtocolNumber, pkt.TransportProtocolNumber = header.IPv4ProtocolNumber, header.UDPProtocolNumber
	header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize)).Encode(&header.EthernetFields{
		SrcAddr: "\x02\x00\x00\x00\x00\x01", DstAddr: "\x02\x00\x00\x00\x00\x02", Type: header.IPv4ProtocolNumber})
	list.PushBack(pkt)
	return list
}

// nullLink takes every packet and forgets it. What it does not have of its own is
// a queue's.
type nullLink struct{ *ethernet.Endpoint }

func (nullLink) WritePackets(pkts netstack.PacketBufferList) (int, tcpip.Error) {
	return pkts.Len(), nil
}
func (nullLink) MTU() uint32                             { return 1500 }
func (nullLink) SetMTU(uint32)                           {}
func (nullLink) GSOMaxSize() uint32                      { return 1 << 16 }
func (nullLink) SupportedGSO() netstack.SupportedGSO     { return netstack.HostGSOSupported }
func (nullLink) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// bondOfNulls makes a bond of two links that forget.
func (s *benchSettings) bondOfNulls(mode bonding.Mode, make bondMaker) (*bonding.Bond, netstack.LinkEndpoint, error) {
	b, ep, err := make(bonding.Options{Mode: mode, XmitHashPolicy: s.policy, LinkAddress: "\x02\x00\x00\x00\x00\x01"})
	if err != nil {
		return nil, nil, err
	}
	for i := range 2 {
		l := nullLink{ethernet.New(channel.New(0, 1500, "\x02\x00\x00\x00\x00\x01"))}
		if err := b.Enslave(fmt.Sprintf("eth%d", i), l, bonding.SlaveOptions{}); err != nil {
			b.Close()
			return nil, nil, err
		}
	}
	ep.Attach(nowhere{})
	return b, ep, nil
}

// nowhere is a NIC that takes nothing.
type nowhere struct{}

func (nowhere) DeliverNetworkPacket(tcpip.NetworkProtocolNumber, *netstack.PacketBuffer) {}
func (nowhere) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *netstack.PacketBuffer)    {}
