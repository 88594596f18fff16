package bonding_test

import (
	"fmt"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// goneErrors are the errors that say that a link cannot send at all.
var goneErrors = []tcpip.Error{
	&tcpip.ErrInvalidEndpointState{}, &tcpip.ErrClosedForSend{}, &tcpip.ErrAborted{},
	&tcpip.ErrNotConnected{}, &tcpip.ErrConnectionAborted{}, &tcpip.ErrUnknownDevice{},
}

// A write that finds the active slave's link gone goes out by another slave in
// the same call, and begins the failover without waiting for a pass or for
// downdelay.
func TestGoneLinkFailsOverAtOnce(t *testing.T) {
	for _, gone := range goneErrors {
		t.Run(gone.String(), func(t *testing.T) {
			r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, DownDelay: 300 * time.Millisecond}, 3)
			r.ms(50)
			r.told()
			r.links["eth0"].Fail(gone)
			if n, err := r.send(5); n != 5 || err != nil {
				t.Errorf("WritePackets() = %d, %v, want all 5", n, err)
			}
			if got := fmt.Sprint(r.sent("eth0", "eth1", "eth2")); got != "[0 5 0]" {
				t.Errorf("slaves were given %s", got)
			}
			r.clock.RunImmediatelyScheduledJobs()
			r.wantMII("after the write", "down,up,up")
			r.wantActive("after the write", "eth1")
			r.wantFailures("eth0", 1)
			want := "[slave eth0: link down, was up active slave eth1, was eth0]"
			if told := fmt.Sprint(r.told()); told != want {
				t.Errorf("told\n %s, want\n %s", told, want)
			}
			if c := r.Status().Counters; c.TxPackets != 5 || c.TxDropped != 0 {
				t.Errorf("counters are %+v", c)
			}
			before := r.links["eth0"].Calls().Write
			r.send(1)
			if now := r.links["eth0"].Calls().Write; now != before {
				t.Errorf("the slave that is down was written to %d times", now-before)
			}
		})
	}
}

// The slave comes back when a pass finds that its link says so, with updelay.
func TestGoneLinkComesBack(t *testing.T) {
	for _, updelay := range []int{0, 300} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, UpDelay: time.Duration(updelay) * time.Millisecond}, 2)
		r.ms(1050)
		r.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
		r.send(1)
		r.clock.RunImmediatelyScheduledJobs()
		r.links["eth0"].Fail(nil)
		r.wantMII("gone", "down,up")
		// The next pass but one is the first that is a whole period later.
		if took, want := r.until(func() bool { return r.mii() == "up,up" }), 150+updelay; took != want {
			t.Errorf("updelay %d: eth0 was back after %d ms, want %d", updelay, took, want)
		}
		r.wantActive("back", "eth1")
	}
}

// It comes back at once when the link itself tells of a change.
func TestGoneLinkTellsThatItIsBack(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
	r.send(1)
	r.clock.RunImmediatelyScheduledJobs()
	r.carrier("eth0", false)
	r.wantMII("down", "down,up")
	r.links["eth0"].Fail(nil)
	r.carrier("eth0", true)
	r.wantMII("told", "up,up")
	r.wantFailures("eth0", 1)
}

// The link goes in the middle of a list: what it took it keeps, the rest goes
// by another slave, in order, each frame once.
func TestGoneInTheMiddleOfAList(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.links["eth0"].Script(linktest.WriteStep{Take: 3, Err: &tcpip.ErrInvalidEndpointState{}})
	if n, err := r.send(8); n != 8 || err != nil {
		t.Errorf("WritePackets() = %d, %v, want 8", n, err)
	}
	var order []int
	for _, name := range []string{"eth0", "eth1"} {
		for _, w := range r.links[name].Written() {
			order = append(order, int(w.Frame[len(w.Frame)-1]))
		}
	}
	if fmt.Sprint(order) != "[0 1 2 3 4 5 6 7]" {
		t.Errorf("frames went out as %v", order)
	}
	if c := r.Status(); c.Slaves[0].Counters.TxPackets != 3 || c.Slaves[1].Counters.TxPackets != 5 || c.Counters.TxDropped != 0 {
		t.Errorf("counters are %s", text(c))
	}
}

// Every link is gone: the frames are dropped and counted, without an error, and
// each slave is tried once a call. Once this is committed there is no slave at
// all.
func TestAllGone(t *testing.T) {
	for _, m := range recoveryModes {
		t.Run(m.mode.String(), func(t *testing.T) {
			r := newRig(t, bonding.Options{Mode: m.mode}, 3)
			names := []string{"eth0", "eth1", "eth2"}
			for _, name := range names {
				r.links[name].Fail(&tcpip.ErrInvalidEndpointState{})
			}
			if n, err := r.send(4); n != 0 || err != nil {
				t.Errorf("WritePackets() = %d, %v, want 0, nil", n, err)
			}
			want := uint64(4)
			if m.mode == bonding.Broadcast {
				want = 12 // each slave has its own copies
			}
			if got := r.drops("tx_link_gone"); got != want {
				t.Errorf("tx_link_gone is %d, want %d", got, want)
			}
			r.clock.RunImmediatelyScheduledJobs()
			r.wantMII("committed", "down,down,down")
			calls := map[string]int{}
			for _, name := range names {
				calls[name] = r.links[name].Calls().Write
				if calls[name] > 4 {
					t.Errorf("slave %s was written to %d times for a list of 4", name, calls[name])
				}
			}
			if n, err := r.send(4); n != 0 || err != nil || r.drops("tx_no_slave") != 4 {
				t.Errorf("WritePackets() = %d, %v, tx_no_slave is %d, want 0, nil, 4", n, err, r.drops("tx_no_slave"))
			}
			for _, name := range names {
				if now := r.links[name].Calls().Write; now != calls[name] {
					t.Errorf("slave %s is down and was written to", name)
				}
				r.links[name].Fail(nil)
			}
			r.ms(200)
			r.wantMII("back", "up,up,up")
			if n, err := r.send(4); n != 4 || err != nil {
				t.Errorf("once back, WritePackets() = %d, %v", n, err)
			}
		})
	}
}

// In the modes that spread, only the share of the slave that is gone moves.
func TestGoneLinkWhileSpreading(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR} {
		for _, list := range []int{1, 30} {
			r := newRig(t, bonding.Options{Mode: mode, XmitHashPolicy: xmithash.Layer34}, 3)
			r.links["eth1"].Fail(&tcpip.ErrInvalidEndpointState{})
			for range 30 / list {
				if n, err := r.send(list); n != list || err != nil {
					t.Errorf("%s: WritePackets() = %d, %v, want %d", mode, n, err, list)
				}
			}
			counts := r.sent("eth0", "eth1", "eth2")
			if counts[1] != 0 || counts[0]+counts[2] != 30 || r.Status().Counters.TxDropped != 0 {
				t.Errorf("%s: slaves were given %v, dropped %d", mode, counts, r.Status().Counters.TxDropped)
			}
			r.clock.RunImmediatelyScheduledJobs()
			r.wantMII(mode.String(), "up,down,up")
			r.wantFailures("eth1", 1)
		}
	}
}

// A link that says that it is up and cannot send flaps, but no frame is lost.
func TestGoneLinkThatSaysItIsUp(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0"}, 2)
	r.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
	for range 2000 {
		if n, err := r.send(1); n != 1 || err != nil {
			t.Fatalf("WritePackets() = %d, %v", n, err)
		}
		r.ms(1)
	}
	if got := len(r.links["eth1"].Drain()); got != 2000 || r.Status().Counters.TxDropped != 0 {
		t.Errorf("eth1 was given %d of 2000 frames, dropped %d", got, r.Status().Counters.TxDropped)
	}
	if n := r.slave("eth0").LinkFailureCount; n < 5 || n > 20 {
		t.Errorf("failure count is %d after 20 passes, want one for every other or so", n)
	}
}

// Other errors are not the link's end: no failover.
func TestOtherErrorsAreNoFailover(t *testing.T) {
	for _, tt := range []struct {
		err    tcpip.Error
		reason string
	}{
		{&tcpip.ErrNoBufferSpace{}, "tx_no_buffer"},
		{&tcpip.ErrWouldBlock{}, "tx_no_buffer"},
		{&tcpip.ErrMalformedHeader{}, "tx_error"},
		{&tcpip.ErrMessageTooLong{}, "tx_error"},
	} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
		r.links["eth0"].Fail(tt.err)
		if n, err := r.send(3); n != 0 || err != tt.err {
			t.Errorf("WritePackets() = %d, %v, want 0, %v", n, err, tt.err)
		}
		r.clock.RunImmediatelyScheduledJobs()
		r.wantMII(tt.err.String(), "up,up")
		if got := fmt.Sprint(r.sent("eth0", "eth1")); got != "[0 0]" || r.drops(tt.reason) != 3 {
			t.Errorf("%s: slaves were given %s, %s is %d", tt.err, got, tt.reason, r.drops(tt.reason))
		}
	}
}

// A slave that was found gone when the monitor stopped is not gone for ever:
// enabling it by hand has it used again.
func TestGoneLinkWithoutMonitor(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	r.links["eth0"].Fail(&tcpip.ErrInvalidEndpointState{})
	r.send(1)
	r.clock.RunImmediatelyScheduledJobs()
	r.links["eth0"].Fail(nil)
	r.set("miimon", "0")
	r.enable("eth0", false)
	r.enable("eth0", true)
	r.wantMII("enabled", "up")
	if by := r.carries(); by != "eth0" {
		t.Errorf("frames go by %q", by)
	}
}
