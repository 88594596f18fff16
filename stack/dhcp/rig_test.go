package dhcp_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"bondstack/stack/dhcp"
)

var mac = []byte{2, 0, 0, 0, 0, 1}

// rig is a client's user that writes down what it is told, and can answer as a
// server.
type rig struct {
	t    testing.TB
	m    *dhcp.Machine
	now  time.Duration
	sent []*dhcpv4.DHCPv4
	to   []string // "from > to" of each message
	log  []string // what else was told
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t}
	m, err := dhcp.New(dhcp.Options{MAC: mac, HostName: "box", Rand: rand.New(rand.NewPCG(1, 2))}, r)
	if err != nil {
		t.Fatal(err)
	}
	r.m = m
	return r
}

func (r *rig) Send(payload []byte, from, to netip.Addr) {
	d, err := dhcpv4.FromBytes(payload)
	if err != nil {
		r.t.Fatalf("the client sent %x: %v", payload, err)
	}
	r.sent = append(r.sent, d)
	r.to = append(r.to, fmt.Sprintf("%v > %v", from, to))
}

func (r *rig) Check(a netip.Addr)              { r.log = append(r.log, "check "+a.String()) }
func (r *rig) Bind(l dhcp.Lease)               { r.log = append(r.log, "bind "+l.Prefix.String()) }
func (r *rig) Unbind(l dhcp.Lease, why string) { r.log = append(r.log, "unbind "+l.Prefix.String()) }
func (r *rig) Ignored(why string)              { r.log = append(r.log, "ignored") }
func (r *rig) last() *dhcpv4.DHCPv4            { return r.sent[len(r.sent)-1] }
func (r *rig) lastKind() string                { return r.last().MessageType().String() }
func (r *rig) receive(d *dhcpv4.DHCPv4)        { r.m.Receive(r.now, d.ToBytes()) }

// want checks the state, and what was told since the last time.
func (r *rig) want(state dhcp.State, log ...string) {
	r.t.Helper()
	if r.m.State() != state {
		r.t.Fatalf("state %s, want %s", r.m.State(), state)
	}
	if fmt.Sprint(r.log) != fmt.Sprint(log) {
		r.t.Fatalf("told %q, want %q", r.log, log)
	}
	r.log = nil
}

// pass lets time pass, with all that is due in it.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	end := r.now + d
	for n := 0; ; n++ {
		at, ok := r.m.Deadline()
		if !ok || at > end {
			break
		}
		if n > 3000 {
			r.t.Fatalf("more than 3000 deadlines in %v", d)
		}
		r.now = max(r.now, at)
		r.m.Tick(r.now)
	}
	r.now = end
}

// answer is a server's message to the last request.
func (r *rig) answer(kind dhcpv4.MessageType, address string, more ...dhcpv4.Option) *dhcpv4.DHCPv4 {
	d := &dhcpv4.DHCPv4{
		OpCode:        dhcpv4.OpcodeBootReply,
		TransactionID: r.last().TransactionID,
		ClientHWAddr:  mac,
		YourIPAddr:    net.ParseIP(address).To4(),
		Options:       make(dhcpv4.Options),
	}
	d.UpdateOption(dhcpv4.OptMessageType(kind))
	d.UpdateOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 0, 1)))
	d.UpdateOption(dhcpv4.OptSubnetMask(net.CIDRMask(24, 32)))
	d.UpdateOption(dhcpv4.OptIPAddressLeaseTime(time.Hour))
	for _, o := range more {
		d.UpdateOption(o)
	}
	return d
}

// bind takes the client to a lease of 10.0.0.9 for an hour.
func (r *rig) bind() {
	r.t.Helper()
	r.m.Start(r.now)
	r.receive(r.answer(dhcpv4.MessageTypeOffer, "10.0.0.9"))
	r.receive(r.answer(dhcpv4.MessageTypeAck, "10.0.0.9"))
	r.m.Checked(r.now, netip.MustParseAddr("10.0.0.9"), false)
	r.want(dhcp.Bound, "check 10.0.0.9", "bind 10.0.0.9/24")
}
