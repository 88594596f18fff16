package bonding_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Who has which address in balance-tlb, as steps: what is done, and the slaves'
// own addresses afterwards, of which the active one's is the bond's.
func TestTLBAddresses(t *testing.T) {
	bondMAC := tcpip.LinkAddress("\x02\x00\x00\x00\xbb\x0b")
	for _, tt := range []struct {
		about string
		o     bonding.Options
		steps [][2]string
	}{
		{"the bond has the first slave's", bonding.Options{}, [][2]string{
			{"+eth0", "eth0 ee:00"}, {"+eth1", "eth0 ee:00, eth1 ee:01"}, {"+eth2", "eth0 ee:00, eth1 ee:01, eth2 ee:02"},
		}},
		{"a failover swaps", bonding.Options{}, [][2]string{
			{"+eth0", "eth0 ee:00"}, {"+eth1", "eth0 ee:00, eth1 ee:01"},
			{"eth0 down", "eth0 ee:01, eth1 ee:00"}, {"eth0 up", "eth0 ee:01, eth1 ee:00"}, {"eth1 down", "eth0 ee:00, eth1 ee:01"},
		}},
		{"an order swaps", bonding.Options{}, [][2]string{
			{"+eth0", "eth0 ee:00"}, {"+eth1", "eth0 ee:00, eth1 ee:01"}, {"+eth2", "eth0 ee:00, eth1 ee:01, eth2 ee:02"},
			{"active_slave=eth2", "eth0 ee:02, eth1 ee:01, eth2 ee:00"}, {"active_slave=eth1", "eth0 ee:02, eth1 ee:00, eth2 ee:01"},
		}},
		{"all lost, and another comes back first", bonding.Options{}, [][2]string{
			{"+eth0", "eth0 ee:00"}, {"+eth1", "eth0 ee:00, eth1 ee:01"},
			{"eth1 down", "eth0 ee:00, eth1 ee:01"}, {"eth0 down", "eth0 ee:00, eth1 ee:01"}, {"eth1 up", "eth0 ee:01, eth1 ee:00"},
		}},
		{"the bond has an address of its own", bonding.Options{LinkAddress: bondMAC}, [][2]string{
			{"+eth0", "eth0 bb:0b"}, {"+eth1", "eth0 bb:0b, eth1 ee:01"}, {"eth0 down", "eth0 ee:01, eth1 bb:0b"},
			{"+eth2", "eth0 ee:01, eth1 bb:0b, eth2 ee:02"},
		}},
		{"a released slave takes its own away", bonding.Options{}, [][2]string{
			{"+eth0", "eth0 ee:00"}, {"+eth1", "eth0 ee:00, eth1 ee:01"}, {"+eth2", "eth0 ee:00, eth1 ee:01, eth2 ee:02"},
			{"active_slave=eth2", "eth0 ee:02, eth1 ee:01, eth2 ee:00"}, {"active_slave=eth1", "eth0 ee:02, eth1 ee:00, eth2 ee:01"},
			{"-eth2", "eth0 ee:01, eth1 ee:00"}, // eth0 had eth2's, and gets what eth2 had
		}},
		{"a released slave's address is with another", bonding.Options{PrimaryReselect: bonding.ReselectFailure}, [][2]string{
			{"+eth0", "eth0 ee:00"}, {"+eth1", "eth0 ee:00, eth1 ee:01"}, {"+eth2", "eth0 ee:00, eth1 ee:01, eth2 ee:02"},
			{"active_slave=eth1", "eth0 ee:01, eth1 ee:00, eth2 ee:02"}, {"active_slave=eth2", "eth0 ee:01, eth1 ee:02, eth2 ee:00"},
			{"-eth1", "eth0 ee:02, eth2 ee:00"},
		}},
		{"the active slave is released", bonding.Options{}, [][2]string{
			{"+eth0", "eth0 ee:00"}, {"+eth1", "eth0 ee:00, eth1 ee:01"}, {"-eth0", "eth1 ee:00"},
			{"+eth2", "eth1 ee:00, eth2 ee:02"},
			{"+eth0", "eth1 ee:00, eth2 ee:02, eth0 ee:01"}, // reselection moves nothing: eth1 is first
		}},
		{"the last slave leaves, and the bond keeps its address", bonding.Options{}, [][2]string{
			{"+eth0", "eth0 ee:00"}, {"-eth0", ""}, {"+eth1", "eth1 ee:00"},
		}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			tt.o.Mode = bonding.BalanceTLB
			r := newRig(t, tt.o, 0)
			for _, step := range tt.steps {
				r.do(step[0])
				if step[0][0] == '-' {
					delete(r.links, step[0][1:])
				}
				if got := r.sources(); got != step[1] {
					t.Errorf("%s: slaves have %s, want %s", step[0], got, step[1])
				}
				for name, l := range r.links {
					if l.LinkAddress() != r.LinkAddress() {
						t.Errorf("%s: the link %s has %s, the bond %s", step[0], name, l.LinkAddress(), r.LinkAddress())
					}
				}
			}
		})
	}
}

// Two slaves of one address, or one that has the bond's, are taken in: one gets
// an address that is free, made up if need be, with a warning. Linux refuses the
// second case.
func TestTLBSameAddress(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceTLB}, 2)
	r.told()
	r.enslave("eth2", bonding.SlaveOptions{}, linktest.RecorderOptions{Address: macOf("eth1")})
	r.enslave("eth3", bonding.SlaveOptions{}, linktest.RecorderOptions{Address: macOf("eth0")})
	seen := map[string]bool{}
	for _, s := range r.Status().Slaves {
		if seen[s.Balance.SourceAddress] {
			t.Errorf("address twice: %s", r.sources())
		}
		seen[s.Balance.SourceAddress] = true
	}
	told := strings.Join(r.told(), "\n")
	for _, want := range []string{"slave eth2 has an address that is in use, 02:00:00:00:ee:01, and is given ", "slave eth3 has an address that is in use, 02:00:00:00:ee:00, and is given "} {
		if !strings.Contains(told, want) {
			t.Errorf("told\n%s\nwant %q", told, want)
		}
	}
	for _, name := range []string{"eth2", "eth3"} {
		l := r.links[name]
		r.do("-" + name)
		if want := map[string]string{"eth2": "eth1", "eth3": "eth0"}[name]; l.LinkAddress() != macOf(want) {
			t.Errorf("%s has %s after its release", name, l.LinkAddress())
		}
	}
}

// The bond's address changes: the active slave has it, the others keep theirs,
// and one that had it gets the old one. A link that refuses changes nothing.
func TestTLBChangeAddress(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceTLB}, 3)
	r.quiet()
	other := tcpip.LinkAddress("\x02\x00\x00\x00\xaa\x0a")
	r.SetLinkAddress(other)
	if got := r.sources(); got != "eth0 aa:0a, eth1 ee:01, eth2 ee:02" || r.LinkAddress() != other {
		t.Errorf("the bond has %s, slaves %s", r.LinkAddress(), got)
	}
	r.clock.RunImmediatelyScheduledJobs()
	r.wantLearning("a new address", "eth0 aa:0a")
	r.SetLinkAddress(macOf("eth2"))
	if got := r.sources(); got != "eth0 ee:02, eth1 ee:01, eth2 aa:0a" || r.LinkAddress() != macOf("eth2") {
		t.Errorf("the bond has %s, slaves %s", r.LinkAddress(), got)
	}
	r.clock.RunImmediatelyScheduledJobs()
	r.wantLearning("another's address", "eth0 ee:02, eth2 aa:0a")
	for name, l := range r.links {
		if l.LinkAddress() != r.LinkAddress() {
			t.Errorf("link %s has %s", name, l.LinkAddress())
		}
	}
}

// Learning packets that come while a link still takes one follow it in order:
// the last one says where an address is, so it may not be the one that is lost.
func TestTLBLearningWaits(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceTLB}, 1)
	r.quiet()
	l := r.links["eth0"]
	inside, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l.OnWrite(func(stack.PacketBufferList) {
		once.Do(func() { close(inside); <-gate })
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ms(1000) // lp_interval
	}()
	<-inside
	r.SetLinkAddress("\x02\x00\x00\x00\xaa\x0a")
	r.SetLinkAddress("\x02\x00\x00\x00\xbb\x0b")
	close(gate)
	<-done
	r.wantLearning("after the link was slow", "eth0 ee:00, eth0 aa:0a, eth0 bb:0b")
	if n := r.drops("tx_no_buffer"); n != 0 {
		t.Errorf("%d dropped", n)
	}
}

// wantLearning checks which learning packets were sent since the last look:
// slave and the end of the address, with the VLAN where there is one.
func (r *rig) wantLearning(when, want string) {
	r.tb.Helper()
	var got []string
	for i := range 9 {
		name := fmt.Sprintf("eth%d", i)
		l := r.links[name]
		if l == nil {
			continue
		}
		for _, w := range l.Drain() {
			f := w.Frame
			if !isLearning(f) {
				continue
			}
			text := fmt.Sprintf("%s %02x:%02x", name, f[10], f[11])
			plain := f
			if f[12] != 0x90 {
				text += fmt.Sprintf(" VLAN %02x%02x:%d", f[12], f[13], int(f[14])<<8|int(f[15]))
				plain = append(bytes.Clone(f[:12]), f[16:]...)
			}
			exact := append(append(bytes.Clone(f[6:12]), f[6:12]...), 0x90, 0)
			if exact = append(exact, make([]byte, 46)...); !bytes.Equal(plain, exact) {
				r.tb.Errorf("%s: a learning packet is %x, want %x", when, plain, exact)
			}
			got = append(got, text)
		}
	}
	if text := strings.Join(got, ", "); text != want {
		r.tb.Errorf("%s: learning packets %s, want %s", when, text, want)
	}
}

// Learning packets: every lp_interval on each slave that can send, for its own
// address; at a failover on the new active slave at once. VLAN devices get one
// each with their tag, for their own address on the active slave if they have
// one.
func TestTLBLearning(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceTLB, LPInterval: 2 * time.Second}, 2)
	r.quiet()
	r.ms(1999)
	r.wantLearning("before lp_interval", "")
	r.ms(1)
	r.wantLearning("lp_interval", "eth0 ee:00, eth1 ee:01")
	r.ms(4000)
	r.wantLearning("twice lp_interval", "eth0 ee:00, eth0 ee:00, eth1 ee:01, eth1 ee:01")
	r.do("eth0 down")
	r.wantLearning("a failover", "eth1 ee:00")
	r.ms(2000)
	r.wantLearning("eth0 is down", "eth1 ee:00")
	r.do("eth0 up")
	r.wantLearning("eth0 is back", "")
	r.do("active_slave=eth0")
	r.wantLearning("an order", "eth0 ee:00, eth1 ee:01")
	r.set("lp_interval", "1")
	r.ms(1000)
	r.wantLearning("lp_interval 1", "eth0 ee:00, eth1 ee:01")
	own := tcpip.LinkAddress("\x02\x00\x00\x00\x99\x09")
	if err := r.AddVLAN(link.VLANTag{Protocol: 0x8100, ID: 10}, r.LinkAddress); err != nil {
		t.Fatal(err)
	}
	if err := r.AddVLAN(link.VLANTag{Protocol: 0x88a8, ID: 4000}, func() tcpip.LinkAddress { return own }); err != nil {
		t.Fatal(err)
	}
	r.ms(1000)
	r.wantLearning("VLANs", "eth0 ee:00, eth0 ee:00 VLAN 8100:10, eth0 99:09 VLAN 88a8:4000, eth1 ee:01, eth1 ee:01 VLAN 8100:10, eth1 ee:01 VLAN 88a8:4000")
	r.Attach(nil)
	r.do("active_slave=eth1")
	r.ms(10_000)
	r.wantLearning("without a NIC", "")
	if got := r.drops("tx_no_buffer") + r.drops("tx_error"); got != 0 {
		t.Errorf("%d learning packets were dropped", got)
	}
}

// A learning packet that finds no room is counted, and so are those that find
// another goroutine still at it.
func TestTLBLearningDropped(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceTLB}, 2)
	r.links["eth1"].Fail(&tcpip.ErrNoBufferSpace{})
	r.ms(1000)
	if got := r.drops("tx_no_buffer"); got != 1 {
		t.Errorf("%d were dropped for lack of room, want 1", got)
	}
}

// Frames from a slave's own address that come back are ours, not another's.
func TestTLBOwnFrames(t *testing.T) {
	r := newRig(t, bonding.Options{Mode: bonding.BalanceTLB}, 2)
	r.links["eth0"].Inject(linktest.Ethernet("\xff\xff\xff\xff\xff\xff", macOf("eth1"), 0x0800, make([]byte, 46)))
	if got := len(r.up.Drain()); got != 0 || r.drops("rx_own") != 1 {
		t.Errorf("%d own frames were delivered, rx_own is %d", got, r.drops("rx_own"))
	}
}
