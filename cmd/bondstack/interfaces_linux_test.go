package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
	"bondstack/link/netnstest"
)

// ways are those in which an interface goes and returns. gVisor's fdbased knows
// the first alone.
var ways = []struct {
	name       string
	away, back func(l *lan)
}{
	{"carrier", func(l *lan) { l.far.Down("p0") }, func(l *lan) { l.far.Up("p0") }},
	{"down and up", func(l *lan) { l.near.Down("s0") }, func(l *lan) { l.near.Up("s0") }},
	{"deleted and made anew", func(l *lan) { l.near.Delete("s0") }, func(l *lan) { l.plug(0) }},
	{"renamed away and back",
		func(l *lan) { l.near.Down("s0"); l.near.Rename("s0", "elsewhere"); l.near.Up("elsewhere") },
		func(l *lan) { l.near.Down("elsewhere"); l.near.Rename("elsewhere", "s0"); l.near.Up("s0") }},
}

// While a download runs the active slave's interface goes away and comes back,
// in every way that its kind lives through. The download goes on by the other
// slave, and by the first again when the other goes.
func TestInterfacesComeAndGo(t *testing.T) {
	const size, part = 40 << 20, 2 << 20
	for _, kinds := range append(slices.Clone(both), withXDP...) {
		t.Run(kinds[0]+" and "+kinds[1], func(t *testing.T) {
			checkGoroutinesOf(t, kinds)
			l := newLAN(t)
			dir, sum := writeRandom(t, size)
			i := l.run("--slave", kinds[0]+":s0", "--slave", kinds[1]+":s1", "--mode", "active-backup", "--serve", "http:80="+dir)
			i.await("both slaves up", func(st instanceStatus) bool { return st.up("s0", "s1") })
			d := l.curl("http://10.9.0.2/file")
			for n, way := range ways {
				if n > 0 && slices.Contains(kinds[:], "fdbased") {
					break
				}
				d.take(part)
				way.away(l)
				d.take(part)
				i.await(way.name+": s1 alone", func(st instanceStatus) bool { return st.ActiveSlave == "s1" && st.up("s1") })
				way.back(l)
				i.await(way.name+": both up", func(st instanceStatus) bool { return st.up("s0", "s1") })
				l.far.Down("p1")
				d.take(part)
				i.await(way.name+": s0 alone", func(st instanceStatus) bool { return st.ActiveSlave == "s0" && st.up("s0") })
				l.far.Up("p1")
				i.await(way.name+": both up again", func(st instanceStatus) bool { return st.up("s0", "s1") })
			}
			d.finish(sum)
		})
	}
}

// The only slave there is deleted during a download, and made anew 2 s later:
// the download completes (A32).
func TestOnlySlaveIsDeletedDuringDownload(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	l.near.Delete("s1")
	dir, sum := writeRandom(t, 50<<20)
	i := l.run("--slave", "s0", "--slave", "s1", "--mode", "active-backup", "--serve", "http:80="+dir)
	d := l.curl("http://10.9.0.2/file")
	d.take(10 << 20)
	l.near.Delete("s0")
	i.await("no carrier", func(st instanceStatus) bool { return !st.Carrier })
	time.Sleep(2 * time.Second) // how long it is away is what this test is about
	l.plug(0)
	d.finish(sum)
	i.await("s0 is back", func(st instanceStatus) bool { return st.up("s0") && len(st.Absent) == 1 })
	if n := i.status().Slaves[0].LinkFailureCount; n != 1 {
		t.Errorf("s0 counts %d failures, want 1", n)
	}
}

// A slave that is missing at the start joins when it appears (A34).
func TestMissingInterfaceJoins(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	i := l.run("--slave", "missing0", "--slave", "s0", "--mode", "active-backup", "--serve", "echo:7")
	if st := i.status(); !st.up("s0") || fmt.Sprint(st.Absent) != "[missing0]" {
		t.Fatalf("slaves %+v, absent %v", st.Slaves, st.Absent)
	}
	if failed := l.connect(1); failed != 0 {
		t.Error("no echo by s0")
	}
	netnstest.Veth(t, l.near, "missing0", l.far, "there0")
	l.far.Run("ip", "link", "set", "there0", "master", "br0")
	i.await("missing0 joins", func(st instanceStatus) bool { return st.up("s0", "missing0") && len(st.Absent) == 0 })
	l.far.Down("p0")
	i.await("missing0 takes over", func(st instanceStatus) bool { return st.ActiveSlave == "missing0" })
	if failed := l.connect(1); failed != 0 {
		t.Error("no echo by missing0")
	}
}

// Slaves are added and removed while the host runs, and no descriptor is left
// behind (A16).
func TestAddAndRemoveKeepsDescriptors(t *testing.T) {
	const rounds = 100
	linktest.CheckGoroutines(t)
	l := newLAN(t)
	b, _ := l.host(bonding.Options{Mode: bonding.ActiveBackup}, slaveSpec{"packet", "s0"})
	round := func(kind string) {
		ep, _, err := l.kinds()[kind]("s1", linkOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Enslave("s1", ep, bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := b.Release("s1"); err != nil {
			t.Fatal(err)
		}
		ep.Close()
	}
	round("packet") // what is opened once for all
	before := descriptors(t)
	for range rounds {
		round("packet")
	}
	if after := descriptors(t); after > before+5 {
		t.Errorf("%d descriptors after %d rounds, %d before", after, rounds, before)
	}
}

// descriptors counts the open descriptors of the process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
