// Package web is the web page of a running bond: throughput by slave, links,
// LACP, failovers, drops and options, live.
//
//	p := web.New(func() (any, *bonding.Status) { ... })
//	defer p.Close()
//	s, err := listener.Start(p, readonly.Options{})
//
// The page is one HTML file with its script and style, which are in the program;
// it asks nobody but this server, and needs no network. Its data are
//
//	/api/status            the status, as bondstack show --json prints it
//	/api/history?since=MS  what each slave had sent and received, each second of
//	                       the last two minutes, after a time in milliseconds
//
// Both are made once a second, however many clients there are, and change
// nothing.
package web

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"
	"sync"
	"time"

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

// StatusFunc returns the status as the page's JSON has it, and the bond's part of
// it.
type StatusFunc func() (whole any, bond *bonding.Status)

// Page is a handler for the page and its data.
type Page struct {
	status StatusFunc
	mux    *http.ServeMux
	stop   chan struct{}
	ended  chan struct{}
	close  sync.Once

	mu     sync.Mutex
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
func New(status StatusFunc) *Page {
	p := &Page{status: status, mux: http.NewServeMux(), stop: make(chan struct{}), ended: make(chan struct{})}
	files, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // the folder is in the program
	}
	p.mux.Handle("GET /", http.FileServerFS(files))
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

// take adds a point, and renews the status.
func (p *Page) take(now time.Time) {
	whole, bond := p.status()
	latest, err := json.Marshal(whole)
	if err != nil {
		latest, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	next := point{now.UnixMilli(), map[string]traffic{}}
	for i := range bond.Slaves {
		s, c := &bond.Slaves[i], &bond.Slaves[i].Counters
		next.Slaves[s.Name] = traffic{c.TxBytes, c.RxBytes, c.TxPackets, c.RxPackets}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = latest
	if len(p.points) == kept {
		p.points = append(p.points[:0], p.points[1:]...)
	}
	p.points = append(p.points, next)
}

// ServeHTTP answers a request.
func (p *Page) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, req)
}

func (p *Page) serveStatus(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	body := p.latest
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
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
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(p.after(since))
}

// after returns the points after a time.
func (p *Page) after(since int64) []point {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []point{}
	for _, pt := range p.points {
		if pt.TimeMs > since {
			list = append(list, pt)
		}
	}
	return list
}
