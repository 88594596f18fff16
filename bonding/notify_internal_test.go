package bonding

import (
	"testing"
	"time"
)

// Announcements are peer_notif_delay apart, in passes of the monitor that runs.
func TestNotifyGap(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		miimon, arp time.Duration
		delay       uint32
		want        time.Duration
	}{
		{100 * ms, 0, 0, 100 * ms},
		{100 * ms, 0, 1, 100 * ms},
		{100 * ms, 0, 3, 300 * ms},
		{0, 250 * ms, 0, 250 * ms},
		{0, 250 * ms, 2, 500 * ms}, // a count left from miimon
		{50 * ms, 250 * ms, 2, 100 * ms},
		{0, 0, 0, 100 * ms},
		{0, 0, 7, 100 * ms},
		{1<<31*ms - ms, 0, 1<<32 - 1, longest},
	} {
		c := config{miimon: tt.miimon, peerNotifDelay: tt.delay}
		c.arp.interval = tt.arp
		if got := c.notifyGap(); got != tt.want {
			t.Errorf("miimon %v, arp_interval %v, %d passes: the gap is %v, want %v", tt.miimon, tt.arp, tt.delay, got, tt.want)
		}
	}
}
