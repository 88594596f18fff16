package tlb

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// members makes a candidate of each speed, with nothing to carry.
func members(speeds ...uint32) []Candidate {
	among := make([]Candidate, len(speeds))
	for i, s := range speeds {
		among[i] = Candidate{NewMember(0), s}
	}
	return among
}

// of returns the members of candidates.
func of(among []Candidate) []*Member {
	list := make([]*Member, len(among))
	for i := range among {
		list[i] = among[i].Member
	}
	return list
}

// bench is a table and its candidates, whose periods last ten seconds.
type bench struct {
	table  *Table
	among  []Candidate
	speeds []uint32
}

func newBench(speeds ...uint32) *bench {
	return &bench{table: New(), among: members(speeds...), speeds: speeds}
}

// next ends a period.
func (b *bench) next() {
	was := of(b.among)
	b.among = members(b.speeds...)
	b.table = b.table.Next(10*time.Second, b.among, was)
}

// send has each flow send its rate for ten seconds and returns what each
// candidate carried, in bytes a second.
func (b *bench) send(rates []int) []float64 {
	sums := make([]float64, len(b.among))
	for hash, rate := range rates {
		sums[b.table.Pick(uint32(hash), 10*rate, b.among)] += float64(rate)
	}
	return sums
}

// shares is how far each candidate's part is from its fair one.
func (b *bench) shares(sums []float64) (text string, worst float64) {
	total, weight := 0.0, 0.0
	for i := range sums {
		total += sums[i]
		weight += float64(b.speeds[i])
	}
	for i := range sums {
		share, fair := sums[i]/total, float64(b.speeds[i])/weight
		text += fmt.Sprintf(" %d Mb/s: %.3f (fair %.3f)", b.speeds[i], share, fair)
		worst = max(worst, math.Abs(share/fair-1))
	}
	return text, worst
}

// The flows of a new table are spread by speed, one by one, where Linux has them
// all at the first slave; 25 Gbit/s is more than 1, which it is not for Linux.
func TestFirstFlowsSpread(t *testing.T) {
	for _, tt := range []struct {
		speeds []uint32
		want   string
	}{
		{[]uint32{1000, 1000}, "[0 1 0 1 0 1 0 1 0 1 0 1]"},
		{[]uint32{1000, 25000}, "[1 1 1 1 1 1 1 1 1 1 1 1]"},
		{[]uint32{4096, 1000}, "[0 0 0 0 1 0 0 0 0 1 0 0]"},
		{[]uint32{100000, 40000}, "[0 0 1 0 0 0 1 0 0 1 0 0]"},
		{[]uint32{0, 0, 0}, "[0 1 2 0 1 2 0 1 2 0 1 2]"},
		{[]uint32{4294967295, 4294967295}, "[0 1 0 1 0 1 0 1 0 1 0 1]"},
	} {
		b := newBench(tt.speeds...)
		var got []int
		for hash := range 12 {
			got = append(got, b.table.Pick(uint32(hash), 1500, b.among))
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("speeds %d: flows went by %v, want %s", tt.speeds, got, tt.want)
		}
	}
}

// A flow stays where it is for a period, whatever the size of its packets; a
// hash counts modulo the table's size.
func TestFlowStays(t *testing.T) {
	b := newBench(1000, 1000)
	first := [2]int{b.table.Pick(1, 100, b.among), b.table.Pick(2, 100, b.among)}
	for range 100 {
		for h := range first {
			if got := b.table.Pick(uint32(h+1+3*Entries), 1<<20, b.among); got != first[h] {
				t.Fatalf("flow %d went by %d, then by %d", h+1, first[h], got)
			}
		}
	}
}

// The flows of a member that is no candidate any more go by another one at
// once; without any there is none.
func TestLostMember(t *testing.T) {
	b := newBench(1000, 1000)
	b.send([]int{1, 1, 1, 1})
	if got := b.table.Pick(1, 1, b.among[:1]); got != 0 {
		t.Errorf("a flow of the lost member went by %d", got)
	}
	if got := b.table.Pick(1, 1, nil); got != -1 {
		t.Errorf("without a candidate Pick() = %d", got)
	}
	b.table.Release(b.among[0].Member)
	if n, load := b.table.Count(b.among[0].Member), b.among[0].Member.Load(); n != 0 || load != 0 {
		t.Errorf("a released member has %d entries, load %d", n, load)
	}
}

// Must hold 4 of the adaptive modes: of eight unequal flows on two links of
// unequal speed each link carries its part, within 15 %, after two periods.
func TestSharesFollowSpeed(t *testing.T) {
	flows := []int{8000, 1000, 5000, 2000, 7000, 3000, 6000, 4000}
	for _, speeds := range [][]uint32{{1000, 1000}, {1000, 2500}, {2000, 1000}, {10000, 1000}, {5000, 1000}, {100, 1000}} {
		b := newBench(speeds...)
		for period := range 4 {
			text, worst := b.shares(b.send(flows))
			t.Logf("period %d:%s", period, text)
			if period >= 2 && worst > 0.15 {
				t.Errorf("speeds %d, after %d periods:%s", speeds, period, text)
			}
			b.next()
		}
	}
}

// The same for many random flows, which are finer, over up to six links.
func TestSharesOfManyFlows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		speeds := make([]uint32, 2+rnd.IntN(5))
		for i := range speeds {
			speeds[i] = []uint32{1000, 2500, 5000, 10000}[rnd.IntN(4)]
		}
		b := newBench(speeds...)
		flows := make([]int, Entries)
		for i := range flows {
			flows[i] = 1 + rnd.IntN(100000)
		}
		b.send(flows)
		b.next()
		b.send(flows)
		b.next()
		if text, worst := b.shares(b.send(flows)); worst > 0.15 {
			t.Errorf("%d flows:%s", len(flows), text)
		}
	}
}

// Flows are not moved while the load is about as even as it can be, though their
// rates vary a little.
func TestEvenFlowsStay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	b := newBench(1000, 1000)
	base := []int{50000, 40000, 30000, 60000, 20000, 70000, 10000, 80000}
	b.send(base)
	b.next()
	places := func() (list []int) {
		for h := range base {
			list = append(list, b.table.Pick(uint32(h), 0, b.among))
		}
		return list
	}
	want := fmt.Sprint(places())
	for range 50 {
		flows := make([]int, len(base))
		for i := range flows {
			flows[i] = base[i] + rnd.IntN(200) - 100
		}
		b.send(flows)
		b.next()
		if got := fmt.Sprint(places()); got != want {
			t.Fatalf("flows were at %s, and are at %s", want, got)
		}
	}
}

// What goes by no entry counts for who carries it.
func TestLooseLoad(t *testing.T) {
	table, among := New(), members(1000, 1000)
	table.Loose(90000)
	for h := range 3 {
		table.Pick(uint32(h), 30000, among)
	}
	load := table.LooseRate(10 * time.Second)
	if load != 9000 {
		t.Errorf("LooseRate() = %d, want 9000", load)
	}
	next := []Candidate{{NewMember(load), 1000}, {NewMember(0), 1000}}
	table.Next(10*time.Second, next, of(among))
	if x, y := next[0].Member.Load(), next[1].Member.Load(); x != 9000 || y != 9000 {
		t.Errorf("loads are %d and %d, want 9000 each", x, y)
	}
}

// Rates of the greatest counts do not overflow.
func TestGreatRates(t *testing.T) {
	if got := rate(math.MaxInt64, time.Millisecond); got <= 0 {
		t.Errorf("rate(max, 1 ms) = %d", got)
	}
	if got := rate(math.MaxInt64, 0); got <= 0 {
		t.Errorf("rate(max, 0) = %d", got)
	}
	if rate(0, time.Second) != 0 || rate(1, time.Hour) != 1 {
		t.Errorf("rate(0) = %d, rate(1 in an hour) = %d", rate(0, time.Second), rate(1, time.Hour))
	}
}

// Many goroutines pick while periods end and members come and go: each packet
// goes by a candidate, and once all is quiet loads are what the entries say. A
// flow that several find new at the same time goes by one member.
func TestConcurrentPicks(t *testing.T) {
	var now sync.Map // "t" to *bench
	b := newBench(1000, 10000, 1000)
	now.Store("t", b)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 3))
			for {
				select {
				case <-stop:
					return
				default:
				}
				v, _ := now.Load("t")
				cur := v.(*bench)
				among := cur.among[rnd.IntN(2):]
				if i := cur.table.Pick(rnd.Uint32(), 1+rnd.IntN(1500), among); i < 0 || i >= len(among) {
					t.Errorf("Pick() = %d of %d", i, len(among))
					return
				}
			}
		})
	}
	for range 200 {
		b.table.Release(b.among[2].Member)
		fresh := &bench{speeds: b.speeds, among: members(b.speeds...)}
		fresh.table = b.table.Next(time.Second, fresh.among, of(b.among))
		b = fresh
		now.Store("t", b)
	}
	close(stop)
	wg.Wait()
	was := of(b.among)
	b.among = members(b.speeds...)
	b.table = b.table.Next(time.Second, b.among, was)
	loads := make([]int64, len(b.among))
	for i := range b.table.entries {
		if k := find(b.table.entries[i].member.Load(), b.among); k >= 0 {
			loads[k] += b.table.entries[i].rate
		}
	}
	for i := range loads {
		if got := b.among[i].Member.Load(); got != loads[i] {
			t.Errorf("member %d has load %d, its entries %d", i, got, loads[i])
		}
	}
}

// A flow that is new to several goroutines at once is assigned once.
func TestAssignedOnce(t *testing.T) {
	for range 200 {
		table, among := New(), members(1000, 1000)
		var wg sync.WaitGroup
		got := make([]int, 4)
		for g := range got {
			wg.Go(func() { got[g] = table.Pick(7, 1, among) })
		}
		wg.Wait()
		for _, i := range got {
			if i != got[0] {
				t.Fatalf("one flow went by %v", got)
			}
		}
		if sum := among[0].Member.Load() + among[1].Member.Load(); sum != 1 {
			t.Fatalf("one flow counts as %d", sum)
		}
	}
}

// FuzzTable does whatever may be done to a table, and checks the sums.
func FuzzTable(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 4, 255, 9, 128, 7})
	f.Fuzz(func(t *testing.T, ops []byte) {
		b := newBench(1000, 2500, 10000)
		for i, op := range ops {
			switch {
			case op < 200:
				if got := b.table.Pick(uint32(op)*7, int(op)*i, b.among); got < 0 || got > 2 {
					t.Fatalf("Pick() = %d", got)
				}
			case op < 220:
				b.table.Release(b.among[op%3].Member)
			case op < 240:
				b.table.Loose(int(op))
			default:
				b.next()
			}
			n := 0
			for i := range b.among {
				n += b.table.Count(b.among[i].Member)
			}
			if n > Entries {
				t.Fatalf("members have %d entries", n)
			}
		}
	})
}

func TestPickDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	b := newBench(1000, 1000)
	hash := uint32(0)
	if n := testing.AllocsPerRun(1000, func() { hash++; b.table.Pick(hash, 1500, b.among) }); n != 0 {
		t.Errorf("Pick() allocates %v times", n)
	}
}

func BenchmarkPick(b *testing.B) {
	table, among := New(), members(1000, 1000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for hash := rand.Uint32(); pb.Next(); hash++ {
			table.Pick(hash, 1500, among)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	bench := newBench(1000, 10000)
	flows := make([]int, Entries)
	for i := range flows {
		flows[i] = 1 + i*i
	}
	b.ReportAllocs()
	for b.Loop() {
		bench.send(flows)
		bench.next()
	}
}
