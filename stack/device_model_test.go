package stack_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/stack"
)

// modelDevice and modelTable are the table as anybody would write it who cares
// for nothing but that it is right.
type modelDevice struct {
	index tcpip.NICID
	name  string
	alts  string // joined by spaces
	up    bool
}

type modelTable struct {
	devices []modelDevice // by index
	last    tcpip.NICID
	version uint64
}

func (m *modelTable) clone() *modelTable {
	c := *m
	c.devices = slices.Clone(m.devices)
	return &c
}

func (m *modelTable) find(index tcpip.NICID) *modelDevice {
	for i := range m.devices {
		if m.devices[i].index == index {
			return &m.devices[i]
		}
	}
	return nil
}

func (d *modelDevice) allNames() []string { return append([]string{d.name}, strings.Fields(d.alts)...) }

func (m *modelTable) byName(name string) *modelDevice {
	for i := range m.devices {
		if slices.Contains(m.devices[i].allNames(), name) {
			return &m.devices[i]
		}
	}
	return nil
}

// lowest replaces a %d; extra names are taken besides those of the table.
func (m *modelTable) lowest(name string, extra []string) string {
	before, after, ok := strings.Cut(name, "%d")
	for n := 0; ok; n++ {
		try := fmt.Sprint(before, n, after)
		if m.byName(try) == nil && !slices.Contains(extra, try) {
			return try
		}
	}
	return name
}

func modelValid(name string, longest int) bool {
	return len(name) >= 1 && len(name) <= longest && name != "." && name != ".." && !strings.ContainsAny(name, "/: \t\n\v\f\r")
}

func modelValidTemplate(name string) bool {
	rest := strings.Replace(name, "%d", "", 1)
	return modelValid(name, 15) && !strings.Contains(rest, "%")
}

// add changes m, and returns the kind of error. Who calls it keeps a clone.
func (m *modelTable) add(list []stack.NewDevice, vetoed string) error {
	for _, n := range list {
		if !modelValidTemplate(n.Name) {
			return stack.ErrInvalidName
		}
		for _, alt := range n.AltNames {
			if !modelValid(alt, 127) || strings.Contains(alt, "%") {
				return stack.ErrInvalidName
			}
		}
	}
	var names []string
	for _, n := range list {
		switch {
		case n.Index != 0 && n.Index <= m.last:
			return stack.ErrIndex
		case n.Index != 0:
			m.last = n.Index
		default:
			m.last++
		}
		d := modelDevice{index: m.last, name: m.lowest(n.Name, nil), up: !n.Down}
		d.alts = strings.Join(n.AltNames, " ")
		for i, name := range d.allNames() {
			if m.byName(name) != nil || slices.Contains(d.allNames()[:i], name) {
				return stack.ErrNameExists
			}
		}
		m.devices = append(m.devices, d)
		names = append(names, d.name)
	}
	if slices.Contains(names, vetoed) {
		return stack.ErrVetoed
	}
	if len(list) > 0 {
		m.version++
	}
	return nil
}

func (m *modelTable) rename(list []stack.DeviceRename, vetoed string) error {
	for _, r := range list {
		if !modelValidTemplate(r.Name) {
			return stack.ErrInvalidName
		}
	}
	before := m.clone()
	to := map[tcpip.NICID]string{}
	var picked []string
	for _, r := range list {
		d := m.find(r.Index)
		if d == nil {
			return stack.ErrNoDevice
		}
		if _, twice := to[r.Index]; twice {
			return errTwice
		}
		if d.name == r.Name {
			continue
		}
		name := before.lowest(r.Name, picked)
		if name != r.Name {
			picked = append(picked, name)
		}
		to[r.Index] = name
	}
	for index, name := range to {
		m.find(index).name = name
	}
	var all []string
	for i := range m.devices {
		all = append(all, m.devices[i].allNames()...)
	}
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != len(all) {
		return stack.ErrNameExists
	}
	for _, name := range to {
		if name == vetoed {
			return stack.ErrVetoed
		}
	}
	if len(to) > 0 {
		m.version++
	}
	return nil
}

// errTwice stands for an error that has no kind.
var errTwice = errors.New("twice")

func (m *modelTable) delete(list []tcpip.NICID) error {
	for _, index := range list {
		if m.find(index) == nil {
			return stack.ErrNoDevice
		}
		m.devices = slices.DeleteFunc(m.devices, func(d modelDevice) bool { return d.index == index })
	}
	if len(list) > 0 {
		m.version++
	}
	return nil
}

func (m *modelTable) addAlt(index tcpip.NICID, alt string) error {
	d := m.find(index)
	switch {
	case !modelValid(alt, 127) || strings.Contains(alt, "%"):
		return stack.ErrInvalidName
	case d == nil:
		return stack.ErrNoDevice
	case m.byName(alt) != nil:
		return stack.ErrNameExists
	}
	d.alts = strings.TrimSpace(d.alts + " " + alt)
	m.version++
	return nil
}

func (m *modelTable) deleteAlt(index tcpip.NICID, alt string) error {
	d := m.find(index)
	if d == nil || !slices.Contains(strings.Fields(d.alts), alt) {
		return stack.ErrNoDevice
	}
	d.alts = strings.Join(slices.DeleteFunc(strings.Fields(d.alts), func(a string) bool { return a == alt }), " ")
	m.version++
	return nil
}

func (m *modelTable) move(index tcpip.NICID, to *modelTable, name, vetoed string) error {
	if name != "" && !modelValidTemplate(name) {
		return stack.ErrInvalidName
	}
	d := m.find(index)
	if d == nil {
		return stack.ErrNoDevice
	}
	moved := *d
	if moved.index <= to.last {
		moved.index = to.last + 1
	}
	to.last = moved.index
	if name != "" {
		moved.name = to.lowest(name, nil)
	}
	for i, n := range moved.allNames() {
		if to.byName(n) != nil || slices.Contains(moved.allNames()[:i], n) {
			return stack.ErrNameExists
		}
	}
	if moved.name == vetoed {
		return stack.ErrVetoed
	}
	m.delete([]tcpip.NICID{index})
	to.devices = append(to.devices, moved)
	to.version++
	return nil
}

// ledger is a guard that approves all, and keeps a balance of what it approved.
type ledger struct{ balance []string }

func (l *ledger) Approve(c stack.DeviceChange) error {
	l.balance = append(l.balance, change(c))
	return nil
}

func (l *ledger) Undo(c stack.DeviceChange) {
	last := len(l.balance) - 1
	if last < 0 || l.balance[last] != change(c) {
		panic(fmt.Sprintf("undo of %s, approved were %v", change(c), l.balance))
	}
	l.balance = l.balance[:last]
}

func change(c stack.DeviceChange) string { return fmt.Sprint(c.Kind, c.New.Index(), c.New.Name()) }

// refuser is a guard that refuses one name.
type refuser struct{ name string }

var errRefused = errors.New("refused by the test")

func (r *refuser) Approve(c stack.DeviceChange) error {
	if c.New.Name() == r.name {
		return errRefused
	}
	return nil
}

func (r *refuser) Undo(stack.DeviceChange) {}

// subject is a table with its model, and two watches: one that follows every
// event, one that loses most.
type subject struct {
	*stack.Devices
	model   *modelTable
	ledger  ledger
	refuser refuser
	all     *stack.DeviceWatch
	slow    *stack.DeviceWatch
	replica map[tcpip.NICID]*stack.Device
	late    map[tcpip.NICID]*stack.Device
	lateAt  uint64
	losses  int
}

func newSubject(opts stack.DevicesOptions) *subject {
	s := &subject{Devices: stack.NewDevices(opts), model: &modelTable{},
		replica: map[tcpip.NICID]*stack.Device{}, late: map[tcpip.NICID]*stack.Device{}}
	s.AddGuard(&s.ledger)
	s.AddGuard(&s.refuser)
	s.all, s.slow = s.Watch(64), s.Watch(3)
	return s
}

// check compares the table, the events and the guards with the model.
func (s *subject) check(t *testing.T, pool []string) {
	t.Helper()
	table := s.Table()
	if table.Version() != s.model.version || table.Len() != len(s.model.devices) {
		t.Errorf("version %d with %d devices, want %d with %d", table.Version(), table.Len(), s.model.version, len(s.model.devices))
	}
	var got []modelDevice
	for dev := range table.All() {
		got = append(got, modelOf(dev))
	}
	if !slices.Equal(got, s.model.devices) {
		t.Errorf("devices %v\nwant    %v", got, s.model.devices)
	}
	for _, name := range pool {
		want := s.model.byName(name)
		dev, ok := table.ByName(name)
		if ok != (want != nil) || ok && dev.Index() != want.index {
			t.Errorf("ByName(%q) = %v, want %v", name, dev, want)
		}
	}
	s.follow(t)
}

func modelOf(dev *stack.Device) modelDevice {
	return modelDevice{dev.Index(), dev.Name(), strings.Join(dev.AltNames(), " "), dev.Up()}
}

// drained is a context that has ended: Next returns what there is.
var drained = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// next returns an event that is there.
func next(w *stack.DeviceWatch) (stack.DeviceEvent, bool) {
	e, err := w.Next(drained)
	for range 1 { // Next may see the context's end before the token
		if err != nil {
			e, err = w.Next(drained)
		}
	}
	return e, err == nil
}

func (s *subject) follow(t *testing.T) {
	t.Helper()
	for {
		e, ok := next(s.all)
		if !ok {
			break
		}
		if e.Kind == stack.DeviceLost {
			t.Errorf("%d events lost of few", e.Lost)
		}
		apply(s.replica, e)
	}
	s.compare(t, s.replica)
}

// catchUp reads the slow watch to its end.
func (s *subject) catchUp(t *testing.T) {
	t.Helper()
	for {
		e, ok := next(s.slow)
		switch {
		case !ok:
			s.compare(t, s.late)
			return
		case e.Kind == stack.DeviceLost:
			s.losses++
			clear(s.late)
			for dev := range s.Table().All() {
				s.late[dev.Index()] = dev
			}
			s.lateAt = s.Table().Version()
		case e.Version > s.lateAt:
			apply(s.late, e)
		}
	}
}

func apply(replica map[tcpip.NICID]*stack.Device, e stack.DeviceEvent) {
	if e.Kind == stack.DeviceDeleted {
		delete(replica, e.Device.Index())
	} else {
		replica[e.Device.Index()] = e.Device
	}
}

func (s *subject) compare(t *testing.T, replica map[tcpip.NICID]*stack.Device) {
	t.Helper()
	if len(replica) != s.Table().Len() {
		t.Errorf("events tell of %d devices, there are %d", len(replica), s.Table().Len())
	}
	for dev := range s.Table().All() {
		if replica[dev.Index()] != dev {
			t.Errorf("events tell of %v, it is %v", replica[dev.Index()], dev)
		}
	}
}

var (
	modelNames = []string{"a", "b", "c", "eth0", "eth1", "eth2", "eth3", "x0y", "x1y", "eth%d", "eth%d", "x%dy", "%d", "0", "eth00"}
	modelBad   = []string{"", ".", "..", "a/b", "a:b", "a b", "%", "%s", "%d%d", "sixteen-bytes-16", "a\tb"}
	modelAlts  = []string{"a", "eth1", "x0y", "long-alternative-name", "another-alternative"}
)

func randomName(r *rand.Rand) string {
	if r.IntN(20) == 0 {
		return modelBad[r.IntN(len(modelBad))]
	}
	return modelNames[r.IntN(len(modelNames))]
}

// randomIndex is mostly one that is there.
func (s *subject) randomIndex(r *rand.Rand) tcpip.NICID {
	if n := len(s.model.devices); n > 0 && r.IntN(10) > 0 {
		return s.model.devices[r.IntN(n)].index
	}
	return tcpip.NICID(r.IntN(int(s.model.last) + 2))
}

// step does one random operation on both tables; it returns what it did, the
// error, and the kind of error that the model has.
func (s *subject) step(r *rand.Rand, other *subject) (did string, got, want error) {
	s.refuser.name, other.refuser.name = "", ""
	if r.IntN(8) == 0 {
		s.refuser.name = s.model.lowest(randomName(r), nil)
		other.refuser.name = s.refuser.name
	}
	count := 1
	if r.IntN(4) == 0 {
		count = r.IntN(4)
	}
	was, wasOther := s.model.clone(), other.model.clone()
	switch op := r.IntN(14); {
	case op < 4:
		var list []stack.NewDevice
		for range count {
			n := stack.NewDevice{Name: randomName(r), Down: r.IntN(2) == 0}
			if r.IntN(6) == 0 {
				n.AltNames = []string{modelAlts[r.IntN(len(modelAlts))]}
			}
			if r.IntN(10) == 0 {
				n.Index = s.model.last + tcpip.NICID(r.IntN(3))
			}
			list = append(list, n)
		}
		did, want = fmt.Sprint("add ", list), s.model.add(list, s.refuser.name)
		_, got = s.AddAll(list)
	case op < 8:
		var list []stack.DeviceRename
		for range count {
			list = append(list, stack.DeviceRename{Index: s.randomIndex(r), Name: randomName(r)})
		}
		did, want = fmt.Sprint("rename ", list), s.model.rename(list, s.refuser.name)
		got = s.RenameAll(list)
	case op < 10:
		var list []tcpip.NICID
		for range count {
			list = append(list, s.randomIndex(r))
		}
		did, want = fmt.Sprint("delete ", list), s.model.delete(list)
		got = s.DeleteAll(list)
	case op < 11:
		index, alt := s.randomIndex(r), modelAlts[r.IntN(len(modelAlts))]
		did, want = fmt.Sprint("add alt ", index, alt), s.model.addAlt(index, alt)
		got = s.AddAltName(index, alt)
	case op < 12:
		index, alt := s.randomIndex(r), modelAlts[r.IntN(len(modelAlts))]
		if d := s.model.find(index); d != nil && d.alts != "" {
			alt = strings.Fields(d.alts)[0]
		}
		did, want = fmt.Sprint("delete alt ", index, alt), s.model.deleteAlt(index, alt)
		got = s.DeleteAltName(index, alt)
	case op < 13:
		index, up := s.randomIndex(r), r.IntN(2) == 0
		did = fmt.Sprint("set up ", index, up)
		if d := s.model.find(index); d == nil {
			want = stack.ErrNoDevice
		} else if d.up != up {
			d.up = up
			s.model.version++
		}
		got = s.SetUp(index, up)
	default:
		index, name := s.randomIndex(r), ""
		if r.IntN(2) == 0 {
			name = randomName(r)
		}
		did, want = fmt.Sprint("move ", index, name), s.model.move(index, other.model, name, other.refuser.name)
		_, got = s.Move(index, other.Devices, name)
	}
	if want != nil { // but for the indexes that it took
		was.last, wasOther.last = s.model.last, other.model.last
		s.model, other.model = was, wasOther
	}
	return did, got, want
}

// Random operations on two tables, against the slow and obvious one: 100,000
// steps in all.
func TestDevicesModel(t *testing.T) {
	const steps = 2000
	seeds := uint64(50)
	if raceEnabled {
		seeds = 5 // one goroutine: there is no race to find
	}
	lost := 0
	for seed := range seeds {
		lost += runModel(t, seed, steps, stack.DevicesOptions{})
		if t.Failed() {
			return
		}
	}
	t.Logf("seeds 0 to %d, %d steps each, %d losses of events told", seeds-1, steps, lost)
	if lost == 0 {
		t.Error("the slow watch lost nothing")
	}
}

func runModel(t *testing.T, seed uint64, steps int, opts stack.DevicesOptions) (losses int) {
	r := rand.New(rand.NewPCG(seed, 3))
	tables := []*subject{newSubject(opts), newSubject(opts)}
	pool := slices.Concat(modelNames, modelAlts, []string{"eth4", "x2y", "1", "2"})
	var history []string
	for step := range steps {
		i := r.IntN(2)
		s, other := tables[i], tables[1-i]
		approved := [2]int{len(s.ledger.balance), len(other.ledger.balance)}
		did, got, want := s.step(r, other)
		history = append(history, fmt.Sprintf("%d: %s: %v", i, did, got))
		if (got == nil) != (want == nil) || want != nil && want != errTwice && !errors.Is(got, want) {
			t.Errorf("%s = %v, want %v", did, got, want)
		}
		if got != nil && approved != [2]int{len(s.ledger.balance), len(other.ledger.balance)} {
			t.Errorf("%s failed, but the first guard approved %v", did, s.ledger.balance)
		}
		if errors.Is(got, stack.ErrVetoed) && !errors.Is(got, errRefused) {
			t.Errorf("%s = %v, without the guard's error", did, got)
		}
		for _, s := range tables {
			s.check(t, pool)
			if r.IntN(8) == 0 {
				s.catchUp(t)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, step %d, after:\n%s", seed, step, strings.Join(history[max(0, len(history)-12):], "\n"))
		}
	}
	for _, s := range tables {
		s.Close()
		losses += s.losses
	}
	return losses
}
