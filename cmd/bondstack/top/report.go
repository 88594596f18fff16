package top

import (
	"time"

	"bondstack/bonding"
)

// Report is what happened to a bond in an interval, and its state at the end of
// it. It is a line of bondstack top --json, whose form is stable: fields are
// added, never changed.
type Report struct {
	Time     time.Time `json:"time"`
	Seconds  float64   `json:"seconds"` // the length of the interval
	Bond     string    `json:"bond"`
	Mode     string    `json:"mode"`
	Carrier  bool      `json:"carrier"`
	Speed    *uint32   `json:"speed_mbps"` // null where unknown
	Active   string    `json:"active_slave"`
	Rates              // of the bond
	Slaves   []Slave   `json:"slaves"`
	Absent   []string  `json:"absent"`
	Warnings []string  `json:"warnings"`

	Failovers    uint64                 `json:"failovers"` // since the bond began
	LastFailover *bonding.Failover      `json:"last_failover"`
	Reorder      *bonding.ReorderStatus `json:"reorder,omitempty"`
	LACP         *LACP                  `json:"lacp,omitempty"`
}

// Rates are by the second. Lost counts the packets that were lost so far.
type Rates struct {
	TxBits    float64 `json:"tx_bits_per_second"`
	RxBits    float64 `json:"rx_bits_per_second"`
	TxPackets float64 `json:"tx_packets_per_second"`
	RxPackets float64 `json:"rx_packets_per_second"`
	LostRate  float64 `json:"lost_per_second"`
	Lost      uint64  `json:"lost"`
}

// Slave is a slave in an interval.
type Slave struct {
	Name     string  `json:"name"`
	State    string  `json:"state"` // active or backup
	Link     string  `json:"mii_status"`
	Speed    *uint32 `json:"speed_mbps"`
	Draining bool    `json:"draining"`
	Rates
	TxShare  float64 `json:"tx_share"` // of what all slaves sent in bytes, 0 to 1
	RxShare  float64 `json:"rx_share"`
	Failures uint32  `json:"link_failure_count"`
	Port     *Port   `json:"lacp,omitempty"`

	txBytes, rxBytes uint64 // in the interval
}

// LACP is what an 802.3ad bond has.
type LACP struct {
	Aggregator uint16 `json:"aggregator_id"` // 0: none
	Ports      int    `json:"number_of_ports"`
	Partner    string `json:"partner_mac_address"`
}

// Port is what LACP has of a slave.
type Port struct {
	Aggregator uint16 `json:"aggregator_id"`
	Mux        string `json:"mux_machine"`
	Actor      uint8  `json:"actor_port_state"`
	Partner    uint8  `json:"partner_port_state"`
	Churned    bool   `json:"churned"`
}

// between makes a report of two samples. What began to count anew in between,
// such as a slave that was added again, has the rate of what it has now.
func between(a, b sample) *Report {
	seconds := b.at.Sub(a.at).Seconds()
	r := &Report{Time: b.at, Seconds: seconds, Bond: b.Name, Mode: b.Mode.String(), Carrier: b.Carrier, Speed: b.SpeedMbps,
		Active: b.ActiveSlave, Rates: rates(&a.Counters, &b.Counters, seconds), Slaves: []Slave{}, Absent: b.Absent, Warnings: b.Warnings, Reorder: b.Reorder}
	if n := len(b.Failovers); n > 0 {
		r.LastFailover = &b.Failovers[n-1]
		r.Failovers = r.LastFailover.Seq
	}
	if l := b.LACP; l != nil {
		r.LACP = &LACP{}
		if g := l.Aggregator; g != nil {
			*r.LACP = LACP{g.ID, g.Ports, g.PartnerMAC}
		}
	}
	before := map[string]*bonding.Counters{}
	for i := range a.Slaves {
		before[a.Slaves[i].Name] = &a.Slaves[i].Counters
	}
	var tx, rx uint64
	for i := range b.Slaves {
		s := slave(&b.Slaves[i], before[b.Slaves[i].Name], seconds)
		tx, rx = tx+s.txBytes, rx+s.rxBytes
		r.Slaves = append(r.Slaves, s)
	}
	for i := range r.Slaves {
		s := &r.Slaves[i]
		s.TxShare, s.RxShare = share(s.txBytes, tx), share(s.rxBytes, rx)
	}
	return r
}

func slave(s *bonding.SlaveStatus, before *bonding.Counters, seconds float64) Slave {
	if before == nil {
		before = &bonding.Counters{}
	}
	v := Slave{Name: s.Name, State: s.State, Link: s.MIIStatus, Speed: s.SpeedMbps, Draining: s.Draining,
		Rates: rates(before, &s.Counters, seconds), Failures: s.LinkFailureCount,
		txBytes: since(before.TxBytes, s.Counters.TxBytes), rxBytes: since(before.RxBytes, s.Counters.RxBytes)}
	if p := s.LACP; p != nil {
		v.Port = &Port{p.Aggregator, p.Mux, p.Actor.State, p.Partner.State, p.ActorChurn == "churned" || p.PartnerChurn == "churned"}
	}
	return v
}

func rates(a, b *bonding.Counters, seconds float64) Rates {
	per := func(a, b uint64) float64 {
		if seconds <= 0 {
			return 0
		}
		return float64(since(a, b)) / seconds
	}
	lost := func(c *bonding.Counters) uint64 { return c.TxDropped + c.RxDropped }
	return Rates{8 * per(a.TxBytes, b.TxBytes), 8 * per(a.RxBytes, b.RxBytes), per(a.TxPackets, b.TxPackets),
		per(a.RxPackets, b.RxPackets), per(lost(a), lost(b)), lost(b)}
}

// since is by how much a counter has grown; one that fell began anew.
func since(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
