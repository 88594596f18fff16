package lacp

import "encoding/binary"

// The types of a marker PDU.
const (
	MarkerInformation = 1 // a request
	MarkerResponse    = 2
)

// Marker is a marker PDU (IEEE 802.1AX, 6.5.3.3): a partner that moves a
// conversation to another link asks with it whether all frames before it have
// been taken.
type Marker struct {
	Version uint8
	Type    uint8 // MarkerInformation or MarkerResponse
	Port    uint16
	System  MAC
	ID      uint32 // of the transaction
}

// lenMarker is the length of the marker TLV by the standard.
const lenMarker = 16

// ParseMarker reads a marker PDU, given without its Ethernet header. Like
// Parse, it refuses only what is too short or has another subtype, and does not
// allocate.
func ParseMarker(b []byte) (Marker, error) {
	if len(b) < PDUSize {
		return Marker{}, ErrShort
	}
	f := (*[PDUSize]byte)(b)
	if f[0] != SubtypeMarker {
		return Marker{}, ErrSubtype
	}
	return Marker{
		Version: f[1],
		Type:    f[2],
		Port:    binary.BigEndian.Uint16(f[4:]),
		System:  MAC(f[6:12]),
		ID:      binary.BigEndian.Uint32(f[12:]),
	}, nil
}

// AppendTo appends the PDU's 110 octets to b.
func (m *Marker) AppendTo(b []byte) []byte {
	n := len(b)
	b = append(b, zeros[:]...)
	f := (*[PDUSize]byte)(b[n:])
	f[0], f[1], f[2], f[3] = SubtypeMarker, m.Version, m.Type, lenMarker
	binary.BigEndian.PutUint16(f[4:], m.Port)
	copy(f[6:12], m.System[:])
	binary.BigEndian.PutUint32(f[12:], m.ID)
	return b
}

// receiveMarker answers a request on the port it came by, with the same octets
// but for the type, as Linux does; the responder of the standard (6.5.4.2)
// works in any state of the port. Answers are limited as PDUs are, so that a
// flood of requests makes no flood of answers.
func (s *System) receiveMarker(p *port, b []byte) {
	switch b[2] {
	case MarkerInformation:
		p.counters.MarkerRx++
		if !p.markers.allow(s.now) {
			p.counters.MarkerLimited++
			return
		}
		p.markers.note(s.now)
		p.counters.MarkerRespTx++
		f := (*[PDUSize]byte)(s.frame[:])
		copy(f[:], b)
		f[2] = MarkerResponse
		s.out.Send(p.id, f[:])
	case MarkerResponse:
		p.counters.MarkerRespRx++
	default:
		p.counters.MarkerUnknownRx++
	}
}
