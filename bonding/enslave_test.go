package bonding_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// stubborn is a link that keeps its address.
type stubborn struct{ *linktest.Recorder }

func (stubborn) SetLinkAddress(tcpip.LinkAddress) {}

// tunnel is a link that does not carry Ethernet.
type tunnel struct{ *linktest.Recorder }

func (tunnel) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// endpointState is all of an endpoint that enslaving may change.
func endpointState(ep stack.LinkEndpoint) string {
	if ep == nil {
		return "nil"
	}
	subscribers := 0
	if r, ok := ep.(interface{ Subscribers() int }); ok {
		subscribers = r.Subscribers()
	}
	return fmt.Sprintf("MTU %d, address %s, attached %t, %d subscribers", ep.MTU(), ep.LinkAddress(), ep.IsAttached(), subscribers)
}

// An endpoint that cannot be a slave is refused with an error that names it and
// the reason, and both it and the bond stay as they were.
func TestEnslaveRefused(t *testing.T) {
	recorder := func(ro linktest.RecorderOptions) *linktest.Recorder { return linktest.NewRecorder(ro) }
	attached := func() *linktest.Recorder {
		r := recorder(linktest.RecorderOptions{})
		r.Attach(&linktest.Sink{})
		return r
	}
	bond := func(slaves ...stack.LinkEndpoint) *bonding.Bond {
		b, err := bonding.New(bonding.Options{Name: "inner"})
		if err != nil {
			t.Fatal(err)
		}
		for i, ep := range slaves {
			if err := b.Enslave(fmt.Sprintf("sub%d", i), ep, bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(b.Close)
		return b
	}
	mac := bonding.Options{LinkAddress: "\x02\x00\x00\x00\x00\x42"}
	for _, tt := range []struct {
		about  string
		o      bonding.Options
		slaves int
		name   string
		ep     func(r *rig) stack.LinkEndpoint
		so     bonding.SlaveOptions
		kind   error
		reason string
	}{
		{about: "nil", name: "eth5", kind: bonding.ErrInvalid, reason: "nil"},
		{about: "no name", name: "", kind: bonding.ErrInvalid, reason: "1 to 15"},
		{about: "long name", name: "sixteen--letters", kind: bonding.ErrInvalid, reason: "16 bytes"},
		{about: "slash in name", name: "a/b", kind: bonding.ErrInvalid, reason: "slash"},
		{about: "space in name", name: "a b", kind: bonding.ErrInvalid, reason: "white space"},
		{about: "colon in name", name: "a:b", kind: bonding.ErrInvalid, reason: "colon"},
		{about: "dots as name", name: "..", kind: bonding.ErrInvalid, reason: "folder"},
		{about: "queue_id", name: "eth5", so: bonding.SlaveOptions{QueueID: 17}, kind: bonding.ErrInvalid, reason: "0 to 16"},
		{about: "name taken", slaves: 2, name: "eth1", kind: bonding.ErrSlaveExists, reason: "bond0"},
		{about: "twice", slaves: 2, name: "eth5", ep: func(r *rig) stack.LinkEndpoint { return r.links["eth0"] },
			kind: bonding.ErrBusy, reason: "slave eth0"},
		{about: "itself", name: "eth5", ep: func(r *rig) stack.LinkEndpoint { return r.Bond }, kind: bonding.ErrLoop, reason: "itself"},
		{about: "a bond that holds it", name: "eth5", ep: func(r *rig) stack.LinkEndpoint { return bond(r.Bond) },
			kind: bonding.ErrLoop, reason: "inner"},
		{about: "a bond that holds one that holds it", name: "eth5", ep: func(r *rig) stack.LinkEndpoint { return bond(bond(r.Bond)) },
			kind: bonding.ErrLoop, reason: "inner"},
		{about: "attached to a NIC", name: "eth5", ep: func(*rig) stack.LinkEndpoint { return attached() }, kind: bonding.ErrBusy, reason: "NIC"},
		{about: "slave of another bond", name: "eth5", ep: func(*rig) stack.LinkEndpoint {
			r := recorder(linktest.RecorderOptions{})
			bond(r)
			return r
		}, kind: bonding.ErrBusy, reason: "another bond"},
		{about: "not Ethernet", name: "eth5", ep: func(*rig) stack.LinkEndpoint { return tunnel{recorder(linktest.RecorderOptions{})} },
			kind: bonding.ErrLinkType, reason: "Ethernet"},
		{about: "not Ethernet, beside others", slaves: 1, name: "eth5",
			ep:   func(*rig) stack.LinkEndpoint { return tunnel{recorder(linktest.RecorderOptions{})} },
			kind: bonding.ErrLinkType, reason: "Ethernet"},
		{about: "MTU too small", o: bonding.Options{MTU: 9000}, name: "eth5",
			ep:   func(*rig) stack.LinkEndpoint { return recorder(linktest.RecorderOptions{MaxMTU: 1500}) },
			kind: bonding.ErrMTU, reason: "it has 1500 bytes and cannot take the bond's 9000 (it takes 68 to 1500)"},
		{about: "MTU too small for the first slave's", slaves: 1, name: "eth5",
			ep:   func(*rig) stack.LinkEndpoint { return recorder(linktest.RecorderOptions{MTU: 1280, MaxMTU: 1280}) },
			kind: bonding.ErrMTU, reason: "1280"},
		{about: "keeps its address", slaves: 1, name: "eth5",
			ep:   func(*rig) stack.LinkEndpoint { return stubborn{recorder(linktest.RecorderOptions{MTU: 2000})} },
			kind: bonding.ErrAddress, reason: "keeps 02:00:5e:00:53:01"},
		{about: "keeps its address, as the first", o: mac, name: "eth5",
			ep:   func(*rig) stack.LinkEndpoint { return stubborn{recorder(linktest.RecorderOptions{MTU: 9000})} },
			kind: bonding.ErrAddress, reason: "02:00:00:00:00:42"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			r := newDownRig(t, tt.o, tt.slaves) // without a NIC it can be a slave itself
			var ep stack.LinkEndpoint
			switch {
			case tt.ep != nil:
				ep = tt.ep(r)
			case tt.about != "nil":
				ep = recorder(linktest.RecorderOptions{MTU: 2000})
			}
			before, epBefore := r.Status(), endpointState(ep)
			r.told()
			err := r.Enslave(tt.name, ep, tt.so)
			var se *bonding.SlaveError
			if !errors.Is(err, tt.kind) || !errors.As(err, &se) || se.Slave != tt.name || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("Enslave() = %v, want %v with %q", err, tt.kind, tt.reason)
			}
			if after := r.Status(); text(before) != text(after) {
				t.Errorf("the bond is\n %s, was\n %s", text(after), text(before))
			}
			if after := endpointState(ep); after != epBefore {
				t.Errorf("the endpoint has %s, had %s", after, epBefore)
			}
			if told := r.told(); len(told) > 0 {
				t.Errorf("told %q", told)
			}
		})
	}
}

// A closed bond takes no slaves.
func TestEnslaveAfterClose(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	r.Close()
	rec := linktest.NewRecorder(linktest.RecorderOptions{})
	if err := r.Enslave("eth5", rec, bonding.SlaveOptions{}); !errors.Is(err, bonding.ErrClosed) || rec.IsAttached() {
		t.Errorf("Enslave() = %v, attached %t", err, rec.IsAttached())
	}
}

// Release of what is not there says what is.
func TestReleaseRefused(t *testing.T) {
	r := newRig(t, bonding.Options{}, 2)
	err := r.Release("eth7")
	if !errors.Is(err, bonding.ErrNoSlave) || err.Error() != `release "eth7": no such slave: the slaves are eth0, eth1` {
		t.Errorf("Release() = %v", err)
	}
}

// An endpoint that was refused, or released, may be enslaved where it fits.
func TestEnslaveAgain(t *testing.T) {
	a, b := newRig(t, bonding.Options{}, 1), newRig(t, bonding.Options{}, 0)
	ep := a.links["eth0"]
	if err := b.Enslave("eth0", ep, bonding.SlaveOptions{}); !errors.Is(err, bonding.ErrBusy) {
		t.Fatalf("Enslave() = %v", err)
	}
	a.do("-eth0")
	for range 3 {
		if err := b.Enslave("eth9", ep, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		b.links["eth9"] = ep
		if by := b.carries(); by != "eth9" {
			t.Errorf("frames go by %q", by)
		}
		b.do("-eth9")
	}
	if calls := ep.Calls(); calls.Attach != 4 || calls.Detach != 4 || calls.Close != 0 || ep.Subscribers() != 0 {
		t.Errorf("the endpoint has seen %+v, %d subscribers", calls, ep.Subscribers())
	}
}

// meddling is a link in whose attachment something happens to the bond.
type meddling struct {
	*linktest.Recorder
	during func()
}

func (m meddling) Attach(d stack.NetworkDispatcher) {
	m.Recorder.Attach(d)
	if d != nil {
		m.during()
	}
}

// A slave that joins while the bond's MTU and address are changed has the
// latest.
func TestBondChangesWhileEnslaving(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	mac := tcpip.LinkAddress("\x02\x00\x00\x00\x00\x33")
	link := meddling{linktest.NewRecorder(linktest.RecorderOptions{}), func() { r.SetMTU(1300); r.SetLinkAddress(mac) }}
	if err := r.Enslave("late", link, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if link.MTU() != 1300 || link.LinkAddress() != mac || r.MTU() != 1300 {
		t.Errorf("the slave has MTU %d and %s, want 1300 and %s", link.MTU(), link.LinkAddress(), mac)
	}
	// The first slave's MTU and address are the bond's, unless it was given some
	// meanwhile.
	r = newRig(t, bonding.Options{}, 0)
	link.during = func() { r.SetMTU(1400); r.SetLinkAddress(mac) }
	link.Recorder = linktest.NewRecorder(linktest.RecorderOptions{MTU: 9000})
	if err := r.Enslave("first", link, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if r.MTU() != 1400 || link.MTU() != 1400 || r.LinkAddress() != mac || link.LinkAddress() != mac {
		t.Errorf("bond and slave have MTU %d, %d and %s, %s, want 1400 and %s", r.MTU(), link.MTU(), r.LinkAddress(), link.LinkAddress(), mac)
	}
}

// A link may be lost in the very moment in which it joins.
func TestLinkLostWhileEnslaved(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
	link := meddling{Recorder: linktest.NewRecorder(linktest.RecorderOptions{})}
	link.during = func() { link.SetCarrier(false) }
	if err := r.Enslave("eth0", link, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wantMII("enslaved", "down")
	r.wantActive("enslaved", "")
}

// Of two bonds that enslave one endpoint at a time, one gets it; of two that
// enslave each other, one gets the other.
func TestEnslaveConcurrently(t *testing.T) {
	race := func(f, g func() error) (won int) {
		t.Helper()
		errs := make(chan error, 2)
		for _, h := range []func() error{f, g} {
			go func() { errs <- h() }()
		}
		for range 2 {
			if err := <-errs; err == nil {
				won++
			}
		}
		return won
	}
	for range 200 {
		a, b := newRig(t, bonding.Options{Name: "a"}, 0), newRig(t, bonding.Options{Name: "b"}, 0)
		ep := linktest.NewRecorder(linktest.RecorderOptions{})
		if won := race(func() error { return a.Enslave("eth0", ep, bonding.SlaveOptions{}) },
			func() error { return b.Enslave("eth0", ep, bonding.SlaveOptions{}) }); won != 1 {
			t.Fatalf("%d of two bonds enslaved one endpoint", won)
		}
		a, b = newDownRig(t, bonding.Options{Name: "a"}, 0), newDownRig(t, bonding.Options{Name: "b"}, 0)
		if won := race(func() error { return a.Enslave("b", b.Bond, bonding.SlaveOptions{}) },
			func() error { return b.Enslave("a", a.Bond, bonding.SlaveOptions{}) }); won != 1 {
			t.Fatalf("%d of two bonds enslaved each other", won)
		}
	}
}
