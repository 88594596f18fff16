package packet

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"bondstack/link/internal/kernel"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// testProtocol is an EtherType for local experiments (IEEE 802), so that no
// stack answers.
const testProtocol = 0x88b5

// received is what a recorder keeps of a packet.
type received struct {
	frame    []byte
	protocol tcpip.NetworkProtocolNumber
	kind     tcpip.PacketType
	valid    bool
	gso      stack.GSO
}

// recorder is a dispatcher that keeps what is delivered, except what kernels
// send of themselves (neighbour and multicast discovery).
type recorder struct{ got chan received }

func newRecorder() *recorder { return &recorder{make(chan received, 4096)} }

func (r *recorder) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	v := pkt.ToView()
	defer v.Release()
	b := bytes.Clone(v.AsSlice())
	if len(b) > 14 && protocol == header.IPv6ProtocolNumber && b[0] == 0x33 {
		return
	}
	r.got <- received{b, protocol, pkt.PktType, pkt.RXChecksumValidated, pkt.GSOOptions}
}

func (*recorder) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// next waits for the next packet.
func (r *recorder) next(t testing.TB) received {
	t.Helper()
	select {
	case p := <-r.got:
		return p
	case <-time.After(patience):
		t.Fatalf("waited %v in vain for a frame", patience)
		panic("unreachable")
	}
}

// rawPeer is a packet socket at the peer's end.
type rawPeer struct {
	t  testing.TB
	fd int
}

// raw opens a packet socket on veth1 that does not hear itself.
func (p *pair) raw() *rawPeer {
	p.t.Helper()
	r := &rawPeer{p.t, -1}
	p.peer.Do(func() {
		facts, err := kernel.LookUp("veth1")
		if err != nil {
			p.t.Fatal(err)
		}
		if r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { unix.Close(r.fd) })
		unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
		limit := unix.NsecToTimeval(patience.Nanoseconds())
		unix.SetsockoptTimeval(r.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
		addr := unix.SockaddrLinklayer{Protocol: allProtocols, Ifindex: int(facts.Index)}
		if err := unix.Bind(r.fd, &addr); err != nil {
			p.t.Fatal(err)
		}
	})
	return r
}

// send sends a frame.
func (r *rawPeer) send(frame []byte) {
	r.t.Helper()
	if _, err := unix.Write(r.fd, frame); err != nil {
		r.t.Fatalf("the peer cannot send %d bytes: %v", len(frame), err)
	}
}

// any waits for the next frame.
func (r *rawPeer) any() []byte {
	r.t.Helper()
	b := make([]byte, 1<<16)
	n, err := unix.Read(r.fd, b)
	if err != nil || n < 14 {
		r.t.Fatalf("the peer received nothing: %d, %v", n, err)
	}
	return b[:n]
}

// next waits for the next frame of the test protocol.
func (r *rawPeer) next() []byte {
	r.t.Helper()
	for {
		if b := r.any(); binary.BigEndian.Uint16(b[12:]) == testProtocol {
			return b
		}
	}
}

// frame is an Ethernet frame of the test protocol.
func frame(dst kernel.MAC, payload string) []byte {
	return etherFrame(dst, testProtocol, []byte(payload))
}

// etherFrame is an Ethernet frame from a station that there is not.
func etherFrame(dst kernel.MAC, protocol uint16, payload []byte) []byte {
	b := append([]byte{}, dst[:]...)
	b = append(b, 2, 0, 0, 0, 0, 0xee)
	b = binary.BigEndian.AppendUint16(b, protocol)
	return append(b, payload...)
}

// own is the endpoint's address.
func own(e *Endpoint) kernel.MAC { return kernel.MAC([]byte(e.LinkAddress())) }

// write sends frames by an endpoint.
func write(e stack.LinkEndpoint, frames ...[]byte) (int, tcpip.Error) {
	var list stack.PacketBufferList
	for _, f := range frames {
		list.PushBack(outgoing(f))
	}
	defer list.Reset()
	return e.WritePackets(list)
}

// outgoing is a packet whose link header is pushed, as netstack makes it.
func outgoing(frame []byte) *stack.PacketBuffer {
	n := min(len(frame), header.EthernetMinimumSize)
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: n,
		Payload:            buffer.MakeWithData(frame[n:]),
	})
	if n > 0 {
		copy(pkt.LinkHeader().Push(n), frame)
	}
	return pkt
}

// attach attaches a new recorder.
func attach(e stack.LinkEndpoint) *recorder {
	r := newRecorder()
	e.Attach(r)
	return r
}
