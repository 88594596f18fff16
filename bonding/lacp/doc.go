// Package lacp is the Link Aggregation Control Protocol of IEEE 802.1AX, as
// Linux bonding's mode 802.3ad speaks it: codec, state machines, selection of
// aggregators, and views for status. It is pure: no I/O, no clock, no
// goroutine. Events go in with the instant at which they happen, PDUs and
// changes come out through an Output, and Deadline tells when the machines want
// to run again.
//
// A System is one bond. In the terms of a driver:
//
//	s, err := lacp.New(lacp.Config{System: mac}, out)
//	s.AddPort(now, lacp.PortConfig{Number: 1, Priority: lacp.DefaultPortPriority, Link: lacp.LinkState{Up: true}})
//	consumed := s.Receive(now, 1, payload) // for each frame of EtherType to Group
//	s.LinkChanged(now, 1, state)           // when carrier, speed or duplex change
//	s.Advance(now)                         // at s.Deadline(), and not much later
//	receive, transmit := s.Data(1)         // after out.Changed
//
// Instants are durations since any fixed moment, not negative, and never go
// back. A System
// is not safe for concurrent use. All its calls cost O(ports), and what they
// keep does not grow with what is received.
//
// # Where it differs from Linux
//
//   - A lost link clears synchronization, collecting and distributing at once.
//   - A port that has lost its partner (EXPIRED) is not in sync. The standard
//     and Linux leave the bit until DEFAULTED, so that behind a link that is
//     cut one way the partner sends into the cut for 3 s more.
//   - A passive port (lacp_active off) is silent until its partner speaks, also
//     when something has changed.
//   - Ports of unknown duplex count as full duplex.
//   - Churn is as in the standard: a port leaves each state as soon as its
//     condition holds.
//   - A port of an aggregator that is not active is STANDBY, as in the
//     standard, and waits without synchronization.
//   - A partner that changes makes the port leave its aggregator first
//     (DETACHED), as in the standard. Only a port that had no partner and is
//     still WAITING goes on waiting, as in Linux, so that the first PDU costs
//     no time.
//   - A change of speed keeps the partner's data, and the port looks for
//     another aggregator with its new key.
//   - The port that works without a partner (below) does so once the partner
//     is known to be silent (DEFAULTED, 3 s), not before.
//   - A port that hears its own system is looped: it is no part of any
//     aggregator until nothing of the kind was heard for 90 s, or its link was
//     down.
//   - Markers are answered three times a second at most.
//   - A partner that says it is individual is never aggregated with others.
//   - A port that turns from COLLECTING to DISTRIBUTING (independent control)
//     says so at once, as does one that turns DEFAULTED, and one whose
//     settings change (Linux: not for lacp_rate and lacp_active).
//   - Three PDUs in any second, the first ones at once; Linux keeps 300 ms
//     between two.
//   - Data starts on a port three times a second at most, so that a partner
//     whose sync flickers costs little.
//   - A partner with an all-zero system is nobody, and never in sync.
//   - With Config.Strict, min_links 0 is as 1.
//   - An aggregator keeps its id when ports leave it, and ids are used again.
//
// As in Linux and not as in the standard, the activity bits do not matter to
// whether the partner's view matches, and half-duplex ports speak no LACP.
//
// # Without a partner
//
// As in Linux, ports without a partner do not share an aggregator, and if no
// partner is heard at all, one of them carries the data alone, so that a peer
// without LACP can be reached. Config.Strict forbids it.
package lacp
