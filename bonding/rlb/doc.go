// Package rlb is receive load balancing, the receiving half of balance-alb: it
// has each client (a host that we talk with) send to the link that was given to
// it, by telling it that link's MAC address for our IP address. IPv4 clients
// are told by ARP, IPv6 clients by neighbour discovery.
//
// It is pure: no I/O, no clock, no goroutine. A Table is one bond:
//
//	t := rlb.New(rlb.DefaultMaxClients)
//	t.SetLinks(links)             // whenever slaves, their addresses or states change
//	p, ok := rlb.Parse(frame)     // a frame that the host sends
//	d := t.Send(&p)               // which slave it goes by, and under which address
//	claimed := t.Receive(&p)      // a frame that came
//	t.Lost(slave), t.Announce(slave), t.Rebalance(), t.Forget(addr, mac)
//	for _, u := range t.Tick()    // every 100 ms: what to send to clients
//
// A Table is not safe for concurrent use; the bitmap of Activity, by which the
// data path tells it who is talked with, is.
//
// # Limits
//
// A table keeps a fixed number of clients at most. Who finds no room is served
// by the active slave under the bond's address, as any host is without
// balancing; clients that are talked with never make room for others.
//
// Only addresses of our own are ever written: a frame whose sender has a MAC
// address of no slave is left alone, as are probes and announcements.
package rlb
