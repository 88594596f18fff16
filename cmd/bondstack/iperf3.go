package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/iperf3"
	"bondstack/stack"

	"github.com/spf13/pflag"
)

const iperf3Help = `
Usage: bondstack iperf3 -s | -c HOST --slave [KIND:]NAME ... --mode M --address CIDR ... [FLAGS]
       bondstack iperf3 --in-memory [--mode M] [FLAGS]

Measures a bond by iperf3's protocol, as the server or as a client of one: the other
end may be any iperf3. The bond and a TCP/IP stack on it are hosted on kernel
interfaces for the time of the test, as by bondstack run, whose flags for the bond
it has. With --in-memory client and server are both here, on a bond of two links in
memory, without rights and without a network.

The output has iperf3's columns, or with -J its JSON, and what each slave carried
(in the JSON below "bondstack"). Flags mean what they mean to iperf3: K, M and G are
powers of 1024 for -n, -k and -l, and of 1000 for -b.

Examples:
  bondstack iperf3 --in-memory --mode balance-xor -o xmit_hash_policy=layer3+4 -P 4
  bondstack iperf3 -s --slave eth1 --slave eth2 --mode 802.3ad --address 10.0.0.2/24
  bondstack iperf3 -c 10.0.0.1 -P 4 -R -t 5 --slave eth1 --slave eth2 --mode balance-rr --address 10.0.0.2/24
  bondstack iperf3 -c 10.0.0.1 -u -b 200M -J --slave eth1 --slave eth2 --mode active-backup --address 10.0.0.2/24`

// iperf3Settings are what the flags say.
type iperf3Settings struct {
	runSettings
	server   bool
	inMemory bool
	client   iperf3.ClientOptions
	serve    iperf3.ServerOptions
	out      io.Writer
}

func runIperf3(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s, code, done := parseIperf3(args, stdout, stderr)
	if done {
		return code
	}
	return runUntilSignal("iperf3", stderr, s.log, func(ctx context.Context, log *slog.Logger) error {
		if s.inMemory {
			return s.runInMemory(ctx)
		}
		return s.run(ctx, log, linkKinds)
	})
}

// parseIperf3 reads the flags, and reports every fault at once. done is true where
// there is nothing to run.
func parseIperf3(args []string, stdout, stderr io.Writer) (s *iperf3Settings, code int, done bool) {
	s = &iperf3Settings{out: stdout}
	fs := newFlags("iperf3")
	fs.BoolVarP(&s.server, "server", "s", false, "be the server")
	fs.StringVarP(&s.client.Host, "client", "c", "", "be a client of the server at `HOST`, an IP address")
	fs.BoolVar(&s.inMemory, "in-memory", false, "be both, on a bond in memory")
	readTest := s.defineTest(fs)
	read := s.bondSettings.define(fs)
	addresses := fs.StringArray("address", nil, "an address of the stack, `CIDR`, or dhcp, or auto; may be given again")
	gateways := fs.StringArray("gateway", nil, "a router, `IP`; one for each of IPv4 and IPv6")
	if code, done := parseFlags(fs, iperf3Help, args, stdout, stderr); done {
		return nil, code, true
	}
	var f faults
	readTest(&f)
	if s.inMemory {
		s.readInMemory(&f, fs)
	} else {
		s.defaultControl(fs)
		read(&f)
		s.runSettings.host.Name = s.name
		f.each("--address", *addresses, s.parseAddress)
		f.add("--address", given(*addresses, "--address 10.0.0.2/24"))
		f.each("--gateway", *gateways, s.parseGateway)
		f.add("", s.host.Validate())
	}
	f.add("", s.checkRole(fs))
	if err := errors.Join(f...); err != nil {
		return nil, usageError("iperf3", stderr, err), true
	}
	return s, exitOK, false
}

// defineTest defines the flags of the test.
func (s *iperf3Settings) defineTest(fs *pflag.FlagSet) (read func(*faults)) {
	c := &s.client
	fs.Uint16VarP(&c.Port, "port", "p", iperf3.DefaultPort, "the server's port `N`")
	seconds := fs.IntP("time", "t", 0, "the length of the test, `N` seconds (default 10)")
	bytes := fs.StringP("bytes", "n", "", "end the test after `N` bytes, such as 100M")
	blocks := fs.StringP("blockcount", "k", "", "end the test after `N` blocks")
	interval := fs.Float64P("interval", "i", 1, "report every `N` seconds, 0 is only at the end")
	rate := fs.StringP("bitrate", "b", "", "limit each stream to `N[/BURST]` bit/s, such as 100M; 0 is no limit (default 1M with -u)")
	length := fs.StringP("length", "l", "", "blocks of `N` bytes (default 128K, with -u what fits a packet)")
	fs.BoolVarP(&c.UDP, "udp", "u", false, "send datagrams")
	fs.IntVarP(&c.Parallel, "parallel", "P", 1, "how many `N` streams")
	fs.BoolVarP(&c.Reverse, "reverse", "R", false, "the server sends")
	fs.BoolVar(&c.Bidir, "bidir", false, "both send")
	omit := fs.IntP("omit", "O", 0, "leave out the first `N` seconds")
	fs.BoolVarP(&c.NoDelay, "no-delay", "N", false, "send small blocks at once")
	fs.BoolVar(&c.Counters64, "udp-counters-64bit", false, "number datagrams with 64 bits")
	fs.BoolVarP(&c.JSON, "json", "J", false, "print JSON")
	fs.BoolVarP(&s.serve.Once, "one-off", "1", false, "as a server, end after one test")
	fs.DurationVar(&s.serve.MaxDuration, "max-duration", time.Hour, "as a server, refuse tests that are longer than `D`")
	return func(f *faults) {
		c.Time, c.Omit = time.Duration(*seconds)*time.Second, time.Duration(*omit)*time.Second
		c.Interval = time.Duration(*interval * float64(time.Second))
		c.Out = s.out
		var length64 uint64
		for _, size := range []struct {
			flag, text string
			to         *uint64
		}{{"--bytes", *bytes, &c.Bytes}, {"--blockcount", *blocks, &c.Blocks}, {"--length", *length, &length64}} {
			v, err := iperf3.ParseSize(size.text)
			f.add(size.flag, err)
			*size.to = v
		}
		c.Length = int(min(length64, 1<<30))
		f.add("--bitrate", s.parseBitrate(*rate))
		s.serve.Options = c.Options
	}
}

// parseBitrate reads N[/BURST].
func (s *iperf3Settings) parseBitrate(text string) (err error) {
	if text == "" {
		return nil
	}
	number, burst, hasBurst := strings.Cut(text, "/")
	if s.client.Rate, err = parseRate(number); err != nil {
		return err
	}
	s.client.Unlimited = s.client.Rate == 0
	if hasBurst {
		if _, err := fmt.Sscanf(burst+"\n", "%d\n", &s.client.Burst); err != nil {
			return fmt.Errorf("%q is not a count of blocks", burst)
		}
	}
	return nil
}

// checkRole wants one role, and good options of a client.
func (s *iperf3Settings) checkRole(fs *pflag.FlagSet) error {
	isClient := fs.Changed("client")
	roles := 0
	for _, is := range []bool{s.server, isClient, s.inMemory} {
		if is {
			roles++
		}
	}
	switch {
	case roles != 1:
		return errors.New("one of --server, --client and --in-memory is needed")
	case s.server:
		return s.serve.Validate()
	default:
		return s.client.Validate()
	}
}

// defaultControl has server and client have control sockets of their own, beside
// that of an instance that runs.
func (s *iperf3Settings) defaultControl(fs *pflag.FlagSet) {
	if fs.Changed("control") {
		return
	}
	name := "iperf3-client"
	if s.server {
		name = "iperf3-server"
	}
	s.control = filepath.Join(filepath.Dir(defaultSocket()), name)
}

// run hosts the stack for the time of the test.
func (s *iperf3Settings) run(ctx context.Context, log *slog.Logger, kinds map[string]openFunc) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := s.runSettings.startHosted(ctx, log, kinds)
	if err != nil {
		return err
	}
	defer r.close()
	go r.joiner.run(ctx)
	s.over(r.bond)
	if s.server {
		s.serve.Log = log
		return iperf3.Serve(ctx, r.host, s.serve)
	}
	if err := r.host.AwaitAddresses(ctx); err != nil {
		return err
	}
	if err := awaitReady(ctx, r.bond); err != nil {
		return err
	}
	_, err = iperf3.Run(ctx, r.host, s.client)
	return err
}

// over completes the options by what the bond is.
func (s *iperf3Settings) over(b *bonding.Bond) {
	const timestamps = 12 // TCP's, in each segment
	headers := 20 + 20 + timestamps
	if a, err := netip.ParseAddr(s.client.Host); err == nil && a.Is6() {
		headers += 20
	}
	for _, o := range []*iperf3.Options{&s.client.Options, &s.serve.Options} {
		o.MSS = max(int(b.MTU())-headers, 1)
		o.Slaves = func() []iperf3.SlaveBytes { return slaveBytes(b) }
	}
}

// slaveBytes is what the slaves of a bond have carried.
func slaveBytes(b *bonding.Bond) []iperf3.SlaveBytes {
	var list []iperf3.SlaveBytes
	for _, s := range b.Status().Slaves {
		list = append(list, iperf3.SlaveBytes{Name: s.Name, Tx: s.Counters.TxBytes, Rx: s.Counters.RxBytes})
	}
	return list
}

// readInMemory reads what a bond in memory has of the flags.
func (s *iperf3Settings) readInMemory(f *faults, fs *pflag.FlagSet) {
	for _, name := range []string{"slave", "address", "gateway", "mac", "mtu", "control", "exclusive", "hardware-address", "require-slaves"} {
		if fs.Changed(name) {
			f.add("--"+name, errors.New("not with --in-memory"))
		}
	}
	mode, _ := fs.GetString("mode")
	if mode == "" {
		mode = bonding.BalanceRR.String()
	}
	f.add("--mode", s.parseMode(mode))
	options, _ := fs.GetStringArray("option")
	f.each("--option", options, s.parseOption)
	f.add("", s.tryBond())
	if s.client.Host == "" {
		s.client.Host = "10.0.0.2" // the receiving host of a rig
	}
}

// runInMemory runs client and server on the two hosts of a benchmark.
func (s *iperf3Settings) runInMemory(ctx context.Context) error {
	b := benchSettings{Links: 2, GSO: true, Options: s.options}
	r, err := b.newRig(&s.bond.Mode)
	if err != nil {
		return err
	}
	defer r.close()
	s.over(r.bond)
	serve := iperf3.ServerOptions{}
	serve.Port = s.client.Port
	stop, err := startIperf3(ctx, r.receiver, serve)
	if err != nil {
		return err
	}
	defer stop()
	_, err = iperf3.Run(ctx, r.sender, s.client)
	return err
}

// startIperf3 starts a server on a host and returns once clients can connect.
func startIperf3(ctx context.Context, h *stack.Host, o iperf3.ServerOptions) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	o.Ready = func() { close(ready) }
	go func() { ended <- iperf3.Serve(ctx, h, o) }()
	select {
	case <-ready:
		return func() { cancel(); <-ended }, nil
	case err := <-ended:
		cancel()
		return nil, err
	}
}
