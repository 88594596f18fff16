package main

import (
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"bondstack/bonding/control"
	"bondstack/link/linktest"
)

// changed is a bond of eth0 and eth1 that a command changes; eth2 is there too.
type changed struct {
	*instance
	t *testing.T
	n *network
}

func newChanged(t *testing.T) *changed {
	// The first use of signals begins a goroutine that stays.
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
	linktest.CheckGoroutines(t)
	n := newNetwork(t, "eth0", "eth1", "eth2", "eth3")
	return &changed{start(t, n.kinds(), append(backup, "--serve", "echo:7")...), t, n}
}

// do runs a command on the instance, which must succeed with the texts in its
// output.
func (c *changed) do(command string, texts ...string) string {
	c.t.Helper()
	args := append(strings.Fields(command), "--control", c.socket)
	r := runWith("", args...)
	if r.code != exitOK || r.stderr != "" {
		c.t.Fatalf("%s: exit code %d, %s", command, r.code, r.stderr)
	}
	for _, text := range texts {
		r.check(c.t, command, exitOK, text, "")
	}
	return r.stdout
}

func (c *changed) slaves() string {
	c.t.Helper()
	var names []string
	for _, s := range c.status().Slaves {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// A connection lives through all that a user does to its bond.
func TestChangeCommands(t *testing.T) {
	c := newChanged(t)
	conn := c.n.dial("10.0.0.2:7")
	echo := func() {
		t.Helper()
		if _, err := conn.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
	}
	echo()
	c.do("set miimon=50 eth1.prio=7 num_grat_arp=3 --dry-run", "would change:", "miimon: 100 -> 50", "slave eth1: prio: 0 -> 7", "0.0 % of the flows move")
	if st := c.status(); st.MIIMonMs != 100 {
		t.Errorf("a dry run set miimon to %d", st.MIIMonMs)
	}
	c.do("set miimon=50 eth1.prio=-7 num_grat_arp=3", "changed:", "num_grat_arp: 1 -> 3")
	c.do("set miimon=50", "nothing changes")
	if st := c.status(); st.MIIMonMs != 50 || st.Slaves[1].Priority != -7 {
		t.Errorf("after set: %+v", st)
	}
	c.do("activate eth1 --dry-run", "would change:", "active_slave: eth0 -> eth1", "100.0 % of the flows move")
	c.do("activate eth1", "active_slave: eth0 -> eth1")
	echo()
	c.do("add-slave eth2 packet:eth3 --prio 2 --weight 5", "slave eth2: member: no -> yes", "slave eth3: member: no -> yes")
	c.await("the new slaves are up", func(st instanceStatus) bool { return st.up("eth0", "eth1", "eth2", "eth3") })
	c.do("drain eth1", "slave eth1: drained: no -> yes")
	echo()
	c.do("del-slave eth1 eth0", "slave eth1: member: yes -> no")
	echo()
	c.do("rename eth2 wan0", "slave eth2: name: eth2 -> wan0")
	c.do("drain wan0")
	c.do("drain wan0 --undo", "slave wan0: drained: yes -> no")
	c.do("set wan0.enabled=no", "slave wan0: enabled: yes -> no")
	c.do("set wan0.enabled=yes wan0.weight=9")
	echo()
	if st := c.status(); c.slaves() != "wan0 eth3" || st.Slaves[0].Weight != 9 || st.Slaves[1].Priority != 2 {
		t.Errorf("at last: %+v", st)
	}
	for _, mode := range []string{"balance-tlb", "broadcast", "active-backup"} {
		c.do("mode "+mode, "mode: ", "placed anew")
		if st := c.status(); st.Mode.String() != mode || c.slaves() != "wan0 eth3" {
			t.Errorf("in mode %s: %+v", mode, st)
		}
		echo()
	}
	c.do("mode active-backup", "nothing changes")
	conn.Close()
}

// One bad part of a command's many leaves all as it was, and says what is wrong.
func TestChangeCommandsRefused(t *testing.T) {
	c := newChanged(t)
	was := c.status().Options
	for _, tt := range []struct {
		command string
		code    int
		texts   []string
	}{
		{"set miimon=50 num_grat_arp=256", exitUsage, []string{"num_grat_arp", "0 to 255"}},
		{"set mode=best", exitUsage, []string{"mode", "balance-rr (0)"}},
		{"set mode=balance-rr eth1.prio=2", exitFailure, []string{"mode", "not with slaves"}},
		{"set miimon=50 mimon=50", exitUsage, []string{"mimon", "did you mean miimon? known are", "bondstack set --help"}},
		{"set miimon=50 eth9.prio=1", exitFailure, []string{"eth9", "eth0, eth1"}},
		{"set miimon", exitUsage, []string{"NAME=VALUE"}},
		{"set eth0.speed=1", exitUsage, []string{"prio, weight and enabled"}},
		{"set eth0.enabled=maybe", exitUsage, []string{"yes and no"}},
		{"set", exitUsage, []string{"nothing is given; needed is NAME=VALUE"}},
		{"add-slave eth9", exitFailure, []string{"eth9"}},
		{"add-slave wifi:eth2", exitUsage, []string{`unknown kind "wifi"`, "packet"}},
		{"del-slave eth0 eth9", exitFailure, []string{"eth9", "eth0, eth1"}},
		{"activate eth9", exitFailure, []string{"eth9"}},
		{"activate eth0 eth1", exitUsage, []string{"one SLAVE"}},
		{"drain eth0 eth1", exitFailure, []string{"no other slave can serve"}},
		{"mode best", exitUsage, []string{"balance-rr (0)"}},
		{"mode", exitUsage, []string{"one MODE"}},
		{"rename eth0 eth1", exitFailure, []string{"two slaves would have this name"}},
		{"rename eth0", exitUsage, []string{"1 argument is given; needed is SLAVE NEW-NAME"}},
		{"set miimon=50 --confirm-within 2h", exitUsage, []string{"1h"}},
		{"set miimon=50 --confirm-within 2s --dry-run", exitUsage, []string{"dry run"}},
		{"confirm", exitFailure, []string{"no such change waits"}},
		{"confirm 1 2", exitUsage, []string{"at most one ID"}},
		{"set miimon=50 --confirm-within 2", exitUsage, []string{`"30s" or "5m"` + "\n(bondstack set --help"}},
		{"set miimon=50 --force", exitUsage, []string{"unknown flag", "--dry-run"}},
	} {
		r := runWith("", append(strings.Fields(tt.command), "--control", c.socket)...)
		for _, text := range tt.texts {
			r.check(t, tt.command, tt.code, "", text)
		}
		if st := c.status(); c.slaves() != "eth0 eth1" || st.Options["miimon"] != was["miimon"] || st.ActiveSlave != "eth0" {
			t.Fatalf("%s changed something: %+v", tt.command, st)
		}
	}
	for _, command := range []string{"set miimon=50", "set primary=eth9 eth9.prio=1", "add-slave eth9", "mode 6", "activate eth9", "rename eth9 eth8", "confirm", "watch", "drain eth0"} {
		r := runWith("", append(strings.Fields(command), "--control", tempSocket(t))...)
		r.check(t, command+" without an instance", exitFailure, "", "no instance runs on")
	}
	// What no instance could do needs none to be wrong.
	for command, text := range map[string]string{
		"set mimon=50 updelay=-1": "did you mean miimon?", "set updelay=-1 mimon=50": `updelay="-1"`, "set miimon=1 miimon=2": "set twice",
		"set eth0.prio=high": `"high" is no number`, "set eth0.weight=1000000001": "0 to 1000000000", "set ad_actor_system=1": "MAC address",
		"add-slave wifi:eth2": `unknown kind "wifi"`, "add-slave eth2 --weight 1000000001": "0 to 1000000000", "add-slave eth/2": "slash",
		"mode best": "balance-rr (0)", "rename eth0 a-name-of-18-bytes": "18 bytes", "activate ": "nothing is given",
	} {
		r := runWith("", append(strings.Fields(command), "--control", tempSocket(t))...)
		r.check(t, command+" without an instance", exitUsage, "", text)
	}
}

// What is not confirmed is taken back; what is stays.
func TestConfirmCommand(t *testing.T) {
	c := newChanged(t)
	out := c.do("set miimon=50 --confirm-within 1h --json")
	var a control.Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil || !a.Applied || a.Confirm == nil {
		t.Fatalf("%s: %v", out, err)
	}
	runWith("", "set", "miimon=20", "--control", c.socket).check(t, "set meanwhile", exitFailure, "", "confirm or revert "+a.Confirm.ID)
	c.do("confirm "+a.Confirm.ID, "confirmed")
	c.do("del-slave eth0 --confirm-within 1h", "unless you run: bondstack confirm ")
	if c.slaves() != "eth1" {
		t.Errorf("slaves %s", c.slaves())
	}
	c.do("confirm --revert", "taken back")
	if st := c.status(); c.slaves() != "eth0 eth1" || st.MIIMonMs != 50 || st.ActiveSlave != "eth0" {
		t.Errorf("taken back: %s, %+v", c.slaves(), st)
	}
	c.do("activate eth1 --confirm-within 20ms", "unless you run")
	c.await("it is taken back", func(st instanceStatus) bool { return st.ActiveSlave == "eth0" })
}

func TestWatchCommand(t *testing.T) {
	c := newChanged(t)
	for _, tt := range []struct{ flag, want string }{{"--json", `"kind":"active"`}, {"", "bond0: active slave eth"}} {
		var stdout, stderr logBuffer
		code := make(chan int)
		args := []string{"watch", "--count", "1", "--control", c.socket}
		if tt.flag != "" {
			args = append(args, tt.flag)
		}
		go func() { code <- run(args, nil, &stdout, &stderr) }()
		eventually(t, "watch begins", func() bool { return strings.Contains(stderr.String(), "watching") })
		slave := "eth1"
		if c.status().ActiveSlave == slave {
			slave = "eth0"
		}
		c.do("activate " + slave)
		if got := <-code; got != exitOK || !strings.Contains(stdout.String(), tt.want) || strings.Count(stdout.String(), "\n") != 1 {
			t.Errorf("watch %s: exit code %d, %q", tt.flag, got, &stdout)
		}
	}
	var stdout, stderr logBuffer
	code := make(chan int)
	go func() { code <- run([]string{"watch", "--control", c.socket}, nil, &stdout, &stderr) }()
	eventually(t, "watch begins", func() bool { return strings.Contains(stderr.String(), "watching") })
	if err := c.end(); err != nil {
		t.Error(err)
	}
	if got := <-code; got != exitOK {
		t.Errorf("watch of an instance that ends: exit code %d, %s", got, &stderr)
	}
}
