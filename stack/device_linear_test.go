package stack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/stack"
)

// call is one call of a concurrent history. Its result was true of the table at
// some moment between begin and end, if the table is linearizable.
type call struct {
	kind       string // add, rename, delete, swap, byname, list
	index      tcpip.NICID
	name       string
	result     string
	begin, end int64
}

// smallTable is a model for the check: names by index, in order.
type smallTable map[tcpip.NICID]string

func (m smallTable) String() string {
	var b strings.Builder
	for _, i := range m.indexes() {
		fmt.Fprintf(&b, "%d=%s ", i, m[i])
	}
	return b.String()
}

func (m smallTable) indexes() (list []tcpip.NICID) {
	for i := range m {
		list = append(list, i)
	}
	slices.Sort(list)
	return list
}

func (m smallTable) find(name string) tcpip.NICID {
	for i, n := range m {
		if n == name {
			return i
		}
	}
	return 0
}

// apply returns the table after a call, and whether the call could have had its
// result there.
func (m smallTable) apply(c *call) (smallTable, bool) {
	after := smallTable{}
	for i, n := range m {
		after[i] = n
	}
	result := "ok"
	_, there := m[c.index]
	switch c.kind {
	case "add":
		if m.find(c.name) != 0 {
			result = "error"
		} else {
			after[c.index] = c.name
		}
	case "rename":
		if holder := m.find(c.name); !there || holder != 0 && holder != c.index {
			result = "error"
		} else {
			after[c.index] = c.name
		}
	case "delete":
		if !there {
			result = "error"
		}
		delete(after, c.index)
	case "byname":
		result = fmt.Sprint(m.find(c.name))
	case "list":
		result = m.String()
	}
	return after, result == c.result
}

// linearizable searches an order of the calls, each within its time, in which
// every one has the result that it had.
func linearizable(calls []call, table smallTable, done uint64, seen map[string]bool) bool {
	if done == 1<<len(calls)-1 {
		return true
	}
	key := fmt.Sprint(done, table)
	if seen[key] {
		return false
	}
	seen[key] = true
	earliest := int64(1) << 62
	for i := range calls {
		if done>>i&1 == 0 {
			earliest = min(earliest, calls[i].end)
		}
	}
	for i := range calls {
		if done>>i&1 == 1 || calls[i].begin > earliest {
			continue
		}
		if after, ok := table.apply(&calls[i]); ok && linearizable(calls, after, done|1<<i, seen) {
			return true
		}
	}
	return false
}

func TestLinearizableCheck(t *testing.T) {
	history := []call{
		{kind: "rename", index: 1, name: "b", result: "ok", begin: 1, end: 4},
		{kind: "byname", name: "b", result: "1", begin: 2, end: 3},
		{kind: "byname", name: "a", result: "0", begin: 5, end: 6},
	}
	if !linearizable(history, smallTable{1: "a"}, 0, map[string]bool{}) {
		t.Error("a right history is refused")
	}
	history[2].result = "1"
	if linearizable(history, smallTable{1: "a"}, 0, map[string]bool{}) {
		t.Error("a look-up that finds the old name after the renaming is accepted")
	}
	history[2] = call{kind: "byname", name: "a", result: "0", begin: 2, end: 2}
	history[1].begin, history[1].end = 3, 3
	history[1].result = "0"
	if linearizable(history, smallTable{1: "a"}, 0, map[string]bool{}) {
		t.Error("a device that is missing for a moment is accepted")
	}
}

// Concurrent histories on a table of three devices and four names are those of
// some sequence of calls.
func TestDevicesLinearizable(t *testing.T) {
	const workers, each = 4, 5
	rounds := uint64(1500)
	if raceEnabled {
		rounds = 300 // the other rounds are for the order, which the detector disturbs
	}
	for seed := range rounds {
		d := stack.NewDevices(stack.DevicesOptions{})
		start := smallTable{}
		for _, name := range []string{"a", "b", "c"} {
			start[mustAdd(t, d, stack.NewDevice{Name: name})] = name
		}
		var clock atomic.Int64
		histories := make([][]call, workers)
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(w)))
				for range each {
					c := randomCall(r)
					c.begin = clock.Add(1)
					c.run(d)
					c.end = clock.Add(1)
					histories[w] = append(histories[w], c)
				}
			})
		}
		wg.Wait()
		calls := slices.Concat(histories...)
		if !linearizable(calls, start, 0, map[string]bool{}) {
			t.Fatalf("seed %d: no order explains\n%+v", seed, calls)
		}
		d.Close()
	}
	t.Logf("seeds 0 to %d, %d goroutines with %d calls each", rounds-1, workers, each)
}

func randomCall(r *rand.Rand) call {
	names := []string{"a", "b", "c", "d"}
	c := call{name: names[r.IntN(len(names))], index: tcpip.NICID(1 + r.IntN(4))}
	c.kind = []string{"add", "rename", "rename", "rename", "delete", "byname", "byname", "list"}[r.IntN(8)]
	return c
}

func (c *call) run(d *stack.Devices) {
	outcome := func(err error) {
		if c.result = "ok"; err != nil {
			c.result = "error"
		}
	}
	switch c.kind {
	case "add":
		dev, err := d.Add(stack.NewDevice{Name: c.name})
		if err == nil {
			c.index = dev.Index()
		}
		outcome(err)
	case "rename":
		outcome(d.Rename(c.index, c.name))
	case "delete":
		outcome(d.Delete(c.index))
	case "byname":
		c.result = "0"
		if dev, ok := d.ByName(c.name); ok {
			c.result = fmt.Sprint(dev.Index())
		}
	case "list":
		m := smallTable{}
		for dev := range d.Table().All() {
			m[dev.Index()] = dev.Name()
		}
		c.result = m.String()
	}
}
