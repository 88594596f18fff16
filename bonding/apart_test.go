package bonding_test

import (
	"runtime"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// whileLeaving calls f while a slave is dismissed and not yet detached: a write is
// inside its endpoint.
func (r *rig) whileLeaving(name string, f func()) {
	r.tb.Helper()
	inside, leave, returned := make(chan bool), make(chan bool), make(chan error, 2)
	r.links[name].OnWrite(func(stack.PacketBufferList) { inside <- true; <-leave })
	members := len(r.Status().Slaves)
	go func() {
		_, err := r.send(members) // in balance-rr one of them is for the slave
		if err != nil {
			r.tb.Errorf("WritePackets() = %v", err)
		}
		returned <- nil
	}()
	<-inside
	go func() { returned <- r.Release(name) }()
	for len(r.Status().Slaves) == members {
		runtime.Gosched()
	}
	f()
	close(leave)
	for range 2 {
		if err := <-returned; err != nil {
			r.tb.Error(err)
		}
	}
}

// tellFrames returns a frame to the bond, and one to all.
func (r *rig) tellFrames() (one, all []byte) {
	f := linktest.Flow4(0)
	f.DstMAC = "\xff\xff\xff\xff\xff\xff"
	return r.toBond(0), f.UDP([]byte("to all"))
}

// What comes from a slave that is being released is received until it is detached,
// as before; only where another slave takes its place, what is for all is left to
// that. Nothing comes after.
func TestLeavingSlaveReceives(t *testing.T) {
	for _, c := range []struct {
		mode bonding.Mode
		want int
	}{{bonding.BalanceRR, 2}, {bonding.ActiveBackup, 1}} {
		r := newRig(t, bonding.Options{Mode: c.mode}, 2)
		one, all := r.tellFrames()
		r.whileLeaving("eth0", func() {
			r.links["eth0"].Inject(one)
			r.links["eth0"].Inject(all)
			if n := len(r.up.Drain()); n != c.want {
				t.Errorf("%s: %d frames of the leaving slave were taken, want %d", c.mode, n, c.want)
			}
			if n := r.Status().Counters.Drops["rx_not_member"]; n != 0 {
				t.Errorf("%s: %d frames dropped as of no member", c.mode, n)
			}
		})
		if r.links["eth0"].Inject(one); len(r.up.Drain()) != 0 {
			t.Errorf("%s: a frame was delivered after the release", c.mode)
		}
	}
}

// A stream waits for a slave that is being released for as long as its frames may
// come, and no longer.
func TestReorderWaitsForLeavingSlave(t *testing.T) {
	r := newReordering(t, bonding.Options{RxReorderHold: time.Second}, 2)
	r.whileLeaving("eth1", func() {
		r.wantArrive("0:2 0:4", "2")
		r.wantArrive("1:3", "3 4")
		r.wantArrive("0:6", "")
	})
	if got := r.delivered(); got != "6" {
		t.Errorf("delivered %q after the release, want 6", got)
	}
	if st := r.Status().Reorder; st.LinkGone != 1 || st.Frames != 0 {
		t.Errorf("the status is %+v", st)
	}
}

// eager is a link on which a frame comes at the moment when it is attached.
type eager struct {
	*linktest.Recorder
	frames [][]byte
}

func (e *eager) Attach(d stack.NetworkDispatcher) {
	e.Recorder.Attach(d)
	for _, f := range e.frames {
		e.Inject(f)
	}
}

// What comes from a slave before it is a member is received in the modes in which
// every slave receives, and dropped and counted in the others.
func TestJoiningSlaveReceives(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR, bonding.Broadcast, bonding.ActiveBackup, bonding.IEEE8023AD} {
		r := newRig(t, bonding.Options{Mode: mode}, 1)
		one, all := r.tellFrames()
		r.up.Drain()
		link := &eager{linktest.NewRecorder(linktest.RecorderOptions{Address: macOf("eth1")}), [][]byte{one, all}}
		if err := r.Enslave("eth1", link, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		want, dropped := 2, uint64(0)
		if mode == bonding.ActiveBackup || mode == bonding.IEEE8023AD {
			want, dropped = 0, 2
		}
		if n := len(r.up.Drain()); n != want {
			t.Errorf("%s: %d frames were taken, want %d", mode, n, want)
		}
		if n := r.slave("eth1").Counters.Drops["rx_not_member"]; n != dropped {
			t.Errorf("%s: %d frames dropped as of no member, want %d", mode, n, dropped)
		}
	}
}

// clinging is a link that goes on delivering when it is detached.
type clinging struct{ *linktest.Recorder }

func (c clinging) Attach(d stack.NetworkDispatcher) {
	if d != nil {
		c.Recorder.Attach(d)
	}
}

// Nothing that a link delivers after its release reaches the NIC.
func TestReleasedSlaveThatDelivers(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.ActiveBackup} {
		r := newRig(t, bonding.Options{Mode: mode}, 0)
		link := clinging{linktest.NewRecorder(linktest.RecorderOptions{})}
		if err := r.Enslave("eth0", link, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if link.Inject(r.toBond(0)); len(r.up.Drain()) != 1 {
			t.Errorf("%s: a frame was not delivered", mode)
		}
		r.do("-eth0")
		if !link.Inject(r.toBond(0)) || len(r.up.Drain()) != 0 {
			t.Errorf("%s: a frame of the released slave was delivered", mode)
		}
	}
}
