package bridge_test

import (
	"errors"
	"net/netip"
	"sync"
	"testing"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/tap"
	"bondstack/link/tap/bridge"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// device is a kernel device that a test plays.
type device struct {
	*linktest.Recorder

	mu        sync.Mutex
	address   tcpip.LinkAddress
	mtu       uint32
	carrier   bool
	speed     uint32
	promisc   bool
	forwards  bool
	addresses []tap.Address
	stubborn  bool
	told      []func()
}

var _ bridge.Device = (*device)(nil)

func newDevice() *device {
	return &device{Recorder: linktest.NewRecorder(linktest.RecorderOptions{GSO: true}), carrier: true, speed: link.SpeedUnknown}
}

// set does a deed, if the device lets itself be told.
func (d *device) set(f func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stubborn {
		return errors.New("stubborn device")
	}
	f()
	return nil
}

func (d *device) SetDeviceAddress(a tcpip.LinkAddress) error {
	return d.set(func() { d.address = a })
}
func (d *device) ChangeMTU(mtu uint32) error { return d.set(func() { d.mtu = mtu }) }
func (d *device) SetCarrier(on bool) error   { return d.set(func() { d.carrier = on }) }
func (d *device) SetSpeed(speed uint32, _ link.Duplex) error {
	return d.set(func() { d.speed = speed })
}
func (d *device) Promiscuous() bool { return d.promisc }
func (d *device) Forwards() bool    { return d.forwards }
func (d *device) Addresses() ([]tap.Address, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addresses, nil
}
func (d *device) SubscribeAddresses(f func()) func() {
	d.told = append(d.told, f)
	return func() { d.told = nil }
}
func (d *device) Route(netip.Addr) (link.Way, bool) {
	return link.Way{Source: netip.MustParseAddr("10.0.0.1")}, true
}
func (d *device) Owns(netip.Addr) bool { panic("the bridge knows") }

// give has the namespace have addresses.
func (d *device) give(addrs ...string) {
	d.mu.Lock()
	d.addresses = nil
	for _, a := range addrs {
		d.addresses = append(d.addresses, tap.Address{Addr: netip.MustParseAddr(a)})
	}
	d.mu.Unlock()
	for _, f := range d.told {
		f()
	}
}

// rig is a device on a bond of two links, eth0 with GSO and eth1 without.
type rig struct {
	t      *testing.T
	clock  *faketime.ManualClock
	bond   *bonding.Bond
	links  [2]*linktest.Recorder
	device *device
	bridge *bridge.Bridge
}

func newRig(t *testing.T, o bonding.Options) *rig {
	t.Helper()
	r := &rig{t: t, clock: faketime.NewManualClock(), device: newDevice()}
	o.Clock = r.clock
	var err error
	if r.bond, err = bonding.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.bond.Close)
	for i := range r.links {
		r.links[i] = linktest.NewRecorder(linktest.RecorderOptions{GSO: i == 0, Address: macOf(i)})
		if err := r.bond.Enslave([]string{"eth0", "eth1"}[i], r.links[i], bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if r.bridge, err = bridge.New(r.device, r.bond, bridge.Options{Clock: r.clock}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.bridge.Close)
	r.drain()
	return r
}

// drain forgets what was written.
func (r *rig) drain() {
	for _, l := range append(r.links[:], r.device.Recorder) {
		l.Drain()
	}
}

func macOf(i int) tcpip.LinkAddress { return tcpip.LinkAddress([]byte{2, 0, 0, 0, 1, byte(i)}) }
