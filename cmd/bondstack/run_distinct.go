package main

import (
	"fmt"
	"slices"

	"bondstack/bonding"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// vetted has the kinds refuse the names of interfaces that are no slaves, as vet says,
// whenever one is to join.
func vetted(kinds map[string]openFunc, vet func(name string) error) map[string]openFunc {
	checked := map[string]openFunc{}
	for kind, open := range kinds {
		checked[kind] = open
		if slices.Contains(unprivilegedKinds, kind) {
			continue // not by the name of an interface
		}
		checked[kind] = func(name string, o linkOptions) (netstack.LinkEndpoint, []string, error) {
			if err := vet(name); err != nil {
				return nil, nil, err
			}
			return open(name, o)
		}
	}
	return checked
}

// distinct has the kinds refuse an interface that is a slave of the bond already
// by another of its names (ip link property add ... altname), since each frame
// would come in twice. The bond itself sees to equal names.
func distinct(bond *bonding.Bond, kinds map[string]openFunc) map[string]openFunc {
	return vetted(kinds, func(name string) error {
		index := interfaceIndex(name)
		for _, s := range bond.Status().Slaves {
			if index != 0 && s.Name != name && interfaceIndex(s.Name) == index {
				return fmt.Errorf("interface %q is a slave already: %s is another name of it", name, s.Name)
			}
		}
		return nil
	})
}
