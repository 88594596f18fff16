package readonly

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
)

// Bounds of a server.
const (
	MaxConnections = 32
	maxHeader      = 16 << 10
	requestTimeout = 5 * time.Second
	answerTimeout  = 10 * time.Second
	idleTimeout    = 15 * time.Second
)

// Options are the settings of a server.
type Options struct {
	// AnyName lets the Host of a request be any name, where the server is not on
	// loopback. Without it, it is an address, localhost, or the machine's own
	// name.
	AnyName bool
	// Logger gets what goes wrong with connections. Default: nobody.
	Logger *slog.Logger
}

// Server serves until it is closed.
type Server struct {
	http  *http.Server
	addr  net.Addr
	ended chan struct{}
}

// Socket listens: clients wait until it serves. It is closed by Close, or with the
// server that it becomes.
type Socket struct {
	net.Listener
	from Listener
}

// Listen begins to listen.
func (l Listener) Listen() (*Socket, error) {
	if l.IsZero() {
		return nil, errors.New("no address to listen on is given")
	}
	socket, err := l.listen()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: another program listens there; choose another port, or 0 for any: %w", l, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", l, err)
	}
	return &Socket{socket, l}, nil
}

// Start begins to listen and to serve a handler.
func (l Listener) Start(h http.Handler, o Options) (*Server, error) {
	socket, err := l.Listen()
	if err != nil {
		return nil, err
	}
	return socket.Serve(h, o), nil
}

// Serve begins to serve a handler, once.
func (l *Socket) Serve(h http.Handler, o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{addr: l.Addr(), ended: make(chan struct{}), http: &http.Server{
		Handler: guard(h, l.from.names(o)), ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true,
	}}
	go func() {
		defer close(s.ended)
		s.http.Serve(netutil.LimitListener(l.Listener, MaxConnections))
	}()
	return s
}

// names are the names that a request may ask for; nil: all.
func (l Listener) names(o Options) map[string]bool {
	names := map[string]bool{"localhost": true}
	if l.IsLoopback() {
		return names
	}
	if o.AnyName {
		return nil
	}
	if name, err := os.Hostname(); err == nil {
		names[strings.ToLower(name)] = true
	}
	return names
}

// Addr returns the address that it listens on, with the port that it got.
func (s *Server) Addr() net.Addr { return s.addr }

// Close ends all connections, and waits until no more come. A second call does
// nothing.
func (s *Server) Close() {
	s.http.Close()
	<-s.ended
}

// guard refuses what is no reading request to this very server. Without names
// each name is right.
func guard(h http.Handler, names map[string]bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case req.Method != http.MethodGet && req.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method "+req.Method+" is refused: nothing can be changed here, allowed are GET and HEAD", http.StatusMethodNotAllowed)
		case names != nil && !rightHost(req.Host, names):
			http.Error(w, fmt.Sprintf("host %q is refused: ask by the address, or as localhost", req.Host), http.StatusForbidden)
		case req.ContentLength != 0:
			w.Header().Set("Connection", "close")
			http.Error(w, "a body is refused", http.StatusRequestEntityTooLarge)
		default:
			h.ServeHTTP(w, req)
		}
	})
}

// rightHost reports whether a Host, with its port or without, is an address or
// one of the names. An address cannot be pointed elsewhere.
func rightHost(host string, names map[string]bool) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || names[host]
}
