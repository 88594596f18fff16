package bonding_test

import (
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// panicky is a link that panics when it is written to.
type panicky struct{ *linktest.Recorder }

func (panicky) WritePackets(stack.PacketBufferList) (int, tcpip.Error) { panic("a fault of the link") }

// An endpoint that panics, with somebody above who recovers as net/http does,
// leaves no read section open: its slave can still be released.
func TestReleaseAfterPanicInWrite(t *testing.T) {
	b := benchBond(t, bonding.Options{Mode: bonding.ActiveBackup}, panicky{linktest.NewRecorder(linktest.RecorderOptions{})})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		linktest.Write(b, linktest.Flow4(0).UDP(nil))
	}()
	if err := b.Release("eth0"); err != nil { // or the test hangs
		t.Errorf("Release() = %v", err)
	}
}
