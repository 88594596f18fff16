package lacptest_test

import (
	"fmt"
	"time"

	"bondstack/bonding/lacp"
	"bondstack/bonding/lacp/lacptest"
)

// Two bonds of two cables, one of which is cut one way while its link stays up.
func Example() {
	net := lacptest.NewNet(1)
	a := net.NewNode("a", lacp.Config{System: lacp.MAC{2, 0, 0, 0, 0, 1}, Fast: true})
	b := net.NewNode("b", lacp.Config{System: lacp.MAC{2, 0, 0, 0, 0, 2}, Fast: true})
	cable := net.Join(a.AddPort(lacp.LinkState{}), b.AddPort(lacp.LinkState{}))
	net.Join(a.AddPort(lacp.LinkState{}), b.AddPort(lacp.LinkState{}))

	at, _ := net.Until(time.Minute, func() bool { return a.Port(1).Sends && b.Port(1).Sends })
	fmt.Println("both ends send after", at)

	net.RunTo(10 * time.Second)
	cable.Ways[0].Cut = true // from a to b
	at, _ = net.Until(time.Minute, func() bool { return !a.Port(1).Sends && !b.Port(1).Sends })
	fmt.Println("both ends stop after", at-10*time.Second, "- the other cable works:", a.Port(2).Sends)
	// Output:
	// both ends send after 2s
	// both ends stop after 3s - the other cable works: true
}
