package drill

import (
	"context"
	"fmt"
	"time"

	"bondstack/bonding"
	"bondstack/stack"
)

const (
	// rhythm is for how long peers are asked before a cut.
	rhythm = 100 * time.Millisecond
	// settle is for how long they are asked after it at least, and patience for how
	// long the slave's return is waited for.
	settle   = 500 * time.Millisecond
	patience = 10 * time.Second
	// checkEvery is the distance of looks at the bond.
	checkEvery = 20 * time.Millisecond
)

// drill is one that runs.
type drill struct {
	bond    *bonding.Bond
	peers   []*peer
	request Request
	emit    func(Line)
	active  bool // the slave was the active one at first
}

// prepare finds out whether a drill can be, and whom it asks. close has to be called.
func prepare(ctx context.Context, b *bonding.Bond, h *stack.Host, r Request) (*drill, error) {
	st := b.Status()
	if _, err := slaveOf(&st, r.Slave); err != nil {
		return nil, err
	}
	if r.How == "" {
		r.How = defaultHow(&st)
	}
	peers, err := findPeers(ctx, h, r.Peers)
	if err != nil {
		return nil, err
	}
	return &drill{bond: b, peers: peers, request: r, active: st.ActiveSlave == r.Slave}, nil
}

func (d *drill) close() { closeAll(d.peers) }

func slaveOf(st *bonding.Status, name string) (*bonding.SlaveStatus, error) {
	for i := range st.Slaves {
		if st.Slaves[i].Name == name {
			return &st.Slaves[i], nil
		}
	}
	return nil, fmt.Errorf("slave: bond %s has no %q", st.Name, name)
}

// asksOthers reports whether the bond has a monitor that finds a silent slave.
func asksOthers(st *bonding.Status) bool {
	return st.Mode == bonding.IEEE8023AD || st.ARPIntervalMs > 0 || st.Options["probe_interval"] != "0"
}

func defaultHow(st *bonding.Status) bonding.CutHow {
	if asksOthers(st) {
		return bonding.CutSilence
	}
	return bonding.CutDisable
}

// meaning says what kind of failure a cut is.
func meaning(st *bonding.Status, how bonding.CutHow) string {
	switch {
	case how == bonding.CutDisable:
		return "the bond is told that the slave is out of use: this measures the change to another one, not how long a failure takes to be found"
	case how == bonding.CutDrain:
		return "the slave is drained: an orderly change, which should lose nothing"
	case !asksOthers(st):
		return "all frames of the slave are discarded, and its link stays up: no monitor of this bond can find that (arp_interval, probe_interval and LACP could)"
	case st.Mode == bonding.IEEE8023AD:
		return "all frames of the slave are discarded, and its link stays up: LACP finds that when three PDUs have failed to come, 3 s with lacp_rate fast and 90 s with slow"
	}
	return "all frames of the slave are discarded, and its link stays up: the monitors that listen to others have to find that"
}

// run runs all rounds.
func (d *drill) run(ctx context.Context) (*Result, error) {
	st := d.bond.Status()
	r := &Result{Bond: st.Name, Mode: st.Mode, Slave: d.request.Slave, How: d.request.How,
		Meaning: meaning(&st, d.request.How), ForMs: d.request.ForMs}
	for n := 1; n <= d.request.Count; n++ {
		if n > 1 && d.active {
			if err := d.bond.SetOption("active_slave", d.request.Slave); err != nil {
				return nil, fmt.Errorf("before round %d: %w", n, err)
			}
		}
		round, err := d.round(ctx, n)
		if err != nil {
			return nil, err
		}
		r.Rounds = append(r.Rounds, round)
	}
	r.sum()
	return r, nil
}

// round cuts the slave and gives it back.
func (d *drill) round(ctx context.Context, n int) (Round, error) {
	for _, p := range d.peers {
		p.begin(time.Now())
	}
	if err := watch(ctx, d.peers, time.Time{}, after(rhythm)); err != nil {
		return Round{}, err
	}
	for _, p := range d.peers {
		p.inCut = gap{} // what was before
	}
	d.emit(Line{Phase: Cutting, Round: n})
	before := d.bond.Status()
	r := Round{Served: serves(d.bond, d.request.Slave)}
	c, err := d.bond.Cut(d.request.Slave, d.request.How, d.request.Force)
	if err != nil {
		return Round{}, err
	}
	defer c.Restore()
	r.Time = time.Now()
	if err := watch(ctx, d.peers, time.Time{}, after(time.Duration(d.request.ForMs)*time.Millisecond)); err != nil {
		return Round{}, err
	}
	r.Noticed = !ready(d.bond, d.request.Slave)
	r.DiscardedTx, r.DiscardedRx = c.Discarded()
	restored := time.Now()
	c.Restore()
	d.emit(Line{Phase: Restored, Round: n})
	if err := watch(ctx, d.peers, restored, d.isBack(restored, &r.Back)); err != nil {
		return Round{}, err
	}
	end := time.Now()
	await(ctx, d.peers, restored)
	d.emit(Line{Phase: Back, Round: n})
	d.report(&r, &before)
	for _, p := range d.peers {
		r.Peers = append(r.Peers, p.result(r.Time, restored, end))
	}
	return r, nil
}

// report adds what the bond itself has recorded.
func (d *drill) report(r *Round, before *bonding.Status) {
	now := d.bond.Status()
	for _, reason := range []string{"tx_no_slave", "tx_link_gone"} {
		r.FramesLost += now.Counters.Drops[reason] - before.Counters.Drops[reason]
	}
	seen := uint64(0)
	if n := len(before.Failovers); n > 0 {
		seen = before.Failovers[n-1].Seq
	}
	r.Failovers, r.Peers = []bonding.Failover{}, []PeerResult{}
	for _, f := range now.Failovers {
		if f.Seq > seen {
			r.Failovers = append(r.Failovers, f)
		}
	}
}

func after(d time.Duration) func(time.Time) bool {
	end := time.Now().Add(d)
	return func(now time.Time) bool { return !now.Before(end) }
}

// isBack is true once the slave is ready, and some time after that has passed.
func (d *drill) isBack(restored time.Time, back *bool) func(time.Time) bool {
	end, next := restored.Add(settle), restored
	return func(now time.Time) bool {
		if !*back && !now.Before(next) {
			next = now.Add(checkEvery)
			if *back = ready(d.bond, d.request.Slave); *back {
				end = now.Add(settle)
			}
		}
		return *back && !now.Before(end) || now.Sub(restored) >= patience
	}
}

// serves reports whether the bond sends data by a slave.
func serves(b *bonding.Bond, name string) bool {
	for _, s := range b.Explain().Slaves {
		if s.Slave == name {
			return s.InUse
		}
	}
	return false
}

// ready reports whether a slave serves, or would as the active one.
func ready(b *bonding.Bond, name string) bool {
	st := b.Status()
	s, err := slaveOf(&st, name)
	if err != nil || !s.Enabled || s.StandsBack || s.MIIStatus != "up" {
		return false
	}
	return st.Mode == bonding.ActiveBackup || serves(b, name)
}
