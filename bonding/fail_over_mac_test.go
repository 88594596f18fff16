package bonding_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"
	bondstack "bondstack/stack"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// macs are the addresses of the bond and of its slaves, as the number of the
// slave that had each first; "?" stands for others.
func (r *rig) macs() string {
	text := func(mac string) string {
		for i := range 10 {
			if mac == macOf(fmt.Sprint("eth", i)).String() {
				return fmt.Sprint(i)
			}
		}
		return "?"
	}
	st := r.Status()
	line := text(st.MACAddress) + "|"
	for _, s := range st.Slaves {
		line += text(s.MACAddress)
	}
	return line
}

func (r *rig) wantMACs(when, want string) {
	r.tb.Helper()
	if got := r.macs(); got != want {
		r.tb.Errorf("%s: the addresses are %s, want %s", when, got, want)
	}
}

// Each policy, step by step: the bond's address, and those of the slaves in the
// order of enslaving (T22, T23, T25).
func TestFailOverMAC(t *testing.T) {
	for _, tt := range []struct {
		policy bonding.FailOverMAC
		o      bonding.Options
		steps  [][2]string
	}{
		{bonding.FailOverMACNone, bonding.Options{}, [][2]string{
			{"start", "0|000"}, {"eth0 down", "0|000"}, {"eth0 up", "0|000"}, {"active_slave=eth2", "0|000"},
			{"-eth0", "0|00"}, {"+eth0", "0|000"}, {"-eth1", "0|00"},
		}},
		{bonding.FailOverMACActive, bonding.Options{}, [][2]string{
			{"start", "0|012"}, {"eth0 down", "1|012"}, {"eth0 up", "1|012"}, {"active_slave=eth2", "2|012"},
			{"-eth2", "0|01"}, {"+eth2", "0|012"}, // with primary_reselect=always the first takes over
			{"eth0 down", "1|012"}, {"eth1 down", "2|012"}, {"eth2 down", "2|012"}, {"eth1 up", "1|012"},
			{"-eth0", "1|12"}, {"-eth1", "1|2"}, {"eth2 up", "2|2"}, {"-eth2", "2|"}, {"+eth0", "0|0"},
		}},
		{bonding.FailOverMACActive, bonding.Options{Primary: "eth1"}, [][2]string{
			{"start", "1|012"}, {"eth1 down", "0|012"}, {"eth1 up", "1|012"}, {"-eth1", "0|02"}, {"+eth1", "1|021"},
		}},
		{bonding.FailOverMACActive, bonding.Options{LinkAddress: macOf("eth9")}, [][2]string{
			{"start", "0|012"}, {"eth0 down", "1|012"}, // an address of the bond's own lasts until a slave is active
		}},
		{bonding.FailOverMACFollow, bonding.Options{}, [][2]string{
			{"start", "0|012"}, {"eth0 down", "0|102"}, {"eth0 up", "0|102"}, {"active_slave=eth2", "0|120"},
			{"-eth0", "0|20"}, {"+eth0", "0|20?"}, // eth0's own address is the bond's
			{"active_slave=", "0|02?"}, {"-eth1", "0|0?"}, // nobody has the bond's address now, so eth2 gets it
			{"+eth1", "0|0?1"},
		}},
		{bonding.FailOverMACFollow, bonding.Options{}, [][2]string{ // T25
			{"start", "0|012"}, {"-eth0", "0|02"}, {"+eth0", "0|02?"}, {"-eth0", "0|02"}, {"+eth0", "0|02?"},
		}},
		{bonding.FailOverMACFollow, bonding.Options{}, [][2]string{ // the active slave is lost before there is another
			{"start", "0|012"}, {"eth1 down", "0|012"}, {"eth2 down", "0|012"}, {"eth0 down", "0|012"}, {"eth2 up", "0|210"}, {"eth0 up", "0|210"},
		}},
		{bonding.FailOverMACFollow, bonding.Options{LinkAddress: macOf("eth9")}, [][2]string{
			{"start", "9|912"}, {"eth0 down", "9|192"}, {"-eth1", "9|19"}, {"+eth1", "9|19?"}, // eth0 has eth1's address
		}},
	} {
		t.Run(fmt.Sprintf("%s%s%s", tt.policy, tt.o.Primary, tt.o.LinkAddress), func(t *testing.T) {
			tt.o.Mode, tt.o.FailOverMAC = bonding.ActiveBackup, tt.policy
			r := newRig(t, tt.o, 3)
			if tt.policy == bonding.FailOverMACFollow {
				r.set("primary_reselect", "failure")
			}
			for i, step := range tt.steps {
				if i > 0 {
					links := r.links
					r.do(step[0])
					if name, ok := strings.CutPrefix(step[0], "-"); ok && links[name].LinkAddress() != macOf(name) {
						t.Errorf("released %s has %s", name, links[name].LinkAddress())
					}
				}
				r.wantMACs(fmt.Sprintf("step %d, %s", i, step[0]), step[1])
			}
		})
	}
}

// The policy acts in active-backup alone, is set while there are no slaves, and
// may be set while a NIC has the bond.
func TestFailOverMACOption(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode}, 0)
		r.set("fail_over_mac", "active")
		r.do("+eth0")
		r.do("+eth1")
		want := "0|00"
		if m.mode == bonding.ActiveBackup || m.mode == bonding.BalanceALB { // the latter always
			want = "0|01"
		}
		r.wantMACs(m.mode.String(), want)
		r.refuses("fail_over_mac", "none", bonding.ErrNotEmpty)
		r.refuses("fail_over_mac", "never", bonding.ErrNotEmpty) // Linux looks at the value last
		r.do("-eth0")
		r.do("-eth1")
		r.set("fail_over_mac", "none")
	}
}

// The status names the policy as /proc/net/bonding does.
func TestFailOverMACInProc(t *testing.T) {
	for policy, want := range map[string]string{
		"none": "Bonding Mode: fault-tolerance (active-backup)\n", "active": "Bonding Mode: fault-tolerance (active-backup) (fail_over_mac active)\n",
		"follow": "Bonding Mode: fault-tolerance (active-backup) (fail_over_mac follow)\n",
	} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
		r.set("fail_over_mac", policy)
		var text strings.Builder
		st := r.Status()
		if st.WriteProc(&text); !strings.Contains(text.String(), want) {
			t.Errorf("fail_over_mac %s shows\n%s", policy, &text)
		}
	}
}

// Where the slaves' addresses decide, one that is set from above is ignored, as
// in Linux, with a warning; one that is none is refused all the same.
func TestAddressIgnored(t *testing.T) {
	for _, policy := range []string{"active", "follow"} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
		r.set("fail_over_mac", policy)
		r.do("+eth0")
		r.do("+eth1")
		r.told()
		if err := r.ChangeLinkAddress(macOf("eth9")); err != nil {
			t.Errorf("ChangeLinkAddress() = %v", err)
		}
		r.wantMACs("address set from above", "0|01")
		if told := strings.Join(r.told(), "\n"); !strings.Contains(told, "link address "+macOf("eth9").String()+" is not taken: fail_over_mac is "+policy) {
			t.Errorf("told %q", told)
		}
		if err := r.ChangeLinkAddress("\x01\x00\x00\x00\x00\x01"); !errors.Is(err, bonding.ErrAddress) {
			t.Errorf("ChangeLinkAddress(a group's) = %v", err)
		}
	}
}

// A link that cannot change its address may be in a bond where it need not. The
// first of a bond forces fail_over_mac=active, as in Linux; the error for a later
// one names it.
func TestFailOverMACWithFixedAddresses(t *testing.T) {
	fixed := func(name string) stack.LinkEndpoint {
		return stubborn{linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(name)})}
	}
	for _, tt := range []struct {
		mode   bonding.Mode
		policy bonding.FailOverMAC
		own    tcpip.LinkAddress // the bond's
		slaves int               // ordinary ones, first
		force  bool
		reason string // of the refusal
	}{
		{mode: bonding.ActiveBackup, policy: bonding.FailOverMACActive},
		{mode: bonding.ActiveBackup, policy: bonding.FailOverMACActive, slaves: 2},
		{mode: bonding.ActiveBackup, policy: bonding.FailOverMACActive, own: macOf("eth9")},
		{mode: bonding.ActiveBackup, policy: bonding.FailOverMACNone}, // it need not: the bond takes its address
		{mode: bonding.ActiveBackup, policy: bonding.FailOverMACNone, own: macOf("eth9"), force: true},
		{mode: bonding.ActiveBackup, policy: bonding.FailOverMACNone, slaves: 1, reason: "fail_over_mac=active"},
		{mode: bonding.ActiveBackup, policy: bonding.FailOverMACFollow, force: true},
		{mode: bonding.ActiveBackup, policy: bonding.FailOverMACFollow, slaves: 1, reason: "fail_over_mac=active"},
		{mode: bonding.BalanceXOR, policy: bonding.FailOverMACActive, slaves: 1, reason: "does not take 02:00:00:00:ee:00"},
		{mode: bonding.BalanceXOR, own: macOf("eth9"), reason: "does not take 02:00:00:00:ee:09"},
	} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			r := newRig(t, bonding.Options{Mode: tt.mode, FailOverMAC: tt.policy, LinkAddress: tt.own}, tt.slaves)
			before := r.Status()
			r.told()
			err := r.Enslave("eth5", fixed("eth5"), bonding.SlaveOptions{})
			if tt.reason != "" {
				if !errors.Is(err, bonding.ErrAddress) || !strings.Contains(err.Error(), "keeps 02:00:00:00:ee:05") || !strings.Contains(err.Error(), tt.reason) {
					t.Errorf("Enslave() = %v, want %q", err, tt.reason)
				}
				if after := r.Status(); !sameStatus(before, after) {
					t.Errorf("status is %+v, was %+v", after, before)
				}
				return
			}
			if err != nil {
				t.Fatalf("Enslave() = %v", err)
			}
			if forced := strings.Contains(fmt.Sprint(r.told()), "it is active now"); forced != tt.force {
				t.Errorf("active was forced: %t, want %t", forced, tt.force)
			}
			if got := r.Status().Options["fail_over_mac"]; (got == "active 1") != (tt.force || tt.policy == bonding.FailOverMACActive) {
				t.Errorf("fail_over_mac is %s", got)
			}
			if tt.mode == bonding.ActiveBackup && r.Status().ActiveSlave == "eth5" && r.LinkAddress() != macOf("eth5") {
				t.Errorf("the bond has %s", r.LinkAddress())
			}
		})
	}
}

// reluctant is a link that takes another address until it does not.
type reluctant struct {
	*linktest.Recorder
	refuses *bool
}

func (m reluctant) SetLinkAddress(a tcpip.LinkAddress) {
	if !*m.refuses {
		m.Recorder.SetLinkAddress(a)
	}
}

// With follow, a link that does not take the bond's address in the failover
// changes nothing but tells; one that does not give it up tells too. The next
// failover puts all right.
func TestFollowRefused(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACFollow, PrimaryReselect: bonding.ReselectFailure}, 0)
	refuses := [2]bool{}
	for i := range 2 {
		name := fmt.Sprint("eth", i)
		r.links[name] = linktest.NewRecorder(linktest.RecorderOptions{Address: macOf(name)})
		if err := r.Enslave(name, reluctant{r.links[name], &refuses[i]}, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.told()
	refuses[1] = true
	r.do("active_slave=eth1")
	r.wantActive("refused", "eth1")
	r.wantMACs("the new one refuses", "0|01")
	if told := fmt.Sprint(r.told()); !strings.Contains(told, `set "eth1": link address does not fit: link address 02:00:00:00:ee:00 is not taken`) {
		t.Errorf("told %s", told)
	}
	r.do("active_slave=eth0") // it has the bond's address still
	r.wantMACs("back", "0|01")
	refuses = [2]bool{true, false}
	r.do("active_slave=eth1")
	r.wantMACs("the old one refuses", "0|00")
	if told := fmt.Sprint(r.told()); !strings.Contains(told, `set "eth0": link address does not fit: link address 02:00:00:00:ee:01 is not taken`) {
		t.Errorf("told %s", told)
	}
}

// With active, whoever watches the bond hears of its new address, frames carry
// it, and frames for it are received; those for the old one are another host's.
func TestActiveAddressIsUsed(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACActive}, 2)
	heard := ""
	defer r.SubscribeChanges(func() { heard = r.LinkAddress().String() })()
	r.do("eth0 down")
	if heard != macOf("eth1").String() {
		t.Errorf("a watcher saw %q", heard)
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: int(r.MaxHeaderLength())})
	defer pkt.DecRef()
	pkt.EgressRoute.LocalLinkAddress, pkt.EgressRoute.RemoteLinkAddress = macOf("eth0"), macOf("eth9")
	r.AddHeader(pkt)
	if src := tcpip.LinkAddress(pkt.LinkHeader().Slice()[6:12]); src != macOf("eth1") {
		t.Errorf("a frame's source is %s", src)
	}
	for mac, want := range map[tcpip.LinkAddress]int{macOf("eth1"): 1, macOf("eth0"): 0} {
		r.up.Drain()
		f := linktest.Flow4(1)
		f.DstMAC = mac
		r.links["eth1"].Inject(f.UDP(nil))
		if got := len(r.up.Drain()); got != want {
			t.Errorf("a frame for %s was delivered %d times, want %d", mac, got, want)
		}
	}
	if n := r.drops("rx_other_host"); n != 1 {
		t.Errorf("rx_other_host is %d", n)
	}
}

// A bond of bonds: the outer one follows the address of an inner one that
// changes by itself.
func TestActiveAddressOfNestedBond(t *testing.T) {
	inner := newDownRig(t, bonding.Options{Name: "inner", Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACActive}, 2)
	outer := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACActive}, 0)
	if err := outer.Enslave("inner", inner.Bond, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	outer.do("+eth9")
	inner.do("eth0 down")
	outer.wantMACs("the inner bond has failed over", "1|19")
	outer.do("active_slave=eth9")
	outer.wantMACs("an outer failover", "9|19")
}

// Frames with another source than the bond's, as bridged hosts send them, go out
// as they are, whoever is active (A52, in active-backup).
func TestForeignSourceStays(t *testing.T) {
	for _, policy := range []bonding.FailOverMAC{bonding.FailOverMACNone, bonding.FailOverMACActive, bonding.FailOverMACFollow} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: policy}, 2)
		for _, active := range []string{"eth0", "eth1"} {
			r.set("active_slave", active)
			for _, frame := range [][]byte{linktest.Flow4(1).UDP(nil), linktest.Flow4(1).ARPReply(), linktest.Flow6(1).UDP(nil)} {
				r.links[active].Drain()
				linktest.Write(r, frame)
				if got := r.links[active].Drain(); len(got) != 1 || string(got[0].Frame) != string(frame) {
					t.Errorf("fail_over_mac %s: %x was sent as %v", policy, frame, got)
				}
			}
		}
	}
}

// A drained slave takes what is on its way to the address that the bond had, for
// a second, and then no more.
func TestDrainWithFailOverMAC(t *testing.T) {
	for _, policy := range []bonding.FailOverMAC{bonding.FailOverMACActive, bonding.FailOverMACFollow} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: policy}, 3)
		late := r.toBond(1)
		take := func(when string, want int) {
			t.Helper()
			r.up.Drain()
			r.links["eth0"].Inject(late)
			if got := len(r.up.Drain()); got != want {
				t.Errorf("fail_over_mac %s, %s: a frame for the old address was delivered %d times, want %d", policy, when, got, want)
			}
		}
		filter := func(when string, want bool) {
			t.Helper()
			if _, is := r.links["eth0"].Calls().Filter[macOf("eth0")]; is != want {
				t.Errorf("fail_over_mac %s, %s: the link lets frames for the old address through besides its own: %t", policy, when, is)
			}
		}
		if err := r.Drain("eth0"); err != nil {
			t.Fatal(err)
		}
		take("drained", 1)
		filter("drained", policy == bonding.FailOverMACFollow)
		r.ms(1000)
		take("a second later", 0)
		filter("a second later", false)
		if err := r.Undrain("eth0"); err != nil {
			t.Fatal(err)
		}
		r.do("active_slave=eth0")
		if err := r.Drain("eth0"); err != nil {
			t.Fatal(err)
		}
		eth0 := r.links["eth0"]
		r.do("-eth0")
		if got := eth0.Calls().Filter; len(got) != 0 || eth0.LinkAddress() != macOf("eth0") {
			t.Errorf("fail_over_mac %s: a slave released while drained lets %v through, has %s", policy, got, eth0.LinkAddress())
		}
	}
}

// A table of devices tells of the new addresses: of the bond's with active, of
// the slaves' with follow.
func TestFailOverMACOfDevices(t *testing.T) {
	for policy, want := range map[bonding.FailOverMAC][]string{
		bonding.FailOverMACActive: {"b0 " + macOf("eth1").String()},
		bonding.FailOverMACFollow: {"eth0 " + macOf("eth1").String(), "eth1 " + macOf("eth0").String()},
	} {
		r := newDeviceRig(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: policy}, 2)
		r.Attach(nil)
		dev, err := r.devices.Add(bondstack.NewDevice{Name: "b%d", Link: r.Bond, Unattached: true})
		if err != nil {
			t.Fatal(err)
		}
		r.Attach(r.up)
		w := r.devices.Watch(100)
		r.do("active_slave=eth1")
		r.devices.Delete(dev.Index())
		var got []string
		for {
			e, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == bondstack.DeviceDeleted {
				break
			}
			if e.Kind == bondstack.DeviceAddress {
				got = append(got, e.Device.Name()+" "+e.Address.String())
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("fail_over_mac %s: told %v, want %v", policy, got, want)
		}
	}
}

// A drained slave that is released, or whose time is over, has its link told of
// no address any more, whatever happened meanwhile.
func TestFollowDrainLeavesNoAddress(t *testing.T) {
	for _, release := range []bool{false, true} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, FailOverMAC: bonding.FailOverMACFollow}, 3)
		if err := r.Drain("eth0"); err != nil {
			t.Fatal(err)
		}
		r.carrier("eth1", false) // one more failover in that time
		r.wantActive("eth1 lost", "eth2")
		r.carrier("eth1", true)
		r.set("active_slave", "eth1")
		link := r.links["eth0"]
		if n := len(link.Calls().Filter); n != 1 {
			t.Fatalf("%d addresses while it is drained, want the bond's", n)
		}
		if release {
			r.do("-eth0")
		} else {
			r.ms(5000)
		}
		if left := link.Calls().Filter; len(left) != 0 {
			t.Errorf("released %t: its link is still told of %v", release, left)
		}
	}
}
