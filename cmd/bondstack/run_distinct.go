package main

import (
	"fmt"
	"slices"

	"bondstack/bonding"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// distinct has the kinds refuse an interface that is a slave of the bond already
// by another of its names (ip link property add ... altname), since each frame
// would come in twice. The bond itself sees to equal names.
func distinct(bond *bonding.Bond, kinds map[string]openFunc) map[string]openFunc {
	checked := map[string]openFunc{}
	for kind, open := range kinds {
		checked[kind] = open
		if slices.Contains(unprivilegedKinds, kind) {
			continue // not by the name of an interface
		}
		checked[kind] = func(name string, o linkOptions) (netstack.LinkEndpoint, []string, error) {
			index := interfaceIndex(name)
			for _, s := range bond.Status().Slaves {
				if index != 0 && s.Name != name && interfaceIndex(s.Name) == index {
					return nil, nil, fmt.Errorf("interface %q is a slave already: %s is another name of it", name, s.Name)
				}
			}
			return open(name, o)
		}
	}
	return checked
}
