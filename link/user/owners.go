package user

import (
	"container/list"
	"net/netip"
	"sync"
)

// maxOwners bounds how many addresses of the bond's side are remembered.
const maxOwners = 1024

// owners are the addresses of the bond's side, maxOwners of them at most: for a
// further one that which was not seen for longest is forgotten. The zero value has
// none.
type owners struct {
	mu sync.Mutex
	// The following are guarded by mu.
	order     list.List // of netip.Addr, the one last seen in front
	byAddress map[netip.Addr]*list.Element
}

// see notes that an address is one of the bond's side.
func (o *owners) see(a netip.Addr) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.byAddress[a]; e != nil {
		o.order.MoveToFront(e)
		return
	}
	if o.byAddress == nil {
		o.byAddress = map[netip.Addr]*list.Element{}
	}
	if len(o.byAddress) == maxOwners {
		delete(o.byAddress, o.order.Remove(o.order.Back()).(netip.Addr))
	}
	o.byAddress[a] = o.order.PushFront(a)
}

// has tells whether an address is one of the bond's side.
func (o *owners) has(a netip.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byAddress[a] != nil
}
