package bridge_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// partial begins the checksum of a frame whose transport header is at an offset,
// and returns it and what the kernel says of it.
func partial(frame []byte, transport, offset int) ([]byte, stack.GSO) {
	b := bytes.Clone(frame)
	protocol := uint16(header.TCPProtocolNumber)
	if offset == 6 {
		protocol = uint16(header.UDPProtocolNumber)
	}
	sum := uint32(protocol) + uint32(len(b)-transport)
	addresses := b[14+12 : 14+20]
	if b[14]>>4 == 6 {
		addresses = b[14+8 : 14+40]
	}
	for i := 0; i < len(addresses); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(addresses[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[transport+offset:], uint16(sum))
	return b, stack.GSO{NeedsCsum: true, L3HdrLen: uint16(transport - 14), CsumOffset: uint16(offset)}
}

// Frames of the device go out as they are, begun checksums whole in the end.
func TestChecksumsOfTheDevice(t *testing.T) {
	for name, c := range map[string]struct {
		frame             []byte
		transport, offset int
	}{
		"UDP over IPv4": {linktest.Flow4(1).UDP([]byte("odd")), 34, 6},
		"UDP over IPv6": {linktest.Flow6(1).UDP([]byte("even")), 54, 6},
		"TCP over IPv4": {linktest.Flow4(1).TCP(linktest.Segment{Payload: []byte("odd")}), 34, 16},
		"TCP over IPv6": {linktest.Flow6(1).TCP(linktest.Segment{Payload: make([]byte, 1001)}), 54, 16},
	} {
		for slave := range 2 {
			t.Run(fmt.Sprint(name, " by eth", slave), func(t *testing.T) {
				r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
				r.do(fmt.Sprint("eth", slave))
				r.device.Inject(c.frame)
				got := r.links[slave].Drain()
				if len(got) != 1 || !bytes.Equal(got[0].Frame, c.frame) || got[0].GSO != (stack.GSO{}) {
					t.Fatalf("a plain frame became %+v", got)
				}
				b, gso := partial(c.frame, c.transport, c.offset)
				r.device.InjectWith(b, linktest.InjectOptions{GSO: gso})
				got = r.links[slave].Drain()
				if len(got) != 1 {
					t.Fatalf("%d frames: %+v", len(got), r.bridge.Stats())
				}
				// A link with GSO may be left the TCP checksum.
				if left := got[0].GSO.NeedsCsum; left != (slave == 0 && c.offset == 16) || !left && !bytes.Equal(got[0].Frame, c.frame) {
					t.Errorf("left to the link: %v; frame %x, want %x", left, got[0].Frame, c.frame)
				}
			})
		}
	}
}

// do makes a slave the active one.
func (r *rig) do(active string) {
	r.t.Helper()
	if err := r.bond.SetOption("active_slave", active); err != nil {
		r.t.Fatal(err)
	}
	r.drain()
}

// Segments of 64 KiB pass whole to a link that takes them, and cut to one that
// does not.
func TestSegmentsOfTheDevice(t *testing.T) {
	payload := make([]byte, 30000)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	for name, c := range map[string]struct {
		frame     []byte
		transport int
		typ       stack.GSOType
	}{
		"IPv4": {linktest.Flow4(1).TCP(linktest.Segment{Payload: payload}), 34, stack.GSOTCPv4},
		"IPv6": {linktest.Flow6(1).TCP(linktest.Segment{Payload: payload}), 54, stack.GSOTCPv6},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
			b, gso := partial(c.frame, c.transport, 16)
			gso.Type, gso.MSS, gso.MaxSize = c.typ, 1400, 65536
			r.device.InjectWith(b, linktest.InjectOptions{GSO: gso})
			got := r.links[0].Drain()
			if len(got) != 1 || !bytes.Equal(got[0].Frame, b) || got[0].GSO != gso {
				t.Fatalf("eth0 got %d frames, want one as it was", len(got))
			}
			r.do("eth1")
			r.device.InjectWith(b, linktest.InjectOptions{GSO: gso})
			var sent []byte
			for _, f := range r.links[1].Drain() {
				sent = append(sent, f.Frame[c.transport+20:]...)
				if len(f.Frame) > 1514 || f.GSO != (stack.GSO{}) {
					t.Errorf("a frame of %d bytes, %+v", len(f.Frame), f.GSO)
				}
			}
			if !bytes.Equal(sent, payload) {
				t.Errorf("eth1 got %d bytes, want the %d", len(sent), len(payload))
			}
		})
	}
}

// Frames for us come in by the device with what is known of them.
func TestFramesForTheDevice(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
	frame := linktest.Flow4(1).TCP(linktest.Segment{Payload: make([]byte, 5000)})
	copy(frame, r.bond.LinkAddress())
	b, gso := partial(frame, 34, 16)
	gso.Type, gso.MSS, gso.MaxSize = stack.GSOTCPv4, 1448, 65536
	r.links[0].InjectWith(b, linktest.InjectOptions{GSO: gso, RXChecksumValidated: true})
	got := r.device.Drain()
	if len(got) != 1 || !bytes.Equal(got[0].Frame, b) || got[0].GSO != gso {
		t.Errorf("the device got %d frames", len(got))
	}
	if s := r.bridge.Stats(); s.In != 1 || s.Out != 0 {
		t.Errorf("counters %+v", s)
	}
}

// What the kernel would not say is dropped and counted.
func TestMalformedFrames(t *testing.T) {
	tcp := linktest.Flow4(1).TCP(linktest.Segment{Payload: make([]byte, 100)})
	for name, gso := range map[string]stack.GSO{
		"no begun checksum":    {Type: stack.GSOTCPv4, MSS: 10},
		"no segment size":      {Type: stack.GSOTCPv4, NeedsCsum: true, L3HdrLen: 20, CsumOffset: 16},
		"another version":      {Type: stack.GSOTCPv6, MSS: 10, NeedsCsum: true, L3HdrLen: 20, CsumOffset: 16},
		"beyond the end":       {NeedsCsum: true, L3HdrLen: 2000, CsumOffset: 16},
		"field beyond the end": {NeedsCsum: true, L3HdrLen: 20, CsumOffset: 2000},
		"before the IP header": {NeedsCsum: true, L3HdrLen: 3, CsumOffset: 16},
		"segments of UDP":      {Type: stack.GSOTCPv4, MSS: 10, NeedsCsum: true, L3HdrLen: 20, CsumOffset: 6},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
			r.device.InjectWith(tcp, linktest.InjectOptions{GSO: gso})
			if s := r.bridge.Stats(); s.OutMalformed != 1 || len(r.links[0].Drain()) != 0 {
				t.Errorf("counters %+v", s)
			}
		})
	}
}

// FuzzFrames has the device deliver any bytes with any GSO data.
func FuzzFrames(f *testing.F) {
	f.Add(linktest.Flow4(1).TCP(linktest.Segment{Payload: make([]byte, 100)}), uint8(1), true, uint16(20), uint16(16), uint16(50))
	f.Add(linktest.Flow6(1).UDP([]byte("x")), uint8(0), true, uint16(40), uint16(6), uint16(0))
	f.Add(linktest.Flow4(1).ARPRequest(), uint8(0), false, uint16(0), uint16(0), uint16(0))
	f.Fuzz(func(t *testing.T, frame []byte, typ uint8, needs bool, l3, offset, mss uint16) {
		if len(frame) < 14 {
			return // the device has dropped it
		}
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup})
		gso := stack.GSO{Type: stack.GSOType(typ % 4), NeedsCsum: needs, L3HdrLen: l3, CsumOffset: offset, MSS: mss}
		r.device.InjectWith(frame, linktest.InjectOptions{GSO: gso})
		r.do("eth1")
		r.device.InjectWith(frame, linktest.InjectOptions{GSO: gso})
		r.links[1].InjectWith(frame, linktest.InjectOptions{GSO: gso})
		r.bridge.Announce()
	})
}
