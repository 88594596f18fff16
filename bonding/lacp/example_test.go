package lacp_test

import (
	"fmt"
	"time"

	"bondstack/bonding/lacp"
)

// printer is an Output that prints. A real one puts the PDUs on the wire, and
// has the data path follow Data.
type printer struct{ s *lacp.System }

func (p *printer) Send(id lacp.PortID, pdu []byte) {
	d, _ := lacp.Parse(pdu)
	fmt.Printf("port %d sends: %v\n", id, d.Actor.State)
}

func (p *printer) Changed(c lacp.Changes) {
	if c&lacp.DataChanged != 0 {
		receive, transmit := p.s.Data(1)
		fmt.Printf("port 1 takes frames: %v, sends frames: %v\n", receive, transmit)
	}
}

func ExampleSystem() {
	out := &printer{}
	s, err := lacp.New(lacp.Config{System: lacp.MAC{2, 0, 0, 0, 0, 1}, Fast: true}, out)
	if err != nil {
		panic(err)
	}
	out.s = s
	if err := s.AddPort(0, lacp.PortConfig{Number: 1, Priority: lacp.DefaultPortPriority, Link: lacp.LinkState{Up: true}}); err != nil {
		panic(err)
	}
	// Nobody answers: the driver calls Advance at each deadline.
	for {
		at, ok := s.Deadline()
		if !ok || at > 4*time.Second {
			break
		}
		s.Advance(at)
	}
	e, _ := s.Explain(4*time.Second, 1)
	fmt.Println(e)
	// Output:
	// port 1 sends: active,short_timeout,aggregating,defaulted,expired
	// port 1 sends: active,short_timeout,aggregating,defaulted,expired
	// port 1 sends: active,short_timeout,aggregating,defaulted,expired
	// port 1 takes frames: true, sends frames: true
	// port 1 sends: active,short_timeout,aggregating,in_sync,defaulted
	// port 1 carries all data without a partner (fallback), since no partner is heard on any port; it distributes by LACP once a partner speaks
}
