package metrics

import "github.com/prometheus/client_golang/prometheus"

// Relay is what one relay on a bond has counted: what passes flows on between the
// bond and its host.
type Relay struct {
	// Name is the label "relay": a word of a fixed list.
	Name     string
	TCP, UDP Flows
	// Drops counts what was dropped and belongs to no flow that is counted, by
	// reason: words of a fixed list.
	Drops map[string]uint64
}

// Flows are what a relay has counted of the flows of one protocol. The fields and
// their meaning are those of Counts of package link/relay, so that one converts to
// the other.
type Flows struct {
	Open                                      int64
	Opened, Failed, Limited, TimedOut, Resets uint64
	ToFar, ToNear, Dropped, Ended             uint64
}

// RelaysFunc returns what the relays on a bond have counted. Their names differ.
type RelaysFunc func() []Relay

// relayMetrics are those of a relay.
var relayMetrics = func() *families[Relay] {
	f := &families[Relay]{labels: []string{"master", "relay"}}
	const of = "bondstack_relay_"
	perProtocol := func(kind prometheus.ValueType, name, help string, value func(*Flows) float64) {
		f.add(kind, of+name, help, []string{"protocol"}, func(r *Relay, add add) {
			add(value(&r.TCP), "tcp")
			add(value(&r.UDP), "udp")
		})
	}
	perProtocol(prometheus.GaugeValue, "open_flows", "Flows that are open.", func(c *Flows) float64 { return float64(c.Open) })
	for _, c := range []struct {
		name, help string
		value      func(*Flows) uint64
	}{
		{"opened_flows", "Flows that were opened, those included that failed.", func(c *Flows) uint64 { return c.Opened }},
		{"failed_flows", "Flows whose far side could not be reached.", func(c *Flows) uint64 { return c.Failed }},
		{"refused_flows", "Connections, and datagrams that would have begun a flow, that were refused since there were too many.", func(c *Flows) uint64 { return c.Limited }},
		{"timed_out_flows", "Flows that were idle for too long.", func(c *Flows) uint64 { return c.TimedOut }},
		{"reset_flows", "Connections that broke.", func(c *Flows) uint64 { return c.Resets }},
		{"to_far_bytes", "Bytes of payload passed on from the side that opens flows.", func(c *Flows) uint64 { return c.ToFar }},
		{"to_near_bytes", "Bytes of payload passed on to the side that opens flows.", func(c *Flows) uint64 { return c.ToNear }},
	} {
		perProtocol(prometheus.CounterValue, c.name+"_total", c.help, func(flows *Flows) float64 { return float64(c.value(flows)) })
	}
	f.add(prometheus.CounterValue, of+"drops_total", "What a relay has dropped, by reason.", []string{"reason"}, func(r *Relay, add add) {
		add(float64(r.TCP.Dropped+r.UDP.Dropped), "not_passed_on")
		add(float64(r.TCP.Ended+r.UDP.Ended), "flow_ended")
		for reason, n := range r.Drops {
			add(float64(n), reason)
		}
	})
	return f
}()
