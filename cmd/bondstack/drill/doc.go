// Package drill runs a failover of a bond on purpose and measures what it costs:
// the server's part, which cuts a slave and watches peers, and the client's, which
// asks for it by the control socket.
//
//	s := drill.NewServer(bond, host, log)
//	defer s.Close() // gives the slave back
//	s.Register(mux)
//
//	result, err := drill.Ask(ctx, socket, drill.Request{Slave: "eth0", ForMs: 5000}, nil)
//
// POST /v1/drill has a Request as its body, and answers with a Line of JSON for each
// phase; the last has the Result. Each peer is sent an echo request each 5 ms, and
// answers are looked for each millisecond: that is how exact the gaps are. The slave
// is given back when its time is over, and also when the client goes, when the server
// is closed, and in a panic.
//
// # Limits
//
// One drill runs at a time, of at most 60 s of cuts and 16 peers. Peers are asked from
// the bonded stack: on a bond without one (bondstack tap) only the bond's own record
// of the failover is reported. A peer that limits its answers to pings (Linux does so
// for unusual ones only) shows as losses that no failover caused.
package drill
