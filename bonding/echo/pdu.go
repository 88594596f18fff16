package echo

import (
	"encoding/binary"
	"errors"
	"time"
)

// EtherType is that of hellos: the first of the two that IEEE 802 gives to local
// experiments.
const EtherType = 0x88b5

// Group is the address that hellos are sent to. It is a group's, locally
// administered, so that bridges flood it.
const Group = "\x03bonde"

// The sizes of a hello, in bytes.
const (
	headerSize = 28
	entrySize  = 16
	// MaxPeers is how many peers a port keeps and a hello lists.
	MaxPeers = 8
	// MaxSize is the size of the longest hello.
	MaxSize = headerSize + MaxPeers*entrySize
)

const (
	version      = 1
	flagFarewell = 1
	flagHears    = 1
)

// MaxInterval is the longest time between two hellos that one can tell.
const MaxInterval = 65535 * time.Millisecond

// PDU is a hello.
type PDU struct {
	// Farewell is the last word of a port that stops sending hellos on purpose.
	Farewell bool
	// Interval is the time until the next hello, in whole milliseconds.
	Interval time.Duration
	// System is the same on all ports of a bond, Discriminator another on each;
	// both are random and not zero.
	System, Discriminator uint64
	// Sequence counts the hellos of the port.
	Sequence uint32
	// Count is how many of Entries are in use.
	Count   int
	Entries [MaxPeers]Entry
}

// Entry is what a hello says of one peer.
type Entry struct {
	Discriminator uint64 // the peer's
	Sequence      uint32 // of the last hello heard from it
	Hears         bool   // it is heard at present
}

// What is wrong with a frame. It is not a hello, or one of another version.
var (
	errShort   = errors.New("echo: shorter than a hello")
	errForeign = errors.New("echo: not a hello of version 1")
	errField   = errors.New("echo: a field that may not be zero is")
	errCount   = errors.New("echo: more peers than fit")
)

// Parse reads a hello from the payload of a frame. What is behind it, such as
// padding, is not looked at.
func (p *PDU) Parse(b []byte) error {
	if len(b) < headerSize {
		return errShort
	}
	if b[0] != 'B' || b[1] != 'E' || b[2] != version {
		return errForeign
	}
	*p = PDU{
		Farewell:      b[3]&flagFarewell != 0,
		Interval:      time.Duration(binary.BigEndian.Uint16(b[4:])) * time.Millisecond,
		Count:         int(b[6]),
		System:        binary.BigEndian.Uint64(b[8:]),
		Discriminator: binary.BigEndian.Uint64(b[16:]),
		Sequence:      binary.BigEndian.Uint32(b[24:]),
	}
	switch {
	case p.Count > MaxPeers:
		return errCount
	case len(b) < headerSize+p.Count*entrySize:
		return errShort
	case p.Interval == 0 || p.System == 0 || p.Discriminator == 0:
		return errField
	}
	for i := range p.Count {
		e := b[headerSize+i*entrySize:]
		p.Entries[i] = Entry{binary.BigEndian.Uint64(e), binary.BigEndian.Uint32(e[8:]), e[12]&flagHears != 0}
	}
	return nil
}

// AppendTo appends the hello to b.
func (p *PDU) AppendTo(b []byte) []byte {
	flags := byte(0)
	if p.Farewell {
		flags = flagFarewell
	}
	b = append(b, 'B', 'E', version, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(p.Interval/time.Millisecond))
	b = append(b, byte(p.Count), 0)
	b = binary.BigEndian.AppendUint64(b, p.System)
	b = binary.BigEndian.AppendUint64(b, p.Discriminator)
	b = binary.BigEndian.AppendUint32(b, p.Sequence)
	for _, e := range p.Entries[:p.Count] {
		b = binary.BigEndian.AppendUint64(b, e.Discriminator)
		b = binary.BigEndian.AppendUint32(b, e.Sequence)
		hears := byte(0)
		if e.Hears {
			hears = flagHears
		}
		b = append(b, hears, 0, 0, 0)
	}
	return b
}

// entry returns what the hello says of a discriminator.
func (p *PDU) entry(of uint64) (Entry, bool) {
	for _, e := range p.Entries[:p.Count] {
		if e.Discriminator == of {
			return e, true
		}
	}
	return Entry{}, false
}
