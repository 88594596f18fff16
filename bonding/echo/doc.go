// Package echo finds the failure of a link, in one direction or both, within
// tens of milliseconds, by hellos that the two ends of bonds exchange on each of
// their ports: in the manner of micro-BFD (RFC 7130), but for any number of ends
// on one Ethernet segment. docs/probes.md describes the frames and the rules.
//
// Each port sends a hello each Interval, in which it lists the ports that it
// hears on this segment, its peers. So each end learns what only the other can
// know: whether it is heard. A port is judged by peers that have been heard and
// have heard it at least once; one that no such peer ever spoke to is never found
// to be down, and neither is the last port of a bond: hellos choose between
// ports.
//
// The package is pure. A Monitor is told the time and what was received, and
// hands what is to be sent to an Output; it has no lock, clock or socket:
//
//	m, err := echo.New(echo.Config{System: id, Interval: 10 * time.Millisecond, Missed: 3}, out)
//	m.AddPort(now, 1, discriminator)
//	m.Receive(now, 1, payload) // of a frame of EtherType to Group
//	m.Advance(now)             // when m.Deadline says so
//	m.Verdict(1)
//
// Hellos are not authenticated: who can read the frames of a segment can write
// others that are believed. Who cannot read them cannot: discriminators are
// random.
package echo
