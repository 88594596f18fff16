package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"time"

	"bondstack/stack"
)

// DefaultPort is the port of iperf3's servers.
const DefaultPort = 5201

// Network is what a test runs over. A *stack.Host is one.
type Network interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Listen(network, address string) (net.Listener, error)
	ListenPacket(network, address string) (net.PacketConn, error)
}

var _ Network = (*stack.Host)(nil)

// Options are those of clients and servers.
type Options struct {
	// Port is the server's, 0 is DefaultPort.
	Port uint16
	// Interval is the time from one report to the next; 0 is no reports before
	// the end.
	Interval time.Duration
	// JSON has Out get a Report when the test is over, in place of lines for
	// people as they come.
	JSON bool
	// Out gets the output. Nil is none.
	Out io.Writer
	// MSS is how much payload a segment of the network has, in bytes: 0 is 1448.
	MSS int
	// Slaves tells what the slaves of the bond below have carried. It is called
	// at each interval. Nil is no bond.
	Slaves func() []SlaveBytes
}

func (o *Options) port() uint16 {
	if o.Port == 0 {
		return DefaultPort
	}
	return o.Port
}

func (o *Options) mss() int {
	if o.MSS == 0 {
		return 1448
	}
	return o.MSS
}

func (o *Options) slaves() []SlaveBytes {
	if o.Slaves == nil {
		return nil
	}
	return o.Slaves()
}

// The shortest and longest interval that iperf3 has.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = 60 * time.Second
)

func (o *Options) validate() error {
	if o.Interval != 0 && (o.Interval < minInterval || o.Interval > maxInterval) {
		return fmt.Errorf("interval is %v, allowed are %v to %v, and 0 for none", o.Interval, minInterval, maxInterval)
	}
	return nil
}

// ClientOptions are what a client wants tested.
type ClientOptions struct {
	Options
	// Host is the server's address.
	Host string
	// UDP tests with datagrams in place of TCP.
	UDP bool
	// Time is the length of the test in whole seconds, Bytes and Blocks end it by
	// what is carried. One of them is given; none is 10 s.
	Time          time.Duration
	Bytes, Blocks uint64
	// Parallel is how many streams there are in each direction, 0 is 1.
	Parallel int
	// Reverse has the server send, Bidir both.
	Reverse, Bidir bool
	// Rate limits each stream in bit/s. 0 is no limit with TCP and 1 Mbit/s with
	// UDP; Unlimited is no limit with UDP too. Burst is how many blocks go at once.
	Rate      uint64
	Unlimited bool
	Burst     int
	// Length is that of a block in bytes: 0 is 128 KiB with TCP and a datagram
	// that fits a packet with UDP.
	Length int
	// Omit is for how long, in whole seconds, nothing is counted at first.
	Omit time.Duration
	// Counters64 has datagrams have numbers of 64 bits.
	Counters64 bool
	// NoDelay has TCP send small blocks at once.
	NoDelay bool
}

// Validate reports what is wrong with the options.
func (o *ClientOptions) Validate() error {
	_, err := o.settings()
	if o.Host == "" {
		err = errors.Join(errors.New("the server's address is missing"), err)
	} else if _, wrong := netip.ParseAddr(o.Host); wrong != nil {
		err = errors.Join(fmt.Errorf("%q is not an IP address", o.Host), err)
	}
	return errors.Join(err, o.validate())
}

// settings returns the options as those of a test.
func (o *ClientOptions) settings() (*settings, error) {
	s := &settings{udp: o.UDP, omit: o.Omit, time: o.Time, bytes: o.Bytes, blocks: o.Blocks, parallel: o.Parallel,
		reverse: o.Reverse, bidir: o.Bidir, block: o.Length, rate: o.Rate, burst: o.Burst, counters64: o.Counters64, noDelay: o.NoDelay}
	if s.time == 0 && s.bytes == 0 && s.blocks == 0 {
		s.time = 10 * time.Second
	}
	switch {
	case s.block != 0:
	case s.udp:
		s.block = o.mss()
	default:
		s.block = defaultBlock
	}
	if s.udp && s.rate == 0 && !o.Unlimited {
		s.rate = defaultUDP
	}
	var errs []error
	for _, d := range []struct {
		name string
		v    time.Duration
		most int
	}{{"time", s.time, maxTime}, {"omit", s.omit, maxOmit}} {
		if d.v < 0 || d.v > time.Duration(d.most)*time.Second || d.v%time.Second != 0 {
			errs = append(errs, fmt.Errorf("%s is %v, allowed are whole seconds up to %d", d.name, d.v, d.most))
		}
	}
	for _, n := range []struct {
		name    string
		v, most uint64
	}{
		{"parallel", uint64(max(s.parallel, -1)), maxParallel}, {"burst", uint64(max(s.burst, -1)), maxBurst}, {"rate", s.rate, maxRate},
		{"bytes", s.bytes, maxTestAmount}, {"blocks", s.blocks, maxTestAmount},
	} {
		if n.v > n.most {
			errs = append(errs, fmt.Errorf("%s is %d, allowed are 0 to %d", n.name, int64(min(n.v, math.MaxInt64)), n.most))
		}
	}
	return s, errors.Join(append(errs, s.check())...)
}

// ServerOptions are those of a server.
type ServerOptions struct {
	Options
	// Once ends the server after one test.
	Once bool
	// MaxDuration bounds a test, with what is omitted; 0 is an hour.
	MaxDuration time.Duration
	// Ready, where it is not nil, is called once clients can connect.
	Ready func()
	// Log gets a line for each test that failed and for wishes that are not
	// honoured. Nil is none.
	Log *slog.Logger

	patience time.Duration // for an answer, 0 is controlTimeout
}

func (o *ServerOptions) timeout() time.Duration {
	if o.patience == 0 {
		return controlTimeout
	}
	return o.patience
}

// Validate reports what is wrong with the options.
func (o *ServerOptions) Validate() error {
	if o.MaxDuration < 0 || o.MaxDuration > maxTime*time.Second {
		return fmt.Errorf("the longest test is %v, allowed are up to %d s", o.MaxDuration, maxTime)
	}
	return o.validate()
}

func (o *ServerOptions) longest() time.Duration {
	if o.MaxDuration == 0 {
		return time.Hour
	}
	return o.MaxDuration
}
