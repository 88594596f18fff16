package stack_test

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/stack"
)

func TestNextHop(t *testing.T) {
	a, b := newPair(t)
	if err := a.AddRoute(stack.Route{Destination: netip.MustParsePrefix("10.9.0.0/16"), Gateway: netip.MustParseAddr("10.0.0.2")}); err != nil {
		t.Fatal(err)
	}
	peer := b.Stack().NICInfo()[b.NICID()].LinkAddress
	for to, want := range map[string]tcpip.LinkAddress{
		"10.0.0.2":  peer,
		"fd00::2":   peer,
		"10.9.9.9":  peer, // by the router
		"224.0.0.9": "\x01\x00\x5e\x00\x00\x09",
	} {
		if got, err := a.NextHop(t.Context(), netip.MustParseAddr(to)); got != want || err != nil {
			t.Errorf("NextHop(%s) = %s, %v, want %s", to, got, err, want)
		}
	}
	if _, err := a.NextHop(t.Context(), netip.MustParseAddr("192.0.2.1")); !errors.Is(err, syscall.ENETUNREACH) && !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("NextHop without a route = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.NextHop(ctx, netip.MustParseAddr("10.0.0.77")); !errors.Is(err, context.Canceled) {
		t.Errorf("NextHop of nobody = %v", err)
	}
}
