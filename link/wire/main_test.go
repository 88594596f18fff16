package wire_test

import (
	"bytes"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// newWire returns a wire that is closed with the test.
func newWire(tb testing.TB, opts wire.Options) (a, b *wire.Endpoint) {
	tb.Helper()
	a, b, err := wire.New(opts)
	if err != nil {
		tb.Fatalf("New(%+v) = %v", opts, err)
	}
	tb.Cleanup(a.Close)
	tb.Cleanup(b.Close)
	return a, b
}

// bench is a wire with what deterministic tests need: synchronous, on a manual
// clock, a sink at end b that lets everything through.
type bench struct {
	a, b  *wire.Endpoint
	clock *faketime.ManualClock
	sink  linktest.Sink
}

func newBench(tb testing.TB, opts wire.Options) *bench {
	tb.Helper()
	x := &bench{clock: faketime.NewManualClock()}
	opts.Clock = x.clock
	opts.Synchronous = true
	opts.B.Promiscuous = true
	x.a, x.b = newWire(tb, opts)
	x.b.Attach(&x.sink)
	return x
}

// write writes frames at end a, all of which must be taken.
func (x *bench) write(tb testing.TB, frames ...[]byte) {
	tb.Helper()
	if n, err := linktest.Write(x.a, frames...); n != len(frames) || err != nil {
		tb.Fatalf("WritePackets() of %d frames = %d, %v", len(frames), n, err)
	}
}

// frame returns a frame that carries a number, of 100 bytes.
func frame(n int) []byte {
	return linktest.Flow4(0).UDP(append([]byte{byte(n >> 8), byte(n)}, make([]byte, 56)...))
}

// number returns the number that a frame carries, -1 when its bytes are not those
// of a frame that frame has made.
func number(f []byte) int {
	if len(f) != 100 {
		return -1
	}
	n := int(f[42])<<8 | int(f[43])
	if !bytes.Equal(f, frame(n)) {
		return -1
	}
	return n
}

// numbers returns those of all delivered frames.
func numbers(d []linktest.Delivered) []int {
	var n []int
	for _, f := range d {
		n = append(n, number(f.Frame))
	}
	return n
}
