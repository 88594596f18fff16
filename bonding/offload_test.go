package bonding_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/offload"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const mss = 1460

// gsoPacket is a TCP packet of a flow that the link is to cut, and its payload.
func gsoPacket(n, size int) (*stack.PacketBuffer, []byte) {
	payload := make([]byte, size)
	rnd := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range payload {
		payload[i] = byte(rnd.Uint32())
	}
	f := linktest.Flow4(n)
	if n%2 == 1 {
		f = linktest.Flow6(n)
	}
	return linktest.GSOPacket(f.TCP(linktest.Segment{Seq: 1000, Payload: payload}), mss-20*uint16(n%2)), payload
}

// writeGSO writes one GSO packet of each flow in one list.
func (r *rig) writeGSO(size int, flows ...int) (payloads [][]byte) {
	r.tb.Helper()
	var list stack.PacketBufferList
	for _, n := range flows {
		pkt, payload := gsoPacket(n, size)
		list.PushBack(pkt)
		payloads = append(payloads, payload)
	}
	defer list.DecRef()
	if n, err := r.WritePackets(list); n != len(flows) || err != nil {
		r.tb.Errorf("WritePackets() = %d, %v, want %d", n, err, len(flows))
	}
	return payloads
}

// checkCut checks that frames are whole TCP segments of at most the MTU, with
// right checksums, and returns their payload in order of their sequence
// numbers, which start at 1000.
func checkCut(tb testing.TB, frames []linktest.Written, mtu int) []byte {
	tb.Helper()
	var stream []byte
	for i, w := range frames {
		if len(w.Frame) > mtu+14 || w.GSO.Type != stack.GSONone {
			tb.Errorf("frame %d has %d bytes, GSO %+v, MTU is %d", i, len(w.Frame), w.GSO, mtu)
		}
		if verifyFrame(w.Frame) != offload.Good {
			tb.Errorf("frame %d has a wrong checksum: %x", i, w.Frame[:60])
		}
		pkt := linktest.Packet(w.Frame)
		tcp := header.TCP(pkt.TransportHeader().Slice())
		if got := int(tcp.SequenceNumber()) - 1000; got != len(stream) {
			tb.Errorf("frame %d has sequence number %d, want %d", i, got, len(stream))
		}
		v := pkt.Data().AsRange().ToView()
		stream = append(stream, v.AsSlice()...)
		v.Release()
		pkt.DecRef()
	}
	return stream
}

// verifyFrame checks a frame as a receiver does.
func verifyFrame(frame []byte) offload.Verdict {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	defer pkt.DecRef()
	eth, _ := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	return offload.Verify(header.Ethernet(eth).Type(), pkt)
}

// A bond offers the same whatever its slaves are: GSO of 64 KiB and checksums
// verified, and never checksums left for the link.
func TestOffersAreConstant(t *testing.T) {
	r := newRig(t, bonding.Options{}, 0)
	for _, ro := range []linktest.RecorderOptions{{}, {GSO: true}, {Capabilities: stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload}} {
		if r.GSOMaxSize() != 65536 || r.SupportedGSO() != stack.HostGSOSupported ||
			r.Capabilities() != stack.CapabilityResolutionRequired|stack.CapabilityRXChecksumOffload {
			t.Errorf("the bond offers GSO %d, %v, capabilities %b", r.GSOMaxSize(), r.SupportedGSO(), r.Capabilities())
		}
		r.enslave(fmt.Sprintf("eth%d", len(r.links)), bonding.SlaveOptions{}, ro)
	}
}

// A slave with GSO gets the packet whole, one without gets segments (A2).
func TestGSOBySlave(t *testing.T) {
	for _, m := range recoveryModes {
		for flow := range 2 {
			r := newRig(t, bonding.Options{Mode: m.mode}, 0)
			whole := r.enslave("eth0", bonding.SlaveOptions{}, linktest.RecorderOptions{GSO: true})
			cut := r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{})
			for _, use := range []string{"eth0", "eth1"} {
				for name := range r.links {
					r.enable(name, name == use)
				}
				r.sent("eth0", "eth1")
				payload := r.writeGSO(60000, flow)[0]
				if use == "eth0" {
					got := whole.Drain()
					if len(got) != 1 || len(got[0].Frame) < 60000 || got[0].GSO.Type == stack.GSONone || !got[0].GSO.NeedsCsum {
						t.Errorf("%s: the slave with GSO was given %d frames", m.mode, len(got))
					}
					continue
				}
				if stream := checkCut(t, cut.Drain(), 1500); !bytes.Equal(stream, payload) {
					t.Errorf("%s: the segments' payload differs", m.mode)
				}
			}
		}
	}
}

// In broadcast one packet goes whole by one slave and in segments by another,
// and the packet itself is not changed.
func TestGSOToMixedSlavesInBroadcast(t *testing.T) {
	for _, order := range []string{"whole first", "cut first"} {
		r := newRig(t, bonding.Options{Mode: bonding.Broadcast}, 0)
		for i := range 2 {
			r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{}, linktest.RecorderOptions{GSO: (order == "whole first") == (i == 0)})
		}
		pkt, payload := gsoPacket(2, 50000)
		defer pkt.DecRef()
		before := pkt.ToView()
		defer before.Release()
		var list stack.PacketBufferList
		list.PushBack(pkt)
		for range 3 {
			if n, err := r.WritePackets(list); n != 1 || err != nil {
				t.Errorf("WritePackets() = %d, %v", n, err)
			}
			for name, l := range r.links {
				got := l.Drain()
				if l.GSOMaxSize() > 0 {
					if len(got) != 1 || !bytes.Equal(got[0].Frame, before.AsSlice()) {
						t.Errorf("%s, %s: was given %d frames", order, name, len(got))
					}
				} else if stream := checkCut(t, got, 1500); !bytes.Equal(stream, payload) {
					t.Errorf("%s, %s: the segments' payload differs", order, name)
				}
			}
		}
		after := pkt.ToView()
		defer after.Release()
		if !bytes.Equal(before.AsSlice(), after.AsSlice()) {
			t.Errorf("%s: the packet was changed", order)
		}
	}
}

// balance-xor over mixed slaves: each flow as its slave can, and all segments of
// a flow on its slave.
func TestGSOToMixedSlavesInXOR(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR, XmitHashPolicy: xmithash.Layer34}, 0)
	for i := range 4 {
		r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{}, linktest.RecorderOptions{GSO: i%2 == 0})
	}
	for n := range 50 {
		payload := r.writeGSO(30000, n)[0]
		used := 0
		for i := range 4 {
			got := r.links[fmt.Sprintf("eth%d", i)].Drain()
			switch {
			case len(got) == 0:
				continue
			case i%2 == 0:
				if len(got) != 1 {
					t.Errorf("flow %d: eth%d was given %d frames", n, i, len(got))
				}
			default:
				if stream := checkCut(t, got, 1500); !bytes.Equal(stream, payload) {
					t.Errorf("flow %d: the segments' payload differs", n)
				}
			}
			used++
		}
		if used != 1 {
			t.Errorf("flow %d went by %d slaves", n, used)
		}
	}
}

// A slave without GSO that joins in the middle of a stream never sees a frame
// that is too long.
func TestSlaveWithoutGSOJoins(t *testing.T) {
	r := newRig(t, bonding.Options{}, 0)
	r.enslave("eth0", bonding.SlaveOptions{}, linktest.RecorderOptions{GSO: true})
	for range 5 {
		r.writeGSO(60000, 2)
	}
	r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	for range 6 { // in turn
		payload := r.writeGSO(60000, 2)[0]
		if got := r.links["eth1"].Drain(); len(got) > 0 {
			if stream := checkCut(t, got, 1500); !bytes.Equal(stream, payload) {
				t.Error("the segments' payload differs")
			}
		}
	}
	if got := r.links["eth0"].Drain(); len(got) != 5+3 {
		t.Errorf("eth0 was given %d packets, want 8", len(got))
	}
}

// A packet of one segment whose checksum is left to the link is completed.
func TestChecksumIsCompleted(t *testing.T) {
	for flow := range 2 {
		r := newRig(t, bonding.Options{}, 1)
		payload := r.writeGSO(100, flow)[0]
		got := r.links["eth0"].Drain()
		if stream := checkCut(t, got, 1500); len(got) != 1 || !bytes.Equal(stream, payload) {
			t.Errorf("the slave was given %d frames", len(got))
		}
	}
}

// A slave that takes GSO of less than 64 KiB gets what fits whole.
func TestSmallGSO(t *testing.T) {
	r := newRig(t, bonding.Options{}, 0)
	link := smallGSO{linktest.NewRecorder(linktest.RecorderOptions{GSO: true})}
	if err := r.Enslave("eth0", link, bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	r.writeGSO(20000, 2)
	if got := link.Drain(); len(got) != 1 {
		t.Errorf("a packet that fits came as %d frames", len(got))
	}
	payload := r.writeGSO(60000, 2)[0]
	if stream := checkCut(t, link.Drain(), 1500); !bytes.Equal(stream, payload) {
		t.Error("the segments' payload differs")
	}
}

type smallGSO struct{ *linktest.Recorder }

func (smallGSO) GSOMaxSize() uint32 { return 32768 }

// Segments count as frames; those that a full slave does not take are counted
// as dropped, and the next slave of a list is not concerned.
func TestSegmentsAreCounted(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
	full := &tcpip.ErrNoBufferSpace{}
	r.links["eth0"].Script(linktest.WriteStep{Take: 7, Err: full}, linktest.WriteStep{Err: full})
	pkt, _ := gsoPacket(2, 10*mss)
	var list stack.PacketBufferList
	list.PushBack(pkt)
	defer list.DecRef()
	n, err := r.WritePackets(list)
	if _, isFull := err.(*tcpip.ErrNoBufferSpace); n != 0 || !isFull {
		t.Errorf("WritePackets() = %d, %v, want 0: the packet was not taken whole", n, err)
	}
	if c := r.Status().Counters; c.TxPackets != 7 || c.Drops["tx_no_buffer"] != 3 {
		t.Errorf("counters are %+v, want 7 sent, 3 dropped", c)
	}
}

// The link is found gone in the middle of a packet: the next slave gets that
// packet anew and whole, since half of it was lost with the link.
func TestLinkGoneInTheMiddleOfAPacket(t *testing.T) {
	for _, gso := range []bool{true, false} {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
		r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{GSO: gso})
		r.links["eth0"].Script(linktest.WriteStep{Take: 15, Err: &tcpip.ErrInvalidEndpointState{}})
		payloads := r.writeGSO(10*mss, 2, 4, 6) // 10 segments each
		if stream := checkCut(t, r.links["eth0"].Drain()[:10], 1500); !bytes.Equal(stream, payloads[0]) {
			t.Error("the first packet's payload differs")
		}
		got := r.links["eth1"].Drain()
		if gso {
			if len(got) != 2 {
				t.Errorf("the next slave was given %d packets, want 2", len(got))
			}
			continue
		}
		for i := range 2 {
			if stream := checkCut(t, got[i*10:i*10+10], 1500); !bytes.Equal(stream, payloads[1+i]) {
				t.Errorf("packet %d's payload differs", 1+i)
			}
		}
	}
}

// A GSO packet that cannot be cut is dropped and counted, and those beside it
// are sent.
func TestMalformedGSO(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
	good, payload := gsoPacket(2, 3000)
	bad, _ := gsoPacket(4, 3000)
	bad.GSOOptions.MSS = 0
	other, _ := gsoPacket(6, 3000)
	other.GSOOptions.Type = stack.GSOTCPv6 // it is not
	var list stack.PacketBufferList
	for _, pkt := range []*stack.PacketBuffer{bad, good, other} {
		list.PushBack(pkt)
	}
	defer list.DecRef()
	if _, err := r.WritePackets(list); err != nil {
		t.Errorf("WritePackets() = %v", err)
	}
	if stream := checkCut(t, r.links["eth0"].Drain(), 1500); !bytes.Equal(stream, payload) {
		t.Error("the good packet's payload differs")
	}
	if n := r.drops("tx_malformed"); n != 2 {
		t.Errorf("tx_malformed is %d, want 2", n)
	}
}
