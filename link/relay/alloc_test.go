package relay_test

import (
	"context"
	"io"
	"net"
	"testing"

	"bondstack/link/relay"
)

// What passes costs no allocation, by TCP or UDP, on a question and its answer.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	r := newRig(t, relay.Options{}, loopback, loopback)
	client, server := r.connect()
	question, answer := make([]byte, 1000), make([]byte, 1000)
	check := func(what string, ask func()) {
		t.Helper()
		ask()
		if n := testing.AllocsPerRun(200, ask); n >= 1 {
			t.Errorf("%s: %v allocations for a question and its answer", what, n)
		}
	}
	check("tcp", func() {
		client.Write(question)
		io.ReadFull(server, answer)
		server.Write(answer)
		io.ReadFull(client, answer)
	})
	_, at := newUDPRig(t, relay.Options{}, loopback, loopback)
	c, err := loopback.dial(context.Background(), "udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	check("udp", func() {
		c.(*net.UDPConn).Write(question)
		c.Read(answer)
	})
}
