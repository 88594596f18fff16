package dhcp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// State is a state of the client, by the names of RFC 2131, figure 5. Checking is
// where it finds out whether the address is another's.
type State int

// The states.
const (
	Init State = iota
	Selecting
	Requesting
	Checking
	Bound
	Renewing
	Rebinding
	Rebooting
)

// String returns the state's name in lower case.
func (s State) String() string {
	return [...]string{"init", "selecting", "requesting", "checking", "bound", "renewing", "rebinding", "rebooting"}[s]
}

// The times of RFC 2131, section 4.1 and 4.4.5, and those that it leaves open.
const (
	firstWait = 4 * time.Second
	lastWait  = 64 * time.Second
	// requestTries is how often an offer is asked for before others are looked
	// for, and a reboot before the address is kept as it is.
	requestTries = 4
	// leastExtend is the shortest time from one renewal request to the next.
	leastExtend = 60 * time.Second
	// declineWait keeps a network where every address is taken from being
	// flooded (RFC 2131, section 3.1, item 5).
	declineWait = 10 * time.Second
	// pathWait is the shortest time between two changes of the path that are
	// asked about.
	pathWait = time.Second
	// checkWait is how long the user has to tell whether an address is another's.
	checkWait = 10 * time.Second
)

// Options say who the client is.
type Options struct {
	// MAC is the Ethernet address of the link, 6 bytes.
	MAC []byte
	// HostName is told to servers, where it is not empty: up to 255 bytes.
	HostName string
	// Rand scatters retransmissions and makes transaction numbers.
	Rand *rand.Rand
}

// User does what the machine says. Its methods are called from within those of the
// machine, and must not call back.
type User interface {
	// Send sends a UDP payload from port 68 of an address, 0.0.0.0 where that
	// is the zero Addr, to port 67 of another. To 255.255.255.255 it goes to
	// the link's broadcast address.
	Send(payload []byte, from, to netip.Addr)
	// Check finds out whether another host has the address, and says so by
	// Machine.Checked.
	Check(addr netip.Addr)
	// Bind configures a lease, a second time if it has changed.
	Bind(Lease)
	// Unbind takes the address away again; why is for people.
	Unbind(l Lease, why string)
	// Ignored tells of a message that was of no use.
	Ignored(why string)
}

// Machine is a client. It is not safe for several goroutines. Times are durations
// on a clock that never goes back, the same for all calls.
type Machine struct {
	opts Options
	user User

	state State
	xid   dhcpv4.TransactionID
	now   time.Duration
	// began is when the present exchange did.
	began time.Duration
	// tries counts the requests of the present state.
	tries int
	// next is when something is due in the present state; stopped where
	// nothing is.
	next time.Duration
	// lease is what is had or asked for; its times count from leased, which is
	// when the request for it went out. asked is when the last request did.
	lease  Lease
	leased time.Duration
	asked  time.Duration
	// bound is whether the user has the lease.
	bound bool
	// refused counts NAKs and conflicts since the last lease.
	refused int
	// path is when a change of the path may next be asked about.
	path time.Duration
}

const stopped = time.Duration(-1)

// New makes a client that has not begun. It returns an error for a MAC that is not
// 6 bytes, or a name that is too long.
func New(opts Options, user User) (*Machine, error) {
	if len(opts.MAC) != 6 {
		return nil, fmt.Errorf("dhcp: MAC %x has %d bytes: allowed are 6", opts.MAC, len(opts.MAC))
	}
	if len(opts.HostName) > 255 {
		return nil, fmt.Errorf("dhcp: host name has %d bytes: allowed are at most 255", len(opts.HostName))
	}
	return &Machine{opts: opts, user: user, next: stopped}, nil
}

// State returns the state.
func (m *Machine) State() State { return m.state }

// Lease returns the lease, and whether there is one.
func (m *Machine) Lease() (Lease, bool) { return m.lease, m.bound }

// Deadline returns when Tick is due. ok is false where only Start or a message can
// change anything.
func (m *Machine) Deadline() (at time.Duration, ok bool) { return m.next, m.next != stopped }

// Start begins to look for a server.
func (m *Machine) Start(now time.Duration) {
	m.now = now
	m.enter(Selecting)
	m.discover()
	m.retry()
}

// PathChanged has the client make sure that its address is right where the link
// now leads to (RFC 2131, section 3.2): a refusal takes it away at once, silence
// does not. More than one a second are one. A client that has no address looks for
// a server at once.
func (m *Machine) PathChanged(now time.Duration) {
	m.now = now
	if now < m.path {
		return
	}
	switch m.state {
	case Bound, Renewing, Rebinding:
		m.enter(Rebooting)
		m.reboot()
		m.retry()
	case Selecting:
		m.tries = 0
		m.discover()
		m.retry()
	default: // asking already, or not begun
		return
	}
	m.path = now + pathWait
}

// enter begins a state with a transaction of its own.
func (m *Machine) enter(s State) {
	if s != Requesting { // which goes on with the number of the offer
		binary.BigEndian.PutUint32(m.xid[:], m.opts.Rand.Uint32())
		m.began = m.now
	}
	m.state, m.tries = s, 0
	m.asked = m.now
}

// retry has the next try come after a time that doubles, give or take a second.
func (m *Machine) retry() {
	wait := min(firstWait<<min(m.tries, 5), lastWait)
	m.tries++
	m.next = m.now + wait + time.Duration(m.opts.Rand.Int64N(int64(2*time.Second))) - time.Second
}

// Tick does what is due.
func (m *Machine) Tick(now time.Duration) {
	m.now = now
	if m.next == stopped || now < m.next {
		return
	}
	switch m.state {
	case Init:
		m.Start(now)
	case Selecting:
		m.discover()
		m.retry()
	case Requesting:
		m.requestAgain()
	case Checking: // nobody told: nobody has it
		m.take()
	case Rebooting:
		m.rebootAgain()
	case Bound, Renewing, Rebinding:
		m.advance()
	}
}

func (m *Machine) requestAgain() {
	if m.tries >= requestTries {
		m.Start(m.now)
		return
	}
	m.request()
	m.retry()
}

// rebootAgain keeps an address that nobody says anything about until its lease
// ends (RFC 2131, section 3.2, item 3).
func (m *Machine) rebootAgain() {
	if m.now >= m.expiry() || m.tries >= requestTries {
		m.state = Bound
		m.advance()
		return
	}
	m.reboot()
	m.retry()
	m.next = min(m.next, m.expiry())
}

// expiry returns when the lease that is in use ends.
func (m *Machine) expiry() time.Duration { return m.leased + m.lease.Expire }

// advance goes from bound to renewing, rebinding and the end, as time passes.
func (m *Machine) advance() {
	switch elapsed := m.now - m.leased; {
	case elapsed >= m.lease.Expire:
		m.unbind("its lease has ended")
		m.Start(m.now)
	case elapsed >= m.lease.Rebind:
		m.ask(Rebinding, m.lease.Expire)
	case elapsed >= m.lease.Renew:
		m.ask(Renewing, m.lease.Rebind)
	default:
		m.next = m.leased + m.lease.Renew
	}
}

// ask asks for more time, and again after half of what is left until the next
// state.
func (m *Machine) ask(s State, end time.Duration) {
	if m.state != s {
		m.enter(s)
	}
	m.asked = m.now
	m.extend()
	end += m.leased
	m.next = min(end, m.now+max((end-m.now)/2, leastExtend))
}

// Receive takes the payload of a datagram that came to port 68.
func (m *Machine) Receive(now time.Duration, payload []byte) {
	m.now = now
	d, err := dhcpv4.FromBytes(payload)
	if err != nil {
		m.user.Ignored("not a DHCP message: " + err.Error())
		return
	}
	if d.OpCode != dhcpv4.OpcodeBootReply || d.TransactionID != m.xid || !bytes.Equal(d.ClientHWAddr, m.opts.MAC) {
		return // for another client, or late: such are on every link
	}
	switch d.MessageType() {
	case dhcpv4.MessageTypeOffer:
		m.offered(d)
	case dhcpv4.MessageTypeAck:
		m.acknowledged(d)
	case dhcpv4.MessageTypeNak:
		m.nak(d)
	}
}

// offered takes the first offer that is right.
func (m *Machine) offered(d *dhcpv4.DHCPv4) {
	if m.state != Selecting {
		return // a second one
	}
	l, err := parseLease(d)
	if err != nil {
		m.user.Ignored("offer: " + err.Error())
		return
	}
	m.lease = l
	m.enter(Requesting)
	m.request()
	m.retry()
}

func (m *Machine) acknowledged(d *dhcpv4.DHCPv4) {
	switch m.state {
	case Requesting, Renewing, Rebinding, Rebooting:
	default:
		return
	}
	l, err := parseLease(d)
	if err != nil {
		m.user.Ignored("acknowledgement: " + err.Error())
		return
	}
	if m.state == Requesting && l.Prefix.Addr() != m.lease.Prefix.Addr() {
		m.user.Ignored(fmt.Sprintf("acknowledgement of %s where %s was asked for", l.Prefix.Addr(), m.lease.Prefix.Addr()))
		return
	}
	fresh := !m.bound || l.Prefix != m.lease.Prefix
	if fresh {
		m.unbind("the server gave another")
	}
	m.lease, m.leased = l, m.asked
	if !fresh {
		m.take()
		return
	}
	m.state, m.next = Checking, m.now+checkWait
	m.user.Check(l.Prefix.Addr())
}

// Checked tells whether another host has an address that User.Check asked about.
func (m *Machine) Checked(now time.Duration, addr netip.Addr, taken bool) {
	m.now = now
	if m.state != Checking || addr != m.lease.Prefix.Addr() {
		return
	}
	if !taken {
		m.take()
		return
	}
	m.user.Ignored(fmt.Sprintf("address %s from %s: another host has it", addr, m.lease.Server))
	m.decline()
	m.rest(declineWait)
}

// take puts the lease into use.
func (m *Machine) take() {
	m.state, m.bound, m.refused = Bound, true, 0
	m.user.Bind(m.lease)
	m.advance()
}

func (m *Machine) unbind(why string) {
	if m.bound {
		m.bound = false
		m.user.Unbind(m.lease, why)
	}
}

// nak takes a refusal, which only a server that is asked may give.
func (m *Machine) nak(d *dhcpv4.DHCPv4) {
	switch m.state {
	case Requesting:
		if server, _ := unicast(d.ServerIdentifier()); server != m.lease.Server {
			return
		}
	case Renewing, Rebinding, Rebooting:
	default:
		return
	}
	m.user.Ignored(fmt.Sprintf("address %s: refused by %s", m.lease.Prefix.Addr(), d.ServerIdentifier()))
	m.unbind("the server refused it")
	m.rest(0)
}

// rest goes back to the beginning after a time that doubles with each refusal in a
// row.
func (m *Machine) rest(least time.Duration) {
	m.state = Init
	wait := min(time.Second<<min(m.refused, 6), lastWait)
	if m.refused == 0 {
		wait = 0
	}
	m.refused++
	m.next = m.now + max(wait, least)
}
