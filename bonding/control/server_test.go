package control_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/control"
)

// wants wants an error of the server's with a status and texts in it.
func wants(t *testing.T, what string, err error, status int, texts ...string) {
	t.Helper()
	var e *control.Error
	if !errors.As(err, &e) || e.Status != status {
		t.Errorf("%s: %v, want status %d", what, err, status)
		return
	}
	for _, text := range texts {
		if !strings.Contains(e.Text, text) {
			t.Errorf("%s: %v, want %q in it", what, err, text)
		}
	}
}

// Every operation does what it says, several at once.
func TestChange(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, 4)
	a := r.must(ops(
		control.Operation{Op: control.Set, Option: "miimon", Value: "50"},
		control.Operation{Op: control.Add, Slave: "new", Prio: 3, Weight: 7, QueueID: 2},
		control.Operation{Op: control.Delete, Slave: "eth0"},
		control.Operation{Op: control.Activate, Slave: "eth1"},
		control.Operation{Op: control.Drain, Slave: "eth2"},
		control.Operation{Op: control.Disable, Slave: "eth3"},
		control.Operation{Op: control.Rename, Slave: "eth3", To: "spare"},
		control.Operation{Op: control.Prio, Slave: "eth2", Value: "-4"},
		control.Operation{Op: control.Weight, Slave: "eth2", Value: "100"},
	))
	st := r.bond.Status()
	if !a.Applied || a.Confirm != nil || len(a.Differences) != 9 || *a.Flows.Moved != 1 {
		t.Errorf("the answer is %+v", a)
	}
	if got, want := r.slaves(), []string{"eth1", "eth2", "spare", "new"}; !slices.Equal(got, want) {
		t.Fatalf("slaves %v, want %v", got, want)
	}
	eth2, spare, fresh := st.Slaves[1], st.Slaves[2], st.Slaves[3]
	if st.MIIMonMs != 50 || st.ActiveSlave != "eth1" || !eth2.Draining || eth2.Priority != -4 || eth2.Weight != 100 || spare.Enabled ||
		fresh.Priority != 3 || fresh.Weight != 7 || fresh.QueueID != 2 || !fresh.Enabled {
		t.Errorf("the status is %+v", st)
	}
	if r.closed("eth0") != 1 {
		t.Error("the link of the slave that left is not closed")
	}
	r.must(ops(control.Operation{Op: control.Undrain, Slave: "eth2"}, control.Operation{Op: control.Enable, Slave: "spare"}))
	if st := r.bond.Status(); st.Slaves[1].Draining || !st.Slaves[2].Enabled {
		t.Errorf("undrained and enabled, the status is %+v", st)
	}
}

// A dry run tells the same and changes nothing; a bad part of many changes
// nothing, and links that were opened for it are closed.
func TestChangeRefused(t *testing.T) {
	r := newRig(t, bonding.BalanceXOR, 2)
	good := []control.Operation{{Op: control.Set, Option: "miimon", Value: "50"}, {Op: control.Add, Slave: "eth2"}}
	a := r.must(control.Request{Operations: good, DryRun: true})
	if a.Applied || len(a.Differences) != 2 || *a.Flows.Moved < 0.66 || *a.Flows.Moved > 0.67 {
		t.Errorf("the dry run answers %+v", a)
	}
	for _, tt := range []struct {
		bad   control.Operation
		texts []string
	}{
		{control.Operation{Op: control.Set, Option: "mode", Value: "broadcast"}, []string{"mode", "not with slaves"}},
		{control.Operation{Op: control.Set, Option: "miimon", Value: "70"}, []string{"operation 3", "twice"}},
		{control.Operation{Op: control.Activate, Slave: "eth0"}, []string{"active_slave", "balance-xor", "active-backup"}},
		{control.Operation{Op: control.Delete, Slave: "eth5"}, []string{"eth5", "eth0, eth1"}},
		{control.Operation{Op: control.Add, Slave: "none"}, []string{"operation 3", "there is no such link"}},
		{control.Operation{Op: control.Prio, Slave: "eth0", Value: "3000000000"}, []string{"operation 3", "3000000000"}},
		{control.Operation{Op: control.Weight, Slave: "eth0", Value: "-1"}, []string{"operation 3", "-1"}},
	} {
		_, err := r.change(ops(append(good[:2:2], tt.bad)...))
		wants(t, fmt.Sprint(tt.bad), err, http.StatusUnprocessableEntity, tt.texts...)
		if st := r.bond.Status(); st.MIIMonMs != 100 || len(st.Slaves) != 2 {
			t.Fatalf("%+v changed something: %+v", tt.bad, st)
		}
		if ep := r.opened["eth2"]; ep.IsAttached() || r.closed("eth2") != 1 {
			t.Errorf("%+v: the link opened for it is not closed", tt.bad)
		}
		delete(r.opened, "eth2")
		r.must(control.Request{Operations: good, DryRun: true})
	}
}

// What nobody confirms is taken back at its time, and not before.
func TestConfirmWithin(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, 3)
	req := ops(control.Operation{Op: control.Delete, Slave: "eth0"}, control.Operation{Op: control.Add, Slave: "new"},
		control.Operation{Op: control.Set, Option: "num_grat_arp", Value: "7"}, control.Operation{Op: control.Activate, Slave: "eth2"})
	req.ConfirmWithinMs = 10_000
	check := func(what, active, slaves string) {
		t.Helper()
		st := r.bond.Status()
		if got := strings.Join(r.slaves(), " "); st.ActiveSlave != active || got != slaves {
			t.Errorf("%s: active %s of %s, want %s of %s", what, st.ActiveSlave, got, active, slaves)
		}
	}
	ctx := context.Background()
	a := r.must(req)
	if a.Confirm == nil || !a.Confirm.Deadline.Equal(r.clock.Now().Add(10*time.Second)) {
		t.Fatalf("the answer is %+v", a)
	}
	if p, err := r.client.Pending(ctx); err != nil || p == nil || p.ID != a.Confirm.ID {
		t.Errorf("Pending() = %v, %v", p, err)
	}
	_, err := r.change(ops(control.Operation{Op: control.Set, Option: "miimon", Value: "50"}))
	wants(t, "a change meanwhile", err, http.StatusConflict, "confirm or revert "+a.Confirm.ID)
	if _, err := r.change(control.Request{Operations: []control.Operation{{Op: control.Set, Option: "miimon", Value: "50"}}, DryRun: true}); err != nil {
		t.Errorf("a dry run meanwhile: %v", err)
	}
	r.clock.Advance(10*time.Second - time.Millisecond)
	check("before the time is over", "eth2", "eth1 eth2 new")
	if r.closed("eth0") != 0 {
		t.Error("the link that may have to come back is closed")
	}
	r.clock.Advance(time.Millisecond)
	check("after it", "eth0", "eth0 eth1 eth2")
	if got := r.bond.Status().Options["num_grat_arp"]; got != "1" || r.closed("new") != 1 {
		t.Errorf("num_grat_arp is %s; the new link was closed %d times", got, r.closed("new"))
	}
	wants(t, "to confirm too late", r.client.Confirm(ctx, a.Confirm.ID), http.StatusNotFound, "no such change")

	a = r.must(req)
	wants(t, "to confirm another", r.client.Confirm(ctx, "77"), http.StatusNotFound, a.Confirm.ID, "77")
	if err := r.client.Confirm(ctx, a.Confirm.ID); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Hour)
	check("confirmed", "eth2", "eth1 eth2 new")
	if r.closed("eth0") != 1 {
		t.Error("the link that left for good is not closed")
	}
	req = ops(control.Operation{Op: control.Activate, Slave: "eth1"})
	req.ConfirmWithinMs = 1000
	r.must(req)
	check("activated", "eth1", "eth1 eth2 new")
	if err := r.client.Revert(ctx, ""); err != nil {
		t.Error(err)
	}
	check("reverted", "eth2", "eth1 eth2 new")
	if p, err := r.client.Pending(ctx); err != nil || p != nil {
		t.Errorf("Pending() = %v, %v, want none", p, err)
	}
}

// Two clients at once are served one at a time: each change is whole, and of two
// that exclude each other one is refused.
func TestTwoClients(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, 2)
	var wg sync.WaitGroup
	for c := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			client := control.NewClient(r.socket)
			n := fmt.Sprint(10 * (c + 1))
			for i := range 25 {
				_, err := client.Change(context.Background(), ops(
					control.Operation{Op: control.Set, Option: "miimon", Value: n},
					control.Operation{Op: control.Set, Option: "num_grat_arp", Value: n},
					control.Operation{Op: control.Add, Slave: fmt.Sprintf("s%d-%d", c, i)}))
				if err != nil {
					t.Error(err)
				}
				if st := r.bond.Status(); st.Options["num_grat_arp"] != st.Options["miimon"] {
					t.Errorf("half a change is seen: miimon %s, num_grat_arp %s", st.Options["miimon"], st.Options["num_grat_arp"])
				}
				_, err = client.Change(context.Background(), ops(control.Operation{Op: control.Delete, Slave: fmt.Sprintf("s%d-%d", c, i)}))
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if got := r.slaves(); len(got) != 2 {
		t.Errorf("slaves %v", got)
	}
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := r.change(ops(control.Operation{Op: control.Delete, Slave: "eth0"}))
			results <- err
		}()
	}
	if a, b := <-results, <-results; (a == nil) == (b == nil) {
		t.Errorf("two delete one slave: %v and %v, want that one fails", a, b)
	}
}

// A server that ends keeps what is, and refuses more.
func TestServerClose(t *testing.T) {
	r := newRig(t, bonding.ActiveBackup, 2)
	req := ops(control.Operation{Op: control.Delete, Slave: "eth0"})
	req.ConfirmWithinMs = 1000
	r.must(req)
	r.server.Close()
	r.server.Close()
	r.clock.Advance(time.Hour)
	if got := r.slaves(); len(got) != 1 || r.closed("eth0") != 1 {
		t.Errorf("slaves %v; the link was closed %d times", got, r.closed("eth0"))
	}
	_, err := r.change(req)
	wants(t, "after the end", err, http.StatusServiceUnavailable)
}
