package stack

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// TCPInfo is what a connection's sending side knows of its way, as Linux tells
// it by TCP_INFO.
type TCPInfo struct {
	// RTT is the smoothed round-trip time and RTTVar how much it varies; zero
	// before anything was measured.
	RTT, RTTVar time.Duration
	// CongestionWindow is how many segments may be under way.
	CongestionWindow uint32
	// Retransmits counts the segments that were sent again.
	Retransmits uint64
}

// Info returns the state of the connection's sending side. It may be called at
// any time, also after Close.
func (c *TCPConn) Info() TCPInfo {
	var option tcpip.TCPInfoOption
	_ = c.ep.GetSockOpt(&option) // every TCP endpoint has it
	info := TCPInfo{RTT: option.RTT, RTTVar: option.RTTVar, CongestionWindow: option.SndCwnd}
	if stats, ok := c.ep.Stats().(*tcp.Stats); ok {
		info.Retransmits = stats.SendErrors.Retransmits.Value()
	}
	return info
}
