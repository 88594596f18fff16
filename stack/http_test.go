package stack_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// net/http works on a host unchanged: server, client, keep-alive, big bodies
// both ways, many at once, and an orderly shutdown.
func TestHTTP(t *testing.T) {
	a, b := newPair(t)
	l := mustListen(t, b, ":80")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s ", r.Method, r.URL.Path)
		w.Write(body)
	})}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	transport := &http.Transport{DialContext: a.DialContext, MaxIdleConnsPerHost: 8}
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			host := []string{"10.0.0.2", "[fd00::2]"}[i%2]
			for j := range 5 {
				body := pattern(j * 100_000)
				path := fmt.Sprintf("/%d/%d", i, j)
				resp, err := client.Post("http://"+host+path, "", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				want := "POST " + path + " " + string(body)
				if err != nil || string(got) != want {
					t.Errorf("POST %s of %d bytes = %d bytes, %v", path, len(body), len(got), err)
				}
			}
		})
	}
	wg.Wait()
	if got := b.Stack().Stats().TCP.PassiveConnectionOpenings.Value(); got > 20 { // a few more than 8, as the client dials ahead
		t.Errorf("%d connections for 8 clients of 5 requests each: no keep-alive", got)
	}
	if _, err := client.Get("http://example.org/"); err == nil || !strings.Contains(err.Error(), "no name servers") {
		t.Errorf("Get(a name) = %v", err)
	}
	transport.CloseIdleConnections() // Shutdown waits for what was dialled ahead
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("Serve() = %v", err)
	}
}
