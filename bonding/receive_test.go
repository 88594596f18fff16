package bonding_test

import (
	"bytes"
	"fmt"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Frames whose destination is one that a host takes.
func (r *rig) host(n int) []byte { return r.toBond(n) }

func broadcastFrame(n int) []byte { return linktest.Flow4(n).ARPRequest() }

func groupFrame(n int) []byte {
	f := linktest.Flow4(n)
	f.DstMAC = "\x01\x00\x5e\x00\x00\x05"
	return f.UDP([]byte("to a group"))
}

// lldp is a link-local control frame (IEEE 802.1Q, group 01-80-C2-00-00-0E).
func lldp() []byte {
	return linktest.Ethernet("\x01\x80\xc2\x00\x00\x0e", linktest.Flow4(1).SrcMAC, 0x88cc, make([]byte, 46))
}

// A frame is delivered as the bond's own: whole, with its Ethernet header
// consumed, and marked with whom it is for.
func TestReceive(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode}, 2)
		for _, tt := range []struct {
			frame []byte
			proto tcpip.NetworkProtocolNumber
			kind  tcpip.PacketType
		}{
			{r.host(1), header.IPv4ProtocolNumber, tcpip.PacketHost},
			{broadcastFrame(2), header.ARPProtocolNumber, tcpip.PacketBroadcast},
			{groupFrame(3), header.IPv4ProtocolNumber, tcpip.PacketMulticast},
			{lldp(), 0x88cc, tcpip.PacketMulticast},
		} {
			r.links["eth0"].Inject(tt.frame)
			got := r.up.Drain()
			if len(got) != 1 || !bytes.Equal(got[0].Frame, tt.frame) || got[0].LinkHeader != 14 ||
				got[0].Protocol != tt.proto || got[0].PktType != tt.kind {
				t.Errorf("%s: %x was delivered as %+v", m.mode, tt.frame, got)
			}
		}
		c := r.slave("eth0").Counters
		if c.RxPackets != 4 || c.RxMulticast != 2 || c.RxDropped != 0 {
			t.Errorf("%s: counters are %+v", m.mode, c)
		}
	}
}

// In the modes that spread all slaves receive; in active-backup the active one
// alone does, and goes on to when others flap (T118, T125, T136).
func TestReceiveByMode(t *testing.T) {
	for _, tt := range []struct {
		mode bonding.Mode
		want int
	}{
		{bonding.BalanceRR, 64}, {bonding.BalanceXOR, 64}, {bonding.Broadcast, 64}, {bonding.ActiveBackup, 15},
	} {
		r := newRig(t, bonding.Options{Mode: tt.mode}, 3)
		n := 0
		for i, frames := range []int{15, 13, 36} {
			name := fmt.Sprintf("eth%d", i)
			for range frames {
				n++
				r.links[name].Inject(r.host(n))
			}
			if got := r.slave(name).Counters.RxPackets; got != uint64(frames) {
				t.Errorf("%s: %s counts %d frames, want %d", tt.mode, name, got, frames)
			}
		}
		if got := len(r.up.Drain()); got != tt.want {
			t.Errorf("%s: %d frames of 64 were delivered, want %d", tt.mode, got, tt.want)
		}
		if c := r.Status().Counters; c.RxPackets != 64 || c.Drops["rx_inactive"] != uint64(64-tt.want) {
			t.Errorf("%s: counters are %+v", tt.mode, c)
		}
	}
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 3)
	r.do("eth0 down")
	r.links["eth0"].Inject(r.host(1))
	r.links["eth1"].Inject(r.host(2))
	if got := r.up.Drain(); len(got) != 1 || !bytes.Equal(got[0].Frame, r.host(2)) {
		t.Errorf("after failover %v was delivered", got)
	}
}

// What a backup hears is dropped with a counter of its own, which is no error
// (A44). all_slaves_active lets it through, at once, and off again.
func TestReceiveOnBackup(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	hear := func(when string, want int) {
		t.Helper()
		frame := broadcastFrame(1)
		r.links["eth0"].Inject(frame)
		r.links["eth1"].Inject(frame)
		if got := len(r.up.Drain()); got != want {
			t.Errorf("%s: delivered %d times, want %d", when, got, want)
		}
	}
	hear("at first", 1)
	if c := r.Status().Counters; c.Drops["rx_inactive"] != 1 || c.RxDropped != 0 || c.RxPackets != 2 {
		t.Errorf("counters are %+v, want rx_inactive 1 and nothing dropped in error", c)
	}
	r.set("all_slaves_active", "1")
	hear("all_slaves_active", 2)
	r.do("active_slave=eth1") // the role moves, both hear
	hear("all_slaves_active and another active slave", 2)
	r.set("all_slaves_active", "off")
	hear("all_slaves_active off", 1)
	r.do("eth0 down")
	r.do("eth0 up")
	r.do("active_slave=eth0")
	hear("active again", 1)
	r.do("+eth2")
	r.links["eth2"].Inject(broadcastFrame(1))
	if got := len(r.up.Drain()); got != 0 {
		t.Error("a new backup is heard")
	}
}

// A listener on a slave gets what the bond does not take because the slave is a
// backup, link-local control frames among them, and nothing else.
func TestListener(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
	var heard linktest.Sink
	r.enslave("eth1", bonding.SlaveOptions{Listener: &heard}, linktest.RecorderOptions{})
	frames := [][]byte{lldp(), broadcastFrame(1), r.host(2)}
	for _, f := range frames {
		r.links["eth1"].Inject(f)
	}
	got := heard.Drain()
	if len(got) != len(frames) {
		t.Fatalf("the listener heard %d frames, want %d", len(got), len(frames))
	}
	for i, f := range frames {
		if !bytes.Equal(got[i].Frame, f) || got[i].LinkHeader != 14 {
			t.Errorf("the listener heard %+v, want %x", got[i], f)
		}
	}
	if n := r.drops("rx_inactive"); n != 0 {
		t.Errorf("rx_inactive is %d though each frame was heard", n)
	}
	r.do("active_slave=eth1")
	r.links["eth1"].Inject(lldp())
	if n := len(heard.Drain()); n != 0 || len(r.up.Drain()) != 1 {
		t.Error("a frame of the active slave went to the listener")
	}
	r.links["eth1"].Inject(linktest.Flow4(1).UDP(nil)) // for another host
	if n := len(heard.Drain()); n != 0 || r.drops("rx_other_host") != 1 {
		t.Error("a frame for another host went to the listener of the active slave")
	}
}

// Our own frame that comes back is dropped, on every slave, in every mode (A28).
func TestOwnFrameComesBack(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode, AllSlavesActive: true}, 2)
		f := linktest.Flow4(1)
		f.SrcMAC = r.LinkAddress()
		for _, name := range []string{"eth0", "eth1"} {
			r.links[name].Inject(f.ARPRequest())
			f.DstMAC = r.LinkAddress()
			r.links[name].Inject(f.UDP(nil))
		}
		if got := len(r.up.Drain()); got != 0 || r.drops("rx_own") != 4 {
			t.Errorf("%s: %d were delivered, rx_own is %d, want 0, 4", m.mode, got, r.drops("rx_own"))
		}
		if err := r.ChangeLinkAddress("\x02\x00\x00\x00\x00\x77"); err != nil {
			t.Fatal(err)
		}
		r.links["eth0"].Inject(f.ARPRequest()) // the old address is anybody's now
		if got := len(r.up.Drain()); got != 1 {
			t.Errorf("%s: a frame from the old address was not delivered", m.mode)
		}
	}
}

// Unicast frames for others are dropped and counted; promiscuity lets them
// through, marked, and is passed on to the slaves that filter: all of them, in
// active-backup the active one (T119).
func TestOtherHost(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode}, 2)
		foreign := linktest.Flow4(1).UDP([]byte("for somebody else"))
		r.links["eth0"].Inject(foreign)
		if got := len(r.up.Drain()); got != 0 || r.drops("rx_other_host") != 1 || r.Status().Counters.RxDropped != 0 {
			t.Errorf("%s: %d were delivered, rx_other_host is %d", m.mode, got, r.drops("rx_other_host"))
		}
		if err := r.SetPromiscuous(true); err != nil {
			t.Fatal(err)
		}
		r.links["eth0"].Inject(foreign)
		r.links["eth0"].Inject(r.host(1))
		got := r.up.Drain()
		if len(got) != 2 || got[0].PktType != tcpip.PacketOtherHost || got[1].PktType != tcpip.PacketHost {
			t.Errorf("%s: promiscuous, %+v was delivered", m.mode, got)
		}
		want := "[true] [true]"
		if m.mode == bonding.ActiveBackup || adaptive(m.mode) {
			want = "[true] []"
		}
		if got := r.promiscuity("eth0", "eth1"); got != want {
			t.Errorf("%s: slaves were told %s, want %s", m.mode, got, want)
		}
		if err := r.SetPromiscuous(false); err != nil {
			t.Fatal(err)
		}
		r.links["eth0"].Inject(foreign)
		if got := len(r.up.Drain()); got != 0 {
			t.Errorf("%s: delivered after promiscuity ended", m.mode)
		}
	}
}

// promiscuity is what slaves were told of it, in order.
func (r *rig) promiscuity(names ...string) string {
	out := ""
	for i, name := range names {
		if i > 0 {
			out += " "
		}
		out += fmt.Sprint(r.links[name].Calls().Promiscuous)
	}
	return out
}

// Promiscuity moves with the active slave, also over a time without one, and
// ends with membership.
func TestPromiscuityMoves(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	if err := r.SetPromiscuous(true); err != nil {
		t.Fatal(err)
	}
	r.do("eth0 down")
	if got := r.promiscuity("eth0", "eth1"); got != "[true false] [true]" {
		t.Errorf("after failover slaves were told %s", got)
	}
	r.do("eth1 down")
	r.do("eth0 up")
	if got := r.promiscuity("eth0", "eth1"); got != "[true false true] [true false]" {
		t.Errorf("after a time without an active slave they were told %s", got)
	}
	eth0 := r.links["eth0"]
	r.do("-eth0")
	if got := eth0.Calls().Promiscuous; got[len(got)-1] {
		t.Errorf("the released slave was told %v", got)
	}
	rr := newRig(t, bonding.Options{}, 1)
	if err := rr.SetPromiscuous(true); err != nil {
		t.Fatal(err)
	}
	rr.do("+eth1") // who joins later inherits (T89)
	if got := rr.promiscuity("eth1"); got != "[true]" {
		t.Errorf("a slave that joined was told %s", got)
	}
}

// Without a NIC frames are dropped and counted; after release none comes.
func TestReceiveWithoutNIC(t *testing.T) {
	r := newDownRig(t, bonding.Options{}, 2)
	r.links["eth0"].Inject(r.host(1))
	if r.drops("rx_no_nic") != 1 || r.Status().Counters.RxDropped != 1 {
		t.Errorf("rx_no_nic is %d", r.drops("rx_no_nic"))
	}
	r.attach()
	r.links["eth0"].Inject(r.host(1))
	r.Attach(nil)
	r.links["eth0"].Inject(r.host(1))
	if got := len(r.up.Drain()); got != 1 || r.drops("rx_no_nic") != 2 {
		t.Errorf("%d were delivered, rx_no_nic is %d, want 1, 2", got, r.drops("rx_no_nic"))
	}
	eth0 := r.links["eth0"]
	r.do("-eth0")
	if eth0.IsAttached() || eth0.Inject(r.host(1)) {
		t.Error("a released slave still delivers")
	}
}

// Counters of what was received add up: each frame was delivered, or heard by a
// listener, or dropped for one reason.
func TestReceivedFramesAreConserved(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	frames := [][]byte{r.host(1), broadcastFrame(2), groupFrame(3), lldp(), linktest.Flow4(5).UDP(nil), {}, {1, 2, 3}, make([]byte, 14)}
	damaged := r.host(6)
	damaged[len(damaged)-1] ^= 1
	frames = append(frames, damaged)
	offered := 0
	for range 10 {
		for _, f := range frames {
			for _, name := range []string{"eth0", "eth1"} {
				r.links[name].Inject(f)
				offered++
			}
		}
	}
	c := r.Status().Counters
	sum := uint64(len(r.up.Drain()))
	for _, n := range c.Drops {
		sum += n
	}
	if sum != uint64(offered) || c.RxPackets+c.Drops["rx_short"] != uint64(offered) {
		t.Errorf("%d frames came, %d are accounted for: %+v", offered, sum, c)
	}
}
