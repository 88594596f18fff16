package wire_test

import (
	"runtime"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/refs"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// A frame costs no allocation from write to delivery, once the pools and queues
// have grown, with no impairment and with those that only keep or drop frames.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	mode := refs.GetLeakMode()
	refs.SetLeakMode(refs.NoLeakChecking) // it allocates as well
	defer refs.SetLeakMode(mode)
	for name, opts := range map[string]wire.Options{
		"plain":       {},
		"synchronous": {Synchronous: true},
		"loss":        {Synchronous: true, A: wire.EndOptions{Impairments: wire.Impairments{Loss: 0.1}}},
		"delay":       {Synchronous: true, A: wire.EndOptions{Impairments: wire.Impairments{Delay: time.Nanosecond, Jitter: time.Nanosecond}}},
	} {
		opts.B.Promiscuous = true
		a, b := newWire(t, opts)
		var count linktest.Counter
		b.Attach(&count)
		var list stack.PacketBufferList
		for range 40 {
			list.PushBack(linktest.GSOPacket(linktest.Flow4(0).TCP(linktest.Segment{Payload: make([]byte, 1400)}), 1448))
		}
		run := func() {
			a.WritePackets(list)
			for s := a.Stats(); count.Packets.Load() < s.TxFrames-s.Impaired.Lost; {
				runtime.Gosched()
			}
		}
		// Pools are emptied by the collector now and then: less than one
		// allocation in ten frames is not ours.
		if n := testing.AllocsPerRun(500, run); n >= 4 {
			t.Errorf("%s: %v allocations for 40 frames", name, n)
		}
		list.DecRef()
		a.Close()
		b.Close()
	}
}
