package bonding_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Whoever is called back by a bond holds none of its locks: it may read and
// change the bond, send by it, and call what a netstack calls.
func TestCallbacksMayCallTheBond(t *testing.T) {
	var r *rig
	called := map[string]*atomic.Int32{"logger": {}, "state": {}, "notify": {}}
	var busy atomic.Bool
	use := func(who string) {
		n := int(called[who].Add(1))
		if r == nil || !busy.CompareAndSwap(false, true) { // what it does calls back too
			return
		}
		defer busy.Store(false)
		r.Status()
		r.LinkState()
		r.send(1)
		r.set("num_grat_arp", fmt.Sprint(1+n%2))
		r.SetMTU(uint32(1400 + n%2))
		r.SetLinkAddress(tcpip.LinkAddress([]byte{2, 0, 0, 0, 0, byte(n % 5)}))
		_ = r.SetPromiscuous(n%2 == 0)
		_ = r.SetSlavePriority("eth0", int32(n%3))
		_ = r.SetSlaveEnabled("eth1", n%2 == 0)
		r.Subscribe(1).Close()
		r.SubscribeLinkState(func() {})()
		r.Attach(r.up)
	}
	rig := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup, Logger: slog.New(logger(func(string) { use("logger") }))}, 0)
	rig.SubscribeLinkState(func() { use("state") })
	rig.SubscribeNotifyPeers(func() { use("notify") })
	r = rig
	r.attach()
	for range 10 {
		r.do("+eth0")
		r.do("+eth1")
		for _, name := range []string{"eth0", "eth1"} {
			r.carrier(name, false)
			r.carrier(name, true)
		}
		r.ms(500)
		r.do("-eth0")
		r.do("-eth1")
	}
	for who, n := range called {
		if n.Load() == 0 {
			t.Errorf("%s was never called", who)
		}
	}
}

// logger is a handler of log records that calls a function with each message.
type logger func(message string)

func (logger) Enabled(context.Context, slog.Level) bool { return true }
func (l logger) Handle(_ context.Context, r slog.Record) error {
	l(r.Message)
	return nil
}
func (l logger) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logger) WithGroup(string) slog.Handler      { return l }

// What Linux logs is logged: events, with warnings as warnings.
func TestLog(t *testing.T) {
	var lines []string
	r := newRig(t, bonding.Options{Name: "b1", Mode: bonding.ActiveBackup, Logger: slog.New(logger(func(m string) { lines = append(lines, m) }))}, 1)
	r.set("updelay", "150")
	r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	r.do("eth0 down")
	want := []string{
		"b1: enslave eth0", "b1: active slave eth0, was none", "b1: carrier on",
		"b1: updelay 150 is not a multiple of miimon 100: rounded down to 100",
		"b1: enslave eth1",
		"b1: slave eth0: link down, was up", "slave eth1: link is up, 100ms before its updelay is over",
		"b1: slave eth1: link up, was going back", "b1: active slave eth1, was eth0",
	}
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("logged\n %q, want\n %q", lines, want)
	}
}
