package bonding_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// malformed returns frames to dst whose headers lie, and frames of every length
// from 0 to 64 bytes, right ones and such.
func malformed(dst tcpip.LinkAddress) [][]byte {
	frames := lying(dst)
	for i, f := range frames {
		if i%7 == 0 {
			for n := range min(len(f), 64) + 1 {
				frames = append(frames, f[:n])
			}
		}
	}
	return frames
}

// lying returns frames to dst, ten right ones first.
func lying(dst tcpip.LinkAddress) [][]byte {
	four, six := linktest.Flow4(1), linktest.Flow6(1)
	four.DstMAC, six.DstMAC = dst, dst
	whole := [][]byte{
		four.UDP([]byte("payload")), four.TCP(linktest.Segment{Payload: []byte("payload")}), four.ARPRequest(), four.IP(1, []byte{8, 0, 0, 0, 1, 2, 3, 4}),
		six.UDP([]byte("payload")), six.TCP(linktest.Segment{}), six.IP(58, []byte{135, 0, 0, 0}), six.IP(0, []byte{6, 0, 0, 0, 0, 0, 0, 0}),
		linktest.VLAN(four.UDP(nil), linktest.EtherTypeVLAN, 7), linktest.VLAN(linktest.VLAN(four.UDP(nil), linktest.EtherTypeVLAN, 7), 0x88a8, 8),
	}
	frames := whole
	for _, f := range whole {
		for _, change := range []func([]byte){
			func(f []byte) { f[14] = 0x40 },                              // no header length
			func(f []byte) { f[14] = 0x4f },                              // options beyond the frame
			func(f []byte) { f[14] = 0x64 },                              // another version
			func(f []byte) { f[14] = 0 },                                 // none
			func(f []byte) { binary.BigEndian.PutUint16(f[16:], 0) },     // total length
			func(f []byte) { binary.BigEndian.PutUint16(f[16:], 65535) }, // total length
			func(f []byte) { binary.BigEndian.PutUint16(f[18:], 65535) }, // payload length of IPv6
			func(f []byte) { f[20] = 0x3f; f[21] = 0xff },                // a fragment
			func(f []byte) { f[12], f[13] = 0x88, 0x64 },                 // PPPoE
			func(f []byte) { f[12], f[13] = 0, 4 },                       // a length, not a type
			func(f []byte) { f[20] = 60 },                                // an extension header
		} {
			g := append([]byte{}, f...)
			change(g)
			frames = append(frames, g)
		}
	}
	return frames
}

// Frames of every length from 0 to 64 bytes and with every lie in their headers,
// on every slave, in every mode: each is counted, and nothing else changes.
func TestReceiveMalformed(t *testing.T) {
	for _, m := range recoveryModes {
		for _, promiscuous := range []bool{false, true} {
			r := newRig(t, bonding.Options{Mode: m.mode, RxDedup: bonding.DedupOn}, 3)
			if err := r.SetPromiscuous(promiscuous); err != nil {
				t.Fatal(err)
			}
			before := r.Status()
			offered, delivered := 0, 0
			r.up.OnDeliver(func(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) { delivered++ })
			inject := func(frame []byte) {
				for i := range 3 {
					offered++
					r.links[fmt.Sprintf("eth%d", i)].Inject(frame)
				}
			}
			for _, f := range malformed(r.LinkAddress()) {
				inject(f)
			}
			rnd := rand.New(rand.NewPCG(1, 1))
			for n := range 65 {
				for range 8 {
					f := make([]byte, n)
					for i := range f {
						f[i] = byte(rnd.Uint32())
					}
					if n >= 6 && rnd.IntN(2) == 0 {
						copy(f, r.LinkAddress())
					}
					inject(f)
				}
			}
			r.up.Drain()
			after := r.Status()
			sum := delivered
			for reason, n := range after.Counters.Drops {
				sum += int(n)
				if n > 0 && reason[:2] == "tx" {
					t.Errorf("%s: %s is %d", m.mode, reason, n)
				}
			}
			if sum != offered {
				t.Errorf("%s: %d frames came, %d are accounted for: %v", m.mode, offered, sum, after.Counters.Drops)
			}
			after.Counters, before.Counters = bonding.Counters{}, bonding.Counters{}
			for i := range after.Slaves {
				after.Slaves[i].Counters, before.Slaves[i].Counters = bonding.Counters{}, bonding.Counters{}
			}
			if st := after.Reorder; st != nil && st.Frames > 0 {
				t.Errorf("%s: %d frames are held", m.mode, st.Frames)
			}
			after.Reorder, before.Reorder = nil, nil
			if text(after) != text(before) {
				t.Errorf("%s: the status is %s, was %s", m.mode, text(after), text(before))
			}
			if got := r.carries(); got == "" {
				t.Errorf("%s: the bond does not send any more", m.mode)
			}
		}
	}
}

// A write of frames that are no frames: too short, or with headers that lie.
// Whatever the mode and hash, each goes by a slave, whose business they are.
func TestTransmitMalformed(t *testing.T) {
	for _, m := range recoveryModes {
		for _, policy := range policies {
			r := newRig(t, bonding.Options{Mode: m.mode, XmitHashPolicy: policy}, 3)
			frames := malformed("\x02\x00\x00\x00\x00\x01")
			if n, err := linktest.Write(r, frames...); n != len(frames) || err != nil {
				t.Errorf("%s, %s: WritePackets() = %d, %v, want %d", m.mode, policy, n, err, len(frames))
			}
			sum := 0
			for _, n := range r.sent("eth0", "eth1", "eth2") {
				sum += n
			}
			want := len(frames)
			if m.mode == bonding.Broadcast {
				want *= 3
			}
			if sum != want {
				t.Errorf("%s, %s: slaves were given %d frames, want %d", m.mode, policy, sum, want)
			}
		}
	}
}

// FuzzFrame: any bytes may come in on any slave, and may be written, in any
// mode and with any hash.
func FuzzFrame(f *testing.F) {
	for i, frame := range lying("\x02\x00\x00\x00\x00\x01") {
		f.Add(uint8(i), uint8(i), frame)
	}
	f.Fuzz(func(t *testing.T, mode, policy uint8, frame []byte) {
		r := newRig(t, bonding.Options{Mode: bonding.Mode(mode % 4), XmitHashPolicy: xmithash.Policy(policy % 6),
			RxDedup: bonding.RxDedup(policy % 3), LinkAddress: "\x02\x00\x00\x00\x00\x01", AllSlavesActive: mode&64 != 0}, 3)
		if mode >= 128 {
			_ = r.SetPromiscuous(true)
		}
		for _, name := range []string{"eth0", "eth1", "eth0", "eth2"} {
			r.links[name].Inject(frame)
		}
		sum := uint64(len(r.up.Drain()))
		for _, n := range r.Status().Counters.Drops {
			sum += n
		}
		if sum != 4 {
			t.Errorf("4 frames came, %d are accounted for", sum)
		}
		if n, err := linktest.Write(r, frame, frame); n != 2 || err != nil {
			t.Errorf("WritePackets() = %d, %v", n, err)
		}
	})
}
