package dedup

import (
	"math"
	"testing"
	"unsafe"

	"bondstack/link/linktest"
)

// arrive has a key come on slaves in order and returns what was delivered, as
// a string of d (delivered) and c (copy).
func arrive(table *Table, epoch uint32, key uint64, slaves ...int) string {
	var s []byte
	for _, slave := range slaves {
		if table.Copy(slave, key, epoch) {
			s = append(s, 'c')
		} else {
			s = append(s, 'd')
		}
	}
	return string(s)
}

func TestTrain(t *testing.T) {
	for _, c := range []struct {
		slaves []int
		want   string
	}{
		{[]int{0}, "d"},
		{[]int{0, 1}, "dc"},
		{[]int{1, 0, 2}, "dcc"},
		{[]int{0, 0, 0, 1, 1, 1}, "dddccc"},
		{[]int{0, 1, 0, 1, 1, 0}, "dcdcdc"},
		{[]int{0, 0, 1, 1, 1, 0}, "ddccdc"},
		{[]int{0, 1, 1, 2, 2, 2, 0, 0, 1}, "dcdccdccc"},
	} {
		if got := arrive(New(Options{}), 1, 42, c.slaves...); got != c.want {
			t.Errorf("slaves %v: %s, want %s", c.slaves, got, c.want)
		}
	}
}

// TestAgeing has a frame lost on slave 1, and an equal one sent later which
// only slave 1 brings.
func TestAgeing(t *testing.T) {
	for _, start := range []uint32{0, 7, math.MaxUint32 - 1, math.MaxUint32} {
		for _, c := range []struct {
			later uint32
			want  string
		}{{0, "c"}, {1, "c"}, {2, "d"}, {3, "d"}, {1000, "d"}} {
			table := New(Options{})
			arrive(table, start, 42, 0)
			if got := arrive(table, start+c.later, 42, 1); got != c.want {
				t.Errorf("epoch %d: %d epochs later: %s, want %s", start, c.later, got, c.want)
			}
		}
	}
}

// TestAgeingOfSteadyFrames has a frame that is sent all the time, as a
// monitor's probes are. What slave 1 lost is forgotten nevertheless: when slave
// 0 is cut, slave 1 takes over once the last frames of slave 0 are two epochs
// old, however many slave 1 lost before.
func TestAgeingOfSteadyFrames(t *testing.T) {
	table := New(Options{})
	for epoch := range uint32(100) {
		for i := range 10 {
			if got := arrive(table, epoch, 42, 0); got != "d" {
				t.Fatalf("epoch %d: %s, want d", epoch, got)
			}
			if i > 0 {
				arrive(table, epoch, 42, 1)
			}
		}
	}
	// Up to the deliveries of one epoch can still be late.
	if got, want := arrive(table, 100, 42, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), "ccccccccccdd"; got != want {
		t.Errorf("an epoch after the cut: %s, want %s", got, want)
	}
	table.Forget(1)
	if got := arrive(table, 101, 42, 1, 1); got != "cc" {
		t.Errorf("a new slave: %s, want cc: two frames were delivered an epoch ago", got)
	}
	if got := arrive(table, 103, 42, 1, 1, 0); got != "ddc" {
		t.Errorf("two epochs after the last: %s, want ddc", got)
	}
}

// TestLateEpoch has a goroutine that sees the change of epoch late.
func TestLateEpoch(t *testing.T) {
	table := New(Options{})
	if got := arrive(table, 9, 42, 0) + arrive(table, 8, 42, 1, 1) + arrive(table, 9, 42, 0) + arrive(table, 7, 42, 2, 2, 2); got != "dcdcccd" {
		t.Errorf("got %s, want dcdcccd", got)
	}
}

// TestCountsWrap has more arrivals than a count can hold.
func TestCountsWrap(t *testing.T) {
	table := New(Options{Entries: 16, Slaves: 2})
	arrive(table, 1, 42, 0, 1)
	s := &table.shards[0]
	e := &s.entries[1]
	e.delivered, e.previous, e.floor = math.MaxUint32-1, math.MaxUint32-2, math.MaxUint32-2
	s.counts[2], s.counts[3] = math.MaxUint32-1, math.MaxUint32-1
	if got := arrive(table, 1, 42, 0, 0, 0, 1, 1, 1, 1, 0); got != "dddcccdc" {
		t.Errorf("got %s, want dddcccdc", got)
	}
}

func TestForget(t *testing.T) {
	table := New(Options{})
	arrive(table, 1, 42, 0, 0, 1, 1)
	table.Forget(1)
	if got := arrive(table, 1, 42, 1, 1, 1); got != "ccd" {
		t.Errorf("new slave: %s, want ccd", got)
	}
	if got := arrive(table, 1, 42, 0); got != "c" {
		t.Errorf("old slave: %s, want c", got)
	}
	table.Forget(-1)
	table.Forget(16)
}

// TestUntracked passes frames of slaves beyond the table, and notes none.
func TestUntracked(t *testing.T) {
	table := New(Options{Slaves: 2})
	if got := arrive(table, 1, 42, 2, 2, -1, math.MaxInt, 0, 1); got != "dddddc" {
		t.Errorf("got %s, want dddddc", got)
	}
}

// TestOptions brings sizes to their limits.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o                       Options
		entries, slaves, shards int
	}{
		{Options{}, 16384, 16, 64},
		{Options{Entries: -1, Slaves: -1}, 16, 1, 1},
		{Options{Entries: 1, Slaves: 3}, 16, 3, 1},
		{Options{Entries: 511}, 511, 16, 1},
		{Options{Entries: 512}, 512, 16, 2},
		{Options{Entries: 1 << 30, Slaves: 1}, 1 << 20, 1, 64},
		{Options{Entries: 16, Slaves: 1 << 30}, 16, 256, 1},
	} {
		table := New(c.o)
		if n := len(table.shards); n != c.shards || table.slaves != c.slaves {
			t.Errorf("%+v: %d shards and %d slaves, want %d and %d", c.o, n, table.slaves, c.shards, c.slaves)
		}
		if n := (len(table.shards[0].entries) - 1) * len(table.shards); n < c.entries || n > c.entries+64 {
			t.Errorf("%+v: %d entries, want %d", c.o, n, c.entries)
		}
		if got := arrive(table, 0, 1, 0); got != "d" {
			t.Errorf("%+v: %s, want d", c.o, got)
		}
	}
}

// TestEvictionBound has a slave lag behind another by a little less than half
// of the table's entries, in distinct frames, for many times the table's size;
// every other frame is one of two that come again and again, which must not
// fall out because they are old.
func TestEvictionBound(t *testing.T) {
	r := linktest.NewRand(t)
	const often = 1 << 63
	for _, entries := range []int{16, 100, 512, 4096, 16384} {
		for name, key := range map[string]func(i int) uint64{
			"count":  func(i int) uint64 { return uint64(i) },
			"upper":  func(i int) uint64 { return uint64(i) << 40 },
			"random": func(int) uint64 { return r.Uint64() >> 1 },
		} {
			table := New(Options{Entries: entries, Slaves: 2})
			var lag []uint64
			for i := range 10 * entries {
				frame := key(i)
				if i%2 == 0 {
					frame = often + uint64(i/2%2)
				}
				if table.Copy(0, frame, 1) {
					t.Fatalf("%s, %d entries: frame %d is a copy on the fast slave", name, entries, i)
				}
				lag = append(lag, frame)
				if len(lag) < 2*(entries/2-3) {
					continue
				}
				if !table.Copy(1, lag[0], 1) {
					t.Fatalf("%s, %d entries: frame %d came through twice", name, entries, i+1-len(lag))
				}
				lag = lag[1:]
			}
		}
	}
}

// TestShardSize keeps shards on cache lines of their own.
func TestShardSize(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the padding is for machines of 64 bits")
	}
	if got := unsafe.Sizeof(shard{}); got != 128 {
		t.Errorf("a shard has %d bytes, want 128", got)
	}
	if got := unsafe.Sizeof(entry{}); got != 32 {
		t.Errorf("an entry has %d bytes, want 32", got)
	}
}
