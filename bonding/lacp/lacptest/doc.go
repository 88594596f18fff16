// Package lacptest tests what speaks LACP, on virtual time: a Net of stations
// joined by cables that lose, delay, duplicate, reorder and cut, and a random
// fault injector over whole bonds.
//
// Stations are Nodes, which hold a lacp.System, and Partners, which say what
// the test has them say. Nothing waits: a Net steps from one deadline to the
// next, so an hour costs as much as its PDUs.
//
//	net := lacptest.NewNet(seed)
//	a := net.NewNode("a", lacp.Config{System: macA})
//	b := net.NewNode("b", lacp.Config{System: macB})
//	cable := net.Join(a.AddPort(lacp.LinkState{}), b.AddPort(lacp.LinkState{}))
//	net.Run(3 * time.Second)
//	cable.Ways[0].Cut = true // one way, with the link up
//
// The Net watches two things by itself, and reports them by Faults: a port that
// sends more than three LACPDUs in a second, and two ends of a cable that both
// send data in aggregators that are not each other's for longer than Bound.
//
// Simulate runs one bond with random faults from a seed.
package lacptest
