package bonding_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// albFrame is a frame of the recorded exchange.
type albFrame struct {
	at   time.Duration // since the first frame
	link int
	sent bool // by the bond
	b    []byte
}

// albCapture reads the recording of a Linux bond, in order.
func albCapture(t *testing.T) []albFrame {
	t.Helper()
	var list []albFrame
	for i := range 2 {
		for _, dir := range []string{"rx", "tx"} {
			for _, c := range linktest.ReadPcap(t, fmt.Sprintf("../testdata/adaptive/alb.link%d.%s.pcap", i, dir)) {
				list = append(list, albFrame{c.At, i, dir == "tx", c.Frame})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y albFrame) int { return int(x.at - y.at) })
	first := list[0].at
	for i := range list {
		list[i].at -= first
	}
	return list
}

const (
	etherOffset = 14
	opOffset    = etherOffset + 7
	senderMAC   = etherOffset + 8
	targetIP    = etherOffset + 24
)

func isARP(b []byte) bool { return header.Ethernet(b).Type() == header.ARPProtocolNumber }

// albLine says what matters of an ARP or learning packet.
func albLine(b []byte) string {
	eth := header.Ethernet(b)
	line := fmt.Sprintf("%s > %s %#04x %d bytes", eth.SourceAddress(), eth.DestinationAddress(), uint16(eth.Type()), len(b))
	if !isARP(b) {
		return line
	}
	a := b[etherOffset:]
	return line + fmt.Sprintf(" op %d %v %v for %v %v", a[7], net.HardwareAddr(a[8:14]), net.IP(a[14:18]), net.HardwareAddr(a[18:24]), net.IP(a[24:28]))
}

// fromHost reports whether the host sent a recorded frame, rather than the bond
// by itself: packets, ARP requests, and a reply that comes at once after the
// request.
func fromHost(all []albFrame, i int) bool {
	f := all[i]
	if !isARP(f.b) {
		return header.Ethernet(f.b).Type() == header.IPv4ProtocolNumber
	}
	if f.b[opOffset] == 1 {
		return true
	}
	for j := i - 1; j >= 0 && f.at-all[j].at < time.Millisecond; j-- {
		if g := all[j]; !g.sent && isARP(g.b) && g.b[opOffset] == 1 && bytes.Equal(g.b[6:12], f.b[:6]) {
			return true
		}
	}
	return false
}

// Must hold 2: with what a Linux bond in balance-alb received, and what the host
// above it sent, our ARP and learning packets are the same by kind, order,
// count and addresses on each link, and within one tick in time. (That Linux's
// tick took 110 ms, not 100, so its clock is slowed down to ours. IP packets are
// left out: our transmit table spreads flows from the start.)
func TestReplayALB(t *testing.T) {
	all := albCapture(t)
	const (
		tick      = 100 * time.Millisecond
		firstTick = 30900 * time.Microsecond // one of Linux's
		// The learning packets come every 20 ticks, first at tick 9 of these.
		begin = -11 * tick
		down  = 5870 * time.Millisecond // link 0
		up    = 8900 * time.Millisecond
	)
	ours := func(at time.Duration) time.Duration { return (at - firstTick) * 100 / 110 }
	var mac [2]tcpip.LinkAddress // the slaves' permanent addresses
	for _, f := range all {
		if f.sent && mac[f.link] == "" {
			mac[f.link] = header.Ethernet(f.b).SourceAddress()
		}
	}
	r := newDownRig(t, bonding.Options{Mode: bonding.BalanceALB, MIIMon: 50 * time.Millisecond, LPInterval: 2 * time.Second}, 0)
	for i := range mac {
		r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{}, linktest.RecorderOptions{Address: mac[i]})
	}
	r.attach()
	now := begin
	type line struct {
		at   time.Duration
		text string
	}
	var got, want [2][]line
	take := func() {
		for i := range got {
			for _, w := range r.links[fmt.Sprintf("eth%d", i)].Drain() {
				if header.Ethernet(w.Frame).Type() != header.IPv4ProtocolNumber {
					got[i] = append(got[i], line{now, albLine(w.Frame)})
				}
			}
		}
	}
	runTo := func(at time.Duration) {
		for now < at {
			step := min(10*time.Millisecond, at-now)
			r.advance(step)
			now += step
			take()
		}
	}
	received := 0
	downs := []struct {
		at time.Duration
		on bool
	}{{down, false}, {up, true}}
	for i, f := range all {
		for len(downs) > 0 && downs[0].at <= f.at {
			runTo(ours(downs[0].at))
			r.carrier("eth0", downs[0].on)
			take()
			downs = downs[1:]
		}
		runTo(ours(f.at))
		name := fmt.Sprintf("eth%d", f.link)
		switch {
		case !f.sent:
			if r.links[name].Inject(f.b); !isARP(f.b) {
				received++
			}
		case fromHost(all, i):
			b := slices.Clone(f.b)
			copy(b[6:12], r.LinkAddress())
			if isARP(b) {
				copy(b[senderMAC:], r.LinkAddress())
			}
			linktest.Write(r, b)
		}
		if f.sent && header.Ethernet(f.b).Type() != header.IPv4ProtocolNumber {
			want[f.link] = append(want[f.link], line{ours(f.at), albLine(f.b)})
		}
		take()
	}
	runTo(ours(all[len(all)-1].at) + tick/2)
	for i := range got {
		// Before its first frame the recording has none.
		got[i] = slices.DeleteFunc(got[i], func(l line) bool { return l.at < 0 && !strings.Contains(l.text, "0x0806") })
		for k := range max(len(got[i]), len(want[i])) {
			var g, w line
			if k < len(got[i]) {
				g = got[i][k]
			}
			if k < len(want[i]) {
				w = want[i][k]
			}
			if g.text != w.text || (g.at-w.at).Abs() > tick {
				t.Errorf("link %d, frame %d:\n got %8v %s\nwant %8v %s", i, k, g.at, g.text, w.at, w.text)
			}
		}
	}
	t.Logf("%d and %d frames alike", len(got[0]), len(got[1]))
	packets := 0
	for _, d := range r.up.Delivered() {
		if d.Protocol == header.IPv4ProtocolNumber {
			packets++
		}
	}
	if packets != received {
		t.Errorf("%d of %d packets were delivered", packets, received)
	}
	text, err := os.ReadFile("../testdata/adaptive/alb.proc.txt")
	if err != nil {
		t.Fatal(err)
	}
	var proc strings.Builder
	st := r.Status()
	if err := st.WriteProc(&proc); err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(proc.String(), "\n") // but for the version
	_, linux, _ := strings.Cut(string(text), "\n")
	if strings.TrimSpace(shown) != strings.TrimSpace(linux) {
		t.Errorf("status text:\n%s\nLinux's:\n%s", shown, linux)
	}
	if st.Balance.Clients.Count != 3 || st.Slaves[0].Balance.Clients != 2 || st.Slaves[1].Balance.Clients != 1 {
		t.Errorf("clients %+v", st.Balance.Clients)
	}
}
