package wire_test

import (
	"fmt"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"

	"bondstack/link/linktest"
	"bondstack/link/wire"
)

// A wire on a manual clock: the frame takes as long as the test says, and not a
// moment of real time.
func Example() {
	clock := faketime.NewManualClock()
	a, b, err := wire.New(wire.Options{
		Clock:       clock,
		Synchronous: true,
		A:           wire.EndOptions{Impairments: wire.Impairments{Delay: 30 * time.Minute}},
		B:           wire.EndOptions{Promiscuous: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	defer b.Close()
	var sink linktest.Sink
	b.Attach(&sink)

	linktest.Write(a, linktest.Flow4(0).UDP([]byte("hello")))
	clock.Advance(29 * time.Minute)
	fmt.Println(len(sink.Delivered()))
	clock.Advance(time.Minute)
	fmt.Println(len(sink.Delivered()))
	// Output:
	// 0
	// 1
}

// What a switch sees when a station moves from one of its ports to another.
func ExampleSwitch() {
	sw, err := wire.NewSwitch(wire.SwitchOptions{Ports: 3, Wire: wire.Options{Synchronous: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sw.Close()

	flow := linktest.Flow4(0)
	linktest.Write(sw.Port(0), flow.ARPRequest())
	fmt.Println(sw.Lookup(flow.SrcMAC))
	linktest.Write(sw.Port(2), flow.ARPRequest())
	fmt.Println(sw.Lookup(flow.SrcMAC))
	fmt.Println(sw.Stats().Moved)
	// Output:
	// 0 true
	// 2 true
	// 1
}
