package bonding_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// captured is a frame of a capture, with the slave that carried it.
type captured struct {
	at    time.Duration
	slave int
	frame []byte
}

// readCapture reads what a Linux bond sent on its slaves (tx) or was sent (rx),
// in order of time, from the little-endian pcap files of testdata/adaptive.
func readCapture(t testing.TB, name, direction string) []captured {
	t.Helper()
	var list []captured
	for slave := range 2 {
		b, err := os.ReadFile(filepath.Join("../testdata/adaptive", fmt.Sprintf("%s.link%d.%s.pcap", name, slave, direction)))
		if err != nil {
			t.Fatal(err)
		}
		le := binary.LittleEndian
		if len(b) < 24 || le.Uint32(b) != 0xa1b2c3d4 {
			t.Fatalf("%s is no little-endian pcap file", name)
		}
		for b = b[24:]; len(b) >= 16; {
			n := int(le.Uint32(b[8:]))
			at := time.Duration(le.Uint32(b))*time.Second + time.Duration(le.Uint32(b[4:]))*time.Microsecond
			list = append(list, captured{at, slave, b[16 : 16+n]})
			b = b[16+n:]
		}
	}
	slices.SortStableFunc(list, func(a, b captured) int { return int(max(min(a.at-b.at, 1), -1)) })
	return list
}

// linuxTick is Linux's 100 ms of work and the 10 ms that a kernel of 100 Hz needs
// to begin anew, as the capture's learning packets show: 2.2 s for lp_interval 2.
const linuxTick = 110 * time.Millisecond

// What a Linux bond in balance-tlb sent (kernel 6.1) is what ours sends for the
// same stimulus: frames of the same kinds, order and addresses, learning packets
// at the same ticks and, after the failover, at once. One thing differs on
// purpose: the first flows of a bond are spread, where Linux has them all on the
// first slave. So the slave of a balanced frame is not compared, but that its
// source is the address of the slave that it left by.
func TestTLBCapture(t *testing.T) {
	tx := readCapture(t, "tlb", "tx")
	var learning []captured
	for _, c := range tx {
		if isLearning(c.frame) {
			learning = append(learning, c)
		}
	}
	start := learning[0].at - 20*linuxTick
	// scaled is a moment of the capture on a clock of which a tick has 100 ms.
	scaled := func(at time.Duration) time.Duration { return (at - start) * 100 / 110 }

	r := newDownRig(t, bonding.Options{Mode: bonding.BalanceTLB, MIIMon: 50 * time.Millisecond, LPInterval: 2 * time.Second}, 0)
	r.attach()
	macs := [2]tcpip.LinkAddress{tcpip.LinkAddress(learning[0].frame[6:12]), tcpip.LinkAddress(learning[1].frame[6:12])}
	for i, mac := range macs {
		r.enslave(fmt.Sprintf("eth%d", i), bonding.SlaveOptions{}, linktest.RecorderOptions{Address: mac})
	}
	r.quiet()
	var sent []captured
	begin := r.clock.NowMonotonic()
	collect := func() {
		at := r.clock.NowMonotonic().Sub(begin)
		for i := range 2 {
			for _, w := range r.links[fmt.Sprintf("eth%d", i)].Drain() {
				sent = append(sent, captured{at, i, w.Frame})
			}
		}
	}
	until := func(at time.Duration) {
		collect() // what was sent at once
		for r.clock.NowMonotonic().Sub(begin) < at {
			r.advance(min(10*time.Millisecond, at-r.clock.NowMonotonic().Sub(begin)))
			collect()
		}
	}
	// The capture's stimulus: what the host sends; link 0 is lost where its
	// address moves, and is back three seconds later.
	lost := slices.IndexFunc(tx, func(c captured) bool {
		return isLearning(c.frame) && c.slave == 1 && tcpip.LinkAddress(c.frame[6:12]) == macs[0]
	})
	back := slices.IndexFunc(tx, func(c captured) bool { return c.at > tx[lost].at+3*time.Second })
	for i, c := range tx {
		switch i {
		case lost:
			until(scaled(c.at))
			r.carrier("eth0", false)
		case back:
			until(scaled(tx[lost].at + 3*time.Second))
			r.carrier("eth0", true)
		}
		if isLearning(c.frame) {
			continue
		}
		until(scaled(c.at))
		frame := bytes.Clone(c.frame)
		copy(frame[6:12], macs[0]) // as the host gave it to the bond
		linktest.Write(r, frame)
	}
	until(scaled(tx[len(tx)-1].at) + 10*time.Millisecond)
	compareCapture(t, r, tx, sent, scaled, macs)
	compareProc(t, r, "tlb")
}

func compareCapture(t *testing.T, r *rig, linux, ours []captured, scaled func(time.Duration) time.Duration, macs [2]tcpip.LinkAddress) {
	t.Helper()
	show := func(list []captured, at func(time.Duration) time.Duration, data bool) (out []string, when []time.Duration) {
		for _, c := range list {
			switch {
			case isLearning(c.frame) && !data:
				out = append(out, fmt.Sprintf("eth%d learning %x", c.slave, c.frame))
				when = append(when, at(c.at))
			case isLearning(c.frame) || !data:
			case c.frame[12] == 8 && c.frame[13] == 6:
				out = append(out, fmt.Sprintf("eth%d ARP %x", c.slave, c.frame))
			default:
				out = append(out, fmt.Sprintf("IP to %x: %x", c.frame[:6], c.frame[14:]))
			}
		}
		return out, when
	}
	same := func(d time.Duration) time.Duration { return d }
	want, _ := show(linux, scaled, true)
	got, _ := show(ours, same, true)
	if !slices.Equal(got, want) {
		t.Errorf("data frames are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	want, wantAt := show(linux, scaled, false)
	got, gotAt := show(ours, same, false)
	if !slices.Equal(got, want) {
		t.Fatalf("learning packets are\n%s\nat %v, want\n%s\nat %v", strings.Join(got, "\n"), gotAt, strings.Join(want, "\n"), wantAt)
	}
	for i := range got {
		if d := (gotAt[i] - wantAt[i]).Abs(); d > 100*time.Millisecond {
			t.Errorf("learning packet %d at %v, Linux's at %v", i, gotAt[i], wantAt[i])
		}
	}
	swapped := false
	for _, c := range ours {
		src := tcpip.LinkAddress(c.frame[6:12])
		swapped = swapped || isLearning(c.frame) && c.slave == 1 && src == macs[0]
		want := macs[c.slave]
		if swapped {
			want = macs[1-c.slave]
		}
		if src != want {
			t.Errorf("a frame left by eth%d from %s, want %s", c.slave, src, want)
		}
	}
}

// compareProc compares the text of /proc/net/bonding with that of Linux, but for
// the version.
func compareProc(t *testing.T, r *rig, name string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("../testdata/adaptive", name+".proc.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	st := r.Status()
	if err := st.WriteProc(&got); err != nil {
		t.Fatal(err)
	}
	_, wantText, _ := strings.Cut(string(want), "\n")
	_, gotText, _ := strings.Cut(got.String(), "\n")
	if strings.TrimSpace(gotText) != strings.TrimSpace(wantText) {
		t.Errorf("/proc shows\n%s\nwant\n%s", gotText, wantText)
	}
}
