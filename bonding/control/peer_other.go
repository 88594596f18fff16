//go:build !linux

package control

import "net"

// checkPeer leaves it to the socket's mode who can connect.
func checkPeer(net.Conn) error { return nil }
