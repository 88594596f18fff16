package bonding_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// addresses are those of the bond and of all its slaves.
func (r *rig) addresses() string {
	all := []string{r.LinkAddress().String()}
	for _, s := range r.Status().Slaves {
		all = append(all, s.MACAddress)
	}
	return strings.Join(all, " ")
}

// The bond takes the first slave's address and keeps it while it lives, with a
// warning when that slave leaves; each slave has it, and its own again after
// (A35, T22, T106).
func TestAddressOfTheFirstSlave(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
	r.do("+eth1")
	r.do("+eth2")
	first := macOf("eth1").String()
	if got, want := r.addresses(), fmt.Sprint(first, " ", first, " ", first); got != want {
		t.Errorf("bond and slaves have %s, want %s", got, want)
	}
	if s := r.slave("eth2"); s.PermHWAddr != macOf("eth2").String() {
		t.Errorf("permanent address of eth2 is %s", s.PermHWAddr)
	}
	r.do("active_slave=eth2")
	r.told()
	eth1 := r.links["eth1"]
	r.do("-eth1")
	if r.LinkAddress() != macOf("eth1") || eth1.LinkAddress() != macOf("eth1") {
		t.Errorf("the bond has %s, the released slave %s, want the first's for both", r.LinkAddress(), eth1.LinkAddress())
	}
	if told := strings.Join(r.told(), "\n"); !strings.Contains(told, "the bond keeps "+first+", the address of released slave eth1") {
		t.Errorf("told %q", told)
	}
	eth2 := r.links["eth2"]
	r.do("-eth2")
	if eth2.LinkAddress() != macOf("eth2") {
		t.Errorf("the released slave has %s, want its own", eth2.LinkAddress())
	}
	r.do("+eth3") // Linux would take a new one now
	if got, want := r.addresses(), first+" "+first; got != want {
		t.Errorf("after all have left, bond and slave have %s, want %s", got, want)
	}
}

// An explicit address wins for good, given at the start or later (T104).
func TestExplicitAddress(t *testing.T) {
	mac := tcpip.LinkAddress("\xde\xad\xbe\xef\x00\x00")
	r := newRig(t, bonding.Options{LinkAddress: mac}, 2)
	want := fmt.Sprintf("%[1]s %[1]s %[1]s", mac)
	if got := r.addresses(); got != want {
		t.Errorf("bond and slaves have %s, want %s", got, want)
	}
	other := tcpip.LinkAddress("\xde\xad\xbe\xef\x00\x02")
	r.SetLinkAddress(other)
	r.do("-eth0")
	r.do("+eth2")
	want = fmt.Sprintf("%[1]s %[1]s %[1]s", other)
	if got := r.addresses(); got != want {
		t.Errorf("bond and slaves have %s, want %s", got, want)
	}
	f := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: int(r.MaxHeaderLength())})
	defer f.DecRef()
	f.EgressRoute.RemoteLinkAddress = "\x02\x00\x00\x00\x00\x01"
	r.AddHeader(f)
	if src := tcpip.LinkAddress(f.LinkHeader().Slice()[6:12]); src != other {
		t.Errorf("a frame's source is %s, want %s", src, other)
	}
}

// An address that is none, or that a slave does not take, changes nothing.
func TestAddressRefused(t *testing.T) {
	r := newRig(t, bonding.Options{LinkAddress: linktest.DefaultAddress}, 2)
	if err := r.Enslave("stubborn", stubborn{linktest.NewRecorder(linktest.RecorderOptions{})}, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err) // it has this address already
	}
	before := r.addresses()
	r.told()
	for _, bad := range []tcpip.LinkAddress{"", "\x02", "\x00\x00\x00\x00\x00\x00", "\x01\x00\x00\x00\x00\x01", "\xff\xff\xff\xff\xff\xff", "\x02\x00\x00\x00\x00\x09"} {
		if err := r.ChangeLinkAddress(bad); !errors.Is(err, bonding.ErrAddress) {
			t.Errorf("ChangeLinkAddress(%x) = %v", string(bad), err)
		}
		r.SetLinkAddress(bad) // cannot say so but by an event
		if told := r.told(); len(told) != 1 || !strings.Contains(told[0], "link address") {
			t.Errorf("SetLinkAddress(%x) told %q", string(bad), told)
		}
		if got := r.addresses(); got != before {
			t.Errorf("after %x bond and slaves have %s, had %s", string(bad), got, before)
		}
	}
}

// A slave without an address of its own leaves the bond its random one, which
// differs from bond to bond (A35).
func TestRandomAddresses(t *testing.T) {
	seen := map[tcpip.LinkAddress]bool{}
	for range 50 {
		b, err := bonding.New(bonding.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		own := b.LinkAddress()
		link := linktest.NewRecorder(linktest.RecorderOptions{})
		link.SetLinkAddress("") // a virtual link that has none
		if err := b.Enslave("eth0", link, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if b.LinkAddress() != own || link.LinkAddress() != own || seen[own] || own[0]&3 != 2 {
			t.Errorf("the bond has %s, had %s, its slave %s", b.LinkAddress(), own, link.LinkAddress())
		}
		seen[own] = true
	}
}
