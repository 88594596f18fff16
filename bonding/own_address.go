package bonding

import (
	"fmt"
	"slices"

	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// maxOwnAddresses bounds the addresses that a bond receives for besides its own:
// each received frame that is not for the bond's own is compared with them.
const maxOwnAddresses = 64

// ownAddress is an address that the bond receives for besides its own.
type ownAddress struct {
	addr tcpip.LinkAddress
	uses int // how often it was added
}

// AddLinkAddress has the bond receive unicast frames for an address besides its
// own, at most 64 of them, and has its slaves let them through. An address that
// is added again has to be removed as often. It implements link.FilterEndpoint.
func (b *Bond) AddLinkAddress(addr tcpip.LinkAddress) error {
	if err := checkAddress(addr); err != nil {
		return fmt.Errorf("bond %s: %w", b.Name(), err)
	}
	var err error
	b.fromAbove(func(instant) {
		if i := b.ownIndex(addr); i >= 0 {
			b.own[i].uses++
			return
		}
		if len(b.own) == maxOwnAddresses {
			err = fmt.Errorf("bond %s: %s is one address too many to receive for: allowed are %d", b.Name(), addr, maxOwnAddresses)
			return
		}
		for i, s := range b.slaves {
			if err = s.addAddresses(addr); err != nil {
				for _, told := range b.slaves[:i] {
					b.warnError(told.removeAddresses(addr))
				}
				return
			}
		}
		b.own = append(b.own, ownAddress{addr, 1})
		b.dirty = true
	})
	return err
}

// RemoveLinkAddress implements link.FilterEndpoint.
func (b *Bond) RemoveLinkAddress(addr tcpip.LinkAddress) error {
	b.fromAbove(func(instant) {
		i := b.ownIndex(addr)
		if i < 0 {
			return
		}
		if b.own[i].uses--; b.own[i].uses > 0 {
			return
		}
		b.own = slices.Delete(b.own, i, i+1)
		b.dirty = true
		for _, s := range b.slaves {
			b.warnError(s.removeAddresses(addr))
		}
	})
	return nil
}

func (b *Bond) ownIndex(addr tcpip.LinkAddress) int {
	return slices.IndexFunc(b.own, func(o ownAddress) bool { return o.addr == addr })
}

// ownAddresses returns the addresses besides the bond's own.
func (b *Bond) ownAddresses() []tcpip.LinkAddress {
	list := make([]tcpip.LinkAddress, len(b.own))
	for i, o := range b.own {
		list[i] = o.addr
	}
	return list
}

// packedOwn returns them as the data path compares them.
func (b *Bond) packedOwn() []uint64 {
	var list []uint64
	for _, o := range b.own {
		list = append(list, mac48([]byte(o.addr)))
	}
	return list
}

// addAddresses has a slave that filters let frames for addresses through: all
// slaves do at all times, since the bond drops what a backup receives anyway,
// and no failover has to wait for it. The bond's lock is held.
func (s *slave) addAddresses(addrs ...tcpip.LinkAddress) error {
	return s.filter(addrs, link.FilterEndpoint.AddLinkAddress)
}

// removeAddresses undoes addAddresses.
func (s *slave) removeAddresses(addrs ...tcpip.LinkAddress) error {
	return s.filter(addrs, link.FilterEndpoint.RemoveLinkAddress)
}

func (s *slave) filter(addrs []tcpip.LinkAddress, change func(link.FilterEndpoint, tcpip.LinkAddress) error) error {
	f, ok := s.ep.(link.FilterEndpoint)
	if !ok {
		return nil
	}
	var err error
	s.bond.set(func() {
		for _, addr := range addrs {
			if e := change(f, addr); e != nil && err == nil {
				err = fmt.Errorf("slave %s: %w", s.name, e)
			}
		}
	})
	return err
}
