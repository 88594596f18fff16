package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/xmithash"
	"bondstack/cmd/bondstack/benchhtml"
)

const benchHelp = `
Usage: bondstack bench [--mode M|all] [--links N] [--streams N] [--duration D]
                       [--rounds N] [--hash P] [--rate R] [--shape S] [--gso=BOOL]
                       [-o NAME=VALUE]... [--samples N] [--storm | --compare lock|gso]
                       [--html FILE] [--json]

Runs TCP between two whole TCP/IP stacks in memory, in turn on one bare link and
on a bond of N links, and prints what each carried and their ratio. It needs no
rights and touches no network.

What each figure is:
  bare, bond   throughput at the receiver in Gbit/s, a round each
  ratio        bond / bare of the same round
  per CPU      the same of what each second of CPU time carried: on a machine that
               has other work it is the better figure
  bonding CPU  share of CPU samples, in the bond's rounds, whose innermost
               function is in bondstack/bonding; null below 2,000 samples
  ns a frame   the same as time for each frame that a bond sent or received
  share        what each slave of the sending end carried of the bytes

With --html FILE the page has throughput over time by slave as well, and for each
mode a run in which the links are cut in turn, with the failovers marked. The page is
one file and loads nothing.

With --storm one more link is released and enslaved again 1,000 times a second in
every second round. With --compare lock the bond is compared with one whose
snapshot is behind a read-write mutex: throughput with 1, 4 and 16 streams, with
and without the storm, and the time of a call on links that forget all packets.
With --compare gso every second link, the first among them, takes no packets above
its MTU, and the bond, which cuts them, is compared with gVisor's own software
segmentation on one such link.

Examples:
  bondstack bench
  bondstack bench --mode all --rounds 3 --duration 1s
  bondstack bench --mode balance-xor --streams 4 --links 2 --hash layer3+4
  bondstack bench --mode balance-rr --rate 1G --json
  bondstack bench --mode balance-rr --streams 1 --shape rate=1G,delay=1ms,skew=200us,loss=0.0001
  bondstack bench --mode balance-rr -o packets_per_slave=8 -o rx_reorder=off
  bondstack bench --mode active-backup --samples 20000
  bondstack bench --mode all --storm
  bondstack bench --mode all --duration 1s --html bench.html
  bondstack bench --compare lock --rounds 5
  bondstack bench --compare gso --mode all`

// benchSettings are what the flags say; they are the settings of the JSON form
// too.
type benchSettings struct {
	Mode     string  `json:"mode"`
	Links    int     `json:"links"`
	Streams  int     `json:"streams"`
	Duration float64 `json:"duration_s"`
	Rounds   int     `json:"rounds"`
	Hash     string  `json:"hash"`
	Rate     uint64  `json:"rate_bps"` // 0: no limit
	GSO      bool    `json:"gso"`
	Shape    shape   `json:"shape"`
	Samples  int     `json:"samples"` // CPU samples at least
	// Options are those of both bonds, by name.
	Options map[string]string `json:"options,omitempty"`
	InForce any               `json:"in_force"` // the stack's settings, and the machine's

	policy xmithash.Policy
	modes  []bonding.Mode
	mixed  bool            // every second link, the first among them, has no GSO
	page   *benchhtml.Page // nil: none is to be written
}

// The limits of a benchmark, so that a slip of the finger does not take the
// machine.
const (
	maxLinks    = 64
	maxStreams  = 1024
	maxRounds   = 1000
	maxSamples  = 10_000_000
	maxDuration = time.Hour
)

func runBench(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := newFlags("bench")
	mode := fs.String("mode", "active-backup", "the bond's `MODE`, by name or number, or all")
	links := fs.Int("links", 2, "how many `N` links the bond has")
	streams := fs.Int("streams", 4, "how many `N` TCP connections send at once")
	duration := fs.Duration("duration", 2*time.Second, "how long `D` one round lasts")
	rounds := fs.Int("rounds", 5, "how many `N` rounds, each of bare and bond")
	hash := fs.String("hash", "layer3+4", "`P`, the xmit_hash_policy of balance-xor, 802.3ad and balance-tlb")
	rate := fs.String("rate", "0", "limit each link to `R` bit/s, such as 1G or 100M; 0 is no limit")
	shape := fs.String("shape", "", shapeHelp)
	gso := fs.Bool("gso", true, "let links carry packets of 64 KiB whole")
	samples := fs.Int("samples", 0, "go on with the bond's rounds until there are `N` CPU samples")
	storm := fs.Bool("storm", false, "compare slaves that stand still with one that comes and goes")
	compare := fs.String("compare", "", "compare with something else: `KIND` is lock or gso")
	options := fs.StringArrayP("option", "o", nil, "an option of both bonds, `NAME=VALUE`; may be given again")
	asJSON := fs.Bool("json", false, "print JSON")
	html := fs.String("html", "", "write a page with plots to `FILE` too")
	if code, done := parseFlags(fs, benchHelp, args, stdout, stderr); done {
		return code
	}
	s := benchSettings{Mode: *mode, Links: *links, Streams: *streams, Duration: duration.Seconds(),
		Rounds: *rounds, Hash: *hash, GSO: *gso, Samples: *samples}
	if err := errors.Join(s.parse(*shape, *options, rate), s.check(*rate, *duration), checkKind(*compare, *storm), s.checkPage(*html, *compare)); err != nil {
		return usageError("bench", stderr, err)
	}
	progress := newProgress(stderr)
	print, err := s.kind(*compare, *storm, *duration, progress)
	progress.done()
	if err != nil {
		return failure("bench", stderr, err)
	}
	if err := errors.Join(print(stdout, *asJSON), s.writePage(*html)); err != nil {
		return failure("bench", stderr, err)
	}
	return exitOK
}

func checkKind(compare string, storm bool) error {
	switch {
	case compare != "" && compare != "lock" && compare != "gso":
		return fmt.Errorf("--compare is %q, allowed are lock and gso", compare)
	case compare != "" && storm:
		return errors.New("--compare measures the storm too: leave --storm away")
	}
	return nil
}

// kind runs the kind of benchmark that is asked for, and returns what prints its
// results.
func (s *benchSettings) kind(compare string, storm bool, d time.Duration, p *progress) (func(io.Writer, bool) error, error) {
	if compare == "lock" || storm {
		s.Links++ // the storm's
	}
	switch {
	case compare == "gso":
		c, err := s.compareGSO(d, p)
		return c.print, err
	case compare != "":
		c, err := s.compareLock(d, p)
		return c.print, err
	case storm:
		results, err := s.runStorm(d, p)
		s.showStorm(results)
		return func(w io.Writer, asJSON bool) error { return s.printStorm(w, results, asJSON) }, err
	default:
		results, err := s.run(d, p)
		s.show(results)
		return func(w io.Writer, asJSON bool) error { return s.print(w, results, asJSON) }, err
	}
}

// check resolves the settings, with all faults in one error.
func (s *benchSettings) check(rate string, duration time.Duration) error {
	var errs []error
	within := func(flag string, n, least, greatest int) {
		if n < least || n > greatest {
			errs = append(errs, fmt.Errorf("--%s is %d, allowed are %d to %d", flag, n, least, greatest))
		}
	}
	within("links", s.Links, 1, maxLinks)
	within("streams", s.Streams, 1, maxStreams)
	within("rounds", s.Rounds, 1, maxRounds)
	within("samples", s.Samples, 0, maxSamples)
	if duration < time.Millisecond || duration > maxDuration {
		errs = append(errs, fmt.Errorf("--duration is %v, allowed are 1ms to %v", duration, maxDuration))
	}
	var err error
	if s.Rate, err = parseRate(rate); err != nil {
		errs = append(errs, fmt.Errorf("--rate: %w", err))
	}
	if s.policy, err = xmithash.ParsePolicy(s.Hash); err != nil {
		errs = append(errs, fmt.Errorf("--hash: %w", err))
	}
	if s.modes, err = benchModes(s.Mode); err != nil {
		errs = append(errs, fmt.Errorf("--mode: %w", err))
	}
	return errors.Join(errs...)
}

// benchModes returns the modes that a name stands for.
func benchModes(name string) ([]bonding.Mode, error) {
	if name == "all" {
		return bonding.AvailableModes(), nil
	}
	m, err := bonding.ParseMode(name)
	if err != nil {
		return nil, fmt.Errorf("%w, all", err)
	}
	return []bonding.Mode{m}, nil
}

// parseRate reads bits a second, with k, M or G for powers of 1000.
func parseRate(text string) (uint64, error) {
	number, factor := text, 1.0
	for suffix, f := range map[string]float64{"k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "g": 1e9, "G": 1e9} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, factor = rest, f
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0) || v*factor > 1e15 {
		return 0, fmt.Errorf("%q is not a rate, such as 1G, 2.5G, 100M or 0, at most 1000000G", text)
	}
	if bits := math.Round(v * factor); bits >= 1 || v == 0 {
		return uint64(bits), nil
	}
	return 0, fmt.Errorf("%q is less than one bit a second", text)
}

// run measures every mode.
func (s *benchSettings) run(duration time.Duration, p *progress) ([]benchResult, error) {
	results := []benchResult{}
	for _, m := range s.modes {
		r, err := s.measure(m, duration, p)
		if err == nil {
			err = s.measureCuts(m, duration, p)
		}
		if err != nil {
			return nil, fmt.Errorf("mode %s: %w", m, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// print writes the results for people or for programs.
func (s *benchSettings) print(w io.Writer, results []benchResult, asJSON bool) error {
	if !asJSON {
		return printBench(w, s, results)
	}
	return writeJSON(w, struct {
		Settings *benchSettings `json:"settings"`
		Results  []benchResult  `json:"results"`
	}{s, results})
}

// progress says how far long work is, in one line that is overwritten on a
// terminal; elsewhere in a line for each step.
type progress struct {
	w        io.Writer
	terminal bool
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.w, text)
}

func (p *progress) done() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
