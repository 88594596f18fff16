package stack

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// The trie against a map, with copies that must not change any more.
func TestTrie(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		key := func() uint64 {
			if r.IntN(2) == 0 {
				return r.Uint64N(300)
			}
			return r.Uint64() >> r.IntN(64)
		}
		type version struct {
			trie trie[int]
			want map[uint64]int
		}
		var now trie[int]
		want := map[uint64]int{}
		var versions []version
		for edit := range 800 {
			before, wantBefore := now, maps.Clone(want)
			e := trieEdit{number: uint64(edit + 1)}
			for step := range 5 {
				k, v := key(), 5*edit+step
				if r.IntN(3) > 0 {
					now.put(k, v, &e)
					want[k] = v
				} else if now.get(k) != nil {
					now.remove(k, &e)
					delete(want, k)
				}
			}
			if r.IntN(4) == 0 {
				e.drop()
				now, want = before, wantBefore
			}
			if edit%80 < 4 {
				versions = append(versions, version{now, maps.Clone(want)})
			}
		}
		for i, v := range append(versions, version{now, want}) {
			checkTrie(t, &v.trie, v.want)
			if t.Failed() {
				t.Fatalf("seed %d, version %d", seed, i)
			}
		}
		for k := range want {
			now.remove(k, &trieEdit{number: 1 << 40})
		}
		if now.root != (trieSlot[int]{}) || now.size != 0 {
			t.Errorf("seed %d: an empty trie keeps %+v, size %d", seed, now.root, now.size)
		}
	}
}

func checkTrie(t *testing.T, tr *trie[int], want map[uint64]int) {
	t.Helper()
	var got []int
	tr.all(func(v *int) bool { got = append(got, *v); return true })
	var ordered []int
	for _, k := range slices.Sorted(maps.Keys(want)) {
		ordered = append(ordered, want[k])
		if v := tr.get(k); v == nil || *v != want[k] {
			t.Errorf("get(%d) = %v, want %d", k, v, want[k])
		}
	}
	if !slices.Equal(got, ordered) || tr.size != len(want) {
		t.Errorf("all() = %v, size %d, want %v in the order of the keys", got, tr.size, ordered)
	}
	first := 0
	tr.all(func(*int) bool { first++; return first < 3 })
	if first != min(3, len(want)) {
		t.Errorf("all() went on after false: %d values", first)
	}
}

// Names with the same key are kept apart.
func TestNameCollisions(t *testing.T) {
	d := NewDevices(DevicesOptions{})
	f := d.draft()
	var e *nameEntry
	for _, name := range []string{"a", "b", "c"} {
		e = &nameEntry{name, 1, e}
	}
	for _, drop := range []string{"b", "a", "c"} {
		left := e.without(drop)
		for n := left; n != nil; n = n.next {
			if n.name == drop {
				t.Errorf("%s is still there", drop)
			}
		}
		e = left
	}
	if e != nil {
		t.Errorf("left: %+v", e)
	}
	// Names that are neighbours, and yet not the same.
	names := []string{"dev7", "dev07", "dev007", "dev0", "dev00", "dev", "7", "07", "0", "00", "dev1234567", "dev0234567", "234567", "1234567", "9999999999", "999999"}
	keys := map[uint64]string{}
	for _, name := range names {
		if other, ok := keys[nameKey(name)]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		keys[nameKey(name)] = name
		if err := f.claim(name, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if f.entry(name) == nil {
			t.Errorf("%s not found", name)
		}
		f.free(name)
		if f.entry(name) != nil {
			t.Errorf("%s found when free", name)
		}
	}
	if f.byName.size != 0 {
		t.Errorf("%d names left", f.byName.size)
	}
}

// A key that two names share: no seed of the hash is known that gives one, so
// the list is put in by hand.
func TestSharedKey(t *testing.T) {
	d := NewDevices(DevicesOptions{})
	f := d.draft()
	if err := f.claim("first", 1); err != nil {
		t.Fatal(err)
	}
	key := nameKey("first")
	f.byName.put(key, nameEntry{"second", 2, f.byName.get(key)}, &f.edit)
	if e := f.entry("first"); e == nil || e.index != 1 {
		t.Errorf("entry(first) = %+v", e)
	}
	if err := f.claim("first", 3); err == nil {
		t.Error("claim(first) succeeds a second time")
	}
	seen := slices.Sorted(f.names())
	if !slices.Equal(seen, []string{"first", "second"}) {
		t.Errorf("names() = %v", seen)
	}
	f.free("first")
	if e := f.byName.get(key); e == nil || e.name != "second" || e.next != nil {
		t.Errorf("left after free(first): %+v", e)
	}
}

func TestNumberSet(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s numberSet
		taken := map[int]bool{}
		for range 3000 {
			n := s.lowest()
			for i := 0; i < n; i++ {
				if !taken[i] {
					t.Fatalf("seed %d: lowest() = %d, but %d is free", seed, n, i)
				}
			}
			if taken[n] {
				t.Fatalf("seed %d: lowest() = %d is taken", seed, n)
			}
			s.set(n, true)
			taken[n] = true
			if free := r.IntN(200); r.IntN(3) == 0 {
				s.set(free, false)
				delete(taken, free)
			}
		}
	}
	var s numberSet
	for n := range maxTemplateNumber + 1 {
		s.set(n, true)
	}
	if n := s.lowest(); n != -1 {
		t.Errorf("lowest() = %d when all are taken", n)
	}
	s.set(maxTemplateNumber, false)
	if n := s.lowest(); n != maxTemplateNumber {
		t.Errorf("lowest() = %d, want %d", n, maxTemplateNumber)
	}
}

func TestTemplateNumber(t *testing.T) {
	for _, tt := range []struct {
		template, name string
		want           int
	}{
		{"dev%d", "dev0", 0}, {"dev%d", "dev17", 17}, {"dev%d", "dev32767", 32767}, {"dev%d", "dev32768", -1},
		{"dev%d", "dev01", -1}, {"dev%d", "dev00", -1}, {"dev%d", "dev", -1}, {"dev%d", "dev1x", -1}, {"dev%d", "de1", -1},
		{"%d", "5", 5}, {"a%db", "a12b", 12}, {"a%db", "ab", -1}, {"a%da", "a", -1}, {"1%d1", "1", -1}, {"1%d1", "11", -1}, {"1%d1", "121", 2},
		{"dev%d", "dev-1", -1}, {"dev%d", "dev+1", -1}, {"dev%d", "dev99999999999", -1},
	} {
		tpl, ok := parseTemplate(tt.template)
		if got := tpl.number(tt.name); !ok || got != tt.want {
			t.Errorf("template %q, name %q: number %d, want %d", tt.template, tt.name, got, tt.want)
		}
		if tt.want >= 0 && tpl.name(tt.want) != tt.name {
			t.Errorf("template %q: name(%d) = %q", tt.template, tt.want, tpl.name(tt.want))
		}
	}
}
