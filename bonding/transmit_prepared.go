package bonding

import (
	"sync"

	"bondstack/bonding/offload"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// prepared is a list made ready for a slave that lacks an offload: its frames,
// of which each has a reference of our own, and for each packet how many frames
// there are up to its end. The storage is used again.
type prepared struct {
	frames stack.PacketBufferList
	ends   []int
}

var preparedPool = sync.Pool{New: func() any { return new(prepared) }}

// sendPrepared segments packets and completes checksums for a slave that
// cannot, and sends all frames in one list.
func (s *slave) sendPrepared(pkts stack.PacketBufferList, stripe uint32) (int, tcpip.Error) {
	p := preparedPool.Get().(*prepared)
	for _, pkt := range pkts.AsSlice() {
		if err := p.add(pkt, s.needs(pkt)); err != nil {
			s.counters.drop(dropTxMalformed, 1)
		}
		p.ends = append(p.ends, p.frames.Len())
	}
	n, err := p.frames.Len(), tcpip.Error(nil)
	if n > 0 {
		n, err = s.sendFrames(p.frames, stripe)
	}
	sent := p.packets(n)
	if n == p.frames.Len() {
		err = nil
	}
	p.frames.Reset()
	p.ends = p.ends[:0]
	preparedPool.Put(p)
	return sent, err
}

// add appends a packet's frames.
func (p *prepared) add(pkt *stack.PacketBuffer, need offload.Need) error {
	switch need {
	case offload.Cut:
		return offload.Segment(pkt, &p.frames)
	case offload.Checksum:
		whole, err := offload.Complete(pkt)
		if err == nil {
			p.frames.PushBack(whole)
		}
		return err
	}
	p.frames.PushBack(pkt.IncRef())
	return nil
}

// packets returns how many packets are done with after n frames. Where a link
// went away in the middle of a packet, the next slave starts with that packet
// anew; the segments that went out before are TCP's to recognise.
func (p *prepared) packets(n int) int {
	done := 0
	for done < len(p.ends) && p.ends[done] <= n {
		done++
	}
	return done
}
