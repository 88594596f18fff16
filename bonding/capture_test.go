package bonding_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// nextFrames reads n frames, as "eth0 out 60", and their bytes.
func nextFrames(t *testing.T, c *bonding.Capture, n int) (lines []string, frames [][]byte) {
	t.Helper()
	for range n {
		f, ok := c.Next(t.Context())
		if !ok {
			t.Fatalf("the capture ended after %d frames", len(lines))
		}
		way := "in"
		if f.Out {
			way = "out"
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %d", f.Slave, way, f.Length)))
		frames = append(frames, bytes.Clone(f.Data))
		if f.Time.IsZero() {
			t.Error("a frame without a time")
		}
	}
	return lines, frames
}

// nothingMore checks that no frame waits.
func nothingMore(t *testing.T, c *bonding.Capture) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, ok := c.Next(ctx); ok {
		t.Errorf("one frame too many: %+v", f)
	}
}

func mustCapture(t testing.TB, r *rig, o bonding.CaptureOptions) *bonding.Capture {
	t.Helper()
	c, err := r.Capture(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestCapture(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.ms(1000)
	all := mustCapture(t, r, bonding.CaptureOptions{})
	second := mustCapture(t, r, bonding.CaptureOptions{Slaves: []string{"eth1"}, SnapLen: 20})
	above := mustCapture(t, r, bonding.CaptureOptions{Bond: true})
	out := linktest.Flow4(1).UDP([]byte("there"))
	in := r.toBond(2)
	linktest.Write(r, out)
	r.links["eth0"].Inject(in)
	r.links["eth1"].Inject(in) // a backup's: dropped by the bond

	lines, frames := nextFrames(t, all, 3)
	want := fmt.Sprintf("[eth0 out %d eth0 in %d eth1 in %d]", len(out), len(in), len(in))
	if fmt.Sprint(lines) != want || !bytes.Equal(frames[0], out) || !bytes.Equal(frames[1], in) || !bytes.Equal(frames[2], in) {
		t.Errorf("all slaves: %v, want %s", lines, want)
	}
	lines, frames = nextFrames(t, second, 1)
	if want := fmt.Sprintf("[eth1 in %d]", len(in)); fmt.Sprint(lines) != want || !bytes.Equal(frames[0], in[:20]) {
		t.Errorf("eth1: %v %x, want %s %x", lines, frames, want, in[:20])
	}
	lines, frames = nextFrames(t, above, 2)
	if want := fmt.Sprintf("[out %d in %d]", len(out), len(in)); fmt.Sprint(lines) != want || !bytes.Equal(frames[0], out) || !bytes.Equal(frames[1], in) {
		t.Errorf("the bond: %v, want %s", lines, want)
	}
	for _, c := range []*bonding.Capture{all, second, above} {
		nothingMore(t, c)
	}

	// A slave that joins later is captured as well; one that the capture did not
	// name is not.
	r.enslave("eth2", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	r.links["eth2"].Inject(in)
	if lines, _ := nextFrames(t, all, 1); lines[0] != fmt.Sprintf("eth2 in %d", len(in)) {
		t.Errorf("of a slave that joined: %v", lines)
	}
	nothingMore(t, second)

	all.Close()
	all.Close()
	if _, ok := all.Next(t.Context()); ok {
		t.Error("a frame after Close")
	}
	linktest.Write(r, out)
	nothingMore(t, all)
}

// TestCaptureControl: what the bond itself sends is there.
func TestCaptureControl(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.IEEE8023AD, LACP: bonding.LACPOptions{Fast: true}}, 1)
	c := mustCapture(t, r, bonding.CaptureOptions{})
	r.ms(3000)
	lines, frames := nextFrames(t, c, 1)
	if lines[0] != "eth0 out 124" || frames[0][12] != 0x88 || frames[0][13] != 0x09 {
		t.Errorf("%v %x, want an LACPDU", lines, frames[0][:14])
	}
}

// TestCaptureBehind: a reader that does not read costs the capture frames, not the bond.
func TestCaptureBehind(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
	c := mustCapture(t, r, bonding.CaptureOptions{})
	out := linktest.Flow4(1).UDP([]byte("there"))
	for range 300 {
		linktest.Write(r, out)
	}
	if n := len(data(r.links["eth0"].Drain())); n != 300 {
		t.Errorf("%d of 300 frames sent", n)
	}
	nextFrames(t, c, 255)
	nothingMore(t, c)
	if c.Dropped() != 45 {
		t.Errorf("%d frames dropped, want 45", c.Dropped())
	}
	linktest.Write(r, out)
	nextFrames(t, c, 1)
}

func TestCaptureFaults(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
	for want, o := range map[string]bonding.CaptureOptions{
		"snaplen 70000: allowed are 1 to 65664": {SnapLen: 70000},
		"snaplen -1":                            {SnapLen: -1},
		"eth9":                                  {Slaves: []string{"eth0", "eth9"}},
		"the bond itself and slaves are two captures": {Bond: true, Slaves: []string{"eth0"}},
	} {
		if _, err := r.Capture(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Capture(%+v) = %v, want %q", o, err, want)
		}
	}
	for range bonding.MaxCaptures {
		mustCapture(t, r, bonding.CaptureOptions{})
	}
	if _, err := r.Capture(bonding.CaptureOptions{}); !errors.Is(err, bonding.ErrPrecondition) {
		t.Errorf("a capture too many: %v", err)
	}
	r.Close()
	if _, err := r.Capture(bonding.CaptureOptions{}); !errors.Is(err, bonding.ErrClosed) {
		t.Errorf("on a closed bond: %v", err)
	}
}

// TestCaptureEnds: a reader that waits ends with its capture, and with the bond.
func TestCaptureEnds(t *testing.T) {
	for name, deed := range map[string]func(*rig, *bonding.Capture){
		"the capture": func(_ *rig, c *bonding.Capture) { c.Close() },
		"the bond":    func(r *rig, _ *bonding.Capture) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 1)
			c := mustCapture(t, r, bonding.CaptureOptions{})
			ended := make(chan bool)
			go func() {
				_, ok := c.Next(context.Background())
				ended <- ok
			}()
			deed(r, c)
			if <-ended {
				t.Error("it read a frame")
			}
		})
	}
}

// TestCaptureStorm: many writers, one reader, captures that come and go; each frame is
// read whole or counted as dropped.
func TestCaptureStorm(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR}, 2)
	c := mustCapture(t, r, bonding.CaptureOptions{})
	const writers, each = 8, 500
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				pkt := linktest.Packet(linktest.Flow4(w*each + i).UDP(bytes.Repeat([]byte{byte(i)}, i)))
				var list stack.PacketBufferList
				list.PushBack(pkt)
				r.WritePackets(list)
				pkt.DecRef()
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			if other, err := r.Capture(bonding.CaptureOptions{SnapLen: 64}); err == nil {
				other.Close()
			}
		}
	})
	done := make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		n := 0
		for {
			f, ok := c.Next(ctx)
			if !ok {
				done <- n
				return
			}
			n++
			for _, b := range f.Data[42:] {
				if b != byte(f.Length-42) {
					t.Errorf("a frame of %d bytes has another's bytes", f.Length)
					break
				}
			}
		}
	}()
	wg.Wait()
	cancel() // what waits is read before
	if n := <-done; uint64(n)+c.Dropped() != writers*each {
		t.Errorf("%d read, %d dropped of %d", n, c.Dropped(), writers*each)
	}
}

// TestCaptureAllocs: a frame that is captured costs a copy, and no memory.
func TestCaptureAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
	r.enslave("eth0", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	c := mustCapture(t, r, bonding.CaptureOptions{SnapLen: 128})
	pkt := linktest.Packet(linktest.Flow4(1).UDP([]byte("there")))
	defer pkt.DecRef()
	bonding.CaptureForTest(c, pkt) // the reader's map
	if n := testing.AllocsPerRun(100, func() { bonding.CaptureForTest(c, pkt) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
