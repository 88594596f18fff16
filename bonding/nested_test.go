package bonding_test

import (
	"fmt"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link"
	"bondstack/link/linktest"
)

// nest makes rigs of which each is the only slave but for eth9 of the one
// before: the last has eth0 and eth1.
func nest(t *testing.T, modes ...bonding.Mode) []*rig {
	rigs := make([]*rig, len(modes))
	for i := len(modes) - 1; i >= 0; i-- {
		rigs[i] = newDownRig(t, bonding.Options{Name: fmt.Sprint("bond", i), Mode: modes[i], XmitHashPolicy: xmithash.Layer34}, 0)
		if i == len(modes)-1 {
			rigs[i].do("+eth0")
			rigs[i].do("+eth1")
			continue
		}
		inner := rigs[i+1]
		if err := rigs[i].Enslave(inner.Name(), inner.Bond, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := len(modes) - 1; i > 0; i-- {
		rigs[i].clock.RunImmediatelyScheduledJobs()
	}
	rigs[0].attach()
	return rigs
}

// A bond in a bond in a bond: frames pass both ways, each level in its mode, and
// nothing is left when it ends (T79).
func TestNestedBonds(t *testing.T) {
	for _, modes := range [][]bonding.Mode{
		{bonding.ActiveBackup, bonding.BalanceXOR, bonding.ActiveBackup},
		{bonding.BalanceRR, bonding.ActiveBackup, bonding.BalanceXOR},
		{bonding.Broadcast, bonding.BalanceXOR, bonding.Broadcast},
		{bonding.BalanceXOR, bonding.BalanceRR, bonding.BalanceRR},
	} {
		rigs := nest(t, modes...)
		outer, inner := rigs[0], rigs[2]
		if n, err := outer.send(20); n != 20 || err != nil {
			t.Errorf("%v: WritePackets() = %d, %v", modes, n, err)
		}
		got, want := inner.sent("eth0", "eth1"), 20
		if modes[2] == bonding.Broadcast {
			want = 40
		}
		if got[0]+got[1] != want {
			t.Errorf("%v: links were given %v", modes, got)
		}
		inner.links["eth0"].Inject(outer.toBond(1))
		if got := outer.up.Drain(); len(got) != 1 || string(got[0].Frame) != string(outer.toBond(1)) {
			t.Errorf("%v: %v was delivered", modes, got)
		}
		mac := macOf("eth0")
		for i, r := range rigs {
			if r.LinkAddress() != mac || r.MTU() != 1500 {
				t.Errorf("%v: bond %d has %s, MTU %d", modes, i, r.LinkAddress(), r.MTU())
			}
		}
		outer.SetMTU(1400)
		outer.SetLinkAddress("\x02\x00\x00\x00\x00\x55")
		for name, l := range inner.links {
			if l.MTU() != 1400 || l.LinkAddress() != "\x02\x00\x00\x00\x00\x55" {
				t.Errorf("%v: %s has %s, MTU %d", modes, name, l.LinkAddress(), l.MTU())
			}
		}
		if err := outer.Release("bond1"); err != nil {
			t.Fatal(err)
		}
		if rigs[1].LinkAddress() != mac || rigs[1].MTU() != 1500 || rigs[1].IsAttached() || inner.links["eth1"].LinkAddress() != mac {
			t.Errorf("%v: the released bond has %s, MTU %d", modes, rigs[1].LinkAddress(), rigs[1].MTU())
		}
		if err := outer.Enslave("bond1", rigs[1].Bond, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		outer.Close() // closes all below
		for name, l := range inner.links {
			if c := l.Calls(); c.Attach != 1 || c.Detach != 1 || c.Close != 1 {
				t.Errorf("%v: %s has seen %+v", modes, name, c)
			}
		}
	}
}

// A failover inside is not seen outside; when the last link goes, the outer bond
// fails over at once.
func TestNestedFailover(t *testing.T) {
	rigs := nest(t, bonding.ActiveBackup, bonding.ActiveBackup)
	outer, inner := rigs[0], rigs[1]
	outer.do("+eth9")
	outer.links["eth9"].SetState(link.State{Up: true, Carrier: true, Speed: 1000, Duplex: link.DuplexFull})
	outer.told()
	inner.do("eth0 down")
	if told := outer.told(); len(told) != 0 {
		t.Errorf("a failover inside told %q outside", told)
	}
	outer.send(1)
	if got := fmt.Sprint(inner.sent("eth0", "eth1")); got != "[0 1]" {
		t.Errorf("links were given %s", got)
	}
	inner.do("eth1 down")
	outer.wantActive("both links of the inner bond lost", "eth9")
	inner.do("eth1 up")
	outer.wantMII("one link is back", "up,up")
	outer.wantActive("one link is back", "eth9")
	outer.set("primary", "bond1")
	outer.wantActive("primary", "bond1")
}

// The outer bond knows the inner one's speed: the sum over the slaves that
// send, the least in broadcast.
func TestSpeedOfABond(t *testing.T) {
	for _, tt := range []struct {
		mode bonding.Mode
		want uint32
	}{{bonding.BalanceRR, 11000}, {bonding.BalanceXOR, 11000}, {bonding.Broadcast, 1000}, {bonding.ActiveBackup, 1000}} {
		r := newRig(t, bonding.Options{Mode: tt.mode}, 3)
		r.links["eth0"].SetState(link.State{Up: true, Carrier: true, Speed: 1000, Duplex: link.DuplexHalf})
		r.do("eth2 down")
		if s := r.LinkState(); s.Speed != tt.want || s.Duplex != link.DuplexHalf || !s.Usable() {
			t.Errorf("%s: state is %+v, want speed %d", tt.mode, s, tt.want)
		}
		r.do("eth0 down")
		r.do("eth1 down")
		if s := r.LinkState(); s.Speed != link.SpeedUnknown || s.Duplex != link.DuplexUnknown || s.Carrier {
			t.Errorf("%s: without links the state is %+v", tt.mode, s)
		}
	}
}

// A link of unknown speed adds nothing to the sum.
func TestUnknownSpeedOfASlave(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	if err := r.Enslave("plain", linktest.Plain(linktest.NewNull(linktest.NullOptions{})), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := r.LinkState(); s.Speed != 10000 || s.Duplex != link.DuplexFull {
		t.Errorf("state is %+v", s)
	}
}

// Bonds nest as deep as Linux stacks devices, and no deeper.
func TestNestingDepth(t *testing.T) {
	inner := newDownRig(t, bonding.Options{Name: "inner"}, 1)
	for depth := 1; ; depth++ {
		outer := newDownRig(t, bonding.Options{Name: "outer"}, 0)
		err := outer.Enslave("inner", inner.Bond, bonding.SlaveOptions{})
		if err != nil {
			if depth < 8 || depth > 9 {
				t.Errorf("depth %d: Enslave() = %v", depth, err)
			}
			return
		}
		if depth > 20 {
			t.Fatal("bonds nest without end")
		}
		inner = outer
	}
}
