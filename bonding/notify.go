package bonding

import (
	"slices"
	"sync"
	"time"
)

// notifier paces the announcements after a failover: num_grat_arp of them,
// the first at once, peer_notif_delay apart.
type notifier struct {
	left uint32
	due  instant // 0: nothing is due
}

func (n *notifier) start(count uint32, now instant) {
	n.left = count
	n.due = now
	if count == 0 {
		n.due = 0
	}
}

func (n *notifier) stop() { *n = notifier{} }

// announceGap is the least time between announcements where no monitor's period
// gives one.
const announceGap = 100 * time.Millisecond

// notifyGap is the time between two announcements: peer_notif_delay, which counts
// passes of the monitor that runs, and one pass at least.
func (c *config) notifyGap() time.Duration {
	period := c.period()
	if period == 0 {
		return announceGap
	}
	return times(max(c.peerNotifDelay, 1), period)
}

// period is the time between two passes of the monitor that runs, miimon where
// both do; 0 where none does.
func (c *config) period() time.Duration {
	if c.miimon != 0 {
		return c.miimon
	}
	return c.arp.interval
}

// announce asks those above for an announcement if one is due. One that falls
// into a time without carrier is lost, as in Linux.
func (b *Bond) announce(now instant) {
	n := &b.notify
	if n.due == 0 || now < n.due {
		return
	}
	if b.dispatcher == nil {
		n.stop()
		return
	}
	if b.carrier && (b.config.mode != ActiveBackup || b.active != nil) {
		b.later(b.notifySubs.call)
	}
	n.left--
	n.due = now.add(b.config.notifyGap())
	if n.left == 0 {
		n.due = 0
	}
}

// subscribers are functions to call, with no lock held.
type subscribers struct {
	mu   sync.Mutex
	list []*func()
}

// add subscribes f until the function that it returns is called.
func (s *subscribers) add(f func()) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := &f
	s.list = append(s.list, entry)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = slices.DeleteFunc(slices.Clone(s.list), func(e *func()) bool { return e == entry })
	}
}

// call calls every subscriber in order.
func (s *subscribers) call() {
	s.mu.Lock()
	list := s.list
	s.mu.Unlock()
	for _, f := range list {
		(*f)()
	}
}

// SubscribeNotifyPeers implements link.Notifier.
func (b *Bond) SubscribeNotifyPeers(f func()) (cancel func()) { return b.notifySubs.add(f) }
