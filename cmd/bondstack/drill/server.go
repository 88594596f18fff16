package drill

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"bondstack/bonding"
	"bondstack/stack"
)

// writeWithin bounds the writing of a line.
const writeWithin = 5 * time.Second

// Server runs the drills of a bond, one at a time.
type Server struct {
	bond *bonding.Bond
	host *stack.Host // nil: the bond has none
	log  *slog.Logger
	ctx  context.Context
	end  context.CancelFunc

	mu sync.Mutex // held while a drill runs
}

// NewServer makes a server for a bond, and the host on it, or nil.
func NewServer(b *bonding.Bond, h *stack.Host, log *slog.Logger) *Server {
	s := &Server{bond: b, host: h, log: log}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends a drill that runs, and waits until the slave is given back. There are no
// others afterwards.
func (s *Server) Close() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
}

// Register adds the server's path to a mux.
func (s *Server) Register(mux *http.ServeMux) { mux.HandleFunc("POST /v1/drill", s.serve) }

func (s *Server) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, err)
		return
	}
	r, err := ParseRequest(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // reading on is how the client's going is noticed
	started := false
	emit := func(l Line) {
		if !started {
			started = true
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		_ = rc.SetWriteDeadline(time.Now().Add(writeWithin))
		_ = json.NewEncoder(w).Encode(l) // an error is the client's going
		_ = rc.Flush()
	}
	result, err := s.run(req.Context(), r, emit)
	switch {
	case err == nil:
		emit(Line{Phase: Finished, Result: result})
	case started:
		emit(Line{Phase: Failed, Error: err.Error()})
	case errors.Is(err, errBusy):
		refuse(w, http.StatusConflict, err)
	default:
		refuse(w, http.StatusUnprocessableEntity, err)
	}
}

var errBusy = errors.New("a drill runs already: wait until it is over")

// run runs a drill, where none runs. When it returns the next can begin.
func (s *Server) run(ctx context.Context, r Request, emit func(Line)) (*Result, error) {
	if !s.mu.TryLock() {
		return nil, errBusy
	}
	defer s.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	d, err := prepare(ctx, s.bond, s.host, r)
	if err != nil {
		return nil, err
	}
	defer d.close()
	d.emit = emit
	s.log.Warn("a drill begins", "bond", s.bond.Name(), "slave", r.Slave, "how", d.request.How, "for_ms", r.ForMs, "count", r.Count)
	result, err := d.run(ctx)
	if err != nil {
		s.log.Warn("the drill has failed", "bond", s.bond.Name(), "error", err)
		return nil, err
	}
	s.log.Info("the drill is over", "bond", s.bond.Name(), "lost", result.Lost, "sent", result.Sent)
	return result, nil
}

// refuse answers with an error, as the control server does.
func refuse(w http.ResponseWriter, code int, err error) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct {
		Error string `json:"error"`
	}{err.Error()})
}
