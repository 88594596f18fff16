package linktest

import (
	"maps"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"bondstack/link"
)

// record changes the calls seen.
func (r *Recorder) record(change func(*Calls)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.calls)
	r.changed.Broadcast()
}

func (c *Calls) clone() Calls {
	k := *c
	k.MTUs = slices.Clone(c.MTUs)
	k.Addresses = slices.Clone(c.Addresses)
	k.Promiscuous = slices.Clone(c.Promiscuous)
	k.Filter = maps.Clone(c.Filter)
	return k
}

// Attach implements stack.LinkEndpoint.
func (r *Recorder) Attach(d stack.NetworkDispatcher) {
	r.base.Attach(d)
	r.record(func(c *Calls) {
		if d == nil {
			c.Detach++
		} else {
			c.Attach++
		}
	})
}

// Wait implements stack.LinkEndpoint.
func (r *Recorder) Wait() { r.record(func(c *Calls) { c.Wait++ }) }

// Close implements stack.LinkEndpoint. It only counts: the Recorder still takes
// packets, so that a test sees writes that come too late.
func (r *Recorder) Close() { r.record(func(c *Calls) { c.Close++ }) }

// SetMTU implements stack.LinkEndpoint. What is out of range is recorded and
// ignored.
func (r *Recorder) SetMTU(mtu uint32) {
	if mtu >= r.minMTU && mtu <= r.maxMTU {
		r.base.SetMTU(mtu)
	}
	r.record(func(c *Calls) { c.MTUs = append(c.MTUs, mtu) })
}

// MTURange implements link.MTUEndpoint.
func (r *Recorder) MTURange() (least, greatest uint32) { return r.minMTU, r.maxMTU }

// SetLinkAddress implements stack.LinkEndpoint.
func (r *Recorder) SetLinkAddress(addr tcpip.LinkAddress) {
	r.base.SetLinkAddress(addr)
	r.record(func(c *Calls) { c.Addresses = append(c.Addresses, addr) })
}

// SetPromiscuous implements link.FilterEndpoint. It only records: Inject delivers
// every frame.
func (r *Recorder) SetPromiscuous(on bool) error {
	r.record(func(c *Calls) { c.Promiscuous = append(c.Promiscuous, on) })
	return nil
}

// AddLinkAddress implements link.FilterEndpoint.
func (r *Recorder) AddLinkAddress(addr tcpip.LinkAddress) error {
	r.record(func(c *Calls) { c.Filter[addr]++ })
	return nil
}

// RemoveLinkAddress implements link.FilterEndpoint.
func (r *Recorder) RemoveLinkAddress(addr tcpip.LinkAddress) error {
	r.record(func(c *Calls) {
		if c.Filter[addr]--; c.Filter[addr] <= 0 {
			delete(c.Filter, addr)
		}
	})
	return nil
}

// SetState gives the link a state and tells the subscribers, in the caller's
// goroutine, when it differs from the one before.
func (r *Recorder) SetState(s link.State) {
	r.mu.Lock()
	changed := r.state != s
	r.state = s
	subscribers := r.subscribers
	r.mu.Unlock()
	if !changed {
		return
	}
	for _, f := range subscribers {
		(*f)()
	}
}

// SetStateSilently gives the link a state and tells nobody: what only a poll
// finds.
func (r *Recorder) SetStateSilently(s link.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
}

// SetCarrier is SetState with the carrier changed alone.
func (r *Recorder) SetCarrier(on bool) {
	s := r.LinkState()
	s.Carrier = on
	r.SetState(s)
}

// LinkState implements link.StateEndpoint.
func (r *Recorder) LinkState() link.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// SubscribeLinkState implements link.StateEndpoint.
func (r *Recorder) SubscribeLinkState(f func()) (cancel func()) {
	sub := &f
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(slices.Clip(slices.Clone(r.subscribers)), sub)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.subscribers = slices.DeleteFunc(slices.Clone(r.subscribers), func(o *func()) bool { return o == sub })
	}
}

// Subscribers returns how many subscriptions of the state there are, for tests
// that none is left.
func (r *Recorder) Subscribers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.subscribers)
}
