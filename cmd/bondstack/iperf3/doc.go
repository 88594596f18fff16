// Package iperf3 speaks the protocol of iperf3, as client and as server, over
// any network that is like package net: a stack.Host on a bond, or the host's
// own. Programs that read the JSON of iperf3 read that of this package.
//
//	go iperf3.Serve(ctx, host, iperf3.ServerOptions{Out: os.Stdout})
//	report, err := iperf3.Run(ctx, other, iperf3.ClientOptions{Host: "10.0.0.2", Parallel: 4})
//
// What a bond's slaves carried during a test is added to the text, and to the
// JSON below the key "bondstack", where Options.Slaves tells it.
//
// # What it measures
//
// Bytes count from the end of the time to omit to the end of the test: at the
// sender when the network's buffer has taken them, at the receiver when they are
// read. A receiver goes on after the end until all has come that was sent, for at
// most a second, and its time with it: so both ends count the same bytes of TCP.
// iperf3's own receivers do not, and have less, by what is under way.
//
// # Limits
//
// TCP and UDP; no SCTP, no authentication, no files, no zero copy. The peer's
// wishes for socket buffers, MSS, congestion control, type of service and flow
// labels are not honoured, and a server says which it met. A server does one test
// at a time and tells others that it is busy; a client cannot have it hold more
// than its streams (at most 128 a direction), 64 KiB of parameters, and results
// that are bounded by the streams; nor for longer than ServerOptions.MaxDuration.
package iperf3
