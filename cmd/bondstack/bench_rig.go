package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"bondstack/bonding"
	"bondstack/link/wire"
	"bondstack/stack"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// rig is two hosts, joined by one wire or by a bond of several at each end.
type rig struct {
	sender, receiver *stack.Host
	bond             *bonding.Bond // the sender's, or nil
	bonds            []*bonding.Bond
	last             netstack.LinkEndpoint // the sender's last slave
	lastName         string
	wires            []*wire.Endpoint // the sender's ends of a bond
	perCPU           float64          // bits in each second of CPU time, in the last round
	sink             net.Listener
	received         atomic.Int64 // bytes
	readers          sync.WaitGroup
}

const benchPort = 5001 // iperf's

// newRig builds a rig: bare where mode is nil.
func (s *benchSettings) newRig(mode *bonding.Mode) (*rig, error) {
	return s.newRigOf(mode, newBond)
}

// bondMaker makes a bond, as a bond and as the endpoint that a host takes.
type bondMaker func(bonding.Options) (*bonding.Bond, netstack.LinkEndpoint, error)

// newBond is the bondMaker of bonds as they are.
func newBond(o bonding.Options) (*bonding.Bond, netstack.LinkEndpoint, error) {
	b, err := bonding.New(o)
	return b, b, err
}

func (s *benchSettings) newRigOf(mode *bonding.Mode, make bondMaker) (*rig, error) {
	r := &rig{}
	a, b, err := s.ends(r, mode, make)
	if err != nil {
		return nil, err
	}
	if r.sender, err = stack.NewHost(a, hostAt("10.0.0.1/24")); err != nil {
		a.Close()
		b.Close()
		return nil, err
	}
	if r.receiver, err = stack.NewHost(b, hostAt("10.0.0.2/24")); err != nil {
		r.sender.Close()
		b.Close()
		return nil, err
	}
	if err := r.await(); err != nil {
		r.sender.Close()
		r.receiver.Close()
		return nil, err
	}
	if r.sink, err = r.receiver.Listen("tcp", fmt.Sprintf(":%d", benchPort)); err != nil {
		r.close()
		return nil, err
	}
	r.readers.Add(1)
	go r.accept()
	return r, nil
}

func hostAt(cidr string) stack.HostOptions {
	return stack.HostOptions{Addresses: []netip.Prefix{netip.MustParsePrefix(cidr)}}
}

// ends returns what the two hosts stand on.
func (s *benchSettings) ends(r *rig, mode *bonding.Mode, make bondMaker) (a, b netstack.LinkEndpoint, err error) {
	if mode == nil {
		a, b, err = s.wire(0)
		if err == nil && s.mixed {
			a, b = gvisorGSO{a}, gvisorGSO{b}
		}
		return a, b, err
	}
	o := bonding.Options{Mode: *mode, XmitHashPolicy: s.policy}
	x, a, err := make(o)
	if err != nil {
		return nil, nil, err
	}
	y, b, err := make(far(o))
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(x.SetOptions(s.Options), y.SetOptions(s.Options)); err != nil {
		return nil, nil, err
	}
	for i := range s.Links {
		e, f, err := s.wire(i)
		if err != nil {
			return nil, nil, err
		}
		name := fmt.Sprintf("eth%d", i)
		r.last, r.lastName = e, name
		r.wires = append(r.wires, e.(*wire.Endpoint))
		err = errors.Join(x.Enslave(name, e, bonding.SlaveOptions{}), y.Enslave(name, f, bonding.SlaveOptions{}))
		if err != nil {
			return nil, nil, err
		}
	}
	r.bond, r.bonds = x, []*bonding.Bond{x, y}
	return a, b, nil
}

// far are the options of the receiving host's bond. In the adaptive modes a bond
// sends by all slaves and receives on the active one, as a switch between the two
// would have it. There is none here: so the far end does the opposite.
func far(o bonding.Options) bonding.Options {
	if o.Mode == bonding.BalanceTLB || o.Mode == bonding.BalanceALB {
		o.Mode, o.AllSlavesActive = bonding.ActiveBackup, true
	}
	return o
}

// readyTimeout bounds how long the bonds may take until they carry data: LACP
// waits for two seconds before it attaches a port.
const readyTimeout = 10 * time.Second

// await waits until every slave of the bonds carries data that is to.
func (r *rig) await() error {
	for _, b := range r.bonds {
		if err := awaitReady(context.Background(), b); err != nil {
			return err
		}
	}
	return nil
}

// awaitReady waits until a bond carries data, for at most readyTimeout.
func awaitReady(ctx context.Context, b *bonding.Bond) error {
	events := b.Subscribe(64)
	defer events.Close()
	deadline := time.After(readyTimeout)
	for !ready(b.Status()) {
		select {
		case <-events.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("the bond carries no data on all its links after %v", readyTimeout)
		}
	}
	return nil
}

// ready reports whether a bond has a carrier, and in 802.3ad all its ports
// distribute.
func ready(st bonding.Status) bool {
	if st.LACP != nil {
		for _, s := range st.Slaves {
			if s.State != "active" {
				return false
			}
		}
	}
	return st.Carrier
}

// wire is link i. The bare link is like the first. A frame that is on its way
// while a slave is released waits, as in the buffer of a packet socket.
func (s *benchSettings) wire(i int) (a, b netstack.LinkEndpoint, err error) {
	end := wire.EndOptions{HoldUnattached: true, Impairments: s.link(i, s.Links)}
	x, y, err := wire.New(wire.Options{DisableGSO: !s.GSO || s.mixed && i%2 == 0, A: end, B: end})
	if err != nil {
		return nil, nil, err // not x and y: nil ends are no nil interfaces
	}
	return x, y, nil
}

func (r *rig) close() {
	r.sender.Close()
	r.receiver.Close()
	r.readers.Wait()
}

// chunk is how much a stream writes and reads at once.
const chunk = 256 << 10

// accept counts what comes on every connection.
func (r *rig) accept() {
	defer r.readers.Done()
	for {
		c, err := r.sink.Accept()
		if err != nil {
			return
		}
		r.readers.Add(1)
		go func() {
			defer r.readers.Done()
			defer c.Close()
			buf := make([]byte, chunk)
			for {
				n, err := c.Read(buf)
				r.received.Add(int64(n))
				if err != nil {
					return
				}
			}
		}()
	}
}

// warmUp is how long the streams run before a round is timed: past slow start.
func warmUp(d time.Duration) time.Duration { return min(d/4, 200*time.Millisecond) }

// dialTimeout bounds how long a stream may take to connect.
const dialTimeout = 10 * time.Second

// round runs all streams for a time and returns bits a second at the receiver.
// measured is called with true when timing begins and with false when it ends.
func (r *rig) round(streams int, d time.Duration, measured func(bool)) (float64, error) {
	conns, err := r.dial(streams)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	if err != nil {
		return 0, err
	}
	var stop atomic.Bool
	var writers sync.WaitGroup
	errs := make(chan error, streams)
	for _, c := range conns {
		writers.Add(1)
		go func() {
			defer writers.Done()
			errs <- pump(c, &stop)
		}()
	}
	time.Sleep(warmUp(d))
	measured(true)
	before, start, cpu := r.received.Load(), time.Now(), cpuTime()
	time.Sleep(d)
	bits, elapsed := 8*float64(r.received.Load()-before), time.Since(start)
	if cpu = cpuTime() - cpu; cpu > 0 {
		r.perCPU = bits / cpu.Seconds()
	}
	measured(false)
	stop.Store(true)
	deadline := time.Now().Add(dialTimeout)
	for _, c := range conns {
		c.SetWriteDeadline(deadline)
	}
	writers.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return bits / elapsed.Seconds(), err
}

func (r *rig) dial(streams int) ([]net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	var conns []net.Conn
	for range streams {
		c, err := r.sender.DialContext(ctx, "tcp", fmt.Sprintf("10.0.0.2:%d", benchPort))
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

// pump writes until it is told to stop.
func pump(w io.Writer, stop *atomic.Bool) error {
	buf := make([]byte, chunk)
	for !stop.Load() {
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// retransmits returns how many segments the sender has sent again.
func (r *rig) retransmits() uint64 { return r.sender.Stack().Stats().TCP.Retransmits.Value() }
