package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "1000": 1000, "1k": 1000, "1K": 1000, "2.5G": 2_500_000_000, "100M": 100_000_000, "10g": 10_000_000_000,
		"0.001k": 1, "1e3": 1000, "1000000G": 1e15, "0G": 0,
	} {
		if got, err := parseRate(text); got != want || err != nil {
			t.Errorf("parseRate(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "G", "fast", "-1", "-1M", "1T", "1GG", "1 G", " 1G", "1G ", "1 x", "NaN", "inf", "infG", "1000001G", "0.1"} {
		if got, err := parseRate(text); err == nil {
			t.Errorf("parseRate(%q) = %d, want an error", text, got)
		} else if text != "" && !strings.Contains(err.Error(), text) {
			t.Errorf("parseRate(%q) = %v, which does not name it", text, err)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		in   []float64
		want *spreadOf
	}{
		{nil, nil},
		{[]float64{0.97}, &spreadOf{0.97, 0.97, 0.97}},
		{[]float64{3, 1, 2}, &spreadOf{1, 2, 3}},
		{[]float64{4, 1, 3, 2}, &spreadOf{1, 2.5, 4}},
		{[]float64{1.00049, 0.9996}, &spreadOf{1, 1, 1}},
	} {
		in := slices.Clone(tt.in)
		got := spread(in)
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("spread(%v) = %+v, want %+v", tt.in, got, tt.want)
		}
		if !slices.Equal(in, tt.in) {
			t.Errorf("spread() changed %v to %v", tt.in, in)
		}
	}
}

func TestShares(t *testing.T) {
	status := func(bytes ...uint64) (st bonding.Status) {
		for i, n := range bytes {
			st.Slaves = append(st.Slaves, bonding.SlaveStatus{Name: string(rune('a' + i)),
				Counters: bonding.Counters{TxBytes: n, TxPackets: n / 10}})
		}
		return st
	}
	got := shares(status(30, 10))
	if len(got) != 2 || got[0].Name != "a" || got[0].Packets != 3 || got[0].Bytes != 30 || *got[0].Share != 0.75 || *got[1].Share != 0.25 {
		t.Errorf("shares(30, 10) = %+v", got)
	}
	if got := shares(status(0, 0)); got[0].Share != nil || got[1].Share != nil {
		t.Errorf("shares(0, 0) = %+v, want no share of nothing", got)
	}
	if got := shares(status()); got == nil || len(got) != 0 {
		t.Errorf("shares() = %#v, want an empty list, which JSON shows as []", got)
	}
}

func TestPercentNeedsSamples(t *testing.T) {
	if got := (&profiler{samples: minSamples - 1, bonding: 5}).percent(); got != nil {
		t.Errorf("of %d samples: %v, want nothing", minSamples-1, *got)
	}
	if got := (&profiler{samples: minSamples, bonding: 5}).percent(); got == nil || *got != 0.25 {
		t.Errorf("of %d samples: %v, want 0.25", minSamples, got)
	}
}

func TestBenchFlagFaults(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"--mode", "fast"}, []string{"--mode", `"fast"`, "balance-xor", "all"}},
		{[]string{"--links", "0"}, []string{"--links is 0", "1 to 64"}},
		{[]string{"--links", "two"}, []string{"--links", `"two"`}},
		{[]string{"--streams", "9999"}, []string{"--streams is 9999", "1 to 1024"}},
		{[]string{"--rounds", "-1"}, []string{"--rounds is -1", "1 to 1000"}},
		{[]string{"--duration", "1us"}, []string{"--duration is 1µs", "1ms to 1h"}},
		{[]string{"--duration", "5"}, []string{"--duration", `"5"`}},
		{[]string{"--hash", "layer5"}, []string{"--hash", `"layer5"`, "layer2+3"}},
		{[]string{"--rate", "quick"}, []string{"--rate", `"quick"`, "100M"}},
		{[]string{"--samples", "-1"}, []string{"--samples is -1", "0 to 10000000"}},
		{[]string{"--compare", "rcu"}, []string{"--compare", `"rcu"`, "allowed are lock and gso"}},
		{[]string{"--compare", "lock", "--storm"}, []string{"leave --storm away"}},
		{[]string{"--gso=maybe"}, []string{"--gso", "maybe"}},
		{[]string{"--links", "0", "--streams", "0", "--rounds", "0", "--duration", "0s", "--hash", "h", "--rate", "r", "--mode", "m"},
			[]string{"--links", "--streams", "--rounds", "--duration", "--hash", "--rate", "--mode"}},
	} {
		r := runWith("", append([]string{"bench"}, tt.args...)...)
		for _, want := range tt.want {
			r.check(t, strings.Join(tt.args, " "), exitUsage, "", want)
		}
	}
}

// benchOutput is the JSON form, as it was promised. Pointers are figures that
// may rest on too little.
type benchOutput struct {
	Settings map[string]any `json:"settings"`
	Results  []struct {
		Mode            string    `json:"mode"`
		Links           int       `json:"links"`
		Streams         int       `json:"streams"`
		BareGbps        []float64 `json:"bare_gbps"`
		BondGbps        []float64 `json:"bond_gbps"`
		Ratio           *struct{ Min, Median, Max float64 }
		PerCPU          any      `json:"ratio_per_cpu"`
		BondingCPU      *float64 `json:"bonding_cpu_percent"`
		BondingNs       *float64 `json:"bonding_ns_per_frame"`
		BareRetransmits *uint64  `json:"bare_retransmits"`
		BondRetransmits *uint64  `json:"bond_retransmits"`
		CPUSamples      *int64   `json:"cpu_samples"`
		Slaves          []struct {
			Name    string   `json:"name"`
			Packets uint64   `json:"tx_packets"`
			Bytes   uint64   `json:"tx_bytes"`
			Share   *float64 `json:"tx_share"`
		} `json:"slaves"`
		Reorder map[string]any `json:"reorder"`
	} `json:"results"`
}

func TestBenchJSON(t *testing.T) {
	linktest.CheckGoroutines(t)
	r := runWith("", "bench", "--mode", "all", "--rounds", "1", "--duration", "50ms", "--links", "3", "--streams", "2", "--json")
	r.check(t, "bench --json", exitOK, `"settings"`, "broadcast: round 1 of 1")
	var got benchOutput
	d := json.NewDecoder(strings.NewReader(r.stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("bench --json: %v\n%s", err, r.stdout)
	}
	var modes []string
	for _, res := range got.Results {
		modes = append(modes, res.Mode)
		if res.Links != 3 || res.Streams != 2 || len(res.BareGbps) != 1 || len(res.BondGbps) != 1 {
			t.Errorf("%s: %+v", res.Mode, res)
		}
		// On a busy machine a round of 50 ms may carry next to nothing.
		if bare := res.BareGbps[0]; bare > 0.1 && (res.Ratio == nil || res.Ratio.Min != res.Ratio.Max || math.Abs(res.Ratio.Median-res.BondGbps[0]/bare) > 0.01*(1+res.Ratio.Median)) {
			t.Errorf("%s: ratio %+v of %v and %v", res.Mode, res.Ratio, res.BondGbps, res.BareGbps)
		}
		if res.BareRetransmits == nil || res.BondRetransmits == nil || res.CPUSamples == nil || *res.CPUSamples >= minSamples || res.BondingCPU != nil {
			t.Errorf("%s: want retransmits, samples, and no share of so few: %+v", res.Mode, res)
		}
		var sum float64
		for _, s := range res.Slaves {
			if s.Share == nil {
				t.Fatalf("%s: slave %s has no share of what the warm-up sent", res.Mode, s.Name)
			}
			sum += *s.Share
		}
		if len(res.Slaves) != 3 || math.Abs(sum-1) > 0.002 {
			t.Errorf("%s: slaves %+v", res.Mode, res.Slaves)
		}
	}
	var want []string
	for _, m := range bonding.AvailableModes() {
		want = append(want, m.String())
	}
	if !slices.Equal(modes, want) {
		t.Errorf("modes %v, want %v", modes, want)
	}
	if got.Results[1].Slaves[0].Share == nil || *got.Results[1].Slaves[0].Share != 1 {
		t.Errorf("active-backup does not send by its first slave alone: %+v", got.Results[1].Slaves)
	}
	checkBenchKeys(t, []byte(r.stdout))
}

// checkBenchKeys checks that every promised key is there, null or not.
func checkBenchKeys(t *testing.T, out []byte) {
	t.Helper()
	var raw struct {
		Settings map[string]any
		Results  []map[string]any
	}
	if err := json.Unmarshal(out, &raw); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"mode", "links", "streams", "duration_s", "rounds", "hash", "rate_bps", "gso", "samples", "in_force"} {
		if _, ok := raw.Settings[key]; !ok {
			t.Errorf("settings have no %q", key)
		}
	}
	for _, res := range raw.Results {
		for _, key := range []string{"mode", "links", "streams", "bare_gbps", "bond_gbps", "ratio", "ratio_per_cpu", "bonding_cpu_percent", "bonding_ns_per_frame",
			"bare_retransmits", "bond_retransmits", "cpu_samples", "slaves"} {
			if _, ok := res[key]; !ok {
				t.Errorf("result has no %q", key)
			}
		}
		if _, ok := res["bonding_cpu_percent"]; ok && res["bonding_cpu_percent"] != nil {
			t.Errorf("bonding_cpu_percent is %v, want null", res["bonding_cpu_percent"])
		}
	}
}

func TestBenchText(t *testing.T) {
	r := runWith("", "bench", "--rounds", "2", "--duration", "20ms", "--rate", "100M", "--gso=false")
	for _, want := range []string{"2 links, 4 streams, 2 rounds of 0.02s, 100 Mbit/s a link\n", "in force: mtu 1500", "sack on", "congestion control",
		"receive buffer", "CPUs", "active-backup", "eth0 100 %, eth1 0 %", "(2 samples)"[3:]} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("bench prints no %q:\n%s", want, r.stdout)
		}
	}
	r.check(t, "bench", exitOK, "ratio", "active-backup: round 2 of 2")
}

// Nothing measured prints as nothing, not as zero.
func TestBenchOfNothing(t *testing.T) {
	s := &benchSettings{InForce: inForce{}}
	results := []benchResult{{Slaves: []slaveShare{{Name: "eth0"}}}}
	var out bytes.Buffer
	if err := s.print(&out, results, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ratio": null`, `"bonding_cpu_percent": null`, `"tx_share": null`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the JSON has no %s:\n%s", want, &out)
		}
	}
	out.Reset()
	if err := s.print(&out, results, false); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "NaN") || !strings.Contains(out.String(), "- (0 samples)") || !strings.Contains(out.String(), "eth0 -") {
		t.Errorf("the text is %s", &out)
	}
}

// failingWriter is a full disk.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestBenchTellsOfFailedWrites(t *testing.T) {
	var stderr bytes.Buffer
	if code := run([]string{"bench", "--rounds", "1", "--duration", "1ms"}, os.Stdin, failingWriter{}, &stderr); code != exitFailure || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}

// --shape says what the links are like, the last one skewed, and -o sets options
// of both bonds. What is wrong is named.
func TestBenchShape(t *testing.T) {
	linktest.CheckGoroutines(t)
	var s benchSettings
	rate := "0"
	if err := s.parse("rate=1gbit,delay=1ms,skew=200us,loss=0.0001", []string{"rx_reorder=off"}, &rate); err != nil || rate != "1g" {
		t.Fatalf("parse: %v, rate %q", err, rate)
	}
	for i, want := range []time.Duration{time.Millisecond, 1100 * time.Microsecond, 1200 * time.Microsecond} {
		if im := s.link(i, 3); im.Delay != want || im.Loss != 0.0001 {
			t.Errorf("link %d is %+v, want a delay of %v", i, im, want)
		}
	}
	r := runWith("", "bench", "--mode", "balance-rr", "--rounds", "1", "--duration", "50ms", "--streams", "1",
		"--shape", "rate=100M,delay=1ms,skew=1ms", "-o", "rx_reorder=off")
	r.check(t, "bench --shape", exitOK, "100 Mbit/s a link, delay 1ms, skew 1ms", "balance-rr: round 1 of 1")
	for args, want := range map[string]string{
		"--shape=color=red": "known are rate, delay, skew and loss", "--shape=delay=2": `delay: "2"`, "--shape=loss=2": `loss: "2"`,
		"--shape=rate=much": `--rate: "much"`, "-o=x": "NAME=VALUE",
	} {
		r := runWith("", "bench", args)
		r.check(t, args, exitUsage, "", want)
	}
	r = runWith("", "bench", "-o", "colour=red", "--rounds", "1", "--duration", "1ms")
	r.check(t, "an unknown option", exitFailure, "", "colour")
}
