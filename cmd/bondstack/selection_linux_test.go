package main

import (
	"fmt"
	"testing"
	"time"

	"bondstack/bonding"
)

// The steps of Linux's selftest of priorities and primary (T1 to T11), with links
// that lose their carrier and a kernel that pings both ways of the stack after
// each.
func TestSelectionWithKernel(t *testing.T) {
	for _, mode := range []bonding.Mode{bonding.ActiveBackup, bonding.BalanceTLB, bonding.BalanceALB} {
		t.Run(mode.String(), func(t *testing.T) {
			l := newLAN(t)
			t.Parallel()
			l.plug(2)
			b, _ := l.host(bonding.Options{Mode: mode, Primary: "s1"}, slaveSpec{name: "s0", kind: "packet"}, slaveSpec{name: "s1", kind: "packet"}, slaveSpec{name: "s2", kind: "packet"})
			set := func(name, value string) func() {
				return func() {
					if err := b.SetOption(name, value); err != nil {
						t.Fatal(err)
					}
				}
			}
			prio := func(values ...int32) func() {
				return func() {
					for i, v := range values {
						if err := b.SetSlavePriority(fmt.Sprintf("s%d", i), v); err != nil {
							t.Fatal(err)
						}
					}
					for i, s := range b.Status().Slaves {
						if s.Priority != values[i] {
							t.Errorf("priority of %s reads %d, want %d", s.Name, s.Priority, values[i])
						}
					}
				}
			}
			down := func(n int) func() { return func() { l.far.Down(fmt.Sprintf("p%d", n)) } }
			up := func(n int) func() { return func() { l.far.Up(fmt.Sprintf("p%d", n)) } }
			for i, step := range []struct {
				do     func()
				active string
			}{
				{prio(0, 10, 11), "s1"}, {set("active_slave", "s1"), "s1"},
				{down(1), "s2"}, {down(2), "s0"},
				{set("primary_reselect", "always"), "s0"}, {up(2), "s2"}, {down(2), "s0"},
				{set("primary_reselect", "failure"), "s0"}, {up(2), "s0"}, {up(1), "s0"}, {down(0), "s1"}, {up(0), "s1"}, {down(1), "s2"},
				{set("primary_reselect", "always"), "s2"}, {up(1), "s1"},
				{prio(1000000, 0, -50), "s1"},
			} {
				step.do()
				eventually(t, fmt.Sprintf("step %d: active is %s", i+1, step.active), func() bool { return b.Status().ActiveSlave == step.active })
				for _, address := range []string{"10.9.0.2", "fd00:9::2"} {
					if out, err := l.far.TryRun("ping", "-n", "-c", "1", "-W", "1", address); err != nil {
						// Once more: the switch may have been about to learn.
						time.Sleep(100 * time.Millisecond)
						if again, err := l.far.TryRun("ping", "-n", "-c", "3", "-i", "0.2", "-W", "1", address); err != nil {
							t.Errorf("step %d: ping %s: %v: %s%s", i+1, address, err, out, again)
						}
					}
				}
			}
		})
	}
}
