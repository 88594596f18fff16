package bonding_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// account is the sum of what was offered to a bond and what became of it.
type account struct {
	offered, returned, copies, written uint64
	taught                             uint64 // learning packets that went out
	// learning counts those that were tried. Timers of one moment run at once.
	learning atomic.Uint64
}

// No frame is lost silently: what slaves were given and what was dropped by
// reason is what was offered, over random lists, links, failures and full
// queues. In broadcast it is so for the copies.
func TestFramesAreConserved(t *testing.T) {
	for _, m := range recoveryModes {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/seed=%d", m.mode, seed), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 3))
				r := newRig(t, bonding.Options{Mode: m.mode, XmitHashPolicy: xmithash.Layer34}, 4)
				r.own = true
				var sum account
				for _, l := range r.links {
					l.OnWrite(func(list stack.PacketBufferList) {
						if list.Len() == 1 && isLearning(list.AsSlice()[0].LinkHeader().Slice()) {
							sum.learning.Add(1)
						}
					})
				}
				for range 400 {
					name := fmt.Sprintf("eth%d", rnd.IntN(4))
					switch rnd.IntN(8) {
					case 0:
						r.carrier(name, rnd.IntN(2) == 0)
					case 1:
						r.links[name].Script(linktest.WriteStep{Take: rnd.IntN(5), Err: &tcpip.ErrNoBufferSpace{}})
					case 2:
						r.links[name].Script(linktest.WriteStep{Take: rnd.IntN(5), Err: goneErrors[rnd.IntN(len(goneErrors))]})
					case 3:
						r.links[name].Fail([]tcpip.Error{nil, nil, &tcpip.ErrNoBufferSpace{}, &tcpip.ErrInvalidEndpointState{}, &tcpip.ErrMessageTooLong{}}[rnd.IntN(5)])
					case 4:
						r.ms(rnd.IntN(150))
					default:
						r.offer(rnd.IntN(20), m.mode, &sum)
					}
				}
				c := r.Status().Counters
				if sum.copies+sum.learning.Load() != c.TxPackets+c.TxDropped || c.TxPackets != sum.written+sum.taught {
					t.Errorf("%d frames offered (%d copies), %d written to slaves, %d counted as sent, dropped %v",
						sum.offered, sum.copies, sum.written, c.TxPackets, c.Drops)
				}
				if m.mode != bonding.Broadcast && sum.returned != sum.written {
					t.Errorf("WritePackets returned %d in sum, slaves took %d", sum.returned, sum.written)
				}
			})
		}
	}
}

// offer writes a list and adds what became of it.
func (r *rig) offer(n int, mode bonding.Mode, sum *account) {
	r.clock.RunImmediatelyScheduledJobs() // what the last write began
	copies := n
	if mode == bonding.Broadcast {
		up := 0
		for _, s := range r.Status().Slaves {
			if s.MIIStatus == "up" {
				up++
			}
		}
		copies = n * max(up, 1) // without any, a frame is dropped once
	}
	took, _ := r.send(n)
	sum.offered += uint64(n)
	sum.copies += uint64(copies)
	sum.returned += uint64(took)
	for _, l := range r.links {
		all := l.Drain()
		sent := len(data(slices.Clone(all)))
		sum.written += uint64(sent)
		sum.taught += uint64(len(all) - sent)
	}
}
