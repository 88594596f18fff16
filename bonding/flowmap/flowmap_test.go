package flowmap_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"bondstack/bonding/flowmap"
)

// group is a set of members by name.
type group struct {
	names   []string
	weights []float64
}

func groupOf(n int, weight func(i int) float64) (g group) {
	for i := range n {
		g.names = append(g.names, fmt.Sprintf("eth%d", i))
		g.weights = append(g.weights, weight(i))
	}
	return g
}

func (g group) without(i int) group {
	return group{slices.Delete(slices.Clone(g.names), i, i+1), slices.Delete(slices.Clone(g.weights), i, i+1)}
}

// owners returns the member of each of many flows.
func (g group) owners(hashes []uint32) []string {
	members := make([]flowmap.Member, len(g.names))
	for i, name := range g.names {
		members[i] = flowmap.Member{Draws: flowmap.NewDraws(name), Weight: g.weights[i]}
	}
	table := flowmap.Build(members)
	owners := make([]string, len(hashes))
	for i, h := range hashes {
		owners[i] = g.names[table.Index(h)]
	}
	return owners
}

func someHashes(n int) []uint32 {
	rnd := rand.New(rand.NewPCG(6, 1))
	hashes := make([]uint32, n)
	for i := range hashes {
		hashes[i] = rnd.Uint32()
	}
	return hashes
}

// Of 200,000 flows each member has its share by weight. When one leaves, exactly
// its flows move, to the others by weight; when it comes back, all is as before.
func TestOneLeaves(t *testing.T) {
	hashes := someHashes(200_000)
	for _, weight := range []struct {
		name string
		of   func(i int) float64
	}{
		{"equal", func(int) float64 { return 1000 }},
		{"1 to n", func(i int) float64 { return float64(i + 1) }},
	} {
		for _, n := range []int{2, 3, 4, 8} {
			g := groupOf(n, weight.of)
			before := g.owners(hashes)
			checkShares(t, g, before)
			for leaver := range n {
				rest := g.without(leaver)
				after := rest.owners(hashes)
				moved := 0
				for i := range hashes {
					if before[i] != after[i] {
						moved++
					}
					if (before[i] == g.names[leaver]) != (before[i] != after[i]) {
						t.Fatalf("%s, %d members, %s leaves: a flow of %s is now %s's", weight.name, n, g.names[leaver], before[i], after[i])
					}
				}
				had := 0
				for _, name := range before {
					if name == g.names[leaver] {
						had++
					}
				}
				if moved != had {
					t.Errorf("%s, %d members, %s leaves: %d flows moved, it had %d", weight.name, n, g.names[leaver], moved, had)
				}
				checkShares(t, rest, after)
			}
			if again := g.owners(hashes); !slices.Equal(before, again) {
				t.Errorf("%s, %d members: not the same table when all are back", weight.name, n)
			}
		}
	}
}

// checkShares compares the shares with the weights: within four standard
// deviations of as many random draws as there are buckets.
func checkShares(t *testing.T, g group, owners []string) {
	t.Helper()
	count, sum := map[string]int{}, 0.0
	for _, name := range owners {
		count[name]++
	}
	for _, w := range g.weights {
		sum += w
	}
	for i, name := range g.names {
		want := g.weights[i] / sum
		got := float64(count[name]) / float64(len(owners))
		if limit := 4*math.Sqrt(want*(1-want)/flowmap.Buckets) + 0.002; math.Abs(got-want) > limit {
			t.Errorf("%s of %v has %.4f of the flows, want %.4f within %.4f", name, g, got, want, limit)
		}
	}
}

// A member that becomes heavier takes flows and gives none.
func TestWeightGrows(t *testing.T) {
	hashes := someHashes(50_000)
	g := groupOf(5, func(int) float64 { return 10 })
	before := g.owners(hashes)
	g.weights[2] = 40
	after := g.owners(hashes)
	checkShares(t, g, after)
	for i := range hashes {
		if before[i] != after[i] && after[i] != "eth2" {
			t.Fatalf("a flow of %s went to %s", before[i], after[i])
		}
	}
}

// The order of the members does not matter, nor which bits of the hash differ.
func TestOrderAndBits(t *testing.T) {
	g := groupOf(4, func(i int) float64 { return float64(1 + i%2) })
	reversed := group{slices.Clone(g.names), slices.Clone(g.weights)}
	slices.Reverse(reversed.names)
	slices.Reverse(reversed.weights)
	hashes := someHashes(5000)
	if !slices.Equal(g.owners(hashes), reversed.owners(hashes)) {
		t.Error("the order of the members changes the table")
	}
	for shift := range 24 {
		low := make([]uint32, 256)
		for i := range low {
			low[i] = uint32(i) << shift
		}
		seen := map[string]int{}
		for _, name := range g.owners(low) {
			seen[name]++
		}
		for _, name := range g.names {
			if seen[name] < 16 {
				t.Errorf("256 hashes that differ from bit %d on: %v", shift, seen)
			}
		}
	}
}

func TestIndexDoesNotAllocate(t *testing.T) {
	table := flowmap.Build([]flowmap.Member{{Draws: flowmap.NewDraws("a"), Weight: 1}, {Draws: flowmap.NewDraws("b"), Weight: 2}})
	sum := 0
	if n := testing.AllocsPerRun(100, func() { sum += table.Index(uint32(sum) * 7919) }); n > 0 {
		t.Errorf("Index allocates %v times", n)
	}
}

func BenchmarkNewDraws(b *testing.B) {
	for b.Loop() {
		flowmap.NewDraws("eth0")
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{2, 8} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			var members []flowmap.Member
			for i := range n {
				members = append(members, flowmap.Member{Draws: flowmap.NewDraws(fmt.Sprint(i)), Weight: 1})
			}
			b.ReportAllocs()
			for b.Loop() {
				flowmap.Build(members)
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	table := flowmap.Build([]flowmap.Member{{Draws: flowmap.NewDraws("a"), Weight: 1}, {Draws: flowmap.NewDraws("b"), Weight: 1}})
	sum, hash := 0, uint32(1)
	for b.Loop() {
		sum += table.Index(hash)
		hash += 7919
	}
	_ = sum
}
