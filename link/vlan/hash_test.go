package vlan_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/vlan"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// hashRig is a bond with a trunk on it, for the vectors of one policy and number
// of slaves.
type hashRig struct {
	trunk *vlan.Trunk
	links []*linktest.Recorder
}

func newHashRig(tb testing.TB, policy string, slaves int) *hashRig {
	p, err := xmithash.ParsePolicy(policy)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := bonding.New(bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: p})
	if err != nil {
		tb.Fatal(err)
	}
	r := &hashRig{trunk: newTrunk(tb, b)}
	for i := range slaves {
		l := linktest.NewRecorder(linktest.RecorderOptions{})
		if err := b.Enslave(fmt.Sprintf("eth%d", i), l, bonding.SlaveOptions{}); err != nil {
			tb.Fatal(err)
		}
		r.links = append(r.links, l)
	}
	return r
}

// The frames that a real Linux bond sent for a VLAN device leave by the same
// slaves here, and are the same.
func TestRecordedHash(t *testing.T) {
	f, err := os.Open("../../testdata/xmit-hash.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rigs := map[string]*hashRig{}
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var v struct {
			Via, Frame, Policy, Kind string
			Slaves, Slave            int
		}
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		frame, err := hex.DecodeString(v.Frame)
		if err != nil {
			t.Fatal(err)
		}
		typ := binary.BigEndian.Uint16(frame[12:])
		if v.Via != "vlan" || typ != 0x8100 && typ != 0x88a8 {
			continue
		}
		key := fmt.Sprint(v.Policy, v.Slaves)
		if rigs[key] == nil {
			rigs[key] = newHashRig(t, v.Policy, v.Slaves)
		}
		r := rigs[key]
		control := binary.BigEndian.Uint16(frame[14:])
		if control&0x1000 != 0 {
			t.Fatalf("%s has DEI set, which no device sets", v.Kind)
		}
		d, err := r.trunk.Add(link.VLANTag{Protocol: typ, ID: control & 0xfff},
			vlan.Options{LinkAddress: tcpip.LinkAddress(frame[6:12]), Priority: uint8(control >> 13)})
		if err != nil {
			t.Fatal(err)
		}
		send(t, d, append(bytes.Clone(frame[:12]), frame[16:]...))
		d.Close()
		for i, l := range r.links {
			switch got := l.Drain(); {
			case i == v.Slave && (len(got) != 1 || !bytes.Equal(got[0].Frame, frame)):
				t.Errorf("%s, %s of %d: slave %d sent %+v, want %s", v.Kind, v.Policy, v.Slaves, i, got, v.Frame)
			case i != v.Slave && len(got) != 0:
				t.Errorf("%s, %s of %d: slave %d sent it, want %d", v.Kind, v.Policy, v.Slaves, i, v.Slave)
			}
		}
		n++
	}
	if n < 1000 {
		t.Errorf("%d vectors of VLAN devices, want at least 1000", n)
	}
}

// A thousand flows of a device, and of one stacked on it, use both slaves, and
// each always the same one (A43).
func TestSpread(t *testing.T) {
	r := newHashRig(t, "layer3+4", 2)
	single := add(t, r.trunk, q(5), vlan.Options{})
	double := add(t, newTrunk(t, add(t, r.trunk, ad(7), vlan.Options{})), q(5), vlan.Options{})
	for name, ep := range map[string]stack.LinkEndpoint{"tagged": single, "double-tagged": double} {
		for version, flow := range map[int]func(int) linktest.Flow{4: linktest.Flow4, 6: linktest.Flow6} {
			rnd := rand.New(rand.NewPCG(43, uint64(version)))
			first := 0
			for i := range 1000 {
				f := flow(i)
				f.Src = netip.AddrPortFrom(f.Src.Addr(), uint16(rnd.Uint32()))
				frame := f.UDP([]byte("x"))
				send(t, ep, frame, frame)
				a, b := len(r.links[0].Drain()), len(r.links[1].Drain())
				if a+b != 2 || a == 1 {
					t.Fatalf("%s: flow %d left %d times by one slave, %d by the other", name, i, a, b)
				}
				first += a / 2
			}
			if first < 400 || first > 600 {
				t.Errorf("%s, IPv%d: %d of 1000 flows take one slave, want 400 to 600", name, version, first)
			}
		}
	}
}
