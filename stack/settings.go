package stack

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// datagramBuffer is the size of the buffers of UDP and ping sockets. Linux's
// default of 208 KiB holds three datagrams of 64 KiB; a burst at 10 Gbit/s fills
// it in 170 microseconds, less than it takes to wake a reader.
const (
	datagramBuffer    = 4 << 20
	maxDatagramBuffer = 64 << 20
)

// tune sets what makes the stack fast: selective acknowledgements (RFC 2018),
// the way to find losses, tuned receive buffers, and room.
func (h *Host) tune() error {
	sack := tcpip.TCPSACKEnabled(true)
	recovery := tcpip.TCPRecovery(0)
	if h.opts.Recovery == "rack" {
		recovery = tcpip.TCPRACKLossDetection
	}
	moderate := tcpip.TCPModerateReceiveBufferOption(true)
	control := tcpip.CongestionControlOption(h.opts.CongestionControl)
	send := tcpip.TCPSendBufferSizeRangeOption(h.opts.SendBuffer)
	receive := tcpip.TCPReceiveBufferSizeRangeOption(h.opts.ReceiveBuffer)
	for _, opt := range []tcpip.SettableTransportProtocolOption{
		&sack, &recovery, &moderate, &control, &send, &receive,
	} {
		if err := h.stack.SetTransportProtocolOption(tcp.ProtocolNumber, opt); err != nil {
			return fmt.Errorf("stack: setting TCP's %T: %s", opt, err)
		}
	}
	for _, opt := range []any{
		tcpip.SendBufferSizeOption{Min: minBuffer, Default: datagramBuffer, Max: maxDatagramBuffer},
		tcpip.ReceiveBufferSizeOption{Min: minBuffer, Default: datagramBuffer, Max: maxDatagramBuffer},
	} {
		if err := h.stack.SetOption(opt); err != nil {
			return fmt.Errorf("stack: setting %T: %s", opt, err)
		}
	}
	return nil
}

// Settings is what is in force on a host.
type Settings struct {
	// Name is the interface's name.
	Name string `json:"name"`
	// MTU is the link's, in bytes.
	MTU int `json:"mtu"`
	// GSO is the greatest TCP packet that the link takes whole, in bytes; 0
	// when it takes no more than its MTU.
	GSO int `json:"gso"`
	// TXChecksum and RXChecksum say whether the link fills in checksums of
	// sent packets, and vouches for those of received ones.
	TXChecksum bool `json:"tx_checksum"`
	RXChecksum bool `json:"rx_checksum"`
	// IPv6 says whether the host has IPv6 beside IPv4.
	IPv6 bool `json:"ipv6"`
	// SACK says whether TCP acknowledges selectively.
	SACK bool `json:"sack"`
	// Recovery is how TCP finds losses: "rack", or "dupack" for duplicate
	// acknowledgements alone.
	Recovery string `json:"recovery"`
	// CongestionControl is "reno" or "cubic".
	CongestionControl string `json:"congestion_control"`
	// AutoTuning says whether TCP's receive buffers grow as needed.
	AutoTuning bool `json:"auto_tuning"`
	// SendBuffer and ReceiveBuffer are the sizes of TCP's buffers, in bytes.
	SendBuffer    BufferSize `json:"send_buffer"`
	ReceiveBuffer BufferSize `json:"receive_buffer"`
	// Backlog is how many connections a listener holds for Accept.
	Backlog int `json:"backlog"`
}

// Settings returns what is in force, as the stack and the link say.
func (h *Host) Settings() Settings {
	s := Settings{
		Name:    h.name,
		MTU:     int(h.link.MTU()),
		IPv6:    h.ipv6,
		Backlog: h.opts.Backlog,
	}
	caps := h.link.Capabilities()
	s.TXChecksum = caps&netstack.CapabilityTXChecksumOffload != 0
	s.RXChecksum = caps&netstack.CapabilityRXChecksumOffload != 0
	if h.link.SupportedGSO() == netstack.HostGSOSupported {
		s.GSO = int(h.link.GSOMaxSize())
	}
	var (
		sack     tcpip.TCPSACKEnabled
		recovery tcpip.TCPRecovery
		moderate tcpip.TCPModerateReceiveBufferOption
		control  tcpip.CongestionControlOption
		send     tcpip.TCPSendBufferSizeRangeOption
		receive  tcpip.TCPReceiveBufferSizeRangeOption
	)
	for _, opt := range []tcpip.GettableTransportProtocolOption{
		&sack, &recovery, &moderate, &control, &send, &receive,
	} {
		// TCP knows each of these, so it cannot fail.
		_ = h.stack.TransportProtocolOption(tcp.ProtocolNumber, opt)
	}
	s.SACK, s.AutoTuning, s.CongestionControl = bool(sack), bool(moderate), string(control)
	s.SendBuffer, s.ReceiveBuffer = BufferSize(send), BufferSize(receive)
	s.Recovery = "dupack"
	if recovery&tcpip.TCPRACKLossDetection != 0 {
		s.Recovery = "rack"
	}
	return s
}

// String returns the settings on one line, as a benchmark prints them.
func (s Settings) String() string {
	gso := "off"
	if s.GSO > 0 {
		gso = fmt.Sprintf("%d", s.GSO)
	}
	return fmt.Sprintf("mtu %d, gso %s, sack %s, recovery %s, congestion control %s, "+
		"send buffer %s, receive buffer %s, auto-tuning %s, tx checksum offload %s, rx checksum offload %s",
		s.MTU, gso, onOff(s.SACK), s.Recovery, s.CongestionControl,
		s.SendBuffer, s.ReceiveBuffer, onOff(s.AutoTuning), onOff(s.TXChecksum), onOff(s.RXChecksum))
}

// String returns "1 MiB to 16 MiB": what the buffer starts at and may become.
func (b BufferSize) String() string { return size(b.Default) + " to " + size(b.Max) }

func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
