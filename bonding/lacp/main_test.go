package lacp_test

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"bondstack/bonding/lacp"
)

var arcReport = flag.Bool("arcs", false, "print how often the tests ran each arc of the machines")

var ran = struct {
	sync.Mutex
	count map[lacp.Arc]uint64
}{count: map[lacp.Arc]uint64{}}

// addArcs counts what a System went through.
func addArcs(s *lacp.System) {
	for _, a := range s.StrayArcs() {
		panic("not listed: " + a.String())
	}
	ran.Lock()
	defer ran.Unlock()
	for _, a := range lacp.Arcs() {
		ran.count[a] += s.ArcCount(a)
	}
}

// TestMain fails a full run that left out an arc. The tests of this package are
// made to run every one; the simulation in lacptest is not counted.
func TestMain(m *testing.M) {
	code := m.Run()
	full := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" &&
		flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" && !testing.Short()
	full = full && code == 0
	covered := 0
	for _, a := range lacp.Arcs() {
		if n := ran.count[a]; n > 0 {
			covered++
		} else if full {
			fmt.Printf("no test ran the arc %v (%s)\n", a, a.When)
			code = 1
		}
		if *arcReport {
			fmt.Printf("%10d  %v (%s)\n", ran.count[a], a, a.When)
		}
	}
	if *arcReport {
		fmt.Printf("%d of %d arcs\n", covered, len(lacp.Arcs()))
	}
	os.Exit(code)
}
