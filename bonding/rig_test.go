package bonding_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// rig is a bond of Recorders on a manual clock, with a Sink in the place of the
// NIC.
type rig struct {
	tb testing.TB
	*bonding.Bond
	clock  *faketime.ManualClock
	links  map[string]*linktest.Recorder
	up     *linktest.Sink
	events *bonding.Subscription
	// fired counts the bond's timers that fired.
	fired atomic.Int64
	// own has send's frames come from the bond's address, as a host's do.
	own bool
}

// newRig makes a bond that a NIC has, with slaves eth0, eth1 and so on.
func newRig(tb testing.TB, o bonding.Options, slaves int) *rig {
	tb.Helper()
	r := newDownRig(tb, o, slaves)
	r.attach()
	return r
}

// newDownRig is newRig without a NIC.
func newDownRig(tb testing.TB, o bonding.Options, slaves int) *rig {
	tb.Helper()
	r := &rig{tb: tb, clock: faketime.NewManualClock(), links: map[string]*linktest.Recorder{}, up: &linktest.Sink{}}
	o.Clock = countingClock{r.clock, &r.fired}
	if o.Rand == nil {
		o.Rand = seededRand(1)
	}
	b, err := bonding.New(o)
	if err != nil {
		tb.Fatalf("New(%+v) = %v", o, err)
	}
	r.Bond = b
	tb.Cleanup(b.Close)
	r.events = b.Subscribe(10000)
	for i := range slaves {
		r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{}, linktest.RecorderOptions{})
	}
	return r
}

// countingClock counts the timers that fire.
type countingClock struct {
	*faketime.ManualClock
	fired *atomic.Int64
}

func (c countingClock) AfterFunc(d time.Duration, f func()) tcpip.Timer {
	return c.ManualClock.AfterFunc(d, func() { c.fired.Add(1); f() })
}

// seededRand returns a source that may be used from many goroutines.
func seededRand(seed uint64) func() uint64 {
	var mu sync.Mutex
	source := rand.NewPCG(seed, seed)
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}

// attach gives the bond to the Sink and has the monitor's first pass run.
func (r *rig) attach() {
	r.Attach(r.up)
	r.clock.RunImmediatelyScheduledJobs()
}

// enslave makes a Recorder of the given kind a slave. Its address is made of
// the name's last letter unless ro says which.
func (r *rig) enslave(name string, so bonding.SlaveOptions, ro linktest.RecorderOptions) *linktest.Recorder {
	r.tb.Helper()
	if ro.Address == "" {
		ro.Address = macOf(name)
	}
	rec := linktest.NewRecorder(ro)
	if err := r.Enslave(name, rec, so); err != nil {
		r.tb.Fatalf("Enslave(%s) = %v", name, err)
	}
	r.links[name] = rec
	return rec
}

// macOf is the address of a slave: 02:00:00:00:ee:0N for ethN.
func macOf(name string) tcpip.LinkAddress {
	return tcpip.LinkAddress([]byte{2, 0, 0, 0, 0xee, name[len(name)-1] - '0'})
}

// advance has time pass.
func (r *rig) advance(d time.Duration) { r.clock.Advance(d) }

// ms advances by milliseconds.
func (r *rig) ms(n int) { r.advance(time.Duration(n) * time.Millisecond) }

// set sets an option that must be accepted.
func (r *rig) set(name, value string) {
	r.tb.Helper()
	if err := r.SetOption(name, value); err != nil {
		r.tb.Fatalf("SetOption(%s, %q) = %v", name, value, err)
	}
}

// carrier changes a link's carrier, which tells the bond.
func (r *rig) carrier(name string, on bool) { r.links[name].SetCarrier(on) }

// silently changes a link's carrier, which only a poll can find.
func (r *rig) silently(name string, on bool) {
	s := r.links[name].LinkState()
	s.Carrier = on
	r.links[name].SetStateSilently(s)
}

func (r *rig) slave(name string) bonding.SlaveStatus {
	r.tb.Helper()
	for _, s := range r.Status().Slaves {
		if s.Name == name {
			return s
		}
	}
	r.tb.Fatalf("no slave %s in the status", name)
	return bonding.SlaveStatus{}
}

// mii returns the MII status of all slaves, in order.
func (r *rig) mii() string {
	var all []string
	for _, s := range r.Status().Slaves {
		all = append(all, s.MIIStatus)
	}
	return strings.Join(all, ",")
}

func (r *rig) wantMII(when, want string) {
	r.tb.Helper()
	if got := r.mii(); got != want {
		r.tb.Errorf("%s: MII status %s, want %s", when, got, want)
	}
}

func (r *rig) wantActive(when, want string) {
	r.tb.Helper()
	if got := r.Status().ActiveSlave; got != want {
		r.tb.Errorf("%s: active slave %q, want %q", when, got, want)
	}
}

func (r *rig) wantFailures(name string, want uint32) {
	r.tb.Helper()
	if got := r.slave(name).LinkFailureCount; got != want {
		r.tb.Errorf("slave %s: failure count %d, want %d", name, got, want)
	}
}

// send writes the frames of n flows in one list, and returns what WritePackets
// did.
func (r *rig) send(n int) (int, tcpip.Error) {
	frames := make([][]byte, n)
	for i := range frames {
		f := linktest.Flow4(i)
		if r.own {
			f.SrcMAC = r.LinkAddress()
		}
		frames[i] = f.UDP([]byte{byte(i)})
	}
	return linktest.Write(r, frames...)
}

// sent drains the links and returns how many frames each has been given, in the
// order of the names given.
func (r *rig) sent(names ...string) []int {
	counts := make([]int, len(names))
	for i, name := range names {
		counts[i] = len(data(r.links[name].Drain()))
	}
	return counts
}

// carries sends a frame and returns which slaves got it.
func (r *rig) carries() string {
	for _, l := range r.links {
		l.Drain()
	}
	r.send(1)
	var by []string
	for _, s := range r.Status().Slaves {
		if len(data(r.links[s.Name].Drain())) > 0 {
			by = append(by, s.Name)
		}
	}
	return strings.Join(by, ",")
}

// told returns the events since the last call, as lines without the bond's
// name.
func (r *rig) told() []string {
	var lines []string
	for {
		select {
		case e := <-r.events.C:
			lines = append(lines, strings.TrimPrefix(e.String(), r.Name()+": "))
		default:
			return lines
		}
	}
}

// isLearning reports whether a frame is a learning packet of the adaptive modes.
func isLearning(frame []byte) bool {
	for len(frame) > 18 && (frame[12] == 0x81 && frame[13] == 0 || frame[12] == 0x88 && frame[13] == 0xa8) {
		frame = frame[4:]
	}
	return len(frame) >= 14 && frame[12] == 0x90 && frame[13] == 0
}

// data leaves out the learning packets.
func data(frames []linktest.Written) []linktest.Written {
	return slices.DeleteFunc(frames, func(w linktest.Written) bool { return isLearning(w.Frame) })
}

// drops returns a drop counter of the bond.
func (r *rig) drops(reason string) uint64 {
	r.tb.Helper()
	n, ok := r.Status().Counters.Drops[reason]
	if !ok {
		r.tb.Fatalf("no drop reason %q", reason)
	}
	return n
}

// toBond returns frame n to the bond's address.
func (r *rig) toBond(n int) []byte {
	f := linktest.Flow4(n)
	f.DstMAC = r.LinkAddress()
	return f.UDP([]byte("to the bond"))
}

var _ stack.LinkEndpoint = (*rig)(nil)
