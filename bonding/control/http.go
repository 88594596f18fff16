package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"bondstack/bonding"
)

// requestTimeout bounds the reading of a request and the writing of an answer.
const requestTimeout = 5 * time.Second

// failure is the body of an answer that is no success.
type failure struct {
	Error string `json:"error"`
}

// Register adds the server's paths to a mux.
func (s *Server) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/change", func(w http.ResponseWriter, req *http.Request) {
		body, err := readBody(w, req)
		if err != nil {
			answerError(w, err)
			return
		}
		r, err := ParseRequest(body)
		if err != nil {
			reply(w, http.StatusBadRequest, failure{err.Error()})
			return
		}
		a, err := s.Change(r)
		if err != nil {
			answerError(w, err)
			return
		}
		reply(w, http.StatusOK, a)
	})
	mux.HandleFunc("POST /v1/confirm", s.byID(s.Confirm))
	mux.HandleFunc("POST /v1/revert", s.byID(s.Revert))
	mux.HandleFunc("GET /v1/pending", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Pending()) })
	mux.HandleFunc("GET /v1/events", s.events)
}

// identified is the body of POST /v1/confirm and /v1/revert.
type identified struct {
	ID string `json:"id"`
}

func (s *Server) byID(do func(id string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := readBody(w, req)
		var which identified
		if err == nil && len(body) > 0 {
			if err := decode(body, &which); err != nil {
				reply(w, http.StatusBadRequest, failure{err.Error()})
				return
			}
		}
		if err == nil {
			err = do(which.ID)
		}
		if err != nil {
			answerError(w, err)
			return
		}
		reply(w, http.StatusOK, struct{}{})
	}
}

func readBody(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, req.Body, MaxRequest))
}

// answerError answers with the status that fits the error.
func answerError(w http.ResponseWriter, err error) {
	code := http.StatusUnprocessableEntity // the bond refuses
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		code = http.StatusRequestEntityTooLarge
	case errors.Is(err, bonding.ErrUnknownOption):
		code = http.StatusBadRequest
	case errors.Is(err, errPending):
		code = http.StatusConflict
	case errors.Is(err, errNone):
		code = http.StatusNotFound
	case errors.Is(err, errClosed):
		code = http.StatusServiceUnavailable
	}
	reply(w, code, failure{err.Error()})
}

func reply(w http.ResponseWriter, code int, v any) {
	// A change may have taken long: its answer has time of its own.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(requestTimeout))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v) // an error is the client's going
}

// peerKey is where a connection's context has the reason to refuse its peer.
type peerKey struct{}

// HTTP returns a server for a unix socket: with the server's paths, or with the
// handler's, which has them by Register; with bounds of size and time; and
// refusing other users but root where the system tells who asks. Its owner
// serves and closes it.
func (s *Server) HTTP(handler http.Handler) *http.Server {
	if handler == nil {
		mux := http.NewServeMux()
		s.Register(mux)
		handler = mux
	}
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if err, ok := req.Context().Value(peerKey{}).(error); ok {
				reply(w, http.StatusForbidden, failure{err.Error()})
				return
			}
			handler.ServeHTTP(w, req)
		}),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if err := checkPeer(c); err != nil {
				return context.WithValue(ctx, peerKey{}, err)
			}
			return ctx
		},
		ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: requestTimeout, MaxHeaderBytes: 16 << 10,
	}
}
