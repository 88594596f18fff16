package stack_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/link/wire"
	"bondstack/stack"
)

func ping(t testing.TB, h *stack.Host, to string) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	rtt, err := h.Ping(ctx, addr(to))
	if err == nil && rtt <= 0 {
		t.Errorf("Ping(%s) = %v", to, rtt)
	}
	return err
}

func TestPing(t *testing.T) {
	a, b := newPair(t)
	for _, to := range []string{"10.0.0.2", "fd00::2", "10.0.0.1", "fd00::1", b.Addresses()[0].Prefix.Addr().String() + "%bond0"} {
		if err := ping(t, a, to); err != nil {
			t.Errorf("Ping(%s) = %v", to, err)
		}
	}
	for _, tt := range []struct {
		to   netip.Addr
		opts stack.PingOptions
		want string
	}{
		{addr("127.0.0.1"), stack.PingOptions{}, "no loopback interface"},
		{addr("192.168.1.1"), stack.PingOptions{}, "network is unreachable"},
		{addr("fe80::1%lan"), stack.PingOptions{}, "only interface is bond0"},
		{netip.Addr{}, stack.PingOptions{}, "not resolved"},
		{addr("10.0.0.2"), stack.PingOptions{Size: 65508}, "65508 is out of range"},
	} {
		if _, err := a.NewPinger(t.Context(), tt.to, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewPinger(%s, %v) = %v, want %q", tt.to, tt.opts, err, tt.want)
		}
	}
}

func TestPinger(t *testing.T) {
	a, _ := newPair(t)
	for _, to := range []string{"10.0.0.2", "fd00::2"} {
		for _, size := range []int{-1, 0, 1, 1472, 9000, 65507} {
			p, err := a.NewPinger(t.Context(), addr(to), stack.PingOptions{Size: size})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if _, err := p.Ping(ctx); err != nil {
					t.Errorf("Ping(%s) of %d bytes = %v", to, size, err)
				}
				cancel()
			}
			if got, want := p.Counts(), (stack.PingCounts{Sent: 3, Received: 3}); got != want {
				t.Errorf("Counts() = %+v, want %+v", got, want)
			}
			p.Close()
			if _, err := p.Ping(t.Context()); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Ping() after Close = %v", err)
			}
			if err := p.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("second Close() = %v", err)
			}
		}
	}
}

// A pinger tells answers that came twice and answers that came late from those
// in time.
func TestPingerCounts(t *testing.T) {
	checkGoroutines(t)
	left, right := newWire(t, wire.Options{})
	a := newHost(t, left, pairOptions("1", nil))
	newHost(t, right, pairOptions("2", nil))
	p, err := a.NewPinger(t.Context(), addr("10.0.0.2"), stack.PingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	do := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return second(p.Ping(ctx))
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	right.SetImpairments(wire.Impairments{Duplicate: 1})
	if err := do(); err != nil {
		t.Fatal(err)
	}
	right.SetImpairments(wire.Impairments{})
	if err := do(); err != nil { // after the duplicate, on the same wire
		t.Fatal(err)
	}
	if got, want := p.Counts(), (stack.PingCounts{Sent: 3, Received: 3, Duplicates: 1}); got != want {
		t.Errorf("Counts() = %+v, want %+v", got, want)
	}
	// An answer held on the way until nobody waits for it any more.
	right.SetImpairments(wire.Impairments{Delay: 50 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := p.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Ping() past its deadline = %v", err)
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Counts(), (stack.PingCounts{Sent: 5, Received: 5, Late: 1, Duplicates: 1}); got != want {
		t.Errorf("Counts() = %+v, want %+v", got, want)
	}
}

// Send waits for nothing, and its answers are counted; whoever answered is a
// neighbour.
func TestPingerSend(t *testing.T) {
	a, _ := newPair(t)
	if got := a.Neighbors(); len(got) != 0 {
		t.Errorf("Neighbors() at first = %v", got)
	}
	for _, to := range []string{"10.0.0.2", "fd00::2"} {
		p, err := a.NewPinger(t.Context(), addr(to), stack.PingOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := p.Send(); err != nil {
				t.Errorf("Send() to %s = %v", to, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		// Its answer may overtake those that waited for the neighbour's address.
		if _, err := p.Ping(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		want := stack.PingCounts{Sent: 4, Received: 4, Late: 3}
		awaitTrue(t, fmt.Sprintf("the counts are %+v", want), func() bool { return p.Counts() == want })
		p.Close()
		if err := p.Send(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send() after Close = %v", err)
		}
	}
	if got, want := a.Neighbors(), []netip.Addr{addr("10.0.0.2"), addr("fd00::2")}; !slices.Equal(got, want) {
		t.Errorf("Neighbors() = %v, want %v", got, want)
	}
}
