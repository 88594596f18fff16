// Package kernel is what the links on a kernel interface (link/packet, link/xdp)
// share: the network namespace they belong to, a monitor of the interface's
// state that follows the interface of a name, a filter of addresses, and the
// Ethernet header. What asks the kernel is only there on Linux.
package kernel

import "errors"

// ErrNoInterface is in the chain of the error of LookUp where there is no
// interface of the name in the namespace.
var ErrNoInterface = errors.New("no such interface")
