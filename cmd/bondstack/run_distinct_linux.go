package main

import "github.com/vishvananda/netlink"

// interfaceIndex returns the index of the interface that has a name, or another
// name, 0 where there is none.
func interfaceIndex(name string) int {
	found, err := netlink.LinkByName(name)
	if err != nil {
		return 0
	}
	return found.Attrs().Index
}
