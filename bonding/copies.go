package bonding

import "gvisor.dev/gvisor/pkg/tcpip/stack"

type copies struct{}

func newCopies(seed uint64) *copies                                         { return &copies{} }
func (c *copies) isCopy(slot int, eth []byte, pkt *stack.PacketBuffer) bool { return false }
func (c *copies) forget(slot int)                                           {}
