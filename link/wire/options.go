package wire

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"bondstack/link"
)

// The limits of a wire and its defaults.
const (
	// MinMTU is the least MTU of an end, the least that IPv4 allows (RFC 791).
	MinMTU = 68
	// MaxMTU is the greatest MTU of an end: a frame with its header of 14
	// bytes is at most 65,535 bytes.
	MaxMTU = 65535 - header.EthernetMinimumSize
	// DefaultMTU is the MTU of an end unless it is set.
	DefaultMTU = 1500
	// DefaultSpeed is the speed of a wire in Mbit/s unless it is set: that of
	// Linux's veth, whose frames pass at the speed of memory as well.
	DefaultSpeed = 10000
	// DefaultQueueFrames is how many frames wait in one direction unless it is
	// set. It holds the windows of several fast TCP connections that send
	// frames of 1,500 bytes.
	DefaultQueueFrames = 32768
	// DefaultQueueBytes is how many bytes of frames wait in one direction
	// unless it is set.
	DefaultQueueBytes = 64 << 20
)

// gsoMaxSize is the size of the greatest GSO packet, network header included.
const gsoMaxSize = 65536

// Options says what a wire is like. The zero value is a wire of MTU 1,500 with
// GSO and no impairments.
type Options struct {
	// MTU is that of both ends, MinMTU to MaxMTU. Zero is DefaultMTU.
	MTU uint32
	// Speed is in Mbit/s, or link.SpeedUnknown. It is what LinkState says and
	// does not limit anything (Impairments.Rate does). Zero is DefaultSpeed.
	Speed uint32
	// Duplex is the duplex mode that LinkState says. Half is the zero value,
	// so it is only looked at when Speed is set; else it is full.
	Duplex link.Duplex
	// DisableGSO has neither end offer GSO.
	DisableGSO bool
	// QueueFrames is how many frames may wait in each direction. Zero is
	// DefaultQueueFrames. Frames held by a delay or rate count by themselves,
	// under the same limit.
	QueueFrames int
	// QueueBytes is how many bytes of frames may wait in each direction. Zero
	// is DefaultQueueBytes. A single frame always fits an empty queue.
	QueueBytes int
	// Synchronous has WritePackets deliver in the caller's goroutine, and
	// frames that were held in that of the clock's timer: no goroutine, so a
	// test with a manual clock is deterministic. The dispatcher then runs with
	// every lock that the writer holds. It must not take one of them, so do
	// not put netstacks on both ends: a stack that answers ARP from within a
	// write would lock itself out. It may write to its own end. A frame
	// written while another is being delivered in the same direction is
	// delivered after it, by the goroutine that delivers the first.
	Synchronous bool
	// Clock times rate, delay, jitter and reordering. Nil is the real clock.
	Clock tcpip.Clock
	// Seed is that of all chance in the wire. The same seed, order of frames
	// and clock give the same faults.
	Seed uint64
	// A and B are the options of each end.
	A, B EndOptions
}

// EndOptions says what one end of a wire is like.
type EndOptions struct {
	// Address is the MAC address, six bytes, not a group address. Empty is a
	// random one that is locally administered.
	Address tcpip.LinkAddress
	// DisableGSO has this end take no GSO frames; the other end then does not
	// offer GSO either, nor does this one.
	DisableGSO bool
	// Promiscuous has the end deliver unicast frames for any address from the
	// start. See Endpoint.SetPromiscuous.
	Promiscuous bool
	// HoldUnattached has frames that come while nothing is attached wait for what
	// is attached next, as they do in the buffer of a packet socket, rather than
	// be dropped: bounded by Options.QueueFrames and QueueBytes, beyond which the
	// other end has no room. Not on a synchronous wire.
	HoldUnattached bool
	// Impairments are those of the frames that this end sends.
	Impairments Impairments
}

// validate returns an error that names every option that is out of range.
func (o *Options) validate() error {
	var errs []error
	if o.MTU != 0 && (o.MTU < MinMTU || o.MTU > MaxMTU) {
		errs = append(errs, fmt.Errorf("wire: mtu is %d, allowed is %d to %d", o.MTU, MinMTU, MaxMTU))
	}
	if o.QueueFrames < 0 {
		errs = append(errs, fmt.Errorf("wire: queue frames is %d, allowed is 0 (the default) and more", o.QueueFrames))
	}
	if o.QueueBytes < 0 {
		errs = append(errs, fmt.Errorf("wire: queue bytes is %d, allowed is 0 (the default) and more", o.QueueBytes))
	}
	if o.Synchronous && (o.A.HoldUnattached || o.B.HoldUnattached) {
		errs = append(errs, errors.New("wire: hold unattached is set, allowed only where the wire is not synchronous: the writer would wait"))
	}
	errs = append(errs, validDuplex(o.Duplex), o.A.validate("a"), o.B.validate("b"))
	return errors.Join(errs...)
}

func (o *EndOptions) validate(end string) error {
	var errs []error
	if o.Address != "" && !validAddress(o.Address) {
		errs = append(errs, fmt.Errorf("wire: address of end %s is %v, allowed are six bytes that are not zero nor a group address", end, o.Address))
	}
	if err := o.Impairments.validate(); err != nil {
		errs = append(errs, fmt.Errorf("end %s: %w", end, err))
	}
	return errors.Join(errs...)
}

func validDuplex(d link.Duplex) error {
	switch d {
	case link.DuplexHalf, link.DuplexFull, link.DuplexUnknown:
		return nil
	}
	return fmt.Errorf("wire: duplex is %d, allowed is half (0), full (1) and unknown (255)", d)
}

func (o *Options) setDefaults() {
	if o.MTU == 0 {
		o.MTU = DefaultMTU
	}
	if o.Speed == 0 {
		o.Speed, o.Duplex = DefaultSpeed, link.DuplexFull
	}
	if o.QueueFrames == 0 {
		o.QueueFrames = DefaultQueueFrames
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.Clock == nil {
		o.Clock = tcpip.NewStdClock()
	}
	for _, e := range []*EndOptions{&o.A, &o.B} {
		if e.Address == "" {
			e.Address = randomAddress()
		}
	}
}

// validAddress reports whether addr can be the address of an end, as Linux's
// is_valid_ether_addr does.
func validAddress(addr tcpip.LinkAddress) bool {
	return len(addr) == header.EthernetAddressSize &&
		addr[0]&1 == 0 && addr != header.UnspecifiedEthernetAddress
}

// randomAddress returns a random unicast address that is locally administered.
// It does not depend on the seed: wires with one seed are often in one network.
func randomAddress() tcpip.LinkAddress {
	bits := rand.Uint64()
	var a [header.EthernetAddressSize]byte
	for i := range a {
		a[i] = byte(bits >> (8 * i))
	}
	a[0] = a[0]&^1 | 2
	return tcpip.LinkAddress(a[:])
}
