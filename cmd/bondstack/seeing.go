package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"bondstack/bonding/metrics"
	"bondstack/cmd/bondstack/readonly"
	"bondstack/cmd/bondstack/web"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// seeing is where a running instance shows itself by HTTP.
type seeing struct {
	metrics, web readonly.Listener
	// bonds are those that the metrics are of, for as long as they run; nil: this
	// one's alone.
	bonds *metrics.Collector
}

// define defines the flags. read reads their values once they are parsed.
func (s *seeing) define(fs *pflag.FlagSet) (read func(*faults)) {
	const where = ", `[ADDRESS:]PORT`; without an address on 127.0.0.1 only"
	texts := [...]*string{
		fs.String("metrics", "", "metrics for Prometheus under /metrics"+where),
		fs.String("web", "", "a live page for browsers"+where),
	}
	return func(f *faults) {
		for i, l := range [...]*readonly.Listener{&s.metrics, &s.web} {
			if *texts[i] == "" {
				continue
			}
			var err error
			*l, err = readonly.ParseListen(*texts[i])
			f.add([...]string{"--metrics", "--web"}[i], err)
		}
	}
}

// pages are what listens for a running instance, and shows it later.
type pages struct {
	metrics, web *readonly.Socket // nil where it is not wanted
	bonds        *metrics.Collector
	ends         []func() // in the order of their beginning
}

// listen begins to listen where something is to be shown: before anything else is
// touched, so that a port that is taken ends the start. close ends it.
func (s *seeing) listen() (*pages, error) {
	p := &pages{bonds: s.bonds}
	if p.bonds == nil {
		p.bonds = metrics.New()
	}
	for _, l := range [...]struct {
		flag string
		at   readonly.Listener
		to   **readonly.Socket
	}{{"metrics", s.metrics, &p.metrics}, {"web", s.web, &p.web}} {
		if l.at.IsZero() {
			continue
		}
		socket, err := l.at.Listen()
		if err != nil {
			p.close()
			return nil, fmt.Errorf("--%s %w", l.flag, err)
		}
		*l.to = socket
		p.ends = append(p.ends, func() { socket.Close() })
	}
	return p, nil
}

// close ends all that is shown. It comes before what is shown is closed.
func (p *pages) close() {
	for _, end := range slices.Backward(p.ends) {
		end()
	}
	p.ends = nil
}

// show has a bond among those of the metrics, and begins to serve what is wanted.
func (p *pages) show(r *runState, log *slog.Logger) {
	p.bonds.AddWithRelays(r.bond, r.tcp(), r.relays)
	p.ends = append(p.ends, func() { p.bonds.Remove(r.bond) })
	p.serve(func() []*runState { return []*runState{r} }, log)
}

// serve begins to serve what is wanted: the metrics, and a page of those bonds that
// shown returns, at least one.
func (p *pages) serve(shown func() []*runState, log *slog.Logger) {
	serve := func(flag string, l *readonly.Socket, h http.Handler, o readonly.Options) {
		server := l.Serve(h, o)
		log.Info("serving "+flag, "bond", shown()[0].bond.Name(), "address", server.Addr().String())
		p.ends = append(p.ends, server.Close)
	}
	if p.metrics != nil {
		serve("metrics", p.metrics, metricsHandler(p.bonds), readonly.Options{AnyName: true, Logger: log})
	}
	if p.web != nil {
		page := web.New(func() []web.Bond {
			var bonds []web.Bond
			for _, r := range shown() {
				st := r.status()
				bonds = append(bonds, web.Bond{Whole: st, Status: &st.Status})
			}
			return bonds
		})
		p.ends = append(p.ends, page.Close)
		serve("web", p.web, page, readonly.Options{Logger: log})
	}
}

// maxScrapes bounds how many collections run at once.
const maxScrapes = 4

// tcp returns what reads the counters of the host's TCP, nil where there is none.
func (r *runState) tcp() metrics.TCPFunc {
	if r.host == nil {
		return nil
	}
	return func() tcpip.TCPStats { return r.host.Stack().Stats().TCP }
}

// relays are what passes flows on between the bond and its host, as the metrics have
// them.
func (r *runState) relays() (list []metrics.Relay) {
	if r.relay != nil {
		s := r.relay.Stats()
		list = append(list, metrics.Relay{Name: "forward", TCP: metrics.Flows(s.TCP), UDP: metrics.Flows(s.UDP)})
	}
	if s := r.joiner.link.user.stats(); s != nil {
		list = append(list, metrics.Relay{Name: userKind, TCP: metrics.Flows(s.Relay.TCP), UDP: metrics.Flows(s.Relay.UDP), Drops: map[string]uint64{
			"denied": s.Denied, "unanswered": s.Unanswered, "ignored": s.Ignored, "malformed": s.Malformed, "no_link": s.NoLink, "claim": s.Claims,
		}})
	}
	return list
}

// metricsHandler has the metrics of bonds and of this process.
func metricsHandler(bonds *metrics.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(bonds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bondstack_build_info", Help: "The version of bondstack; always 1.",
			ConstLabels: prometheus.Labels{"version": thisVersion()}}, func() float64 { return 1 }))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>bondstack</title><a href="/metrics">metrics</a>`)
	})
	return mux
}
