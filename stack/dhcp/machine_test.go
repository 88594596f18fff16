package dhcp_test

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/rfc1035label"

	"bondstack/stack/dhcp"
)

func TestLease(t *testing.T) {
	r := newRig(t)
	r.m.Start(0)
	d := r.last()
	if d.MessageType() != dhcpv4.MessageTypeDiscover || !d.IsBroadcast() || d.HostName() != "box" || r.to[0] != "invalid IP > 255.255.255.255" {
		t.Fatalf("first message: %s, %v", d.Summary(), r.to)
	}
	r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9"))
	d = r.last()
	if d.MessageType() != dhcpv4.MessageTypeRequest || d.RequestedIPAddress().String() != "10.0.0.9" || d.ServerIdentifier().String() != "10.0.0.1" {
		t.Fatalf("second message: %s", d.Summary())
	}
	r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.10")) // another server's, too late
	_, far, _ := net.ParseCIDR("10.9.0.0/16")
	r.receive(r.answer(dhcpv4.MessageTypeAck, "10.0.0.9",
		dhcpv4.OptRouter(net.IPv4(10, 0, 0, 1)),
		dhcpv4.OptClasslessStaticRoute(&dhcpv4.Route{Dest: far, Router: net.IPv4(10, 0, 0, 3)}),
		dhcpv4.OptDNS(net.IPv4(10, 0, 0, 2), net.IPv4zero),
		dhcpv4.OptDomainName("example.org"),
		dhcpv4.OptDomainSearch(&rfc1035label.Labels{Labels: []string{"a.example", "b.example"}})))
	r.want(dhcp.Checking, "check 10.0.0.9")
	r.m.Checked(0, netip.MustParseAddr("10.0.0.8"), true) // an older check's
	r.m.Checked(0, netip.MustParseAddr("10.0.0.9"), false)
	r.want(dhcp.Bound, "bind 10.0.0.9/24")
	got, ok := r.m.Lease()
	want := dhcp.Lease{
		Prefix: netip.MustParsePrefix("10.0.0.9/24"),
		Server: netip.MustParseAddr("10.0.0.1"),
		Routes: []dhcp.Route{{Destination: netip.MustParsePrefix("10.9.0.0/16"), Gateway: netip.MustParseAddr("10.0.0.3")}},
		DNS:    []netip.Addr{netip.MustParseAddr("10.0.0.2")},
		Search: []string{"a.example", "b.example"},
		Renew:  30 * time.Minute, Rebind: time.Hour / 8 * 7, Expire: time.Hour,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); !ok || diff != "" {
		t.Errorf("lease (-want +got):\n%s", diff)
	}
}

func TestRetransmission(t *testing.T) {
	r := newRig(t)
	r.m.Start(0)
	var waits []time.Duration
	for range 8 {
		at, _ := r.m.Deadline()
		waits = append(waits, at-r.now)
		r.now = at
		r.m.Tick(at)
	}
	for i, w := range waits {
		mean := min(4*time.Second<<i, 64*time.Second)
		if w < mean-time.Second || w > mean+time.Second {
			t.Errorf("wait %d is %v, want %v give or take a second (RFC 2131, 4.1)", i, w, mean)
		}
	}
	if len(r.sent) != 9 || r.lastKind() != "DISCOVER" {
		t.Errorf("%d messages, the last %s", len(r.sent), r.lastKind())
	}
	// An offer, and then silence: after four requests it looks for others.
	r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9"))
	r.pass(2 * time.Minute)
	r.want(dhcp.Selecting)
	requests := 0
	for _, d := range r.sent[9:] {
		if d.MessageType() == dhcpv4.MessageTypeRequest {
			requests++
		}
	}
	if requests != 4 || r.lastKind() != "DISCOVER" {
		t.Errorf("%d requests without an answer, then %s: want 4, then DISCOVER", requests, r.lastKind())
	}
}

func TestRenewRebindExpire(t *testing.T) {
	r := newRig(t)
	r.bind()
	r.sent, r.to = nil, nil
	r.pass(30 * time.Minute)
	if r.m.State() != dhcp.Renewing || r.lastKind() != "REQUEST" || r.to[0] != "10.0.0.9 > 10.0.0.1" || r.last().ClientIPAddr.String() != "10.0.0.9" ||
		r.last().ServerIdentifier() != nil || r.last().RequestedIPAddress() != nil {
		t.Fatalf("%s at T1: %v, %s", r.m.State(), r.to, r.last().Summary())
	}
	r.receive(r.answer(dhcpv4.MessageTypeAck, "10.0.0.9"))
	r.want(dhcp.Bound, "bind 10.0.0.9/24")

	// Now nobody answers: T1, T2 and the end count from the renewal.
	r.sent, r.to = nil, nil
	r.pass(30*time.Minute + 22*time.Minute + 29*time.Second)
	r.want(dhcp.Renewing)
	if n := len(r.sent); n < 3 || n > 12 {
		t.Errorf("%d requests between T1 and T2", n)
	}
	r.pass(2 * time.Second)
	r.want(dhcp.Rebinding)
	if to := r.to[len(r.to)-1]; to != "10.0.0.9 > 255.255.255.255" {
		t.Errorf("rebinding %s", to)
	}
	r.pass(7*time.Minute + 30*time.Second)
	r.want(dhcp.Selecting, "unbind 10.0.0.9/24")
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	r.bind()
	r.pass(30 * time.Minute)
	r.receive(r.answer(dhcpv4.MessageTypeNak, ""))
	r.want(dhcp.Init, "ignored", "unbind 10.0.0.9/24")

	// A server that offers and refuses in a loop is asked ever less often.
	n := len(r.sent)
	for range 10 {
		r.pass(64 * time.Second)
		if r.m.State() != dhcp.Selecting {
			t.Fatalf("%s a minute after a refusal", r.m.State())
		}
		r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9"))
		r.receive(r.answer(dhcpv4.MessageTypeNak, "", dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 0, 66)))) // not the one that was asked
		if r.m.State() != dhcp.Requesting {
			t.Fatal("another server's refusal was heard")
		}
		r.receive(r.answer(dhcpv4.MessageTypeNak, ""))
	}
	at, _ := r.m.Deadline()
	if wait := at - r.now; wait != 64*time.Second || len(r.sent)-n > 60 {
		t.Errorf("after 10 refusals it waits %v, having sent %d messages", wait, len(r.sent)-n)
	}
}

func TestDecline(t *testing.T) {
	r := newRig(t)
	r.m.Start(0)
	r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9"))
	r.receive(r.answer(dhcpv4.MessageTypeAck, "10.0.0.9"))
	r.m.Checked(0, netip.MustParseAddr("10.0.0.9"), true)
	r.want(dhcp.Init, "check 10.0.0.9", "ignored")
	if d := r.last(); d.MessageType() != dhcpv4.MessageTypeDecline || d.RequestedIPAddress().String() != "10.0.0.9" || d.ServerIdentifier() == nil {
		t.Errorf("declined by %s", d.Summary())
	}
	if at, _ := r.m.Deadline(); at != 10*time.Second {
		t.Errorf("it asks again after %v, want 10 s (RFC 2131, 3.1)", at)
	}
}

// TestPathChanged: after a failover the address is asked about, kept where the
// server says so or nobody says anything, and let go where it is refused.
func TestPathChanged(t *testing.T) {
	r := newRig(t)
	r.bind()
	r.pass(time.Minute)
	r.sent, r.to = nil, nil
	r.m.PathChanged(r.now)
	r.m.PathChanged(r.now) // once a second at most
	if d := r.last(); len(r.sent) != 1 || r.to[0] != "invalid IP > 255.255.255.255" || d.MessageType() != dhcpv4.MessageTypeRequest ||
		d.RequestedIPAddress().String() != "10.0.0.9" || d.ServerIdentifier() != nil || !d.ClientIPAddr.Equal(net.IPv4zero) {
		t.Fatalf("%d messages, %v: %s", len(r.sent), r.to, d.Summary())
	}
	r.receive(r.answer(dhcpv4.MessageTypeAck, "10.0.0.9"))
	r.want(dhcp.Bound, "bind 10.0.0.9/24")
	if at, _ := r.m.Deadline(); at != r.now+30*time.Minute {
		t.Errorf("the lease does not count from the last acknowledgement")
	}

	r.pass(time.Minute)
	r.m.PathChanged(r.now)
	r.pass(3 * time.Minute)
	r.want(dhcp.Bound) // silence: the lease stays

	r.m.PathChanged(r.now)
	r.receive(r.answer(dhcpv4.MessageTypeNak, ""))
	r.want(dhcp.Init, "ignored", "unbind 10.0.0.9/24")
	r.pass(0)
	r.want(dhcp.Selecting)

	n := len(r.sent)
	r.pass(time.Second)
	r.m.PathChanged(r.now)
	if len(r.sent) != n+1 || r.lastKind() != "DISCOVER" {
		t.Error("no discovery at once over a new path")
	}
}

// TestAnotherAddress: a server that moves the client has it check and change.
func TestAnotherAddress(t *testing.T) {
	r := newRig(t)
	r.bind()
	r.pass(time.Minute)
	r.m.PathChanged(r.now)
	r.receive(r.answer(dhcpv4.MessageTypeAck, "10.0.0.77"))
	r.want(dhcp.Checking, "unbind 10.0.0.9/24", "check 10.0.0.77")
	r.pass(10 * time.Second) // the check says nothing
	r.want(dhcp.Bound, "bind 10.0.0.77/24")
}

func TestBadOffers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		address string
		more    []dhcpv4.Option
	}{
		{"no address", "0.0.0.0", nil},
		{"multicast", "224.0.0.1", nil},
		{"broadcast", "255.255.255.255", nil},
		{"loopback", "127.0.0.1", nil},
		{"the network's own", "10.0.0.0", nil},
		{"the network's broadcast", "10.0.0.255", nil},
		{"holes in the mask", "10.0.0.9", []dhcpv4.Option{dhcpv4.OptSubnetMask(net.IPv4Mask(255, 0, 255, 0))}},
		{"empty mask", "10.0.0.9", []dhcpv4.Option{dhcpv4.OptSubnetMask(net.IPv4Mask(0, 0, 0, 0))}},
		{"no server", "10.0.0.9", []dhcpv4.Option{dhcpv4.OptServerIdentifier(net.IPv4zero)}},
		{"short lease time", "10.0.0.9", []dhcpv4.Option{dhcpv4.OptGeneric(dhcpv4.OptionIPAddressLeaseTime, []byte{1})}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.m.Start(0)
			r.receive(r.answer(dhcpv4.MessageTypeOffer, tc.address, tc.more...))
			r.want(dhcp.Selecting, "ignored")
			r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9"))
			r.want(dhcp.Requesting)
		})
	}
}

func TestOthersMessages(t *testing.T) {
	r := newRig(t)
	r.m.Start(0)
	offer := r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9")
	for _, change := range []func(*dhcpv4.DHCPv4){
		func(d *dhcpv4.DHCPv4) { d.TransactionID[0]++ },
		func(d *dhcpv4.DHCPv4) { d.ClientHWAddr = net.HardwareAddr{2, 0, 0, 0, 0, 2} },
		func(d *dhcpv4.DHCPv4) { d.OpCode = dhcpv4.OpcodeBootRequest },
	} {
		d, _ := dhcpv4.FromBytes(offer.ToBytes())
		change(d)
		r.receive(d)
		r.want(dhcp.Selecting)
	}
	r.receive(r.answer(dhcpv4.MessageTypeAck, "10.0.0.9")) // without a request
	r.receive(r.answer(dhcpv4.MessageTypeNak, ""))
	r.want(dhcp.Selecting)
}

// TestShortLease: a server cannot have the client ask without a pause.
func TestShortLease(t *testing.T) {
	r := newRig(t)
	r.m.Start(0)
	r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9"))
	r.receive(r.answer(dhcpv4.MessageTypeAck, "10.0.0.9", dhcpv4.OptIPAddressLeaseTime(time.Second)))
	r.pass(10 * time.Second)
	n := len(r.sent)
	r.pass(20 * time.Second)
	if len(r.sent)-n > 1 {
		t.Errorf("%d messages in 20 s with a lease of a second", len(r.sent)-n)
	}
	r2 := newRig(t)
	r2.m.Start(0)
	r2.receive(r2.answer(dhcpv4.MessageTypeOffer, "10.0.0.9"))
	r2.receive(r2.answer(dhcpv4.MessageTypeAck, "10.0.0.9", dhcpv4.OptGeneric(dhcpv4.OptionIPAddressLeaseTime, []byte{255, 255, 255, 255})))
	r2.pass(20 * time.Second)
	n = len(r2.sent)
	r2.pass(100000 * time.Hour)
	if r2.m.State() != dhcp.Bound || len(r2.sent) != n {
		t.Errorf("a lease without end is %s, %d messages", r2.m.State(), len(r2.sent)-n)
	}
}

// TestSearch reads options as servers write them, and as they do not.
func TestSearch(t *testing.T) {
	long := strings.Repeat("\x01a", 1000) + "\x00"
	for _, c := range []struct {
		name, option string
		want         []string
	}{
		{"compressed", "\x01b\x07example\x00\x01a\xc0\x02\xc0\x00", []string{"b.example", "a.example", "b.example"}},
		{"without the root", "\x03lan", []string{"lan"}},
		{"pointer behind a pointer", "\x03lan\x00\x01a\xc0\x00\x01b\xc0\x05", []string{"lan", "a.lan", "b.a.lan"}},
		{"pointer to itself", "\xc0\x00", []string{"org"}},
		{"pointers in a circle", "\x01a\xc0\x04\x01b\xc0\x00", []string{"org"}},
		{"pointer cut off", "\x03lan\x00\xc0", []string{"org"}},
		{"label cut off", "\x04lan", []string{"org"}},
		{"label type", "\x80lan", []string{"org"}},
		{"long name, many times", long + strings.Repeat("\xc0\x00", 2000), []string{"org"}},
		{"many names", "\x01a\x00" + strings.Repeat("\xc0\x00", 2000), slices.Repeat([]string{"a"}, 16)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.m.Start(0)
			r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9", dhcpv4.OptDomainName("org"),
				dhcpv4.OptGeneric(dhcpv4.OptionDNSDomainSearchList, []byte(c.option))))
			if l, _ := r.m.Lease(); !slices.Equal(l.Search, c.want) {
				t.Errorf("domains %.100q, want %q", l.Search, c.want)
			}
		})
	}
}

func TestNew(t *testing.T) {
	for want, opts := range map[string]dhcp.Options{
		"MAC 0200 has 2 bytes": {MAC: []byte{2, 0}},
		"host name has 256":    {MAC: mac, HostName: strings.Repeat("x", 256)},
	} {
		if _, err := dhcp.New(opts, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q", err, want)
		}
	}
}

// FuzzMachine: whatever arrives in whatever order, the client does not panic, is
// due in the future, and has configured one lease at most.
func FuzzMachine(f *testing.F) {
	r := newRig(f)
	r.m.Start(0)
	f.Add(uint64(1), r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9").ToBytes())
	f.Fuzz(func(t *testing.T, seed uint64, payload []byte) {
		r := newRig(t)
		rng := rand.New(rand.NewPCG(seed, 0))
		r.m.Start(0)
		for range 40 {
			r.now += time.Duration(rng.Int64N(int64(time.Hour)))
			switch rng.IntN(6) {
			case 0:
				r.m.Receive(r.now, payload)
			case 1:
				r.m.Checked(r.now, netip.MustParseAddr("10.0.0.9"), rng.IntN(2) == 0)
			case 2:
				r.m.PathChanged(r.now)
			case 3:
				r.pass(0)
			default:
				d, err := dhcpv4.FromBytes(payload)
				if err != nil {
					d = r.answer(dhcpv4.MessageType(rng.IntN(8)), "10.0.0.9")
				}
				d.TransactionID, d.OpCode, d.ClientHWAddr = r.last().TransactionID, dhcpv4.OpcodeBootReply, mac
				r.receive(d)
			}
		}
		r.pass(24 * time.Hour)
		bound := ""
		for _, line := range slices.DeleteFunc(r.log, func(s string) bool { return s == "ignored" || strings.HasPrefix(s, "check") }) {
			verb, what, _ := strings.Cut(line, " ")
			if verb == "bind" && bound != "" && bound != what || verb == "unbind" && bound != what {
				t.Fatalf("%s while %q is bound", line, bound)
			}
			if bound = what; verb == "unbind" {
				bound = ""
			}
		}
	})
}
