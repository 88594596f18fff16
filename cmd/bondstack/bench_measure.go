package main

import (
	"runtime"
	"slices"
	"time"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/benchhtml"
	"bondstack/stack"
)

// benchResult is what one mode gave.
type benchResult struct {
	Mode            bonding.Mode `json:"mode"`
	Links           int          `json:"links"`
	Streams         int          `json:"streams"`
	BareGbps        []float64    `json:"bare_gbps"`
	BondGbps        []float64    `json:"bond_gbps"`
	Ratio           *spreadOf    `json:"ratio"`
	PerCPU          *spreadOf    `json:"ratio_per_cpu"` // of the bits in each second of CPU time
	BondingCPU      *float64     `json:"bonding_cpu_percent"`
	BondingNs       *float64     `json:"bonding_ns_per_frame"`
	BareRetransmits uint64       `json:"bare_retransmits"`
	BondRetransmits uint64       `json:"bond_retransmits"`
	CPUSamples      int64        `json:"cpu_samples"`
	Slaves          []slaveShare `json:"slaves"`
	// Reorder is what the receiving bond did to restore the streams' order, and
	// the sending one to that of acknowledgements.
	Reorder *bonding.ReorderStatus `json:"reorder,omitempty"`
}

// spreadOf is the least, the middle and the greatest of some figures.
type spreadOf struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// slaveShare is what one slave of the sending end carried, the acknowledgements
// of the other direction apart. Share is null where nothing was carried.
type slaveShare struct {
	Name    string   `json:"name"`
	Packets uint64   `json:"tx_packets"`
	Bytes   uint64   `json:"tx_bytes"`
	Share   *float64 `json:"tx_share"`
}

// inForce is what the figures depend on beside the flags.
type inForce struct {
	Stack      stack.Settings `json:"stack"`
	GOMAXPROCS int            `json:"gomaxprocs"`
	CPUs       int            `json:"cpus"`
	OS         string         `json:"os"`
	Arch       string         `json:"arch"`
	Go         string         `json:"go"`
}

func inForceOf(r *rig) inForce {
	return inForce{r.sender.Settings(), runtime.GOMAXPROCS(0), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()}
}

// minSamples is how many CPU samples a share needs to mean something.
const minSamples = 2000

// measure runs the rounds of one mode: bare and bond in turn, so that a machine
// that slows down slows both.
func (s *benchSettings) measure(mode bonding.Mode, d time.Duration, p *progress) (benchResult, error) {
	res := benchResult{Mode: mode, Links: s.Links, Streams: s.Streams, Slaves: []slaveShare{}}
	bare, err := s.newRig(nil)
	if err != nil {
		return res, err
	}
	defer bare.close()
	bond, err := s.newRig(&mode)
	if err != nil {
		return res, err
	}
	defer bond.close()
	s.InForce = inForceOf(bond)
	rec := s.record(mode.String()+": rounds", "Rounds of one bare link and of the bond in turn, their timed parts one after the other; what each slave of the sending end sent.", recordEvery, bond.bond)
	var prof, bareProf profiler // which costs both the same
	var ratios, perCPU []float64
	var frames uint64
	measured := func(on bool) {
		if on {
			frames -= bond.frames()
		}
		prof.measured(on)
		if !on {
			frames += bond.frames()
		}
	}
	for i := range s.Rounds {
		p.step("%s: round %d of %d", mode, i+1, s.Rounds)
		var x, y float64
		for k := range 2 {
			var err error
			if (k+i)%2 == 0 {
				x, err = bare.round(s.Streams, d, rec.during(benchhtml.Bare, bare, bareProf.measured))
			} else {
				y, err = bond.round(s.Streams, d, rec.during("bond", bond, measured))
			}
			if err != nil {
				return res, err
			}
		}
		res.BareGbps = append(res.BareGbps, round3(x/1e9))
		res.BondGbps = append(res.BondGbps, round3(y/1e9))
		if x > 0 {
			ratios = append(ratios, y/x)
		}
		if bare.perCPU > 0 {
			perCPU = append(perCPU, bond.perCPU/bare.perCPU)
		}
	}
	s.keep(rec)
	for n := 0; prof.err == nil && prof.samples < int64(s.Samples) && n < maxRounds; n++ {
		p.step("%s: %d of %d CPU samples", mode, prof.samples, s.Samples)
		if _, err := bond.round(s.Streams, d, measured); err != nil {
			return res, err
		}
	}
	if prof.err != nil {
		return res, prof.err
	}
	res.BondingNs = prof.nsOf(prof.bonding, frames)
	res.Ratio, res.PerCPU = spread(ratios), spread(perCPU)
	res.CPUSamples, res.BondingCPU = prof.samples, prof.percent()
	res.BareRetransmits, res.BondRetransmits = bare.retransmits(), bond.retransmits()
	res.Slaves = shares(bond.bond.Status())
	if res.Reorder = bond.bonds[1].Status().Reorder; res.Reorder != nil {
		if acks := bond.bond.Status().Reorder; acks != nil {
			res.Reorder.StaleAcks += acks.StaleAcks
		}
	}
	return res, nil
}

// spread returns nil for no figures: a ratio of nothing is none.
func spread(v []float64) *spreadOf {
	if len(v) == 0 {
		return nil
	}
	v = slices.Sorted(slices.Values(v))
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (mid + v[len(v)/2-1]) / 2
	}
	return &spreadOf{round3(v[0]), round3(mid), round3(v[len(v)-1])}
}

// frames returns how many frames have passed the bonds: a frame counts once where
// it is sent and once where it is received.
func (r *rig) frames() (n uint64) {
	for _, b := range r.bonds {
		c := b.Status().Counters
		n += c.TxPackets + c.RxPackets
	}
	return n
}

func round3(v float64) float64 { return float64(int64(v*1000+0.5)) / 1000 }

func shares(st bonding.Status) []slaveShare {
	var total uint64
	for _, s := range st.Slaves {
		total += s.Counters.TxBytes
	}
	list := make([]slaveShare, len(st.Slaves))
	for i, s := range st.Slaves {
		list[i] = slaveShare{Name: s.Name, Packets: s.Counters.TxPackets, Bytes: s.Counters.TxBytes}
		if total > 0 {
			share := round3(float64(s.Counters.TxBytes) / float64(total))
			list[i].Share = &share
		}
	}
	return list
}
