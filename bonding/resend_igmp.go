package bonding

import (
	"time"

	"bondstack/link"
)

// resender paces the reports of multicast memberships after a failover:
// resend_igmp of them, so that switches that listen in learn the new place of
// every group.
type resender struct {
	left uint32
	due  instant // 0: nothing is due
}

const (
	// resendFirst is how long after the failover the first is due. Linux takes
	// one tick of its scheduler, 1 to 10 ms.
	resendFirst = 10 * time.Millisecond
	// resendGap is the time between two (Linux's).
	resendGap = 200 * time.Millisecond
)

var _ link.MembershipNotifier = (*Bond)(nil)

// startResend begins anew, whatever is left of the last failover. There is one
// place of a group in the modes with an active slave, and in balance-rr, whose
// IGMP goes by one slave.
func (b *Bond) startResend(next *slave, now instant) {
	moves := b.config.mode == BalanceRR || b.config.mode.info().primary && next != nil
	if b.dispatcher == nil || b.config.resendIGMP == 0 || !moves {
		return
	}
	b.resend = resender{b.config.resendIGMP, now.add(resendFirst)}
}

// resendMemberships asks those above for a report if one is due.
func (b *Bond) resendMemberships(now instant) {
	r := &b.resend
	if b.dispatcher == nil {
		*r = resender{}
	}
	if r.due == 0 || now < r.due {
		return
	}
	b.later(b.membershipSubs.call)
	r.left--
	r.due = now.add(resendGap)
	if r.left == 0 {
		r.due = 0
	}
}

// SubscribeResendMemberships implements link.MembershipNotifier.
func (b *Bond) SubscribeResendMemberships(f func()) (cancel func()) { return b.membershipSubs.add(f) }

// forwardNews passes on what a slave that is made of links itself, as a bond
// is, asks of those above. A backup's news are of no use to anybody: what is
// sent goes by others.
func (b *Bond) forwardNews(s *slave) (cancel func()) {
	forward := func(subs *subscribers) func() {
		return func() {
			b.whenFree(func() {
				b.control(func(instant) {
					if !s.released && !s.backup && b.dispatcher != nil {
						b.later(subs.call)
					}
				})
			})
		}
	}
	var cancels []func()
	if n, ok := s.ep.(link.Notifier); ok {
		cancels = append(cancels, n.SubscribeNotifyPeers(forward(&b.notifySubs)))
	}
	if n, ok := s.ep.(link.MembershipNotifier); ok {
		cancels = append(cancels, n.SubscribeResendMemberships(forward(&b.membershipSubs)))
	}
	return func() {
		for _, c := range cancels {
			c()
		}
	}
}
