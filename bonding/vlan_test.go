package bonding_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const vlanMAC = tcpip.LinkAddress("\x02\x00\x00\x00\x77\x01")

func noAddress() tcpip.LinkAddress { return vlanMAC }

func tagQ(id uint16) link.VLANTag { return link.VLANTag{Protocol: link.TagProtocolQ, ID: id} }

// A bond receives for added addresses, tells its slaves, and takes frames from
// them for its own that came back.
func TestOwnAddresses(t *testing.T) {
	for _, m := range recoveryModes {
		r := newRig(t, bonding.Options{Mode: m.mode}, 2)
		frame := linktest.Flow4(1)
		frame.DstMAC = vlanMAC
		hear := func(when string, want int) {
			t.Helper()
			r.links["eth0"].Inject(frame.UDP(nil))
			got := r.up.Drain()
			if len(got) != want || want > 0 && got[0].PktType != tcpip.PacketHost {
				t.Errorf("%s, %s: %+v was delivered, want %d", m.mode, when, got, want)
			}
		}
		hear("before", 0)
		for range 2 {
			if err := r.AddLinkAddress(vlanMAC); err != nil {
				t.Fatal(err)
			}
		}
		hear("added", 1)
		own := linktest.Flow4(2)
		own.SrcMAC = vlanMAC
		r.links["eth0"].Inject(own.ARPRequest())
		if len(r.up.Drain()) != 0 || r.drops("rx_own") != 1 {
			t.Errorf("%s: our own frame that came back was delivered", m.mode)
		}
		late := r.enslave("eth2", bonding.SlaveOptions{}, linktest.RecorderOptions{})
		for _, name := range []string{"eth0", "eth1", "eth2"} {
			if got := r.links[name].Calls().Filter[vlanMAC]; got != 1 {
				t.Errorf("%s: %s was told %d times of the address", m.mode, name, got)
			}
		}
		r.do("-eth2")
		if got := late.Calls().Filter[vlanMAC]; got != 0 {
			t.Errorf("%s: the released slave still has the address", m.mode)
		}
		r.RemoveLinkAddress(vlanMAC)
		hear("removed once of twice", 1)
		r.RemoveLinkAddress(vlanMAC)
		hear("removed", 0)
		if got := r.links["eth1"].Calls().Filter[vlanMAC]; got != 0 {
			t.Errorf("%s: a slave still has the address", m.mode)
		}
		r.RemoveLinkAddress(vlanMAC)
	}
}

func TestOwnAddressesAreBounded(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	for i := range 64 {
		if err := r.AddLinkAddress(tcpip.LinkAddress([]byte{2, 0, 0, 0, 9, byte(i)})); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.AddLinkAddress(vlanMAC); err == nil || !strings.Contains(err.Error(), "allowed are 64") {
		t.Errorf("address 65: %v", err)
	}
	if err := r.AddLinkAddress("\x01\x00\x00\x00\x00\x01"); !errors.Is(err, bonding.ErrAddress) {
		t.Errorf("a group's address: %v", err)
	}
}

// vlanLink is a slave that wants to know the VLANs above it, and refuses one.
type vlanLink struct {
	*linktest.Recorder
	refuses uint16
	told    []string
}

func (l *vlanLink) AddVLAN(tag link.VLANTag, address func() tcpip.LinkAddress) error {
	if tag.ID == l.refuses {
		return errors.New("not this one")
	}
	l.told = append(l.told, fmt.Sprintf("%s=%s", tag, address()))
	return nil
}

func (l *vlanLink) RemoveVLAN(tag link.VLANTag) {
	l.told = slices.DeleteFunc(l.told, func(s string) bool { return strings.HasPrefix(s, tag.String()+"=") })
}

// VLANs are told to the slaves that want to know, all or none, and to those that
// join.
func TestVLANsAreTold(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	newLink := func(refuses uint16) *vlanLink {
		return &vlanLink{Recorder: linktest.NewRecorder(linktest.RecorderOptions{}), refuses: refuses}
	}
	a, b := newLink(4000), newLink(9)
	join := func(name string, l *vlanLink) error { return r.Enslave(name, l, bonding.SlaveOptions{}) }
	if err := errors.Join(join("a", a), r.AddVLAN(tagQ(3), noAddress), join("b", b)); err != nil {
		t.Fatal(err)
	}
	ad := link.VLANTag{Protocol: link.TagProtocolAD, ID: 3}
	if err := r.AddVLAN(ad, noAddress); err != nil {
		t.Fatal(err)
	}
	const both = "[3=02:00:00:00:77:01 802.1ad:3=02:00:00:00:77:01]"
	if fmt.Sprint(a.told) != both || fmt.Sprint(b.told) != both {
		t.Errorf("told %v and %v, want %s", a.told, b.told, both)
	}
	for _, tt := range []struct {
		tag  link.VLANTag
		want string
	}{
		{tagQ(9), "not this one"}, {ad, "has a device already"},
		{tagQ(4095), "allowed are 0 to 4094"}, {link.VLANTag{Protocol: 0x9100, ID: 1}, "0x9100"},
	} {
		if err := r.AddVLAN(tt.tag, noAddress); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("AddVLAN(%v) = %v, want %q", tt.tag, err, tt.want)
		}
	}
	if err := join("c", newLink(3)); err == nil || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("a slave that refuses: %v", err)
	}
	if fmt.Sprint(a.told) != both {
		t.Errorf("after refusals %v", a.told)
	}
	r.RemoveVLAN(tagQ(3))
	r.RemoveVLAN(tagQ(77))
	if err := r.Release("b"); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(a.told) != "[802.1ad:3=02:00:00:00:77:01]" || len(b.told) != 0 {
		t.Errorf("told %v and %v", a.told, b.told)
	}
}

// Behind tags checksums are verified as well: the bond vouches for all that it
// delivers.
func TestTaggedChecksums(t *testing.T) {
	r := newRig(t, bonding.Options{}, 1)
	good := r.toBond(1)
	bad := slices.Clone(good)
	bad[len(bad)-1] ^= 1
	for i, tags := range [][]uint16{{0x8100}, {0x88a8}, {0x8100, 0x88a8}} {
		g, b := good, bad
		for _, tpid := range tags {
			g, b = linktest.VLAN(g, tpid, 5), linktest.VLAN(b, tpid, 5)
		}
		r.links["eth0"].Inject(g)
		r.links["eth0"].Inject(b)
		if got := len(r.up.Drain()); got != 1 || r.drops("rx_checksum") != uint64(i+1) {
			t.Errorf("tags %#x: %d of 2 were delivered, rx_checksum is %d", tags, got, r.drops("rx_checksum"))
		}
	}
}

// untaggedGSO is a link with GSO that knows no tags, as gVisor's fdbased.
type untaggedGSO struct{ *linktest.Recorder }

func (untaggedGSO) TakesTaggedGSO() bool { return false }

// A tagged GSO packet is cut for a link that would not find its headers, and goes
// whole to one that does; an untagged one goes whole to both.
func TestTaggedGSO(t *testing.T) {
	for _, able := range []bool{true, false} {
		r := newDownRig(t, bonding.Options{}, 0)
		rec := linktest.NewRecorder(linktest.RecorderOptions{GSO: true})
		ep := stack.LinkEndpoint(rec)
		if !able {
			ep = untaggedGSO{rec}
		}
		if err := r.Enslave("eth0", ep, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		trunk, err := vlan.NewTrunk(r.Bond)
		if err != nil {
			t.Fatal(err)
		}
		device, err := trunk.Add(tagQ(5), vlan.Options{Priority: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []stack.LinkEndpoint{trunk, device} {
			pkt, payload := gsoPacket(2, 5*mss-7)
			var list stack.PacketBufferList
			list.PushBack(pkt)
			to.WritePackets(list)
			pkt.DecRef()
			frames := rec.Drain()
			whole := able || to == trunk
			if want := map[bool]int{true: 1, false: 5}[whole]; len(frames) != want {
				t.Errorf("tagged GSO %v: %d frames, want %d", able, len(frames), want)
				continue
			}
			if whole {
				if g := frames[0].GSO; g.MSS != mss || !bytes.HasSuffix(frames[0].Frame, payload) {
					t.Errorf("a whole packet lost something: %+v", g)
				}
				continue
			}
			for i := range frames {
				f := frames[i].Frame
				if !bytes.Equal(f[12:16], []byte{0x81, 0, 0x40, 5}) {
					t.Errorf("a segment has the tag %x", f[12:16])
				}
				frames[i].Frame = append(f[:12:12], f[16:]...)
			}
			if got := checkCut(t, frames, 1500); !bytes.Equal(got, payload) {
				t.Error("the segments carry something else")
			}
		}
	}
}
