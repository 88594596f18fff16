package bonding_test

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// guarded is a link that notes writes that come when none may.
type guarded struct {
	*linktest.Null
	forbidden atomic.Bool
	late      atomic.Int64
	taken     atomic.Int64
}

func newGuarded() *guarded {
	return &guarded{Null: linktest.NewNull(linktest.NullOptions{GSO: true})}
}

func (g *guarded) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	if g.forbidden.Load() {
		g.late.Add(int64(pkts.Len()))
	}
	g.taken.Add(int64(pkts.Len()))
	return pkts.Len(), nil
}

// hammer has n goroutines write lists until the function that it returns is
// called, which returns how many packets were offered.
func hammer(b *bonding.Bond, n int) (stop func() int64) {
	var offered atomic.Int64
	var end atomic.Bool
	var wg sync.WaitGroup
	for g := range n {
		wg.Go(func() {
			var list stack.PacketBufferList
			for i := range 1 + g%4*5 {
				f := linktest.Flow4(g*100 + i)
				f.SrcMAC = b.LinkAddress()
				list.PushBack(linktest.Packet(f.UDP([]byte{byte(i)})))
			}
			defer list.DecRef()
			for !end.Load() {
				b.WritePackets(list)
				offered.Add(int64(list.Len()))
				runtime.Gosched() // there are more goroutines than processors
			}
		})
	}
	return func() int64 {
		end.Store(true)
		wg.Wait()
		return offered.Load()
	}
}

// When Release returns, no write is or will be in the endpoint, though four
// goroutines write all the time.
func TestNoWriteAfterRelease(t *testing.T) {
	for _, m := range recoveryModes {
		b := benchBond(t, bonding.Options{Mode: m.mode, XmitHashPolicy: xmithash.Layer34}, newGuarded())
		stop := hammer(b, 4)
		var gone []*guarded
		for round := range 250 {
			g := newGuarded()
			name := fmt.Sprintf("hot%d", round%3)
			if err := b.Enslave(name, g, bonding.SlaveOptions{Priority: 1}); err != nil {
				t.Fatal(err)
			}
			for round%10 == 0 && g.taken.Load() == 0 { // now and then be sure that it is in use
				runtime.Gosched()
			}
			if err := b.Release(name); err != nil {
				t.Fatal(err)
			}
			g.forbidden.Store(true)
			gone = append(gone, g)
		}
		stop()
		for i, g := range gone {
			if n := g.late.Load(); n > 0 {
				t.Errorf("%s: %d frames were written to slave %d after its release", m.mode, n, i)
			}
		}
	}
}

// Release waits for a write that is inside the endpoint. Meanwhile the slave is
// out of the status, the others send, and options may be set.
func TestReleaseWaitsForWriters(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	inside, leave, returned := make(chan bool), make(chan bool), make(chan error)
	eth0 := r.links["eth0"]
	eth0.OnWrite(func(stack.PacketBufferList) { inside <- true; <-leave })
	var writer sync.WaitGroup
	writer.Go(func() { r.send(1) })
	<-inside
	go func() { returned <- r.Release("eth0") }()
	for len(r.Status().Slaves) == 2 { // until it is dismissed
		runtime.Gosched()
	}
	if n, err := r.send(3); n != 3 || err != nil {
		t.Errorf("meanwhile WritePackets() = %d, %v", n, err)
	}
	r.set("num_grat_arp", "3")
	select {
	case err := <-returned:
		t.Errorf("Release() = %v with a writer inside", err)
	default:
	}
	if eth0.Calls().Detach != 0 {
		t.Error("detached with a writer inside")
	}
	leave <- true
	if err := <-returned; err != nil {
		t.Error(err)
	}
	writer.Wait()
	if got := len(eth0.Written()); got != 1 || r.Status().Counters.TxPackets != 4 {
		t.Errorf("the released slave was given %d frames, the bond counts %d", got, r.Status().Counters.TxPackets)
	}
}

// The bond's counters only grow, at whatever moment they are read, while slaves
// come and go under traffic; at the end they are what was taken.
func TestCountersOnlyGrow(t *testing.T) {
	first := newGuarded()
	b := benchBond(t, bonding.Options{}, first)
	stop := hammer(b, 4)
	var reader sync.WaitGroup
	var end atomic.Bool
	reader.Go(func() {
		var last bonding.Counters
		for !end.Load() {
			now := b.Status().Counters
			if now.TxPackets < last.TxPackets || now.TxBytes < last.TxBytes {
				t.Errorf("counters went from %d packets, %d bytes to %d, %d", last.TxPackets, last.TxBytes, now.TxPackets, now.TxBytes)
				return
			}
			last = now
		}
	})
	taken := int64(0)
	for range 100 {
		g := newGuarded()
		if err := b.Enslave("hot", g, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := b.Release("hot"); err != nil {
			t.Fatal(err)
		}
		taken += g.taken.Load()
	}
	end.Store(true)
	reader.Wait()
	offered := stop()
	taken += first.taken.Load()
	if got := b.Status().Counters; int64(got.TxPackets) != taken || taken != offered || got.TxDropped != 0 {
		t.Errorf("%d frames were offered, %d taken, %d counted, %d dropped", offered, taken, got.TxPackets, got.TxDropped)
	}
}

// Members come and go one by one, and their order stays that of enslaving (T92
// to T98, T193).
func TestMembersInOrder(t *testing.T) {
	r := newRig(t, bonding.Options{}, 0)
	names := func() []string {
		list := []string{}
		for _, s := range r.Status().Slaves {
			list = append(list, s.Name)
		}
		return list
	}
	for _, tt := range []struct {
		do   string
		want []string
	}{
		{"+eth0", []string{"eth0"}}, {"+eth1", []string{"eth0", "eth1"}}, {"+eth2", []string{"eth0", "eth1", "eth2"}},
		{"-eth0", []string{"eth1", "eth2"}}, {"+eth0", []string{"eth1", "eth2", "eth0"}}, {"-eth2", []string{"eth1", "eth0"}},
		{"-eth1", []string{"eth0"}}, {"-eth0", []string{}},
	} {
		r.do(tt.do)
		if got := names(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("after %s members are %v, want %v", tt.do, got, tt.want)
		}
	}
}
