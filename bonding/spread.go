package bonding

import (
	"sync"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// pickFunc chooses the slave for a packet. It is called only where some slave
// is usable. In the adaptive modes it may choose none.
type pickFunc func(s *snapshot, pkt *stack.PacketBuffer) *slave

// spread sends each packet by the slave that pick chooses, with one write a
// slave for a list. A list that goes to one slave stays whole.
func (s *snapshot) spread(pkts stack.PacketBufferList, stripe uint32, others []*slave, pick pickFunc) (int, tcpip.Error) {
	if len(others) == 0 {
		return s.noSlave(pkts)
	}
	list := pkts.AsSlice()
	if len(list) == 1 {
		return s.sendOr(pick(s, list[0]), others, pkts, stripe)
	}
	sp := splitPool.Get().(*split)
	defer splitPool.Put(sp)
	for _, pkt := range list {
		sp.add(pick(s, pkt), pkt)
	}
	return sp.send(s, others, stripe)
}

// sendOr sends a list by a slave, or by another one when its link is gone.
func (s *snapshot) sendOr(to *slave, others []*slave, pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	if s.lb != nil {
		return s.sendBalanced(to, pkts, stripe)
	}
	n, err := to.send(pkts, stripe)
	if err == nil || !link.Gone(err) {
		return n, err
	}
	return s.sendElsewhere(to, others, pkts, n, stripe)
}

// split sorts a list by slave. Its storage is used again and again, so that
// sorting allocates nothing once it has grown.
type split struct {
	parts []part // the first used of them are in use
	used  int
}

// part is what goes to one slave.
type part struct {
	to *slave
	// list is empty between uses, with its storage kept.
	list stack.PacketBufferList
}

var splitPool = sync.Pool{New: func() any { return new(split) }}

// add puts a packet to the end of its slave's part. Bonds have few slaves, so a
// search from the front is the fastest there is.
func (sp *split) add(to *slave, pkt *stack.PacketBuffer) {
	for i := range sp.used {
		if sp.parts[i].to == to {
			sp.parts[i].list.PushBack(pkt)
			return
		}
	}
	if sp.used == len(sp.parts) {
		sp.parts = append(sp.parts, part{})
	}
	p := &sp.parts[sp.used]
	sp.used++
	p.to = to
	p.list.PushBack(pkt)
}

// send writes each part to its slave and empties the parts. An endpoint owns
// the list it is given for the time of the call: it may keep packets by a
// reference of their own, but not the list.
func (sp *split) send(s *snapshot, others []*slave, stripe uint32) (int, tcpip.Error) {
	sent := 0
	var firstErr tcpip.Error
	for i := range sp.used {
		p := &sp.parts[i]
		n, err := s.sendOr(p.to, others, p.list, stripe)
		sent += n
		if err != nil && firstErr == nil {
			firstErr = err
		}
		p.to = nil
		empty(&p.list)
	}
	sp.used = 0
	return sent, firstErr
}

// empty empties a list and keeps its storage. Reset is the only way to that,
// and drops a reference of each packet; these are not ours to drop.
func empty(list *stack.PacketBufferList) {
	for _, pkt := range list.AsSlice() {
		pkt.IncRef()
	}
	list.Reset()
}
