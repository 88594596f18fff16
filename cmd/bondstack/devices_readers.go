package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/stack"
)

// devicesPhase says what of the devices must be there.
type devicesPhase struct{ v atomic.Int32 }

// The phases: devices come, are all there, go.
const (
	devicesComing int32 = iota
	devicesThere
	devicesGoing
)

func (p *devicesPhase) set(v int32) { p.v.Store(v) }

// readerReport is what all readers of all runs have seen.
type readerReport struct {
	mu         sync.Mutex
	looks      int64
	violations int64
	first      string
	longest    time.Duration // the longest look-up
	idle       time.Duration // the longest of as many sections that did nothing
}

// tableReader is one reader.
type tableReader struct {
	number  int
	round   int
	version uint64
	readerReport
}

type tableReaders struct {
	over   atomic.Bool
	tasks  sync.WaitGroup
	report *readerReport
}

// startReaders has readers look at a table until stop.
func startReaders(n int, table deviceTable, report *readerReport) *tableReaders {
	rs := &tableReaders{report: report}
	look := table.look()
	for i := range n {
		rs.tasks.Go(func() {
			r := &tableReader{number: i}
			for ; !rs.over.Load(); r.round++ {
				look(r)
				if r.round%64 == 0 {
					runtime.Gosched() // with one processor, writers are to get on
				}
			}
			report.add(&r.readerReport)
		})
	}
	return rs
}

func (rs *tableReaders) stop() {
	rs.over.Store(true)
	rs.tasks.Wait()
}

func (rep *readerReport) add(r *readerReport) {
	rep.mu.Lock()
	defer rep.mu.Unlock()
	rep.looks += r.looks
	rep.violations += r.violations
	if rep.first == "" {
		rep.first = r.first
	}
	rep.longest, rep.idle = max(rep.longest, r.longest), max(rep.idle, r.idle)
}

func (r *tableReader) violation(format string, args ...any) {
	if r.violations++; r.first == "" {
		r.first = fmt.Sprintf(format, args...)
	}
}

// listEvery is after how many look-ups a reader lists the whole table.
const listEvery = 1024

// look looks one device up by name and index, and now and then lists all.
func (t *ourTable) look() func(*tableReader) {
	return func(r *tableReader) {
		i := (r.round*7919 + r.number) % len(t.old)
		phase := t.phase.v.Load()
		began := time.Now()
		byName, found := t.devices.ByName(t.old[i])
		looked := time.Now()
		idle := time.Since(looked)
		r.looks++
		r.longest, r.idle = max(r.longest, looked.Sub(began)), max(r.idle, idle)
		if found && byName.Name() != t.old[i] {
			r.violation("%s is found as %s", t.old[i], byName.Name())
		}
		table := t.devices.Table()
		stays := phase == devicesThere && t.phase.v.Load() == devicesThere
		t.check(r, table, i, stays)
		if r.round%listEvery == 0 {
			r.checkList(table, stays, len(t.old))
		}
	}
}

// check checks one device in one version of the table.
func (t *ourTable) check(r *tableReader, table *stack.DeviceTable, i int, stays bool) {
	old, hasOld := table.ByName(t.old[i])
	renamed, hasNew := table.ByName(t.new[i])
	switch {
	case table.Version() < r.version:
		r.violation("version %d after %d", table.Version(), r.version)
	case hasOld && hasNew:
		r.violation("version %d: both %s and %s are there", table.Version(), old.Name(), renamed.Name())
	case stays && !hasOld && !hasNew:
		r.violation("version %d: neither %s nor %s is there", table.Version(), t.old[i], t.new[i])
	case hasOld && old.Name() != t.old[i] || hasNew && renamed.Name() != t.new[i]:
		r.violation("version %d: device %d has another name than it is found by", table.Version(), i)
	}
	r.version = table.Version()
}

// checkList lists a version of the table.
func (r *tableReader) checkList(table *stack.DeviceTable, stays bool, count int) {
	seen, last := 0, tcpip.NICID(0)
	for dev := range table.All() {
		if dev.Index() <= last {
			r.violation("version %d lists index %d after %d", table.Version(), dev.Index(), last)
		}
		if same, ok := table.ByName(dev.Name()); !ok || same != dev {
			r.violation("version %d: %s is in the list, and not found by name", table.Version(), dev.Name())
		}
		last = dev.Index()
		seen++
	}
	if seen != table.Len() || stays && seen != count {
		r.violation("version %d lists %d devices, there are %d", table.Version(), seen, table.Len())
	}
}

// look asks gVisor for a name, which is all that it has.
func (t *gvisorTable) look() func(*tableReader) {
	return func(r *tableReader) {
		i := (r.round*7919 + r.number) % len(t.old)
		name := t.stack.FindNICNameFromID(tcpip.NICID(i + 1))
		if name != "" && name != t.old[i] && name != t.new[i] {
			r.violation("NIC %d has the name %s", i+1, name)
		}
	}
}
