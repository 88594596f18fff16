package bonding_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"
)

// In active-backup the successor takes over at once and is announced, and the
// drained slave still takes what is for the bond for a second.
func TestDrainActiveBackup(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup, Primary: "eth0"}, 2)
	announced := 0
	r.SubscribeNotifyPeers(func() { announced++ })
	if err := r.Drain("eth0"); err != nil {
		t.Fatal(err)
	}
	r.wantActive("drained", "eth1")
	if announced != 1 {
		t.Errorf("%d announcements, want 1", announced)
	}
	broadcast := linktest.Flow4(0)
	broadcast.DstMAC = "\xff\xff\xff\xff\xff\xff"
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {999 * time.Millisecond, 1}, {time.Millisecond, 0}} {
		r.advance(c.after)
		r.up.Drain()
		r.links["eth0"].Inject(r.toBond(0))
		r.links["eth0"].Inject(broadcast.UDP([]byte("to all"))) // comes by eth1 too
		if n := len(r.up.Drain()); n != c.want {
			t.Errorf("after %v more: %d frames taken from the drained slave, want %d", c.after, n, c.want)
		}
	}
	r.wantMII("drained", "up,up")
	r.wantFailures("eth0", 0)
	if s := r.slave("eth0"); !s.Draining || !s.StandsBack || s.State != "backup" {
		t.Errorf("status %+v, want draining", s)
	}

	r.carrier("eth0", false)
	r.carrier("eth0", true)
	r.wantActive("after a flap of the drained primary", "eth1")
	r.set("primary", "eth0")
	r.wantActive("after the drained primary was set anew", "eth1")
	if err := r.SetOption("active_slave", "eth0"); !errors.Is(err, bonding.ErrInvalid) {
		t.Errorf("setting the drained slave active: %v, want %v", err, bonding.ErrInvalid)
	}

	r.carrier("eth1", false)
	r.wantActive("with no other left", "eth0")
	r.carrier("eth1", true)
	r.wantActive("with another back", "eth1")
	if err := r.Undrain("eth0"); err != nil {
		t.Fatal(err)
	}
	r.wantActive("the primary undrained", "eth0")
	r.wantFailures("eth0", 1)
	want := []bonding.FailoverCause{bonding.CauseDrain, bonding.CauseCarrier, bonding.CauseDrain, bonding.CausePrimary}
	for i, f := range r.Status().Failovers {
		if i >= len(want) || f.Cause != want[i] {
			t.Errorf("failover %d: %s", i, f)
		}
	}
}

// sendPorts writes frames from n different ports of one host to one of another,
// which layer3+4 spreads.
func (r *rig) sendPorts(n int) {
	for i := range n {
		f := linktest.Flow4(0)
		f.Src = netip.AddrPortFrom(f.Src.Addr(), uint16(5000+i))
		linktest.Write(r, f.UDP([]byte("spread")))
	}
}

// In the modes that spread a drained slave sends nothing and takes everything.
func TestDrainSpread(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR, bonding.Broadcast} {
		r := newRig(t, bonding.Options{Mode: mode, RxDedup: bonding.DedupOff, XmitHashPolicy: xmithash.Layer34}, 3)
		if err := r.Drain("eth1"); err != nil {
			t.Fatal(err)
		}
		r.sendPorts(20)
		if n := r.sent("eth0", "eth1", "eth2"); n[1] != 0 || n[0] == 0 || n[2] == 0 {
			t.Errorf("%v: slaves sent %v frames, want none on the second", mode, n)
		}
		r.ms(5000)
		r.up.Drain()
		r.links["eth1"].Inject(r.toBond(0))
		if n := len(r.up.Drain()); n != 1 {
			t.Errorf("%v: %d frames taken from the drained slave, want 1", mode, n)
		}
		r.carrier("eth0", false)
		r.carrier("eth2", false)
		if got := r.carries(); got != "eth1" {
			t.Errorf("%v: with no other left %q sends, want eth1", mode, got)
		}
		r.carrier("eth0", true)
		if got := r.carries(); got != "eth0" {
			t.Errorf("%v: with another back %q sends, want eth0", mode, got)
		}
		r.Undrain("eth1")
		r.sendPorts(20)
		if n := r.sent("eth1"); n[0] == 0 {
			t.Errorf("%v: the slave sends nothing after its return", mode)
		}
	}
}

// A drain that nobody could take over is refused, and changes nothing.
func TestDrainRefused(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	r.carrier("eth1", false)
	if err := r.Drain("eth0"); !errors.Is(err, bonding.ErrNoSuccessor) {
		t.Errorf("Drain() = %v, want %v", err, bonding.ErrNoSuccessor)
	}
	if r.slave("eth0").Draining {
		t.Error("a refused drain is shown")
	}
	for _, err := range []error{r.Drain("eth7"), r.Undrain("eth7")} {
		if !errors.Is(err, bonding.ErrNoSlave) {
			t.Errorf("of a slave that is not there: %v, want %v", err, bonding.ErrNoSlave)
		}
	}
	r.carrier("eth1", true)
	if err := errors.Join(r.Drain("eth0"), r.Drain("eth0"), r.Undrain("eth0"), r.Undrain("eth0")); err != nil {
		t.Errorf("twice: %v", err)
	}
	if err := r.Drain("eth0"); err != nil {
		t.Fatal(err)
	}
	if err := r.Drain("eth1"); !errors.Is(err, bonding.ErrNoSuccessor) {
		t.Errorf("Drain() of the last one = %v, want %v", err, bonding.ErrNoSuccessor)
	}
}

// A drained port of 802.3ad that is the last one to work is needed again.
func TestDrainLACPAlone(t *testing.T) {
	r := newLACPRig(t, 2, nil)
	r.agree()
	if err := r.Drain("eth0"); err != nil {
		t.Fatal(err)
	}
	run(r.clock, 2*time.Second)
	if p := r.port("eth0"); p.Drain != "drained" {
		t.Fatalf("stage %s, want drained", p.Drain)
	}
	if got := r.carries(); got != "eth1" {
		t.Errorf("%q sends, want eth1", got)
	}
	r.carrier("eth1", false)
	if p := r.port("eth0"); p.Drain == "drained" {
		t.Errorf("stage %s with no other port left", p.Drain)
	}
}

// stream sends numbers to the other host, one a millisecond, until it is ended,
// and tells how many were sent and how many different ones arrived.
type stream struct {
	stop      atomic.Bool
	done      chan struct{}
	sent      int
	arrived   atomic.Int64
	lastFault error
}

func startStream(t *testing.T, from, to *stack.Host, addr string) *stream {
	t.Helper()
	in, err := to.ListenPacket("udp", ":9")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	s := &stream{done: make(chan struct{})}
	go func() {
		seen := map[uint32]bool{}
		b := make([]byte, 100)
		for {
			n, _, err := in.ReadFrom(b)
			if err != nil {
				return
			}
			if id := binary.BigEndian.Uint32(b[:n]); !seen[id] {
				seen[id] = true
				s.arrived.Add(1)
			}
		}
	}()
	out, err := from.DialContext(context.Background(), "udp", addr+":9")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		defer out.Close()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ; !s.stop.Load(); <-tick.C {
			if _, err := out.Write(binary.BigEndian.AppendUint32(nil, uint32(s.sent))); err != nil {
				s.lastFault = err
				return
			}
			s.sent++
		}
	}()
	return s
}

// end checks that all has arrived but for at most some.
func (s *stream) end(t *testing.T, some int) {
	t.Helper()
	s.stop.Store(true)
	<-s.done
	least := int64(s.sent - some)
	for end := time.Now().Add(5 * time.Second); s.arrived.Load() < least && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if s.arrived.Load() < least || s.sent == 0 || s.lastFault != nil {
		t.Errorf("%d of %d datagrams arrived (%v)", s.arrived.Load(), s.sent, s.lastFault)
	}
}

// await polls the bond's state.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(hostPatience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Through a drain and its end nothing is lost, in either direction: a datagram
// each millisecond both ways arrives, a TCP transfer comes through whole, and
// neither bond drops a frame.
func TestDrainLosesNothing(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.BalanceRR, bonding.BalanceXOR, bonding.Broadcast, bonding.IEEE8023AD} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			p := newHostPair(t, mode, 2)
			if mode == bonding.IEEE8023AD {
				for _, b := range p.bonds {
					await(t, "both ports distribute", func() bool {
						st := b.Status()
						return st.Slaves[0].State == "active" && st.Slaves[1].State == "active"
					})
				}
			}
			drainLosesNothing(t, p, "eth0")
		})
	}
}

// The same for the modes with an active slave, on two ports of a switch.
func TestDrainLosesNothingOnSwitch(t *testing.T) {
	for _, mode := range bonding.AvailableModes() {
		if mode == bonding.ActiveBackup || mode == bonding.BalanceTLB || mode == bonding.BalanceALB {
			t.Run(mode.String(), func(t *testing.T) { drainOnSwitch(t, mode) })
		}
	}
}

func drainOnSwitch(t *testing.T, mode bonding.Mode) {
	t.Parallel()
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sw.Close)
	p := &hostPair{tb: t}
	for i := range p.bonds {
		b, err := bonding.New(bonding.Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		p.bonds[i] = b
		for k := range 2 - i {
			if err := b.Enslave(fmt.Sprintf("eth%d", k), sw.Port(2*i+k), bonding.SlaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if p.hosts[i], err = stack.NewHost(b, stack.HostOptions{Addresses: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24)}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.hosts[i].Close() })
	}
	drainLosesNothing(t, p, "eth0")
}

// drainLosesNothing drains a slave of the first host's bond and brings it back.
func drainLosesNothing(t *testing.T, p *hostPair, name string) {
	progress := atomic.Int64{}
	p.digest(func(n int) { progress.Add(int64(n)) })
	if err := p.transfer(1, 1000); err != nil { // both know each other's address
		t.Fatal(err)
	}
	var dropped [2]uint64 // before there was a partner to send to
	for i, b := range p.bonds {
		dropped[i] = b.Status().Counters.TxDropped
	}
	there := startStream(t, p.hosts[0], p.hosts[1], "10.0.0.2")
	back := startStream(t, p.hosts[1], p.hosts[0], "10.0.0.1")
	transferred := make(chan error, 1)
	go func() { transferred <- p.transfer(2, 30<<20) }()
	await(t, "the transfer has begun", func() bool { return progress.Load() > 1<<20 })
	if err := p.bonds[0].Drain(name); err != nil {
		t.Fatal(err)
	}
	slave := func() bonding.SlaveStatus { return p.bonds[0].Status().Slaves[0] }
	if slave().LACP != nil {
		await(t, "the port is drained", func() bool { return slave().LACP.Drain == "drained" })
	}
	before := slave().Counters
	begin := there.arrived.Load()
	await(t, "datagrams by the other", func() bool { return there.arrived.Load() > begin+100 })
	if n := slave().Counters.TxBytes - before.TxBytes; n > 2000 {
		t.Errorf("the drained slave still sent %d bytes", n)
	}
	if err := p.bonds[0].Undrain(name); err != nil {
		t.Fatal(err)
	}
	begin = there.arrived.Load()
	await(t, "datagrams after the return", func() bool { return there.arrived.Load() > begin+100 })
	if slave().LACP != nil {
		await(t, "the port distributes", func() bool { return slave().State == "active" })
	}
	// With balance-tlb and balance-alb addresses move between the slaves, and
	// what is on its way to one then may find its NIC's filter closed.
	some := 0
	if m := p.bonds[0].Mode(); m == bonding.BalanceTLB || m == bonding.BalanceALB {
		some = 20
	}
	there.end(t, some)
	back.end(t, some)
	if err := <-transferred; err != nil {
		t.Error(err)
	}
	for i, b := range p.bonds {
		if n := b.Status().Counters.TxDropped; n != dropped[i] {
			t.Errorf("bond %d dropped %d frames", i, n-dropped[i])
		}
	}
	if n := slave().LinkFailureCount; n != 0 {
		t.Errorf("%d failures counted", n)
	}
}
