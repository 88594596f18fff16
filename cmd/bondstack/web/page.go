// Package web is the web page of running bonds: throughput by slave, links, LACP,
// failovers, drops and options, live, of one bond at a time.
//
//	p := web.New(func() []web.Bond { ... })
//	defer p.Close()
//	s, err := listener.Start(p, readonly.Options{})
//
// The page is one HTML file with its script and style, which are in the program;
// it asks nobody but this server, and needs no network. Its data are
//
//	/api/bonds             the names of the bonds
//	/api/status            the status, as bondstack show --json prints it
//	/api/history?since=MS  what each slave had sent and received, each second of
//	                       the last two minutes, after a time in milliseconds
//
// The latter are of the first bond, or with bond=NAME of another. All are made once
// a second, however many clients there are, and change nothing.
package web

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"bondstack/bonding"
)

//go:embed assets
var embedded embed.FS

// policy has the browser load nothing that is not of this server, run no script
// that is in the page itself, and show the page in no frame.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	period = time.Second
	// kept is how many points there are: two minutes and the one before.
	kept = 121
)

// Bond is a bond at a moment: the status as the page's JSON has it, and the bond's
// part of it.
type Bond struct {
	Whole  any
	Status *bonding.Status
}

// BondsFunc returns the bonds, at least one.
type BondsFunc func() []Bond

// Page is a handler for the page and its data.
type Page struct {
	now   BondsFunc
	mux   *http.ServeMux
	stop  chan struct{}
	ended chan struct{}
	close sync.Once

	mu    sync.Mutex
	views []*view // replaced, not changed
}

// view is what is known of a bond.
type view struct {
	name   string
	latest []byte // JSON
	points []point
}

var _ http.Handler = (*Page)(nil)

// point is what the slaves had counted at a time.
type point struct {
	TimeMs int64              `json:"time_ms"` // since 1970
	Slaves map[string]traffic `json:"slaves"`
}

type traffic struct {
	TxBytes   uint64 `json:"tx_bytes"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxPackets uint64 `json:"tx_packets"`
	RxPackets uint64 `json:"rx_packets"`
}

// New makes a page, and begins to take the status each second.
func New(now BondsFunc) *Page {
	p := &Page{now: now, mux: http.NewServeMux(), stop: make(chan struct{}), ended: make(chan struct{})}
	files, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // the folder is in the program
	}
	assets := http.FileServerFS(files)
	p.mux.HandleFunc("GET /", func(w http.ResponseWriter, req *http.Request) {
		if !utf8.ValidString(req.URL.Path) { // which a file system takes for a fault
			http.NotFound(w, req)
			return
		}
		assets.ServeHTTP(w, req)
	})
	p.mux.HandleFunc("GET /api/bonds", p.serveBonds)
	p.mux.HandleFunc("GET /api/status", p.serveStatus)
	p.mux.HandleFunc("GET /api/history", p.serveHistory)
	p.take(time.Now())
	go p.run()
	return p
}

// Close ends the taking of the status. A second call does nothing.
func (p *Page) Close() {
	p.close.Do(func() { close(p.stop) })
	<-p.ended
}

func (p *Page) run() {
	defer close(p.ended)
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			p.take(now)
		}
	}
}

// take renews what is known of the bonds. Those that have gone are forgotten.
func (p *Page) take(now time.Time) {
	bonds := p.now()
	views := make([]*view, len(bonds))
	for i, b := range bonds {
		views[i] = p.view(b.Status.Name).next(b, now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.views = views
}

// next returns the view with a further point. v is nil for a new bond.
func (v *view) next(b Bond, now time.Time) *view {
	latest, err := json.Marshal(b.Whole)
	if err != nil {
		latest, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	pt := point{now.UnixMilli(), map[string]traffic{}}
	for i := range b.Status.Slaves {
		s, c := &b.Status.Slaves[i], &b.Status.Slaves[i].Counters
		pt.Slaves[s.Name] = traffic{c.TxBytes, c.RxBytes, c.TxPackets, c.RxPackets}
	}
	next := &view{name: b.Status.Name, latest: latest}
	if v != nil {
		next.points = append(next.points, v.points[max(0, len(v.points)-kept+1):]...)
	}
	next.points = append(next.points, pt)
	return next
}

// view returns what is known of a bond, nil where there is none; "" is the first.
func (p *Page) view(name string) *view {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.views {
		if name == "" || v.name == name {
			return v
		}
	}
	return nil
}

// ServeHTTP answers a request.
func (p *Page) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, req)
}

func (p *Page) serveBonds(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	views := p.views
	p.mu.Unlock()
	names := []string{}
	for _, v := range views {
		names = append(names, v.name)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(names)
}

// wanted returns the view that a request asks for, nil where it was answered that
// there is none.
func (p *Page) wanted(w http.ResponseWriter, req *http.Request) *view {
	name := req.URL.Query().Get("bond")
	v := p.view(name)
	if v == nil {
		http.Error(w, "there is no bond "+strconv.Quote(name), http.StatusNotFound)
	}
	return v
}

func (p *Page) serveStatus(w http.ResponseWriter, req *http.Request) {
	if v := p.wanted(w, req); v != nil {
		w.Header().Set("Content-Type", "application/json")
		w.Write(v.latest)
	}
}

func (p *Page) serveHistory(w http.ResponseWriter, req *http.Request) {
	since := int64(0)
	if text := req.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = strconv.ParseInt(text, 10, 64); err != nil {
			http.Error(w, "since="+strconv.Quote(text)+" is not a time in milliseconds", http.StatusBadRequest)
			return
		}
	}
	if v := p.wanted(w, req); v != nil {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v.after(since))
	}
}

// after returns the points after a time.
func (v *view) after(since int64) []point {
	list := []point{}
	for _, pt := range v.points {
		if pt.TimeMs > since {
			list = append(list, pt)
		}
	}
	return list
}
