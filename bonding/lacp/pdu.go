package lacp

import (
	"encoding/binary"
	"errors"
)

// The frame around a PDU. PDUs are sent untagged, from the port's own address.
const (
	// EtherType is that of the Slow Protocols.
	EtherType = 0x8809
	// PDUSize is the size of a LACPDU or marker PDU, without the Ethernet
	// header and the FCS, in octets.
	PDUSize = 110
)

// Group is the destination of PDUs, the Slow_Protocols_Multicast address.
var Group = MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x02}

// The subtypes of the Slow Protocols that LACP uses.
const (
	SubtypeLACP   = 1
	SubtypeMarker = 2
)

// The errors of Parse and ParseMarker.
var (
	ErrShort   = errors.New("lacp: PDU is shorter than 110 octets")
	ErrSubtype = errors.New("lacp: PDU has another subtype")
)

// PDU is a LACPDU of version 1 (IEEE 802.1AX, 6.4.2.3).
type PDU struct {
	Version uint8
	Actor   Info // who sends it
	Partner Info // whom the sender believes to be at the other end
	// MaxDelay is CollectorMaxDelay in tens of microseconds. Linux sends 0.
	MaxDelay uint16
}

// The layout of a LACPDU: each TLV has two octets of type and length, and each
// Info is followed by three reserved octets.
const (
	offActor     = 2
	offPartner   = offActor + tlvHeader + infoSize + 3
	offCollector = offPartner + tlvHeader + infoSize + 3
	offEnd       = offCollector + 16

	tlvHeader      = 2
	tlvActor       = 1
	tlvPartner     = 2
	tlvCollector   = 3
	lenInformation = 20
	lenCollector   = 16
	reservedToEnd  = 50
	versionSent    = 1
)

// The sizes on the wire, checked when this is compiled.
var (
	_ [lenInformation]struct{} = [tlvHeader + infoSize + 3]struct{}{}
	_ [22]struct{}             = [offPartner]struct{}{}
	_ [42]struct{}             = [offCollector]struct{}{}
	_ [PDUSize]struct{}        = [offEnd + tlvHeader + reservedToEnd]struct{}{}
)

// Parse reads a LACPDU, given without its Ethernet header. It refuses what is
// shorter than 110 octets or has another subtype, and checks nothing else: the
// standard forbids to look at version, TLV types and reserved octets (6.4.12),
// and Linux checks no lengths either. Anything after the known fields is
// ignored. It does not allocate.
func Parse(b []byte) (PDU, error) {
	var p PDU
	err := p.parse(b)
	return p, err
}

func (p *PDU) parse(b []byte) error {
	if len(b) < PDUSize {
		return ErrShort
	}
	f := (*[PDUSize]byte)(b)
	if f[0] != SubtypeLACP {
		return ErrSubtype
	}
	p.Version = f[1]
	p.Actor.parse((*[infoSize]byte)(f[offActor+tlvHeader:]))
	p.Partner.parse((*[infoSize]byte)(f[offPartner+tlvHeader:]))
	p.MaxDelay = binary.BigEndian.Uint16(f[offCollector+tlvHeader:])
	return nil
}

// AppendTo appends the PDU's 110 octets to b.
func (p *PDU) AppendTo(b []byte) []byte {
	n := len(b)
	b = append(b, zeros[:]...)
	p.emit((*[PDUSize]byte)(b[n:]))
	return b
}

var zeros [PDUSize]byte

func (p *PDU) emit(f *[PDUSize]byte) {
	*f = zeros
	f[0], f[1] = SubtypeLACP, p.Version
	f[offActor], f[offActor+1] = tlvActor, lenInformation
	p.Actor.emit((*[infoSize]byte)(f[offActor+tlvHeader:]))
	f[offPartner], f[offPartner+1] = tlvPartner, lenInformation
	p.Partner.emit((*[infoSize]byte)(f[offPartner+tlvHeader:]))
	f[offCollector], f[offCollector+1] = tlvCollector, lenCollector
	binary.BigEndian.PutUint16(f[offCollector+tlvHeader:], p.MaxDelay)
}
