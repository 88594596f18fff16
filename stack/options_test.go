package stack_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bondstack/link/wire"
	"bondstack/stack"
)

var (
	prefix = netip.MustParsePrefix
	addr   = netip.MustParseAddr
)

func TestValidate(t *testing.T) {
	ours := []netip.Prefix{prefix("10.0.0.1/24"), prefix("fd00::1/64")}
	tests := []struct {
		name string
		opts stack.HostOptions
		want []string // each in the error; none means no error
	}{
		{"zero", stack.HostOptions{}, nil},
		{"all good", stack.HostOptions{
			Name: "eth0", Addresses: ours, Gateway: addr("10.0.0.254"), Gateway6: addr("fe80::1"),
			Routes: []stack.Route{
				{Destination: prefix("10.1.0.0/16"), Gateway: addr("10.0.0.2")},
				{Destination: prefix("192.168.0.0/24")},
				{Destination: prefix("192.168.7.0/24"), Gateway: addr("192.168.0.1")},
			},
			Backlog: 1, CongestionControl: "cubic", DADTransmits: -1, DADInterval: time.Second,
			SendBuffer: stack.BufferSize{Min: 4096, Default: 4096, Max: 4096},
		}, nil},
		{"ipv6 gateway alone", stack.HostOptions{Addresses: ours, Gateway: addr("fd00::ff")}, nil},
		{"long name", stack.HostOptions{Name: "sixteen-bytes-xx"}, []string{"Name", "sixteen-bytes-xx", "15"}},
		{"dots", stack.HostOptions{Name: ".."}, []string{`Name: ".."`}},
		{"slash", stack.HostOptions{Name: "a/b"}, []string{`Name: "a/b"`, "'/'"}},
		{"colon", stack.HostOptions{Name: "a:b"}, []string{"Name", "':'"}},
		{"space", stack.HostOptions{Name: "a\vb"}, []string{"Name", `'\v'`}},
		{"no address", stack.HostOptions{Addresses: []netip.Prefix{{}}}, []string{"Addresses[0]", "not valid"}},
		{"unspecified", stack.HostOptions{Addresses: []netip.Prefix{prefix("0.0.0.0/0")}}, []string{"Addresses[0]", "0.0.0.0/0"}},
		{"multicast", stack.HostOptions{Addresses: []netip.Prefix{prefix("224.0.0.1/4")}}, []string{"Addresses[0]", "multicast"}},
		{"loopback", stack.HostOptions{Addresses: []netip.Prefix{prefix("::1/128")}}, []string{"Addresses[0]", "loopback"}},
		{"limited broadcast", stack.HostOptions{Addresses: []netip.Prefix{prefix("255.255.255.255/32")}}, []string{"Addresses[0]", "broadcast"}},
		{"broadcast", stack.HostOptions{Addresses: []netip.Prefix{prefix("10.0.15.255/20")}}, []string{"Addresses[0]", "10.0.15.255/20", "broadcast"}},
		{"point to point", stack.HostOptions{Addresses: []netip.Prefix{prefix("10.0.0.1/31"), prefix("10.0.0.3/32")}}, nil},
		{"mapped", stack.HostOptions{Addresses: []netip.Prefix{netip.PrefixFrom(addr("::ffff:10.0.0.1"), 120)}}, []string{"Addresses[0]", "as IPv4"}},
		{"twice", stack.HostOptions{Addresses: []netip.Prefix{prefix("10.0.0.1/24"), prefix("10.0.0.1/16")}}, []string{"Addresses[1]", "Addresses[0]"}},
		{"gateway elsewhere", stack.HostOptions{Addresses: ours, Gateway: addr("10.0.1.1")}, []string{"Gateway", "10.0.1.1", "10.0.0.1/24"}},
		{"gateway zone", stack.HostOptions{Addresses: ours, Gateway: addr("fe80::1%eth0")}, []string{"Gateway", "zone"}},
		{"gateway multicast", stack.HostOptions{Addresses: ours, Gateway: addr("224.0.0.1")}, []string{"Gateway", "no router's"}},
		{"gateway6 is 4", stack.HostOptions{Addresses: ours, Gateway6: addr("10.0.0.2")}, []string{"Gateway6", "no IPv6 address"}},
		{"two ipv6 gateways", stack.HostOptions{Addresses: ours, Gateway: addr("fd00::2"), Gateway6: addr("fd00::3")}, []string{"Gateway6", "second"}},
		{"route of nothing", stack.HostOptions{Routes: []stack.Route{{}}}, []string{"Routes[0]", "not valid"}},
		{"route bits", stack.HostOptions{Routes: []stack.Route{{Destination: prefix("10.0.0.1/8")}}}, []string{"Routes[0]", "10.0.0.0/8"}},
		{"route versions", stack.HostOptions{Addresses: ours, Routes: []stack.Route{{Destination: prefix("10.0.0.0/8"), Gateway: addr("fd00::2")}}}, []string{"Routes[0]", "different IP versions"}},
		{"route gateway", stack.HostOptions{Routes: []stack.Route{{Destination: prefix("10.0.0.0/8"), Gateway: addr("10.0.0.2")}}}, []string{"Routes[0]", "10.0.0.2"}},
		{"backlog", stack.HostOptions{Backlog: -1}, []string{"Backlog", "-1", "1 to 65536"}},
		{"transmit queue", stack.HostOptions{TransmitQueue: 65537}, []string{"TransmitQueue", "65537", "0 to 65536"}},
		{"send buffer", stack.HostOptions{SendBuffer: stack.BufferSize{Min: 10}}, []string{"SendBuffer", "min 10", "4096"}},
		{"receive buffer", stack.HostOptions{ReceiveBuffer: stack.BufferSize{Default: 1 << 20, Max: 1 << 19}}, []string{"ReceiveBuffer", "max 524288"}},
		{"huge buffer", stack.HostOptions{ReceiveBuffer: stack.BufferSize{Max: 1<<30 + 1}}, []string{"ReceiveBuffer", "1073741824"}},
		{"congestion", stack.HostOptions{CongestionControl: "bbr"}, []string{"CongestionControl", `"bbr"`, "reno and cubic"}},
		{"dad", stack.HostOptions{DADTransmits: 256, DADInterval: 1}, []string{"DADTransmits", "256", "DADInterval", "1ns", "1ms"}},
		{"many at once", stack.HostOptions{Name: "a b", Backlog: -2, CongestionControl: "x"}, []string{"Name", "Backlog", "CongestionControl"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.opts.Validate()
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("Validate() = %v, want error with %q", err, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Validate() = %q, want %q in it", err, want)
				}
			}
		})
	}
}

func TestBadLink(t *testing.T) {
	if _, err := stack.NewHost(nil, stack.HostOptions{}); err == nil {
		t.Error("NewHost(nil) = no error")
	}
	checkGoroutines(t)
	ep, other := newWire(t, wire.Options{MTU: 1279})
	t.Cleanup(other.Close)
	// A host that cannot be made leaves the link to the caller.
	opts := stack.HostOptions{Addresses: []netip.Prefix{prefix("10.0.0.1/24"), prefix("fd00::1/64")}}
	if _, err := stack.NewHost(ep, opts); err == nil || !strings.Contains(err.Error(), "1280") || !strings.Contains(err.Error(), "fd00::1/64") {
		t.Errorf("NewHost(IPv6 on MTU 1279) = %v", err)
	}
	h := newHost(t, ep, stack.HostOptions{})
	if got := h.Settings().IPv6; got {
		t.Error("Settings().IPv6 on MTU 1279 = true")
	}
	if _, err := stack.NewHost(ep, stack.HostOptions{}); err == nil || !strings.Contains(err.Error(), "attached") {
		t.Errorf("NewHost(an attached link) = %v", err)
	}
	for _, bad := range []func() error{
		func() error { _, err := h.Dial("tcp6", "[fd00::1]:1"); return err },
		func() error { _, err := h.Listen("tcp6", ":1"); return err },
		func() error { return h.AddRoute(stack.Route{Destination: prefix("fd00::/8")}) },
		func() error { _, err := h.Ping(t.Context(), addr("fd00::1")); return err },
	} {
		if err := bad(); err == nil || !strings.Contains(err.Error(), "1280") {
			t.Errorf("IPv6 on MTU 1279: %v", err)
		}
	}
}

func TestSettings(t *testing.T) {
	ep, other := newWire(t, wire.Options{MTU: 9000})
	t.Cleanup(other.Close)
	h := newHost(t, ep, stack.HostOptions{Name: "lan", CongestionControl: "cubic", Recovery: "rack", Backlog: 7,
		SendBuffer: stack.BufferSize{Max: 2 << 20}})
	want := stack.Settings{
		Name: "lan", MTU: 9000, GSO: int(ep.GSOMaxSize()), RXChecksum: h.Settings().RXChecksum, TXChecksum: false,
		IPv6: true, SACK: true, Recovery: "rack", CongestionControl: "cubic", AutoTuning: true,
		SendBuffer:    stack.BufferSize{Min: 4 << 10, Default: 1 << 20, Max: 2 << 20},
		ReceiveBuffer: stack.DefaultReceiveBuffer,
		Backlog:       7,
	}
	if diff := cmp.Diff(want, h.Settings()); diff != "" {
		t.Errorf("Settings() (-want +got):\n%s", diff)
	}
	line := h.Settings().String()
	for _, part := range []string{"mtu 9000", "gso 6", "sack on", "rack", "cubic", "1 MiB to 2 MiB", "auto-tuning on"} {
		if !strings.Contains(line, part) {
			t.Errorf("Settings().String() = %q, want %q in it", line, part)
		}
	}
}
