package metrics

import (
	"reflect"
	"strings"
	"testing"

	"bondstack/bonding"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Every count of a relay is in a metric.
func TestEveryCountOfARelay(t *testing.T) {
	var r Relay
	list := leaves(reflect.ValueOf(&r).Elem(), "")
	c := New()
	c.AddWithRelays(fixed{&bonding.Status{Name: "bond0"}}, nil, func() []Relay { return []Relay{r} })
	before := exposition(t, c)
	for _, l := range list {
		l.flip()
		if exposition(t, c) == before {
			t.Errorf("%s is in no metric", l.path)
		}
		l.flip()
	}
	if len(list) != 1+2*10+1 {
		t.Errorf("a relay has %d parts", len(list))
	}
}

// Relays of several bonds are told apart, and go with their bond.
func TestRelays(t *testing.T) {
	c := New()
	var bonds []Source
	for _, name := range []string{"bond0", "bond1"} {
		bonds = append(bonds, fixed{&bonding.Status{Name: name}})
		c.AddWithRelays(bonds[len(bonds)-1], nil, func() []Relay {
			return []Relay{{Name: "forward", TCP: Flows{ToFar: 7}, UDP: Flows{Dropped: 2}}, {Name: "user", Drops: map[string]uint64{"denied": 3}}}
		})
	}
	c.Remove(bonds[0])
	const want = `# HELP bondstack_relay_drops_total What a relay has dropped, by reason.
# TYPE bondstack_relay_drops_total counter
bondstack_relay_drops_total{master="bond1",reason="denied",relay="user"} 3
bondstack_relay_drops_total{master="bond1",reason="flow_ended",relay="forward"} 0
bondstack_relay_drops_total{master="bond1",reason="flow_ended",relay="user"} 0
bondstack_relay_drops_total{master="bond1",reason="not_passed_on",relay="forward"} 2
bondstack_relay_drops_total{master="bond1",reason="not_passed_on",relay="user"} 0
# HELP bondstack_relay_to_far_bytes_total Bytes of payload passed on from the side that opens flows.
# TYPE bondstack_relay_to_far_bytes_total counter
bondstack_relay_to_far_bytes_total{master="bond1",protocol="tcp",relay="forward"} 7
bondstack_relay_to_far_bytes_total{master="bond1",protocol="tcp",relay="user"} 0
bondstack_relay_to_far_bytes_total{master="bond1",protocol="udp",relay="forward"} 0
bondstack_relay_to_far_bytes_total{master="bond1",protocol="udp",relay="user"} 0
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "bondstack_relay_drops_total", "bondstack_relay_to_far_bytes_total"); err != nil {
		t.Error(err)
	}
}
