package bonding_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// deviceRig is a bond and its slaves in a table.
type deviceRig struct {
	*rig
	devices *stack.Devices
	index   map[string]tcpip.NICID // by the first name
}

// newDeviceRig makes a bond that is the device bond0, of the devices eth0, eth1
// and so on.
func newDeviceRig(t *testing.T, o bonding.Options, slaves int) *deviceRig {
	t.Helper()
	r := &deviceRig{rig: newRig(t, o, 0), devices: stack.NewDevices(stack.DevicesOptions{}), index: map[string]tcpip.NICID{}}
	t.Cleanup(r.devices.Close)
	for i := range slaves {
		name := fmt.Sprintf("eth%d", i)
		r.links[name] = linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(name)})
		r.add(name, r.links[name])
		if err := r.EnslaveDevice(r.devices, name, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *deviceRig) add(name string, ep *linktest.Recorder) {
	r.tb.Helper()
	dev, err := r.devices.Add(stack.NewDevice{Name: name, Link: ep, Unattached: true})
	if err != nil {
		r.tb.Fatal(err)
	}
	r.index[name] = dev.Index()
}

func (r *deviceRig) rename(name, to string) {
	r.tb.Helper()
	if err := r.devices.Rename(r.index[name], to); err != nil {
		r.tb.Fatal(err)
	}
}

func (r *deviceRig) slaveNames() (names []string) {
	for _, s := range r.Status().Slaves {
		names = append(names, s.Name)
	}
	return names
}

// A slave's deletion releases it first; the bond goes on with the others.
func TestDeleteSlaveDevice(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	if dev, _ := r.devices.ByName("eth0"); dev.Holder() != "bond0" {
		t.Errorf("eth0 is held by %q", dev.Holder())
	}
	if got := r.Status().ActiveSlave; got != "eth0" {
		t.Fatalf("active slave %q", got)
	}
	if err := r.devices.Delete(r.index["eth0"]); err != nil {
		t.Fatal(err)
	}
	ep := r.links["eth0"]
	if calls := ep.Calls(); ep.IsAttached() || calls.Close != 1 || ep.LinkAddress() != macOf("eth0") {
		t.Errorf("eth0 is attached %v, %+v", ep.IsAttached(), calls)
	}
	if st := r.Status(); st.ActiveSlave != "eth1" || !slices.Equal(r.slaveNames(), []string{"eth1"}) {
		t.Errorf("active slave %q of %v", st.ActiveSlave, r.slaveNames())
	}
}

// Release and Close give the devices back, and close no link.
func TestReleaseDevice(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{}, 3)
	w := r.devices.Watch(10)
	if err := r.Release("eth0"); err != nil {
		t.Fatal(err)
	}
	r.Close()
	for name, ep := range r.links {
		dev, ok := r.devices.ByName(name)
		if !ok || dev.Holder() != "" || ep.IsAttached() || ep.Calls().Close != 0 || ep.LinkAddress() != macOf(name) {
			t.Errorf("%s: in the table %v, attached %v, %+v", name, ok, ep.IsAttached(), ep.Calls())
		}
	}
	released := 0
	for range 5 { // and two addresses that were given back
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == stack.DeviceReleased && e.Old.Holder() == "bond0" {
			released++
		}
	}
	if released != 3 {
		t.Errorf("%d events of releases, want 3", released)
	}
	// Another bond may have them.
	b, err := bonding.New(bonding.Options{Name: "bond1"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.EnslaveDevice(r.devices, "eth0", bonding.SlaveOptions{}); err != nil {
		t.Error(err)
	}
}

// Deleting a bond that is a device releases its slaves.
func TestDeleteBondDevice(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{}, 2)
	r.Attach(nil)
	dev, err := r.devices.Add(stack.NewDevice{Name: "bond7", Link: r.Bond, Unattached: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.devices.Delete(dev.Index()); err != nil {
		t.Fatal(err)
	}
	for name, ep := range r.links {
		if dev, ok := r.devices.ByName(name); !ok || dev.Holder() != "" || ep.IsAttached() {
			t.Errorf("%s is not released", name)
		}
	}
}

// The primary is matched by name: a slave that is renamed away from it is the
// primary no more, one that is renamed to it becomes it, and back again.
func TestRenamePrimary(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth1"}, 2)
	active := func(want string) {
		t.Helper()
		st := r.Status()
		if st.ActiveSlave != want || st.Primary != "eth1" {
			t.Errorf("active slave %q, want %q; primary %q", st.ActiveSlave, want, st.Primary)
		}
	}
	proc := func(want string) {
		t.Helper()
		var b bytes.Buffer
		st := r.Status()
		st.WriteProc(&b)
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	active("eth1")
	proc("Primary Slave: eth1 (")
	r.rename("eth1", "lan")
	proc("Primary Slave: None")
	proc("Slave Interface: lan")
	if err := r.SetSlaveEnabled("lan", false); err != nil { // found by the new name
		t.Error(err)
	}
	r.clock.Advance(1e9)
	active("eth0")
	r.SetSlaveEnabled("lan", true)
	r.clock.Advance(1e9)
	r.rename("eth1", "eth1")
	active("eth1")
	proc("Primary Slave: eth1 (")
	r.rename("eth1", "lan")
	r.rename("eth0", "eth1") // the other one
	active("eth1")
	if got := r.slaveNames(); !slices.Equal(got, []string{"eth1", "lan"}) {
		t.Errorf("slaves %v", got)
	}
	kinds := 0
	for {
		e, ok := <-r.events.C, len(r.events.C) > 0
		if e.Kind == bonding.EventRename {
			kinds++
		}
		if !ok {
			break
		}
	}
	if kinds != 4 {
		t.Errorf("%d events of renaming, want 4", kinds)
	}
}

// In other modes a renaming is a new name and no more.
func TestRenameElsewhere(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{Mode: bonding.BalanceRR}, 1)
	r.rename("eth0", "wan")
	if got := r.slaveNames(); !slices.Equal(got, []string{"wan"}) {
		t.Errorf("slaves %v", got)
	}
	if err := r.Release("wan"); err != nil {
		t.Error(err)
	}
	if err := r.EnslaveDevice(r.devices, "wan", bonding.SlaveOptions{}); err != nil {
		t.Error(err)
	}
}

// A name that a slave of no table has is refused, and the old one stays.
func TestRenameToStranger(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{}, 1)
	r.enslave("stranger", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	err := r.devices.Rename(r.index["eth0"], "stranger")
	if !errors.Is(err, stack.ErrVetoed) || !errors.Is(err, bonding.ErrSlaveExists) {
		t.Errorf("Rename = %v", err)
	}
	if got := r.slaveNames(); !slices.Equal(got, []string{"eth0", "stranger"}) {
		t.Errorf("slaves %v", got)
	}
	if _, ok := r.devices.ByName("eth0"); !ok {
		t.Error("eth0 is not in the table")
	}
}

// What cannot be enslaved stays free.
func TestEnslaveDeviceErrors(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{}, 1)
	r.add("odd", linktest.NewRecorder(linktest.RecorderOptions{MTU: 100, MaxMTU: 100}))
	for name, want := range map[string]error{"odd": bonding.ErrMTU, "nobody": stack.ErrNoDevice, "eth0": stack.ErrDeviceBusy} {
		if err := r.EnslaveDevice(r.devices, name, bonding.SlaveOptions{}); !errors.Is(err, want) {
			t.Errorf("EnslaveDevice(%s) = %v, want %v", name, err, want)
		}
	}
	if dev, _ := r.devices.ByName("odd"); dev.Holder() != "" {
		t.Errorf("odd is held by %s", dev.Holder())
	}
	if err := r.devices.SetMTU(r.index["eth0"], 1400); !errors.Is(err, stack.ErrDeviceBusy) {
		t.Errorf("SetMTU of a slave = %v", err)
	}
	other := stack.NewDevices(stack.DevicesOptions{})
	defer other.Close()
	if _, err := r.devices.Move(r.index["eth0"], other, ""); !errors.Is(err, stack.ErrDeviceBusy) {
		t.Errorf("Move of a slave = %v", err)
	}
}

// The bond shows the name that it has in the table, and its events flow there:
// MTU, address, carrier and changes of its own, those of its slaves too.
func TestBondDeviceEvents(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.Attach(nil)
	dev, err := r.devices.Add(stack.NewDevice{Name: "b%d", Link: r.Bond, Unattached: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Name() != "b0" {
		t.Errorf("the bond is %s", r.Name())
	}
	r.devices.Rename(dev.Index(), "uplink")
	if eth0, _ := r.devices.ByName("eth0"); r.Status().Name != "uplink" || eth0.Holder() != "uplink" {
		t.Errorf("the bond is %s, eth0 is held by %s", r.Status().Name, eth0.Holder())
	}
	r.Attach(r.up)
	r.clock.RunImmediatelyScheduledJobs()
	w := r.devices.Watch(100)
	if err := r.devices.SetMTU(dev.Index(), 1400); err != nil {
		t.Fatal(err)
	}
	r.links["eth0"].SetState(link.State{Up: true})
	r.clock.Advance(1e9)
	r.links["eth1"].SetState(link.State{Up: true})
	r.clock.Advance(1e9)
	r.devices.Delete(dev.Index())
	got := map[string]bool{}
	for {
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got[fmt.Sprint(e.Device.Name(), " ", e.Kind)] = true
		if e.Kind == stack.DeviceDeleted {
			break
		}
	}
	for _, want := range []string{"uplink mtu", "eth0 mtu", "eth1 mtu", "eth0 state", "uplink state", "uplink bonding"} {
		if !got[want] {
			t.Errorf("no event %q among %v", want, got)
		}
	}
}

// Renaming, enslaving, releasing and deleting at once, with frames on the way.
func TestDeviceRace(t *testing.T) {
	r := newDeviceRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "p"}, 4)
	var tasks sync.WaitGroup
	for i := range 4 {
		name := fmt.Sprintf("eth%d", i)
		index := r.index[name]
		tasks.Go(func() {
			for n := range 100 {
				r.devices.Rename(index, []string{"p", name, "x%d"}[n%3])
			}
		})
		tasks.Go(func() {
			for range 50 {
				if dev, ok := r.devices.ByIndex(index); ok {
					r.Release(dev.Name())
					r.EnslaveDevice(r.devices, dev.Name(), bonding.SlaveOptions{})
				}
				r.Status()
				r.ChangeMTU(1400)
			}
			if i%2 == 0 {
				r.devices.Delete(index)
			}
		})
	}
	tasks.Wait()
	for _, s := range r.Status().Slaves {
		dev, ok := r.devices.ByName(s.Name)
		if !ok || dev.Holder() != "bond0" {
			t.Errorf("slave %s: in the table %v", s.Name, ok)
		}
	}
	held := 0
	for dev := range r.devices.Table().All() {
		if dev.Holder() != "" {
			held++
		}
	}
	if held != len(r.Status().Slaves) {
		t.Errorf("%d devices are held, the bond has %d slaves", held, len(r.Status().Slaves))
	}
}
