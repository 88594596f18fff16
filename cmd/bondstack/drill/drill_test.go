package drill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/cmd/bondstack/drill"
	"bondstack/link/linktest"
	"bondstack/link/wire"
	"bondstack/stack"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

func TestMain(m *testing.M) { linktest.Main(m) }

const patience = 30 * time.Second

// rig is two hosts: the first, 10.0.0.1, is on a bond with a server of drills; the
// other is on a bond of the same two wires, or on a third port of a switch.
type rig struct {
	t      *testing.T
	bonds  []*bonding.Bond
	hosts  [2]*stack.Host
	server *drill.Server
	socket string
}

// newRig makes two bonds.
func newRig(t *testing.T, o bonding.Options, options map[string]string) *rig {
	t.Helper()
	linktest.CheckGoroutines(t)
	r := &rig{t: t}
	x, y := r.bond(o, options), r.bond(o, options)
	for _, name := range []string{"eth0", "eth1"} {
		left, right, err := wire.New(wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.enslave(x, name, left)
		r.enslave(y, name, right)
	}
	r.host(0, x)
	r.host(1, y)
	r.serve(r.hosts[0])
	return r
}

// newSwitched makes a bond at a switch.
func newSwitched(t *testing.T) *rig {
	t.Helper()
	linktest.CheckGoroutines(t)
	r := &rig{t: t}
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sw.Close)
	b := r.bond(bonding.Options{Mode: bonding.ActiveBackup, MIIMon: 20 * time.Millisecond}, nil)
	r.enslave(b, "eth0", sw.Port(0))
	r.enslave(b, "eth1", sw.Port(1))
	r.host(0, b)
	r.host(1, sw.Port(2))
	r.serve(r.hosts[0])
	return r
}

func (r *rig) bond(o bonding.Options, options map[string]string) *bonding.Bond {
	r.t.Helper()
	b, err := bonding.New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(b.Close)
	if err := b.SetOptions(options); err != nil {
		r.t.Fatal(err)
	}
	r.bonds = append(r.bonds, b)
	return b
}

func (r *rig) enslave(b *bonding.Bond, name string, ep *wire.Endpoint) {
	r.t.Helper()
	r.t.Cleanup(ep.Close)
	if err := b.Enslave(name, ep, bonding.SlaveOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) host(i int, ep netstack.LinkEndpoint) {
	r.t.Helper()
	h, err := stack.NewHost(ep, stack.HostOptions{Addresses: []netip.Prefix{netip.PrefixFrom(address(i+1), 24)}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { h.Close() })
	r.hosts[i] = h
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

// serve serves drills on the first bond.
func (r *rig) serve(h *stack.Host) {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "bs")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { os.RemoveAll(dir) })
	r.socket = filepath.Join(dir, "control")
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	r.server = drill.NewServer(r.bonds[0], h, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	r.server.Register(mux)
	// The bounds are those of the control server: a drill takes longer.
	s := &http.Server{Handler: mux, ReadTimeout: 200 * time.Millisecond, WriteTimeout: 200 * time.Millisecond}
	go s.Serve(l)
	r.t.Cleanup(func() {
		s.Close()
		r.server.Close()
	})
}

// ready waits until both bonds use both slaves.
func (r *rig) ready() *rig {
	r.t.Helper()
	for _, b := range r.bonds {
		eventually(r.t, "both slaves are in use", func() bool {
			x := b.Explain()
			return x.Mode == bonding.ActiveBackup || !slices.ContainsFunc(x.Slaves, func(s bonding.SlaveExplanation) bool { return !s.InUse })
		})
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if _, err := r.hosts[0].Ping(ctx, address(2)); err != nil {
		r.t.Fatal(err)
	}
	return r
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

func (r *rig) ask(q drill.Request) (*drill.Result, []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var phases []string
	res, err := drill.Ask(ctx, r.socket, q, func(l drill.Line) { phases = append(phases, l.Phase) })
	if err != nil {
		r.t.Fatal(err)
	}
	return res, phases
}

// wantRestored checks that the slave is used as before.
func (r *rig) wantRestored() {
	r.t.Helper()
	for _, s := range r.bonds[0].Status().Slaves {
		if !s.Enabled || s.Draining || s.Silenced {
			r.t.Errorf("%s was not given back: %+v", s.Name, s)
		}
	}
}

// An orderly cut of the active slave, twice: each time it is active again, and the
// peer, which nobody has named, is found among the neighbours and stays reached.
func TestDrillDisable(t *testing.T) {
	r := newSwitched(t).ready()
	res, phases := r.ask(drill.Request{Slave: "eth0", ForMs: 150, Count: 2})
	if want := []string{"cutting", "restored", "back", "cutting", "restored", "back"}; !slices.Equal(phases, want) {
		t.Errorf("phases %v, want %v", phases, want)
	}
	if res.How != bonding.CutDisable || !strings.Contains(res.Meaning, "is told") {
		t.Errorf("how %s: %s", res.How, res.Meaning)
	}
	if len(res.Rounds) != 2 || len(res.Unreached) != 0 || res.LongestGapUs == nil || res.Sent < 60 {
		t.Fatalf("result %+v", res)
	}
	for _, round := range res.Rounds {
		if !round.Served || !round.Noticed || !round.Back {
			t.Errorf("round %+v, want that the slave served, was lost and is back", round)
		}
		if len(round.Failovers) == 0 || round.Failovers[0].Cause != bonding.CauseDisabled || round.Failovers[0].To != "eth1" {
			t.Errorf("failovers %v, want one to eth1", round.Failovers)
		}
		if len(round.Peers) != 1 || round.Peers[0].Peer != address(2) || round.Peers[0].Sent == 0 {
			t.Errorf("peers %+v, want %v", round.Peers, address(2))
		}
	}
	r.wantRestored()
}

// A silent cut that the bonds' probes find: what was discarded is the loss, and the
// gap is what they needed to find it.
func TestDrillSilenceProbes(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceXOR} {
		r := newRig(t, bonding.Options{Mode: mode, XmitHashPolicy: xmithash.Layer23, ProbeInterval: 20 * time.Millisecond}, nil).ready()
		slave := "eth0"
		if mode == bonding.BalanceXOR { // the one that carries the pings
			slave = r.carrier()
		}
		res, _ := r.ask(drill.Request{Slave: slave, ForMs: 1500, Peers: []netip.Addr{address(2)}})
		round, p := res.Rounds[0], res.Rounds[0].Peers[0]
		if res.How != bonding.CutSilence || !round.Noticed || !round.Back || round.DiscardedTx == 0 {
			t.Errorf("%v: %+v", mode, round)
		}
		if p.Lost == 0 || p.GapUs == nil || *p.GapUs < 20_000 || p.ReachedAgainUs == nil || *p.ReachedAgainUs > 1_500_000 {
			t.Errorf("%v: peer %+v, want a loss that ends within the cut", mode, p)
		}
		if len(round.Failovers) == 0 || round.Failovers[0].Cause != bonding.CauseFastProbe {
			t.Errorf("%v: failovers %v, want one by the probes", mode, round.Failovers)
		}
		r.wantRestored()
	}
}

// carrier returns the slave by which the first host's pings leave.
func (r *rig) carrier() string {
	r.t.Helper()
	count := func() map[string]uint64 {
		m := map[string]uint64{}
		for _, s := range r.bonds[0].Status().Slaves {
			m[s.Name] = s.Counters.TxPackets
		}
		return m
	}
	before := count()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	p, err := r.hosts[0].NewPinger(ctx, address(2), stack.PingOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer p.Close()
	for range 200 {
		if _, err := p.Ping(ctx); err != nil {
			r.t.Fatal(err)
		}
	}
	after := count()
	if after["eth0"]-before["eth0"] > after["eth1"]-before["eth1"] {
		return "eth0"
	}
	return "eth1"
}

// A silent cut that no monitor sees lasts as long as the cut, and is told so.
func TestDrillUnnoticed(t *testing.T) {
	r := newSwitched(t).ready()
	res, _ := r.ask(drill.Request{Slave: "eth0", ForMs: 200, How: bonding.CutSilence})
	round, p := res.Rounds[0], res.Rounds[0].Peers[0]
	if round.Noticed || len(round.Failovers) != 0 || !strings.Contains(res.Meaning, "no monitor") {
		t.Errorf("round %+v; %s", round, res.Meaning)
	}
	if p.GapUs == nil || *p.GapUs < 200_000 || p.ReachedAgainUs == nil || *p.ReachedAgainUs < 200_000 || p.Lost < 5 {
		t.Errorf("peer %+v, want a gap of the whole cut", p)
	}
	var b bytes.Buffer
	if err := res.WriteText(&b); err != nil || !strings.Contains(b.String(), "the bond did not notice: eth0 stayed in use") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// In 802.3ad LACP finds a silent port, with its fast rate within a few seconds.
func TestDrillLACP(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.IEEE8023AD, XmitHashPolicy: xmithash.Layer23, MIIMon: 20 * time.Millisecond}, map[string]string{"lacp_rate": "fast"})
	slave := r.ready().carrier()
	res, _ := r.ask(drill.Request{Slave: slave, ForMs: 5000})
	round, p := res.Rounds[0], res.Rounds[0].Peers[0]
	if res.How != bonding.CutSilence || !round.Noticed || !round.Back || round.DiscardedTx == 0 {
		t.Errorf("round %+v", round)
	}
	if p.Lost == 0 || p.ReachedAgainUs == nil || *p.ReachedAgainUs > 5_000_000 {
		t.Errorf("peer %+v, want a loss that ends within the cut", p)
	}
	r.wantRestored()
}

// A peer that does not come back is told, whatever the bond thinks.
func TestDrillUnreached(t *testing.T) {
	r := newSwitched(t).ready()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	res, err := drill.Ask(ctx, r.socket, drill.Request{Slave: "eth0", ForMs: 100}, func(l drill.Line) {
		if l.Phase == drill.Cutting {
			r.hosts[1].Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(res.Unreached, []netip.Addr{address(2)}) || res.LongestGapUs != nil {
		t.Errorf("unreached %v, gap %v", res.Unreached, res.LongestGapUs)
	}
	if _, ok := res.Outage(); ok {
		t.Error("the outage has ended, for a peer that is not there")
	}
}

// When the client goes, or the server is closed, the slave is given back at once;
// meanwhile a second drill is refused.
func TestDrillInterrupted(t *testing.T) {
	r := newSwitched(t).ready()
	begin := func(ctx context.Context, how bonding.CutHow) (cut, ended chan struct{}) {
		cut, ended = make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			_, err := drill.Ask(ctx, r.socket, drill.Request{Slave: "eth0", ForMs: 60_000, How: how}, func(drill.Line) { close(cut) })
			if err == nil || !strings.Contains(err.Error(), "cancel") {
				t.Errorf("an interrupted drill: %v", err)
			}
		}()
		return cut, ended
	}
	await := func(cut, ended chan struct{}) {
		select {
		case <-cut:
		case <-ended:
			t.Fatal("the drill ended before it began")
		}
	}
	for _, how := range []bonding.CutHow{bonding.CutSilence, bonding.CutDrain} {
		ctx, cancel := context.WithCancel(t.Context())
		cut, ended := begin(ctx, how)
		await(cut, ended)
		if _, err := drill.Ask(t.Context(), r.socket, drill.Request{Slave: "eth1", ForMs: 100}, nil); err == nil || !strings.Contains(err.Error(), "runs already") {
			t.Errorf("a second drill: %v", err)
		}
		cancel()
		<-ended
		eventually(t, "the slave is given back", func() bool { s := r.bonds[0].Status().Slaves[0]; return !s.Silenced && !s.Draining })
		eventually(t, "another drill can begin", func() bool {
			_, err := drill.Ask(t.Context(), r.socket, drill.Request{Slave: "eth9", ForMs: 100}, nil)
			return err != nil && strings.Contains(err.Error(), `no "eth9"`)
		})
	}
	cut, ended := begin(t.Context(), bonding.CutDisable)
	await(cut, ended)
	eventually(t, "the slave is disabled", func() bool { return !r.bonds[0].Status().Slaves[0].Enabled })
	r.server.Close()
	r.wantRestored()
	<-ended
}

// Without a stack there is the bond's own record.
func TestDrillWithoutHost(t *testing.T) {
	r := newSwitched(t).ready()
	r.serve(nil)
	res, _ := r.ask(drill.Request{Slave: "eth0", ForMs: 100, How: bonding.CutDisable})
	if len(res.Rounds[0].Failovers) == 0 || len(res.Rounds[0].Peers) != 0 || res.LongestGapUs != nil {
		t.Errorf("result %+v", res)
	}
	if _, ok := res.Outage(); !ok {
		t.Error("no outage by the record")
	}
	if _, err := drill.Ask(t.Context(), r.socket, drill.Request{Slave: "eth0", ForMs: 100, Peers: []netip.Addr{address(2)}}, nil); err == nil || !strings.Contains(err.Error(), "no stack of its own") {
		t.Errorf("with a peer: %v", err)
	}
}

// What cannot be done is refused before anything is cut.
func TestDrillRefused(t *testing.T) {
	r := newSwitched(t)
	if _, err := drill.Ask(t.Context(), r.socket, drill.Request{Slave: "eth0", ForMs: 100}, nil); err == nil || !strings.Contains(err.Error(), "no gateway and no neighbour") {
		t.Errorf("without anybody to ask: %v", err)
	}
	for want, q := range map[string]drill.Request{
		"none is named":                 {ForMs: 100},
		`no "eth7"`:                     {Slave: "eth7", ForMs: 100},
		"for: 99 ms":                    {Slave: "eth0", ForMs: 99},
		"for: 30001 ms":                 {Slave: "eth0", ForMs: 30_001, Count: 2},
		"count: 21":                     {Slave: "eth0", ForMs: 100, Count: 21},
		`how: "saw"`:                    {Slave: "eth0", ForMs: 100, How: "saw"},
		"peers: 17":                     {Slave: "eth0", ForMs: 100, Peers: slices.Repeat([]netip.Addr{address(2)}, 17)},
		"224.0.0.1 is no address":       {Slave: "eth0", ForMs: 100, Peers: []netip.Addr{netip.MustParseAddr("224.0.0.1")}},
		"own address":                   {Slave: "eth0", ForMs: 100, Peers: []netip.Addr{address(1)}},
		"peers: not all answer before":  {Slave: "eth0", ForMs: 100, Peers: []netip.Addr{address(2), address(9)}},
		"no other slave can serve in i": {Slave: "eth1", ForMs: 100, Peers: []netip.Addr{address(2)}},
	} {
		if strings.HasPrefix(want, "no other slave") {
			if err := r.bonds[0].SetSlaveEnabled("eth0", false); err != nil {
				t.Fatal(err)
			}
		}
		_, err := drill.Ask(t.Context(), r.socket, q, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Ask(%+v) = %v, want %q", q, err, want)
		}
		if err := r.bonds[0].SetSlaveEnabled("eth0", true); err != nil {
			t.Fatal(err)
		}
	}
	r.wantRestored()
}

func FuzzParseRequest(f *testing.F) {
	for _, text := range []string{`{"slave":"eth0","for_ms":5000,"how":"silence","peers":["10.0.0.1","fe80::1%bond0"],"count":2}`, `{}`, `{"x":1}`, `{"slave":"a","for_ms":100}{}`, `[]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := drill.ParseRequest(body)
		if err != nil {
			return
		}
		if total := time.Duration(r.ForMs) * time.Millisecond * time.Duration(r.Count); r.Count < 1 || total > drill.MaxFor || len(r.Peers) > drill.MaxPeers {
			t.Errorf("%q is let through: %+v", body, r)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := drill.ParseRequest(again); err != nil {
			t.Errorf("%s is refused, made of %q: %v", again, body, err)
		}
	})
}
