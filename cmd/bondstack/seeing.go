package main

import (
	"fmt"
	"log/slog"
	"net/http"

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

// show has the bond among those of the metrics, and begins to serve what is wanted.
// Who calls it ends that before what r has is closed.
func (s *seeing) show(r *runState, log *slog.Logger) (end func(), err error) {
	if s.bonds == nil {
		s.bonds = metrics.New()
	}
	s.bonds.Add(r.bond, r.tcp())
	hide, err := s.serve(func() []*runState { return []*runState{r} }, log)
	if err != nil {
		s.bonds.Remove(r.bond)
		return nil, err
	}
	return func() { hide(); s.bonds.Remove(r.bond) }, nil
}

// serve begins to serve what is wanted: the metrics, and a page of those bonds that
// shown returns, at least one.
func (s *seeing) serve(shown func() []*runState, log *slog.Logger) (end func(), err error) {
	var ends []func()
	end = func() {
		for _, f := range ends {
			f()
		}
	}
	serve := func(flag string, l readonly.Listener, h http.Handler, o readonly.Options) {
		if l.IsZero() || err != nil {
			return
		}
		var server *readonly.Server
		if server, err = l.Start(h, o); err != nil {
			err = fmt.Errorf("--%s %w", flag, err)
			return
		}
		log.Info("serving "+flag, "bond", shown()[0].bond.Name(), "address", server.Addr().String())
		ends = append([]func(){server.Close}, ends...)
	}
	if !s.metrics.IsZero() {
		serve("metrics", s.metrics, metricsHandler(s.bonds), readonly.Options{AnyName: true, Logger: log})
	}
	if !s.web.IsZero() {
		page := web.New(func() []web.Bond {
			var bonds []web.Bond
			for _, r := range shown() {
				st := r.status()
				bonds = append(bonds, web.Bond{Whole: st, Status: &st.Status})
			}
			return bonds
		})
		ends = append(ends, page.Close)
		serve("web", s.web, page, readonly.Options{Logger: log})
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
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
