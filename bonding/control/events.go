package control

import (
	"encoding/json"
	"net/http"
	"time"

	"bondstack/bonding"
)

const (
	// maxWatchers bounds the clients that read events at once.
	maxWatchers = 16
	// eventQueue is how many events wait for a slow reader before it loses some.
	eventQueue = 256
	// eventPatience is for how long a reader may take nothing at all.
	eventPatience = 30 * time.Second
)

// events writes events as lines until the client goes or the bond ends. A slow
// reader loses events, and is told how many; the bond never waits.
func (s *Server) events(w http.ResponseWriter, req *http.Request) {
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		reply(w, http.StatusServiceUnavailable, failure{"too many clients read events already"})
		return
	}
	sub := s.bond.Subscribe(eventQueue)
	defer sub.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	rc := http.NewResponseController(w)
	// The server reads on, so as to notice that the client goes: the time that a
	// request has would end the answer.
	rc.SetReadDeadline(time.Time{})
	rc.Flush() // so that the client knows that it hears all from here on
	var told uint64
	for {
		var e bonding.Event
		var open bool
		select {
		case <-req.Context().Done():
			return
		case e, open = <-sub.C:
		}
		if !open {
			return
		}
		rc.SetWriteDeadline(time.Now().Add(eventPatience))
		// What is lost fell between those that wait and those to come: it is told
		// of as soon as it is known.
		if missed := sub.Missed(); missed > told {
			lost := Event{Event: bonding.Event{Time: e.Time, Bond: e.Bond, Kind: EventMissed}, Missed: missed - told}
			if writeLine(w, lost) != nil {
				return
			}
			told = missed
		}
		if writeLine(w, Event{Event: e}) != nil {
			return
		}
		rc.Flush()
	}
}

func writeLine(w http.ResponseWriter, e Event) error { return json.NewEncoder(w).Encode(e) }
