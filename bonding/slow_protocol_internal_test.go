package bonding

import (
	"testing"

	"bondstack/bonding/lacp"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// gated is a link whose first write waits.
type gated struct {
	*linktest.Recorder
	inside, open chan struct{}
}

func (g *gated) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	if g.inside != nil {
		close(g.inside)
		g.inside = nil
		<-g.open
	}
	return g.Recorder.WritePackets(pkts)
}

// A slave whose endpoint blocks holds up one goroutine. Who comes with a control
// frame meanwhile goes on; of several LACPDUs the last is sent when it is over.
func TestControlFramesDoNotWaitForABlockedSlave(t *testing.T) {
	inside := make(chan struct{})
	g := &gated{linktest.NewRecorder(linktest.RecorderOptions{}), inside, make(chan struct{})}
	s := &slave{bond: &Bond{}, ep: g}
	send := func(frame []byte) { s.controls.put(frame); s.sendControls() }
	pdu := func(subtype, mark byte) []byte { return s.slowFrame([]byte{subtype, mark}) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		send(pdu(lacp.SubtypeLACP, 1))
	}()
	<-inside
	for mark := byte(2); mark < 5; mark++ {
		send(pdu(lacp.SubtypeLACP, mark)) // returns, or the test hangs
	}
	send(pdu(lacp.SubtypeMarker, 9))
	close(g.open)
	<-done
	var marks []byte
	for _, w := range g.Drain() {
		marks = append(marks, w.Frame[ethernetHeader+1])
	}
	if string(marks) != "\x01\x04\x09" {
		t.Errorf("sent %v, want the first LACPDU, the last, and the marker response", marks)
	}
	send(pdu(lacp.SubtypeLACP, 5))
	if n := len(g.Drain()); n != 1 {
		t.Errorf("%d frames went out after that, want 1", n)
	}
}

// Of two LACPDUs that were made one after the other the first is not sent last,
// whichever goroutine is the first to send: it would be the partner's news for
// half a minute.
func TestControlFramesInOrder(t *testing.T) {
	link := linktest.NewRecorder(linktest.RecorderOptions{})
	s := &slave{bond: &Bond{}, ep: link}
	later := []func(){}
	for mark := byte(1); mark < 3; mark++ {
		s.controls.put(s.slowFrame([]byte{lacp.SubtypeLACP, mark}))
		later = append(later, s.sendControls)
	}
	later[1]()
	later[0]()
	if sent := link.Drain(); len(sent) != 1 || sent[0].Frame[ethernetHeader+1] != 2 {
		t.Errorf("sent %v, want the second LACPDU alone", sent)
	}
}
