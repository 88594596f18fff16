package stack

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

// A deadline on a manual clock: nothing passes before its time, a deadline that
// was moved is not the old one, and one that passed can be set again.
func TestDeadline(t *testing.T) {
	clock := faketime.NewManualClock()
	var d deadline
	d.init(clock)
	check := func(step string, want bool) {
		t.Helper()
		select {
		case <-d.expired():
			if !want {
				t.Errorf("%s: the channel is closed", step)
			}
		default:
			if want {
				t.Errorf("%s: the channel is open", step)
			}
		}
		if got := d.hasPassed(); got != want {
			t.Errorf("%s: hasPassed() = %v, want %v", step, got, want)
		}
	}
	check("never set", false)
	d.set(clock.Now().Add(time.Second))
	waiting := d.expired()
	clock.Advance(time.Second - 1)
	check("just before", false)
	clock.Advance(1)
	check("just then", true)
	select {
	case <-waiting:
	default:
		t.Error("who waited before was not woken")
	}
	d.set(time.Time{})
	check("taken away", false)
	d.set(clock.Now().Add(time.Second))
	waiting = d.expired()
	d.set(clock.Now().Add(time.Minute))
	clock.Advance(time.Second)
	check("moved to later", false)
	clock.Advance(time.Minute)
	check("the later one", true)
	select {
	case <-waiting:
	default:
		t.Error("who waited for the earlier one was not woken by the later one")
	}
	d.set(clock.Now())
	check("now", true)
	d.set(clock.Now().Add(-time.Hour))
	check("in the past, again", true)
	d.set(clock.Now().Add(time.Hour))
	check("in the future, again", false)
}

// FuzzParse has parse take anything. What it takes is an address and a port,
// and its text means the same again.
func FuzzParse(f *testing.F) {
	for _, network := range []string{"tcp", "tcp4", "tcp6", "udp", ""} {
		for _, address := range []string{
			":80", "10.0.0.1:80", "[::]:0", "[fe80::1%bond0]:65535", "[::ffff:1.2.3.4]:1",
			"example.org:80", "[::1", "10.0.0.1", "%:1", "[%bond0]:1", "0.0.0.0:00080", "[0:0::%]:1",
		} {
			f.Add(network, address)
		}
	}
	h := &Host{name: "bond0", ipv6: true}
	f.Fuzz(func(t *testing.T, network, address string) {
		a, err := h.parse(network, address, "tcp")
		if err != nil {
			return
		}
		addr := a.at.Addr()
		if !strings.HasPrefix(network, "tcp") || addr.Zone() != "" || addr.Is4In6() || (addr.IsValid() && addr.IsUnspecified()) {
			t.Fatalf("parse(%q, %q) = %+v", network, address, a)
		}
		if a.version != 0 && addr.IsValid() && addr.Is4() != (a.version == 4) {
			t.Fatalf("parse(%q, %q) = %+v of the wrong version", network, address, a)
		}
		again, err := h.parse(network, a.netAddr().String(), "tcp")
		if err != nil || again != a {
			t.Fatalf("parse(%q, %q) = %+v, but parse(%q) = %+v, %v", network, address, a, a.netAddr(), again, err)
		}
		proto, onlyV6 := a.protocol(h)
		if onlyV6 && proto != protocolOf(netip.IPv6Unspecified()) {
			t.Fatalf("protocol of %+v = %d, IPv6 only", a, proto)
		}
	})
}

func TestOverlaps(t *testing.T) {
	h := &Host{name: "bond0", ipv6: true}
	place := func(network, address string) endpointAddress {
		a, err := h.parse(network, address, "tcp")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	places := []endpointAddress{
		place("tcp", ":1"), place("tcp4", ":1"), place("tcp6", ":1"),
		place("tcp", "10.0.0.1:1"), place("tcp", "10.0.0.2:1"), place("tcp", "[fd00::1]:1"), place("tcp", ":2"),
	}
	want := []string{
		"xxxxxx.", // any
		"xx.xx..", // any IPv4
		"x.x..x.", // any IPv6
		"xx.x...", // 10.0.0.1
		"xx..x..", // 10.0.0.2
		"x.x..x.", // fd00::1
		"......x", // another port
	}
	for i, a := range places {
		for j, b := range places {
			if got := a.overlaps(b); got != (want[i][j] == 'x') {
				t.Errorf("%+v overlaps %+v: %v", a, b, got)
			}
		}
	}
}
