package metrics

import (
	"bondstack/bonding"

	"github.com/prometheus/client_golang/prometheus"
)

var linkStates = []string{"up", "going down", "down", "going back"}

// slaveMetrics are those of a slave.
var slaveMetrics = func() *families[bonding.SlaveStatus] {
	f := &families[bonding.SlaveStatus]{labels: []string{"master", "slave"}}
	f.add(prometheus.GaugeValue, "bondstack_slave_info", "The slave's addresses; always 1.", []string{"mac_address", "perm_hwaddr"}, func(s *bonding.SlaveStatus, add add) {
		add(1, s.MACAddress, s.PermHWAddr)
	})
	roles(f)
	f.states("bondstack_slave_link_state", "1 for the state that the monitors give the slave's link.", "state", linkStates, func(s *bonding.SlaveStatus) string { return s.MIIStatus })
	f.flag("bondstack_slave_usable", "1 where the link itself says that packets can pass.", func(s *bonding.SlaveStatus) bool { return s.Usable })
	f.add(prometheus.GaugeValue, "bondstack_slave_monitor_up", "1 where a monitor holds the slave's link for up; absent where it has no opinion.", []string{"monitor"}, func(s *bonding.SlaveStatus, add add) {
		for monitor, word := range s.Monitors {
			if word != "unknown" {
				add(number(word == "up"), monitor)
			}
		}
	})
	f.link("bondstack_slave", "the slave", func(s *bonding.SlaveStatus) (*uint32, string) { return s.SpeedMbps, s.Duplex })
	f.gauge("bondstack_slave_mtu_bytes", "The slave's MTU.", func(s *bonding.SlaveStatus) float64 { return float64(s.MTU) })
	f.counter("bondstack_slave_link_failures_total", "Times that the slave's link was lost.", func(s *bonding.SlaveStatus) uint64 { return uint64(s.LinkFailureCount) })
	f.gauge("bondstack_slave_flap_losses", "Losses of the link that flap_backoff counts.", func(s *bonding.SlaveStatus) float64 { return float64(s.FlapLosses) })
	f.gauge("bondstack_slave_flap_hold_seconds", "For how long flap_backoff holds the slave back yet.", func(s *bonding.SlaveStatus) float64 { return seconds(s.FlapHoldMs) })
	f.traffic("bondstack_slave", "the slave", func(s *bonding.SlaveStatus) *bonding.Counters { return &s.Counters })
	probes(f)
	share(f)
	return f
}()

// roles adds what the slave is for at present.
func roles(f *families[bonding.SlaveStatus]) {
	f.flag("bondstack_slave_active", "1 where the slave's state is active, 0 where it is backup.", func(s *bonding.SlaveStatus) bool { return s.State == "active" })
	f.flag("bondstack_slave_enabled", "0 where the slave was disabled by hand.", func(s *bonding.SlaveStatus) bool { return s.Enabled })
	f.flag("bondstack_slave_receives", "1 where packets from the slave are delivered.", func(s *bonding.SlaveStatus) bool { return s.Receives })
	f.flag("bondstack_slave_draining", "1 where the slave is drained.", func(s *bonding.SlaveStatus) bool { return s.Draining })
	f.flag("bondstack_slave_silenced", "1 where a drill discards the slave's frames.", func(s *bonding.SlaveStatus) bool { return s.Silenced })
	f.flag("bondstack_slave_stands_back", "1 where the slave is drained or held back while others serve.", func(s *bonding.SlaveStatus) bool { return s.StandsBack })
}

// probes adds what the fast probes (probe_interval) know.
func probes(f *families[bonding.SlaveStatus]) {
	verdicts := []string{"unknown", "alive", "not heard by the peer", "nothing heard", "peer heard on other ports only"}
	within := func(name, help string, labels []string, values func(*bonding.ProbeStatus, add)) {
		f.add(prometheus.GaugeValue, "bondstack_slave_probe_"+name, help, labels, func(s *bonding.SlaveStatus, add add) {
			if s.Probe != nil {
				values(s.Probe, add)
			}
		})
	}
	within("verdict", "1 for what the fast probes think of the slave.", []string{"verdict"}, func(p *bonding.ProbeStatus, add add) {
		for _, v := range verdicts {
			add(number(v == p.Verdict), label(v))
		}
	})
	within("silence_seconds", "How long ago the slave received a packet of anybody.", nil, func(p *bonding.ProbeStatus, add add) { add(seconds(p.SilenceMs)) })
	within("peers", "Ports of peers, by state.", []string{"state"}, func(p *bonding.ProbeStatus, add add) {
		for _, state := range []string{"heard", "up", "deaf", "silent"} {
			n := 0
			for i := range p.Peers {
				if p.Peers[i].State == state {
					n++
				}
			}
			add(float64(n), state)
		}
	})
}

// share adds the slave's part in balance-tlb and balance-alb.
func share(f *families[bonding.SlaveStatus]) {
	within := func(name, help string, value func(*bonding.SlaveBalance) float64) {
		f.add(prometheus.GaugeValue, "bondstack_slave_balance_"+name, help, nil, func(s *bonding.SlaveStatus, add add) {
			if s.Balance != nil {
				add(value(s.Balance))
			}
		})
	}
	within("entries", "Entries of the transmit table, of 256, that the slave has.", func(b *bonding.SlaveBalance) float64 { return float64(b.Entries) })
	within("load_bytes_per_second", "What the slave is taken to carry.", func(b *bonding.SlaveBalance) float64 { return float64(b.LoadBytesPerSecond) })
	within("clients", "Clients of balance-alb that send to the slave.", func(b *bonding.SlaveBalance) float64 { return float64(b.Clients) })
}

// arpMetrics are those of a slave while the ARP monitor runs.
var arpMetrics = func() *families[bonding.ARPSlave] {
	f := &families[bonding.ARPSlave]{labels: []string{"master", "slave"}}
	since := func(name, help string, value func(*bonding.ARPSlave) *int64) {
		f.add(prometheus.GaugeValue, "bondstack_slave_arp_"+name, help, nil, func(a *bonding.ARPSlave, add add) {
			if ms := value(a); ms != nil {
				add(seconds(*ms))
			}
		})
	}
	since("silence_seconds", "How long ago the ARP monitor had evidence that the slave works; absent where it never had.", func(a *bonding.ARPSlave) *int64 { return a.HeardMsAgo })
	since("asked_seconds", "How long ago the slave sent a probe of the ARP monitor; absent where it never did.", func(a *bonding.ARPSlave) *int64 { return a.AskedMsAgo })
	f.add(prometheus.GaugeValue, "bondstack_slave_arp_target_silence_seconds", "How long ago a target was heard by the slave; absent where it never was.", []string{"target"}, func(a *bonding.ARPSlave, add add) {
		for target, ms := range a.Targets {
			if ms != nil {
				add(seconds(*ms), target)
			}
		}
	})
	return f
}()
