package stack_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/stack"
)

// Case T229: while writers rename, a reader that holds a device by its index
// always finds it, and under one of its two names in each version; no version
// has a name twice. With one processor too, where a writer may be interrupted
// at any place.
func TestRenameStorm(t *testing.T) {
	for _, procs := range []int{1, runtime.GOMAXPROCS(0)} {
		t.Run(fmt.Sprint("GOMAXPROCS=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			renameStorm(t)
		})
	}
}

func renameStorm(t *testing.T) {
	const writers, readers, devices, renames = 4, 4, 8, 1000
	d := newTable(t, stack.DevicesOptions{})
	var indexes []tcpip.NICID
	for i := range devices {
		indexes = append(indexes, mustAdd(t, d, stack.NewDevice{Name: fmt.Sprint("old", i)}))
	}
	var storm, watching sync.WaitGroup
	var over atomic.Bool
	for w := range writers {
		storm.Go(func() {
			for n := range renames {
				i := (n*writers + w) % devices // each device has one writer
				name := []string{"new", "old"}[n/(devices/writers)%2]
				if err := d.Rename(indexes[i], fmt.Sprint(name, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var looks atomic.Int64
	for range readers {
		watching.Go(func() {
			version := uint64(0)
			for n := 0; !over.Load(); n++ {
				i := n % devices
				dev, ok := d.ByIndex(indexes[i])
				if !ok || dev.Name() != fmt.Sprint("old", i) && dev.Name() != fmt.Sprint("new", i) {
					t.Errorf("index %d is %v", indexes[i], dev)
				}
				version = checkVersion(t, d.Table(), version, devices)
				looks.Add(1)
			}
		})
	}
	storm.Wait()
	over.Store(true)
	watching.Wait()
	t.Logf("%d looks during %d renames", looks.Load(), writers*renames)
}

// checkVersion checks one version of a table of devices that are named old or
// new and their place, and returns its number.
func checkVersion(t *testing.T, table *stack.DeviceTable, before uint64, devices int) uint64 {
	if table.Version() < before {
		t.Errorf("version %d after %d", table.Version(), before)
	}
	for i := range devices {
		_, old := table.ByName(fmt.Sprint("old", i))
		_, new := table.ByName(fmt.Sprint("new", i))
		if old == new {
			t.Errorf("version %d: old%d is there: %v, new%d: %v", table.Version(), i, old, i, new)
		}
	}
	seen := 0
	for dev := range table.All() {
		seen++
		if same, ok := table.ByName(dev.Name()); !ok || same != dev {
			t.Errorf("version %d: %s is in the list, by its name there is %v", table.Version(), dev.Name(), same)
		}
	}
	if seen != devices {
		t.Errorf("version %d lists %d devices, there are %d all the time", table.Version(), seen, devices)
	}
	return table.Version()
}

// A renaming in a circle: two devices never have one name.
func TestRenameCircle(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	a, b := mustAdd(t, d, stack.NewDevice{Name: "a"}), mustAdd(t, d, stack.NewDevice{Name: "c"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			for _, r := range []stack.DeviceRename{{Index: a, Name: "b"}, {Index: b, Name: "a"}, {Index: b, Name: "c"}, {Index: a, Name: "a"}} {
				if err := d.Rename(r.Index, r.Name); err != nil {
					t.Error(err)
				}
			}
			if err := d.RenameAll([]stack.DeviceRename{{Index: a, Name: "c"}, {Index: b, Name: "a"}}); err != nil {
				t.Error(err)
			}
			if err := d.RenameAll([]stack.DeviceRename{{Index: a, Name: "a"}, {Index: b, Name: "c"}}); err != nil {
				t.Error(err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		names := map[string]int{}
		for dev := range d.Table().All() {
			names[dev.Name()]++
		}
		if len(names) != 2 {
			t.Fatalf("names are %v", names)
		}
	}
}

// Case T233: a list taken while others add and delete has each device that
// stays exactly once.
func TestListUnderChange(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	const stay = 100
	for i := range stay {
		mustAdd(t, d, stack.NewDevice{Name: fmt.Sprint("stay", i)})
	}
	var writers sync.WaitGroup
	var over atomic.Bool
	for range 2 {
		writers.Go(func() {
			for !over.Load() {
				index := mustAdd(t, d, stack.NewDevice{Name: "t%d"})
				runtime.Gosched()
				if err := d.Delete(index); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 300 {
		seen, staying, last := 0, 0, tcpip.NICID(0)
		table := d.Table()
		for dev := range table.All() {
			if dev.Index() <= last {
				t.Errorf("index %d comes after %d", dev.Index(), last)
			}
			last = dev.Index()
			seen++
			if dev.Index() <= stay {
				staying++
			}
			runtime.Gosched()
		}
		if staying != stay || seen != table.Len() {
			t.Errorf("a list of %d has %d of %d devices that stay", seen, staying, stay)
		}
	}
	over.Store(true)
	writers.Wait()
}

// Readers allocate nothing.
func TestLookupAllocates(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	index := mustAdd(t, d, stack.NewDevice{Name: "dev123456", AltNames: []string{"alias"}})
	if n := testing.AllocsPerRun(100, func() {
		d.ByName("dev123456")
		d.ByName("alias")
		d.ByName("nobody")
		d.ByIndex(index)
	}); n != 0 {
		t.Errorf("look-ups allocate %v times", n)
	}
}
