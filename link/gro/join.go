package gro

import (
	"slices"

	"bondstack/link/internal/vnet"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// maxFlows is how many connections can be open at a time.
const maxFlows = 8

// maxPacket is how long a packet can be from its IP header on.
const maxPacket = 1<<16 - 1

// Joiner joins the segments of lists. The zero value is ready to be used, by one
// goroutine at a time. It keeps its memory: one that is used again allocates
// nothing but what gVisor's pools lend.
type Joiner struct {
	out  stack.PacketBufferList
	open []group
}

// group is a segment that others may join, and what has joined it.
type group struct {
	segment
	// at is where in the list its packet is.
	at int
	// size is the payload of all, and next the sequence number behind it.
	size int
	next uint32
	// id is the identification that the next one must have.
	id uint16
	// packet is the joined packet, and header its headers; nil while the first
	// segment is alone.
	packet *stack.PacketBuffer
	header []byte
	// pushed is whether the last one has PSH.
	pushed bool
}

// Join returns what becomes of a list of received frames, as a
// link.ListDispatcher is given them: those that were joined, and a reference to
// each of the others. The frames stay as they are, and with their references the
// caller's. The list returned is the joiner's: it is valid until Reset, which
// must be called before the next Join.
func (j *Joiner) Join(frames stack.PacketBufferList) stack.PacketBufferList {
	for _, pkt := range frames.AsSlice() {
		s, k := look(pkt)
		if k == unknown {
			j.closeAll()
		}
		if k >= apart {
			i := slices.IndexFunc(j.open, func(g group) bool { return g.sameConnection(&s) })
			if k == joinable && i >= 0 && j.open[i].takes(&s) {
				if j.join(&j.open[i], &s) {
					j.close(i)
				}
				continue
			}
			if i >= 0 {
				j.close(i)
			}
		}
		if k == joinable && !s.pushes() {
			j.start(&s)
		}
		j.out.PushBack(pkt.IncRef())
	}
	j.closeAll()
	return j.out
}

// Reset drops the references of the list that Join returned.
func (j *Joiner) Reset() { j.out.Reset() }

// start opens a group for a segment that is about to be put on the list.
func (j *Joiner) start(s *segment) {
	if len(j.open) == maxFlows {
		j.close(0)
	}
	j.open = append(j.open, group{
		segment: *s,
		at:      j.out.Len(),
		size:    s.payload,
		next:    s.tcpHeader().SequenceNumber() + uint32(s.payload),
		id:      s.id() + 1,
	})
}

// takes reports whether a joinable segment of its connection can join it.
func (g *group) takes(s *segment) bool {
	return s.tcpHeader().SequenceNumber() == g.next &&
		s.payload <= g.payload &&
		g.data-g.net+g.size+s.payload <= maxPacket &&
		(g.v6 || s.id() == g.id) &&
		g.sameHeaders(s)
}

// join has a segment join. last is whether no other can follow it.
func (j *Joiner) join(g *group, s *segment) (last bool) {
	if g.packet == nil {
		g.begin()
		place := &j.out.AsSlice()[g.at]
		(*place).DecRef()
		*place = g.packet
	}
	g.append(s)
	g.size += s.payload
	g.next += uint32(s.payload)
	g.id++
	g.pushed = s.pushes()
	return g.pushed || s.payload < g.payload
}

// begin makes the packet, with headers of its own and the first segment's
// payload.
func (g *group) begin() {
	headers := buffer.NewViewSize(g.data)
	g.header = headers.AsSlice()
	copy(g.header, g.head)
	g.packet = stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(headers)})
	g.packet.LinkHeader().Consume(header.EthernetMinimumSize)
	g.packet.NetworkProtocolNumber = g.protocol()
	g.packet.PktType = g.pkt.PktType
	g.packet.Hash = g.pkt.Hash
	g.append(&g.segment)
}

// append appends a segment's payload, whose memory is shared.
func (g *group) append(s *segment) {
	views, skip := s.pkt.AsViewList()
	skip += s.data
	for v := views.Front(); v != nil; v = v.Next() {
		if skip >= v.Size() {
			skip -= v.Size()
			continue
		}
		part := v.Clone()
		part.TrimFront(skip)
		skip = 0
		g.packet.Data().AppendView(part)
	}
}

// close ends a group: no other segment joins it.
func (j *Joiner) close(i int) {
	if g := &j.open[i]; g.packet != nil {
		g.finish()
	}
	j.open = slices.Delete(j.open, i, i+1)
}

// closeAll ends all groups.
func (j *Joiner) closeAll() {
	for len(j.open) > 0 {
		j.close(len(j.open) - 1)
	}
}

// finish makes the headers those of the whole packet.
func (g *group) finish() {
	packet := g.data - g.net + g.size
	typ := stack.GSOTCPv4
	if g.v6 {
		typ = stack.GSOTCPv6
		header.IPv6(g.header[g.net:]).SetPayloadLength(uint16(packet - header.IPv6MinimumSize))
	} else {
		ip := header.IPv4(g.header[g.net:])
		ip.SetTotalLength(uint16(packet))
		ip.SetChecksum(0)
		ip.SetChecksum(^ip.CalculateChecksum())
	}
	tcp := header.TCP(g.header[g.tcp:])
	if g.pushed {
		tcp.SetFlags(uint8(tcp.Flags() | header.TCPFlagPsh))
	}
	tcp.SetChecksum(g.pseudo(g.data - g.tcp + g.size))
	g.packet.RXChecksumValidated = true
	g.packet.GSOOptions = stack.GSO{
		Type:       typ,
		NeedsCsum:  true,
		CsumOffset: header.TCPChecksumOffset,
		L3HdrLen:   uint16(g.tcp - header.EthernetMinimumSize),
		MSS:        uint16(g.payload),
		MaxSize:    vnet.GSOMaxSize,
	}
}
