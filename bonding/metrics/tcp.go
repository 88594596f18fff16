package metrics

import "gvisor.dev/gvisor/pkg/tcpip"

// tcpMetrics are those of the stack on a bond.
var tcpMetrics = func() *families[tcpip.TCPStats] {
	f := &families[tcpip.TCPStats]{labels: []string{"master"}}
	for _, c := range []struct {
		name, help string
		value      func(*tcpip.TCPStats) *tcpip.StatCounter
	}{
		{"sent_segments", "TCP segments sent.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.SegmentsSent }},
		{"received_segments", "TCP segments received that are valid.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.ValidSegmentsReceived }},
		{"invalid_segments", "TCP segments received that are not valid.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.InvalidSegmentsReceived }},
		{"checksum_errors", "TCP segments received with a wrong checksum.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.ChecksumErrors }},
		{"retransmitted_segments", "TCP segments sent again.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.Retransmits }},
		{"fast_retransmits", "TCP segments sent again by fast recovery.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.FastRetransmit }},
		{"timeouts", "Retransmission timers that ran out.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.Timeouts }},
		{"duplicate_acknowledged_segments", "TCP segments that the peer had twice, as it says (DSACK).", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.SegmentsAckedWithDSACK }},
		{"sent_resets", "TCP resets sent.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.ResetsSent }},
		{"received_resets", "TCP resets received.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.ResetsReceived }},
		{"failed_connections", "TCP connections that could not be opened.", func(s *tcpip.TCPStats) *tcpip.StatCounter { return s.FailedConnectionAttempts }},
	} {
		f.counter("bondstack_tcp_"+c.name+"_total", c.help, func(s *tcpip.TCPStats) uint64 { return c.value(s).Value() })
	}
	f.gauge("bondstack_tcp_connections", "TCP connections that are open.", func(s *tcpip.TCPStats) float64 { return float64(s.CurrentEstablished.Value()) })
	return f
}()
