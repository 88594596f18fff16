package stack

import (
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

// DevicesOptions say how a table of devices is made. The zero value of each
// field is its default.
type DevicesOptions struct {
	// Stack is the gVisor stack of which the devices are NICs. The table makes
	// them without names, since gVisor would compare each name with all others.
	// Default none: the devices are names and links, and no more.
	Stack *netstack.Stack
	// Logger gets a line for each change; a batch is one change. Lines come at
	// LogRate at most, and those held back are counted in the next. Default
	// none.
	Logger *slog.Logger
	// LogRate is how many lines a second the logger gets in the long run, with
	// as many more at once. Default 10.
	LogRate float64
	// Clock drives the logger's rate. Default the system's clock.
	Clock tcpip.Clock
}

// Devices is a table of named devices: those of one gVisor stack and of the
// bonds in it, or names alone. It is what Linux keeps for each network
// namespace.
//
// Readers (Table, ByName, ByIndex) see a published version and never wait, not
// even for a writer that was interrupted half-way. Each change is one new
// version, that of a whole batch too: a renamed device is never missing, and no
// name is ever two devices'. A change costs the logarithm of the table's size.
//
// Its methods may be called from any goroutine, but those that change the table
// not from within a DeviceGuard.
type Devices struct {
	opts  DevicesOptions
	stack *netstack.Stack
	log   deviceLog
	order uint64 // in which the locks of two tables are taken

	table atomic.Pointer[DeviceTable]

	// mu is held over each change, so that they come one after the other.
	// Endpoints and guards are called under it; none of them may change the
	// table.
	mu sync.Mutex
	// The following are guarded by mu.
	edits     uint64     // how many drafts there were
	hung      []hungItem // storage for the drafts' edits
	lastIndex tcpip.NICID
	templates templates
	guards    []*guardEntry

	// newsMu guards what follows, and the publication of a version together
	// with its events, so that every event finds its place. It is a leaf.
	newsMu  sync.Mutex
	watches []*DeviceWatch
	closed  bool
	// work counts the deletions of devices whose links were closed by others.
	work sync.WaitGroup
}

var _ link.DeviceTable = (*Devices)(nil)

var lastTable atomic.Uint64

// NewDevices makes an empty table.
func NewDevices(opts DevicesOptions) *Devices {
	if opts.Clock == nil {
		opts.Clock = tcpip.NewStdClock()
	}
	if opts.LogRate <= 0 {
		opts.LogRate = 10
	}
	d := &Devices{opts: opts, stack: opts.Stack, order: lastTable.Add(1), templates: templates{}}
	d.log.init(opts)
	d.table.Store(&DeviceTable{})
	return d
}

// Table returns the present version of the table.
func (d *Devices) Table() *DeviceTable { return d.table.Load() }

// ByName returns the device that has a name, or has it as an alternative name.
func (d *Devices) ByName(name string) (*Device, bool) { return d.table.Load().ByName(name) }

// ByIndex returns the device of an index.
func (d *Devices) ByIndex(index tcpip.NICID) (*Device, bool) { return d.table.Load().ByIndex(index) }

// Close deletes every device, ends every watch, and returns when no goroutine
// of the table is left. Changes after Close return an error that wraps
// net.ErrClosed. A second call does nothing.
func (d *Devices) Close() {
	d.mu.Lock()
	d.newsMu.Lock()
	d.closed = true
	d.newsMu.Unlock()
	ports, _ := d.removeLocked(d.indexes())
	d.mu.Unlock()
	d.tearDown(ports)
	d.work.Wait()
	d.newsMu.Lock()
	watches := d.watches
	d.watches = nil
	d.newsMu.Unlock()
	for _, w := range watches {
		w.end()
	}
	d.log.stop()
}

// maxHung bounds the storage that is kept from one change to the next.
const maxHung = 64

func (d *Devices) indexes() (list []tcpip.NICID) {
	for dev := range d.Table().All() {
		list = append(list, dev.index)
	}
	return list
}

// open returns an error when the table is closed. mu is held.
func (d *Devices) open() error {
	if d.closed { // written with mu held too
		return fmt.Errorf("the table is closed: %w", net.ErrClosed)
	}
	return nil
}

// publish makes a draft the table, and tells of the changes in it. mu is held.
func (d *Devices) publish(f *draft, changes []DeviceChange) {
	t := f.DeviceTable
	t.version++
	clear(f.edit.hung)
	if cap(f.edit.hung) <= maxHung {
		d.hung = f.edit.hung
	}
	d.newsMu.Lock()
	defer d.newsMu.Unlock()
	d.table.Store(&t)
	if len(d.watches) == 0 {
		return
	}
	for _, c := range changes {
		d.send(DeviceEvent{Kind: c.Kind, Version: t.version, Device: c.device(), Old: c.Old})
	}
}
