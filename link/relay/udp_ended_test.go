package relay

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"bondstack/link/linktest"
)

// Datagrams that are under way when their association ends are counted, whichever
// step of its end they meet.
func TestUDPEnded(t *testing.T) {
	linktest.CheckGoroutines(t)
	r := New(Options{})
	opening, release := make(chan struct{}, 1), make(chan error)
	flows := NewAssociations(r, func(context.Context, string) (net.Conn, error) {
		opening <- struct{}{}
		near, _ := net.Pipe()
		return near, <-release
	}, func(string, []byte) error { return nil })

	// sender returns an association as a sender found it, just before its end.
	sender := func(who string) *association {
		if err := flows.Send(who, []byte("waits")); err != nil {
			t.Fatal(err)
		}
		<-opening
		a, err := flows.get(who)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	over := func() {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); r.Stats().UDP.Open > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("an association does not end")
			}
		}
	}
	check := func(when string, dropped, ended uint64) {
		t.Helper()
		if c := r.Stats().UDP; c.Dropped != dropped || c.Ended != ended || c.ToFar != 0 {
			t.Errorf("%s: %d are dropped and %d ended, want %d and %d: %+v", when, c.Dropped, c.Ended, dropped, ended, c)
		}
	}

	a := sender("it cannot be opened")
	release <- errors.New("no way")
	over()
	check("what waited", 1, 0)
	a.send([]byte("late"))
	check("the next", 1, 1)

	a = sender("it ends while it is opened")
	flows.End("it ends while it is opened")
	release <- nil
	over()
	check("what waited", 1, 2)
	a.send([]byte("late"))
	check("the next", 1, 3)

	far, err := net.Dial("udp", "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	far.Close()
	a.write(far, []byte("late"))
	check("its socket is closed", 1, 4)

	r.Close()
	if err := flows.Send("the relay is closed", []byte("late")); err != ErrClosed {
		t.Errorf("the relay is closed: %v", err)
	}
	check("the relay is closed", 1, 5)
}
