package bonding_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gvisor.dev/gvisor/pkg/tcpip"
)

func ptr[T any](v T) *T { return &v }

func newSlave(name string) bonding.NewSlave {
	h := fnv.New32a()
	h.Write([]byte(name))
	mac := tcpip.LinkAddress(append([]byte{2, 1}, h.Sum(nil)...))
	return bonding.NewSlave{Name: name, Endpoint: linktest.NewRecorder(linktest.RecorderOptions{Address: mac})}
}

// settings is the status without what time and traffic change.
func settings(b *bonding.Bond) bonding.Status {
	st := b.Status()
	st.Failovers, st.FailoverTotals, st.Counters = nil, bonding.FailoverTotals{}, bonding.Counters{}
	for i := range st.Slaves {
		st.Slaves[i].LinkFailureCount, st.Slaves[i].Counters = 0, bonding.Counters{}
	}
	return st
}

func diff(was, is bonding.Status) string {
	return cmp.Diff(was, is, cmpopts.IgnoreUnexported(bonding.Status{}))
}

// A transaction with one bad part changes nothing, whatever else is in it.
func TestTransactionWithBadPart(t *testing.T) {
	good := func() bonding.Transaction {
		return bonding.Transaction{
			Options: map[string]string{"miimon": "50", "primary": "eth1", "active_slave": "wan"},
			Add:     []bonding.NewSlave{newSlave("eth7")},
			Slaves: []bonding.SlaveChange{{Slave: "eth1", NewName: ptr("wan")}, {Slave: "eth2", Drained: ptr(true)},
				{Slave: "eth2", Priority: ptr(int32(4))}},
			Remove: []string{"eth0"},
		}
	}
	for _, bad := range []struct {
		name string
		add  func(*bonding.Transaction)
		kind error
		text string
	}{
		{"unknown option", func(x *bonding.Transaction) { x.Options["mimon"] = "7" }, bonding.ErrUnknownOption, "mimon"},
		{"invalid value", func(x *bonding.Transaction) { x.Options["num_grat_arp"] = "256" }, bonding.ErrInvalid, "num_grat_arp"},
		{"mode", func(x *bonding.Transaction) { x.Options["mode"] = "balance-rr" }, bonding.ErrInvalid, "not with slaves"},
		{"active slave that is removed", func(x *bonding.Transaction) { x.Options["active_slave"] = "eth0" }, bonding.ErrNoSlave, "active_slave"},
		{"active slave that is drained", func(x *bonding.Transaction) { x.Options["active_slave"] = "eth2" }, bonding.ErrInvalid, "drained"},
		{"no such slave", func(x *bonding.Transaction) { x.Remove = append(x.Remove, "eth9") }, bonding.ErrNoSlave, "eth9"},
		{"twice removed", func(x *bonding.Transaction) { x.Remove = append(x.Remove, "eth0") }, bonding.ErrNoSlave, "eth0"},
		{"change of one that is removed", func(x *bonding.Transaction) {
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: "eth8", Enabled: ptr(false)})
		}, bonding.ErrNoSlave, "eth8"},
		{"name that is taken", func(x *bonding.Transaction) {
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: "eth2", NewName: ptr("wan")})
		}, bonding.ErrSlaveExists, "wan"},
		{"name of one that is removed", func(x *bonding.Transaction) {
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: "eth2", NewName: ptr("eth0")})
		}, bonding.ErrSlaveExists, "eth0"},
		{"name", func(x *bonding.Transaction) {
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: "eth2", NewName: ptr("a/b")})
		}, bonding.ErrInvalid, "slash"},
		{"weight", func(x *bonding.Transaction) {
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: "eth2", Weight: ptr(uint32(2e9))})
		}, bonding.ErrInvalid, "1000000000"},
		{"no successor", func(x *bonding.Transaction) {
			x.Add = nil
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: "eth1", Enabled: ptr(false)})
		}, bonding.ErrNoSuccessor, "eth2"},
		{"new slave that exists", func(x *bonding.Transaction) { x.Add = append(x.Add, newSlave("eth1")) }, bonding.ErrSlaveExists, "eth1"},
		{"new slaves of one name", func(x *bonding.Transaction) { x.Add = append(x.Add, newSlave("eth7")) }, bonding.ErrSlaveExists, "eth7"},
		{"new slave whose MTU does not fit", func(x *bonding.Transaction) {
			x.Add = append(x.Add, bonding.NewSlave{Name: "eth8", Endpoint: linktest.NewRecorder(linktest.RecorderOptions{Address: macOf("eth8"), MTU: 600, MaxMTU: 600})})
		}, bonding.ErrMTU, "eth8"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 3)
			was := settings(r.Bond)
			x := good()
			bad.add(&x)
			_, err := r.Apply(x)
			if !errors.Is(err, bad.kind) || !strings.Contains(err.Error(), bad.text) {
				t.Errorf("Apply() = %v, want %v with %q", err, bad.kind, bad.text)
			}
			if d := diff(was, settings(r.Bond)); d != "" {
				t.Errorf("it changed (-was +is):\n%s", d)
			}
			for _, n := range x.Add {
				if n.Endpoint.IsAttached() {
					t.Errorf("the endpoint of %s is attached", n.Name)
				}
			}
			x = good()
			if _, err := r.Apply(x); err != nil {
				t.Errorf("without the bad part: %v", err)
			}
		})
	}
}

// All faults are told at once.
func TestTransactionTellsAllFaults(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	_, err := r.Try(bonding.Transaction{Options: map[string]string{"miimon": "x", "nothing": "1"},
		Slaves: []bonding.SlaveChange{{Slave: "eth5", Enabled: ptr(true)}}, Remove: []string{"eth6"}})
	for _, want := range []string{"miimon", "nothing", "eth5", "eth6"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Try() = %v, want %s in it", err, want)
		}
	}
}

// A whole hand-over is one failover, to whom active_slave says.
func TestTransactionHandOver(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 3)
	x := bonding.Transaction{Options: map[string]string{"active_slave": "eth2"}, Remove: []string{"eth0"}}
	out, err := r.Try(x)
	want := []bonding.Difference{{Slave: "eth0", What: "member", From: "yes", To: "no"}, {What: "active_slave", From: "eth0", To: "eth2"}}
	if err != nil || !slices.Equal(out.Differences, want) || out.Flows.Method != "active" || *out.Flows.Moved != 1 {
		t.Errorf("Try() = %+v, %v, want %+v", out, err, want)
	}
	if st := r.Status(); st.ActiveSlave != "eth0" || len(st.Slaves) != 3 {
		t.Errorf("Try changed something: %+v", st)
	}
	a, err := r.Apply(x)
	if err != nil {
		t.Fatal(err)
	}
	st := r.Status()
	if st.ActiveSlave != "eth2" || len(st.Slaves) != 2 || len(st.Failovers) != 1 {
		t.Errorf("active %s of %d slaves, failovers %v", st.ActiveSlave, len(st.Slaves), st.Failovers)
	}
	if ep := a.Removed(); len(ep) != 1 || ep[0].IsAttached() {
		t.Errorf("Removed() = %v", ep)
	}
}

// The share of flows that a try tells is the share that moves then.
func TestTransactionFlows(t *testing.T) {
	const n = 1 << 16
	for _, tt := range []struct {
		name    string
		options map[string]string
		x       bonding.Transaction
		want    float64
	}{
		{"modulo, 3 to 2", nil, bonding.Transaction{Remove: []string{"eth2"}}, 2. / 3},
		{"modulo, 3 to 4", nil, bonding.Transaction{Add: []bonding.NewSlave{newSlave("eth3")}}, 3. / 4},
		{"modulo, none", nil, bonding.Transaction{Options: map[string]string{"miimon": "50"}}, 0},
		{"modulo, drain", nil, bonding.Transaction{Slaves: []bonding.SlaveChange{{Slave: "eth2", Drained: ptr(true)}}}, 2. / 3},
		{"modulo, exchange", nil, bonding.Transaction{Add: []bonding.NewSlave{newSlave("eth3")}, Remove: []string{"eth2"}}, 1. / 3},
		{"consistent, 3 to 2", map[string]string{"xmit_hash_map": "consistent"}, bonding.Transaction{Remove: []string{"eth2"}}, 1. / 3},
		{"consistent, 3 to 4", map[string]string{"xmit_hash_map": "consistent"}, bonding.Transaction{Add: []bonding.NewSlave{newSlave("eth3")}}, 1. / 4},
		{"consistent, disabled", map[string]string{"xmit_hash_map": "consistent"},
			bonding.Transaction{Slaves: []bonding.SlaveChange{{Slave: "eth0", Enabled: ptr(false)}}}, 1. / 3},
		{"to consistent", nil, bonding.Transaction{Options: map[string]string{"xmit_hash_map": "consistent"}}, 2. / 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR}, 3)
			if err := r.SetOptions(tt.options); err != nil {
				t.Fatal(err)
			}
			was := r.FlowOwners(n)
			a, err := r.Apply(tt.x)
			if err != nil {
				t.Fatal(err)
			}
			moved := 0
			for h, owner := range r.FlowOwners(n) {
				if owner != was[h] {
					moved++
				}
			}
			got, real := *a.Flows.Moved, float64(moved)/n
			if a.Flows.Method != "hash" || math.Abs(got-real) > 0.001 || math.Abs(got-tt.want) > 0.04 {
				t.Errorf("told %.4f (%s), moved %.4f, want about %.3f", got, a.Flows.Method, real, tt.want)
			}
		})
	}
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR}, 2)
	out, err := r.Try(bonding.Transaction{Options: map[string]string{"xmit_hash_policy": "layer3+4"}})
	if err != nil || out.Flows.Method != "rehash" || *out.Flows.Moved != 0.5 {
		t.Errorf("another policy: %+v, %v, want 0.5 by rehash", out.Flows, err)
	}
	rr := newRig(t, bonding.Options{Mode: bonding.BalanceRR}, 2)
	if out, err := rr.Try(bonding.Transaction{Remove: []string{"eth0"}}); err != nil || out.Flows.Moved != nil {
		t.Errorf("balance-rr: %+v, %v, want null", out.Flows, err)
	}
}

// randomTransaction makes one of some parts, of which some may be refused.
func randomTransaction(rng *rand.Rand, b *bonding.Bond, next *int) bonding.Transaction {
	x := bonding.Transaction{Options: map[string]string{}}
	var names []string
	for _, s := range b.Status().Slaves {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		names = []string{"none"} // is refused
	}
	pick := func() string { return names[rng.IntN(len(names))] }
	for range 1 + rng.IntN(4) {
		switch rng.IntN(9) {
		case 0:
			*next++
			x.Add = append(x.Add, newSlave(fmt.Sprintf("n%d", *next)))
		case 1:
			x.Remove = append(x.Remove, pick())
		case 2:
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: pick(), Enabled: ptr(rng.IntN(2) == 0)})
		case 3:
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: pick(), Drained: ptr(rng.IntN(2) == 0)})
		case 4:
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: pick(), Priority: ptr(int32(rng.IntN(3)))})
		case 5:
			*next++
			x.Slaves = append(x.Slaves, bonding.SlaveChange{Slave: pick(), NewName: ptr(fmt.Sprintf("r%d", *next))})
		case 6:
			x.Options["active_slave"] = pick()
		case 7:
			x.Options["primary"] = pick()
		case 8:
			x.Options["miimon"] = []string{"50", "100", "200"}[rng.IntN(3)]
			x.Options["num_grat_arp"] = fmt.Sprint(rng.IntN(4))
		}
	}
	return x
}

// Whatever a transaction is: refused it changes nothing, applied the active slave
// is who was told, and reverted all is as it was.
func TestTransactionRandom(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceXOR, bonding.BalanceRR, bonding.BalanceTLB, bonding.BalanceALB} {
		t.Run(mode.String(), func(t *testing.T) {
			applied, next := 0, 0
			for seed := range uint64(25) {
				rng := rand.New(rand.NewPCG(seed, 7))
				r := newRig(t, bonding.Options{Mode: mode}, 2+rng.IntN(3))
				for range 4 {
					was := settings(r.Bond)
					x := randomTransaction(rng, r.Bond, &next)
					out, tryErr := r.Try(x)
					a, err := r.Apply(x)
					if (err == nil) != (tryErr == nil) {
						t.Fatalf("seed %d: Try() = %v, Apply() = %v", seed, tryErr, err)
					}
					if err != nil {
						if d := diff(was, settings(r.Bond)); d != "" {
							t.Fatalf("seed %d: refused (%v), but (-was +is):\n%s", seed, err, d)
						}
						continue
					}
					applied++
					active := was.ActiveSlave
					for _, d := range out.Differences {
						if d.What == "active_slave" {
							active = d.To
						}
					}
					st := r.Status()
					for _, d := range out.Differences {
						if d.What == "name" && d.From == active {
							active = d.To
						}
					}
					if st.ActiveSlave != active {
						t.Fatalf("seed %d: active is %q, told was %q; %+v, %+v", seed, st.ActiveSlave, active, x, out)
					}
					if rng.IntN(2) == 0 {
						continue
					}
					if err := a.Revert(); err != nil {
						t.Fatalf("seed %d: Revert() = %v", seed, err)
					}
					if is := settings(r.Bond); diff(steady(was), steady(is)) != "" {
						t.Fatalf("seed %d: reverted %+v (-was +is):\n%s", seed, x, diff(steady(was), steady(is)))
					}
				}
				r.Bond.Close()
			}
			if applied < 30 {
				t.Errorf("only %d were applied", applied)
			}
		})
	}
}

// steady leaves out what only time decides: the addresses that slaves of the
// adaptive modes have, loads, and whether a hand-over still lingers.
func steady(st bonding.Status) bonding.Status {
	st.Balance = nil
	st.Slaves = slices.Clone(st.Slaves)
	for i := range st.Slaves {
		s := &st.Slaves[i]
		s.Balance, s.MACAddress = nil, ""
		s.Receives = s.Receives && s.State == "active" && st.Mode != bonding.BalanceTLB && st.Mode != bonding.BalanceALB
	}
	return st
}

// Transactions, their reversal, traffic and status go on at once.
func TestTransactionRace(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceXOR}, 3)
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 40 {
				a, err := r.Apply(bonding.Transaction{Add: []bonding.NewSlave{newSlave(fmt.Sprintf("x%d%d", w, i))},
					Slaves: []bonding.SlaveChange{{Slave: "eth1", Enabled: ptr(i%2 == 0)}}, Options: map[string]string{"miimon": "50"}})
				if err != nil {
					t.Error(err)
					return
				}
				if err := a.Revert(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		r.Status()
		r.send(4)
		select {
		case <-done:
			if n := len(r.Status().Slaves); n != 3 {
				t.Errorf("%d slaves, want 3", n)
			}
			return
		default:
		}
	}
}

// Options may name a slave that comes with them, and one by its new name.
func TestTransactionOptionsNameSlaves(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
	a, err := r.Apply(bonding.Transaction{Add: []bonding.NewSlave{newSlave("eth7")},
		Slaves:  []bonding.SlaveChange{{Slave: "eth1", NewName: ptr("wan")}},
		Options: map[string]string{"active_slave": "eth7", "weight": "eth7:4", "queue_id": "wan:3"}})
	if err != nil {
		t.Fatal(err)
	}
	st := r.Status()
	if st.ActiveSlave != "eth7" || st.Slaves[2].Weight != 4 || st.Slaves[1].QueueID != 3 || len(st.Failovers) != 1 {
		t.Errorf("the status is %+v", st)
	}
	if err := a.Revert(); err != nil {
		t.Fatal(err)
	}
	if st := r.Status(); st.ActiveSlave != "eth0" || len(st.Slaves) != 2 || st.Slaves[1].Name != "eth1" || st.Slaves[1].QueueID != 0 {
		t.Errorf("reverted, the status is %+v", st)
	}
}
