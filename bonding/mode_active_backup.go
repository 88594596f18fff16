package bonding

import (
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// writeActiveBackup sends everything by the active slave. As in Linux its link
// is not looked at: in downdelay the frames go to it still.
func writeActiveBackup(s *snapshot, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	if s.active == nil {
		return s.noSlave(pkts)
	}
	n, err := s.active.send(pkts, stripe)
	if err == nil || !link.Gone(err) {
		return n, err
	}
	return s.sendElsewhere(s.active, s.standby, pkts, n, stripe)
}
