package wire_test

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// transfer sends size random bytes over c and reads them from s, and reports
// whether their hashes are the same.
func transfer(t *testing.T, c, s net.Conn, size int64) {
	t.Helper()
	sent, got := sha256.New(), sha256.New()
	done := make(chan error, 1)
	go func() {
		src := io.LimitReader(rand.NewChaCha8([32]byte{1}), size)
		_, err := io.CopyBuffer(struct{ io.Writer }{c}, io.TeeReader(src, sent), make([]byte, 200_001))
		c.Close()
		done <- err
	}()
	n, err := io.Copy(got, s)
	s.Close()
	if werr := <-done; err != nil || werr != nil || n != size {
		t.Errorf("read %d of %d bytes, %v; write: %v", n, size, err, werr)
	}
	if string(sent.Sum(nil)) != string(got.Sum(nil)) {
		t.Error("the bytes read are not those written")
	}
}

// Two netstacks move bytes that arrive as they were.
func TestTCP(t *testing.T) {
	var none wire.Impairments
	for _, tt := range []struct {
		name string
		size int64
		opts wire.Options
		im   wire.Impairments // of the client's frames, once it is connected
	}{
		{"gso", 64 << 20, wire.Options{}, none},
		{"no gso", 4 << 20, wire.Options{DisableGSO: true}, none},
		{"one end without gso", 4 << 20, wire.Options{B: wire.EndOptions{DisableGSO: true}}, none},
		{"least mtu", 8 << 10, wire.Options{MTU: 68, DisableGSO: true}, none},
		{"greatest mtu", 16 << 20, wire.Options{MTU: 65521}, none},
		{"small queue", 4 << 20, wire.Options{QueueFrames: 32}, none},
		{"corruption", 2 << 20, wire.Options{DisableGSO: true}, wire.Impairments{Corrupt: 0.02}},
		// The receiver verifies every checksum that GSO had left to the link.
		{"gso, verified", 16 << 20, wire.Options{}, wire.Impairments{Corrupt: 1e-12}},
		{"duplicates and reordering", 4 << 20, wire.Options{}, wire.Impairments{Duplicate: 0.1, Reorder: 0.05, ReorderDelay: 50 * time.Microsecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			a, b := newWire(t, tt.opts)
			s, r := newStack(t, a, 1), newStack(t, b, 2)
			client, server := connect(t, s, r, 2, 80)
			if err := a.SetImpairments(tt.im); err != nil {
				t.Fatal(err)
			}
			transfer(t, client, server, tt.size)
			stats := a.Stats()
			gso := stats.TxBytes/stats.TxFrames > uint64(a.MTU())
			if want := tt.name == "gso"; want && !gso {
				t.Errorf("%d bytes in %d frames: GSO was not used", stats.TxBytes, stats.TxFrames)
			}
			if a.GSOMaxSize() == 0 && gso {
				t.Errorf("%d bytes in %d frames: GSO was used", stats.TxBytes, stats.TxFrames)
			}
			if n := stats.Tx.Oversize + b.Stats().Rx.Oversize; n != 0 {
				t.Errorf("%d frames too long", n)
			}
			damaged := r.Stats().TCP.ChecksumErrors.Value() + r.Stats().IP.MalformedPacketsReceived.Value()
			if n := stats.Impaired.Corrupted; n > 5 && damaged == 0 || n == 0 && damaged != 0 {
				t.Errorf("%d frames corrupted, %d damaged ones noticed", n, damaged)
			}
		})
	}
}

// A connection survives a cut of the cable and one of each direction.
func TestTCPSurvivesCuts(t *testing.T) {
	linktest.CheckGoroutines(t)
	a, b := newWire(t, wire.Options{A: wire.EndOptions{Impairments: wire.Impairments{Rate: 1e9}}})
	s, r := newStack(t, a, 1), newStack(t, b, 2)
	client, server := connect(t, s, r, 2, 80)
	done := make(chan struct{})
	go func() {
		defer close(done)
		transfer(t, client, server, 4<<20)
	}()
	frames := func() uint64 { return b.Stats().RxFrames }
	for _, cut := range []func(bool){func(on bool) { a.SetCarrier(!on) }, a.SetCut, b.SetCut} {
		start := frames()
		for frames() == start { // some frames pass between cuts
			select {
			case <-done:
			case <-time.After(100 * time.Microsecond):
				continue
			}
			break
		}
		cut(true)
		cut(false)
	}
	<-done
}
