package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/stack"
)

// deviceTable is a table under measurement: n devices, by their numbers from 0.
type deviceTable interface {
	add() error
	rename() error
	delete() error
	// look is one reader's check of what it sees; it is nil where there is
	// nothing to look at.
	look() func(r *tableReader)
	close()
}

// devicePlan is what a run does, made before its time is taken.
type devicePlan struct {
	writers  int
	old, new []string
	links    []netstack.LinkEndpoint // nil: names only
}

// tableKinds makes the tables of one run.
type tableKind struct {
	name string
	make func(p *devicePlan) deviceTable
}

func (s *devicesSettings) kinds() []tableKind {
	kinds := []tableKind{
		{"bondstack", func(p *devicePlan) deviceTable { return newOurTable(p, false) }},
		{"bondstack-batch", func(p *devicePlan) deviceTable { return newOurTable(p, true) }},
	}
	if !s.namesOnly {
		kinds = append(kinds, tableKind{"gvisor", func(p *devicePlan) deviceTable { return &gvisorTable{p, newDevicesStack(), true} }})
	}
	if s.floor && !s.namesOnly {
		kinds = append(kinds, tableKind{"gvisor-unnamed", func(p *devicePlan) deviceTable { return &gvisorTable{p, newDevicesStack(), false} }})
	}
	return kinds
}

// run measures every table in every run.
func (s *devicesSettings) run(p *progress) (*devicesResult, error) {
	kinds := s.kinds()
	result := &devicesResult{Count: s.count, Runs: s.runs, Readers: s.readers, readers: &readerReport{}}
	for _, k := range kinds {
		result.Tables = append(result.Tables, tableResult{Name: k.name})
	}
	order := rand.New(rand.NewPCG(1, 1))
	for run := range s.runs {
		// Nobody is always the first, or always finds the heap as the same other one
		// has left it.
		for _, k := range order.Perm(len(kinds)) {
			p.step("run %d of %d: %s", run+1, s.runs, kinds[k].name)
			if err := s.measure(kinds[k], &result.Tables[k], result.readers); err != nil {
				return nil, fmt.Errorf("%s: %w", kinds[k].name, err)
			}
		}
	}
	result.Violations = result.readers.violations
	if s.kernel {
		p.step("the host kernel")
		table, err := benchKernel(s.count)
		if err != nil {
			p.step("kernel: %v", err)
		} else {
			result.Tables = append(result.Tables, table)
		}
	}
	return result, nil
}

// measure does one run of one table.
func (s *devicesSettings) measure(kind tableKind, result *tableResult, report *readerReport) error {
	plan := s.plan()
	table := kind.make(plan)
	defer table.close()
	readers := startReaders(s.readers, table, report)
	defer readers.stop()
	for _, phase := range []struct {
		do func() error
		ms *[]float64
	}{{table.add, &result.AddMs}, {table.rename, &result.RenameMs}, {table.delete, &result.DeleteMs}} {
		runtime.GC() // what is left from before is not this phase's to pay for
		began := time.Now()
		err := phase.do()
		*phase.ms = append(*phase.ms, float64(time.Since(began))/1e6)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *devicesSettings) plan() *devicePlan {
	p := &devicePlan{writers: s.writers}
	for i := range s.count {
		p.old = append(p.old, fmt.Sprintf("dev%d", i))
		p.new = append(p.new, fmt.Sprintf("new%d", i))
		if !s.namesOnly {
			mac := tcpip.LinkAddress([]byte{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)})
			p.links = append(p.links, channel.New(0, 1500, mac))
		}
	}
	return p
}

func (p *devicePlan) link(i int) netstack.LinkEndpoint {
	if p.links == nil {
		return nil
	}
	return p.links[i]
}

// each calls do for every device, by as many goroutines as there are writers.
func (p *devicePlan) each(do func(i int) error) error {
	errs := make([]error, p.writers)
	var wg sync.WaitGroup
	work := func(w int) {
		for i := w; i < len(p.old) && errs[w] == nil; i += p.writers {
			errs[w] = do(i)
		}
	}
	for w := 1; w < p.writers; w++ {
		wg.Go(func() { work(w) })
	}
	work(0)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func newDevicesStack() *netstack.Stack {
	return netstack.New(netstack.Options{NetworkProtocols: []netstack.NetworkProtocolFactory{
		arp.NewProtocol, ipv4.NewProtocol, ipv6.NewProtocol,
	}})
}

// ourTable is bondstack's.
type ourTable struct {
	*devicePlan
	batch   bool
	stack   *netstack.Stack // nil: names only
	devices *stack.Devices
	indexes []tcpip.NICID
	phase   devicesPhase
}

func newOurTable(p *devicePlan, batch bool) *ourTable {
	t := &ourTable{devicePlan: p, batch: batch, indexes: make([]tcpip.NICID, len(p.old))}
	if p.links != nil {
		t.stack = newDevicesStack()
	}
	t.devices = stack.NewDevices(stack.DevicesOptions{Stack: t.stack})
	return t
}

func (t *ourTable) close() {
	t.devices.Close()
	if t.stack != nil {
		t.stack.Destroy()
	}
}

func (t *ourTable) add() error {
	defer t.phase.set(devicesThere)
	if !t.batch {
		return t.each(func(i int) error {
			dev, err := t.devices.Add(stack.NewDevice{Name: t.old[i], Link: t.link(i)})
			if err == nil {
				t.indexes[i] = dev.Index()
			}
			return err
		})
	}
	list := make([]stack.NewDevice, len(t.old))
	for i, name := range t.old {
		list[i] = stack.NewDevice{Name: name, Link: t.link(i)}
	}
	added, err := t.devices.AddAll(list)
	for i, dev := range added {
		t.indexes[i] = dev.Index()
	}
	return err
}

func (t *ourTable) rename() error {
	defer t.phase.set(devicesGoing)
	if !t.batch {
		return t.each(func(i int) error { return t.devices.Rename(t.indexes[i], t.new[i]) })
	}
	list := make([]stack.DeviceRename, len(t.new))
	for i, name := range t.new {
		list[i] = stack.DeviceRename{Index: t.indexes[i], Name: name}
	}
	return t.devices.RenameAll(list)
}

func (t *ourTable) delete() error {
	if !t.batch {
		return t.each(func(i int) error { return t.devices.Delete(t.indexes[i]) })
	}
	return t.devices.DeleteAll(t.indexes)
}

// gvisorTable is gVisor's own calls. Devices have the numbers from 1.
type gvisorTable struct {
	*devicePlan
	stack *netstack.Stack
	named bool
}

func (t *gvisorTable) close() { t.stack.Destroy() }

func (t *gvisorTable) add() error {
	return t.each(func(i int) error {
		var opts netstack.NICOptions
		if t.named {
			opts.Name = t.old[i]
		}
		return tcpipError(t.stack.CreateNICWithOptions(tcpip.NICID(i+1), t.links[i], opts))
	})
}

func (t *gvisorTable) rename() error {
	return t.each(func(i int) error { return tcpipError(t.stack.SetNICName(tcpip.NICID(i+1), t.new[i])) })
}

func (t *gvisorTable) delete() error {
	return t.each(func(i int) error { return tcpipError(t.stack.RemoveNIC(tcpip.NICID(i + 1))) })
}

func tcpipError(err tcpip.Error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", err)
}
