package iperf3

import (
	"encoding/binary"
	"time"
)

// A datagram begins with the time of sending, as seconds and microseconds of 32
// bits each, and its number in the stream from 1, of 32 or 64 bits, all with the
// greatest byte first.
const (
	header32 = 12
	header64 = 16
)

// putHeader writes a datagram's header. b has room for it.
func putHeader(b []byte, at time.Duration, n uint64, wide bool) {
	binary.BigEndian.PutUint32(b, uint32(at/time.Second))
	binary.BigEndian.PutUint32(b[4:], uint32(at%time.Second/time.Microsecond))
	if wide {
		binary.BigEndian.PutUint64(b[8:], n)
	} else {
		binary.BigEndian.PutUint32(b[8:], uint32(n))
	}
}

// parseHeader reads a datagram's header; ok is false where there is none.
func parseHeader(b []byte, wide bool) (at time.Duration, n uint64, ok bool) {
	if len(b) < header32 || wide && len(b) < header64 {
		return 0, 0, false
	}
	micros := binary.BigEndian.Uint32(b[4:])
	at = time.Duration(binary.BigEndian.Uint32(b))*time.Second + time.Duration(micros)*time.Microsecond
	if wide {
		return at, binary.BigEndian.Uint64(b[8:]), true
	}
	return at, uint64(binary.BigEndian.Uint32(b[8:])), true
}

// arrivals counts the datagrams of a stream at its receiver. The number of the
// greatest one that came is how many were sent until then; a gap is a loss until
// the missing one comes late.
type arrivals struct {
	packets    uint64  // the greatest number
	lost       int64   // gaps that were not filled
	outOfOrder uint64  // that came after a greater one
	jitter     float64 // seconds, RFC 3550, section 6.4.1
	transit    time.Duration
	any        bool
}

// maxGap is how many datagrams a gap can have at most that is believed: more can
// not be lost between two that come, so it is no datagram of the stream.
const maxGap = 1 << 32

// add notes a datagram by its number, and the times of sending and receiving. The
// two clocks may differ.
func (a *arrivals) add(n uint64, sent, received time.Duration) {
	switch {
	case n > a.packets && n-a.packets <= maxGap:
		a.lost += int64(n - a.packets - 1)
		a.packets = n
	case n > a.packets:
		return
	default:
		a.outOfOrder++
		if a.lost > 0 {
			a.lost--
		}
	}
	transit := received - sent
	if a.any {
		a.jitter += ((transit - a.transit).Abs().Seconds() - a.jitter) / 16
	}
	a.transit, a.any = transit, true
}

// The first datagram of a stream says hello and is answered, 4 bytes each in the
// byte order of who sends: those of iperf 3.12 and newer, and those of before.
const (
	hello       = 0x36373839
	helloReply  = 0x39383736
	helloOld    = 123456789
	helloOldRep = 987654321
)

// replyTo returns the answer to a hello, in its own form and byte order; ok is
// false where it is none.
func replyTo(b []byte) (reply [4]byte, ok bool) {
	if len(b) != 4 {
		return reply, false
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(b) {
		case hello:
			order.PutUint32(reply[:], helloReply)
			return reply, true
		case helloOld:
			order.PutUint32(reply[:], helloOldRep)
			return reply, true
		}
	}
	return reply, false
}

// isReply reports whether a datagram is an answer to a hello of any form.
func isReply(b []byte) bool {
	if len(b) != 4 {
		return false
	}
	for _, v := range []uint32{binary.LittleEndian.Uint32(b), binary.BigEndian.Uint32(b)} {
		if v == helloReply || v == helloOldRep {
			return true
		}
	}
	return false
}
