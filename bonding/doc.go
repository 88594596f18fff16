// Package bonding makes several links one: a Bond is a stack.LinkEndpoint for
// gVisor's netstack that wraps other link endpoints, its slaves, with the
// modes, the options and the names of Linux bonding.
//
//	b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup})
//	err = b.Enslave("eth0", ep0, bonding.SlaveOptions{})
//	err = b.Enslave("eth1", ep1, bonding.SlaveOptions{})
//	s.CreateNIC(1, b)
//
// # How it is built
//
// What the data path reads is one immutable value, the snapshot: usable slaves
// in order, the active slave, the mode, the hash, what each slave may receive.
// Changes run on the control side, one at a time, build a new snapshot and
// publish it with one atomic store. WritePackets marks its read section by a
// striped counter, so Release can wait until nobody is, or can come, inside
// the released endpoint.
//
// Decisions are plain functions over plain values (inspect in monitor.go,
// choose in selection.go) with time as an argument; the Bond around them holds
// the clock, the lock and the endpoints.
//
// # Limits
//
// Slaves carry Ethernet frames. A transport checksum that spans IP fragments is
// not verified for a slave that does not vouch for its frames.
package bonding
