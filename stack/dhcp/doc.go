// Package dhcp is a DHCPv4 client (RFC 2131) as a state machine, without sockets,
// timers and goroutines: who runs it gives it the time and what arrives, and does
// what it says.
//
//	m, err := dhcp.New(dhcp.Options{MAC: mac, Rand: rand.New(...)}, host)
//	m.Start(now)
//	for {
//		select { // a timer for m.Deadline(), frames from UDP port 68, a check's result
//		case ...: m.Tick(now)
//		case ...: m.Receive(now, payload)
//		case ...: m.Checked(now, addr, taken)
//		}
//	}
//
// It asks for a broadcast answer until it has an address, checks an address with
// its user before it takes it (RFC 5227) and declines one that is another's,
// renews and rebinds, and asks again after a change of the path (PathChanged).
// Servers that answer by unicast to an address that is not configured yet, against
// the flag, are not heard. An address is not given back when its user ends: who asks
// again with the same MAC gets the same one. Information requests and DHCPv6 are not
// there.
package dhcp
