package bonding_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/probe"
	"bondstack/link"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// The recordings are of a kernel whose clock ticks at 100 Hz: of arp_interval
// 250 it makes 26 ticks, and its first interval is shorter. recordingShift puts
// what it received behind our passes.
const (
	tick              = 10 * time.Millisecond
	recordingInterval = 26 * tick
	recordingShift    = 9 * time.Millisecond
)

// recording is what a Linux bond received and sent on two links, in order, with
// times from the first frame that it sent.
type recording struct {
	at    time.Duration
	link  string
	sent  bool
	frame []byte
}

func readRecording(t *testing.T, name string) []recording {
	t.Helper()
	var list []recording
	for i := range 2 {
		for _, way := range []string{"tx", "rx"} {
			for _, c := range linktest.ReadPcap(t, filepath.Join("..", "testdata", "monitor", fmt.Sprintf("%s.link%d.%s.pcap", name, i, way))) {
				list = append(list, recording{at: c.At, link: fmt.Sprintf("eth%d", i), sent: way == "tx", frame: c.Frame})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b recording) int { return int(a.at - b.at) })
	start := list[slices.IndexFunc(list, func(r recording) bool { return r.sent })].at
	for i := range list {
		list[i].at -= start
	}
	return list
}

// replay gives a bond what the recorded one received, at the same moments, and
// returns what the bond sent.
func replay(t *testing.T, r *rig, list []recording, at func(time.Duration)) []recording {
	t.Helper()
	var sent []recording
	start := r.clock.NowMonotonic()
	now := func() time.Duration { return r.clock.NowMonotonic().Sub(start) }
	collect := func() {
		for _, name := range []string{"eth0", "eth1"} {
			for _, w := range r.links[name].Drain() {
				sent = append(sent, recording{at: now(), link: name, frame: w.Frame})
			}
		}
	}
	r.attach()
	collect()
	end := list[len(list)-1].at + recordingShift
	for now() < end {
		for i := range list {
			if due := list[i].at + recordingShift; !list[i].sent && due > now() && due <= now()+time.Millisecond {
				r.links[list[i].link].Inject(list[i].frame)
			}
		}
		r.ms(1)
		collect()
		at(now())
	}
	return sent
}

// compare checks that two sequences are the same frames, byte for byte, on the
// same links, each within a tick of the other.
func compare(t *testing.T, sent, recorded []recording, keep func([]byte) bool) {
	t.Helper()
	drop := func(r recording) bool { return !keep(r.frame) }
	sent, recorded = slices.DeleteFunc(slices.Clone(sent), drop), slices.DeleteFunc(slices.Clone(recorded), func(r recording) bool { return !r.sent || drop(r) })
	for i := range max(len(sent), len(recorded)) {
		if i >= len(sent) || i >= len(recorded) {
			t.Fatalf("%d frames, recorded %d", len(sent), len(recorded))
		}
		s, w := sent[i], recorded[i]
		off := s.at - w.at - recordingShift
		if s.link != w.link || !bytes.Equal(s.frame, w.frame) || off > tick || off < -tick {
			t.Fatalf("frame %d at %v on %s is\n %x, recorded at %v on %s\n %x", i, s.at, s.link, s.frame, w.at, w.link, w.frame)
		}
	}
	t.Logf("%d frames as recorded", len(sent))
}

// A real Linux bond in active-backup with arp_validate all and two targets: no
// address at first, one target lost, both lost, the search, one back.
func TestReplayARPMonitor(t *testing.T) {
	list := readRecording(t, "arp-monitor")
	mac := tcpip.LinkAddress(list[0].frame[6:12])
	r := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup, ARPInterval: recordingInterval, ARPValidate: bonding.ValidateAll,
		ARPIPTargets: []netip.Addr{target1, target2}, LinkAddress: mac}, 2)
	routes := newFakeRoutes()
	routes.ways[target1], routes.ways[target2] = link.Way{}, link.Way{}
	t.Cleanup(r.UseRoutes(routes))
	t.Cleanup(r.SubscribeNotifyPeers(func() {
		linktest.Write(r, probe.ARPRequest(probe.MAC([]byte(mac)), ownV4, ownV4, nil))
	}))
	proc := ""
	sent := replay(t, r, list, func(now time.Duration) {
		switch {
		case now == 100*time.Millisecond: // the address was set
			clear(routes.ways)
		case now == 9200*time.Millisecond: // before the target came back
			proc = procText(t, r)
		}
	})
	announcement := func(f []byte) bool { return bytes.Equal(f[28:32], f[38:42]) }
	compare(t, sent, list, func(f []byte) bool { return !announcement(f) })

	// The announcement of the second failover comes at once here: Linux's 6.1
	// sends it with the next pass, since its carrier was off (differences.md).
	var at []string
	for _, s := range sent {
		if announcement(s.frame) {
			at = append(at, fmt.Sprintf("%v %s", s.at, s.link))
		}
	}
	if got := strings.Join(at, ", "); got != "6.76s eth1, 9.62s eth0" {
		t.Errorf("announcements at %s", got)
	}
	// In the first failover it goes out before the probes, as recorded.
	first := slices.IndexFunc(sent, func(s recording) bool { return announcement(s.frame) })
	if next := sent[first+1]; next.at != sent[first].at || next.link != "eth1" {
		t.Errorf("after the announcement at %v comes a frame at %v on %s", sent[first].at, next.at, next.link)
	}

	// The status, but for what differs by nature: versions and addresses, the
	// interval, and how far the search had come.
	want, err := os.ReadFile(filepath.Join("..", "testdata", "monitor", "arp-monitor.proc.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := comparable(proc), comparable(string(want)); got != want {
		t.Errorf("status is\n%s\nrecorded\n%s", got, want)
	}
}

func procText(t *testing.T, r *rig) string {
	var text strings.Builder
	st := r.Status()
	if err := st.WriteProc(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// comparable drops the lines of a status text that hold versions and addresses.
func comparable(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "ARP Polling Interval (ms): 260", "ARP Polling Interval (ms): 250"), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "Ethernet Channel") || strings.HasPrefix(l, "Permanent HW")
	}), "\n")
}

// A real Linux bond with an IPv6 target, which it asks first from no address.
// When the recording begins eth0 is down: it was enslaved long before the bond
// was up, so the first pass found it silent.
func TestReplayNeighbourMonitor(t *testing.T) {
	list := readRecording(t, "ns6-monitor")
	first := list[slices.IndexFunc(list, func(r recording) bool { return r.sent })]
	r := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup, ARPInterval: recordingInterval, ARPValidate: bonding.ValidateAll,
		NSIP6Targets: []netip.Addr{target6}, LinkAddress: tcpip.LinkAddress(first.frame[6:12])}, 0)
	r.enslave("eth0", bonding.SlaveOptions{}, linktest.RecorderOptions{State: link.State{Up: true, Speed: 10000, Duplex: link.DuplexFull}})
	r.carrier("eth0", true)
	r.enslave("eth1", bonding.SlaveOptions{}, linktest.RecorderOptions{})
	r.wantMII("at first", "down,up")
	routes := newFakeRoutes()
	routes.ways[target6] = link.Way{}
	t.Cleanup(r.UseRoutes(routes))
	sent := replay(t, r, list, func(now time.Duration) {
		if now == 100*time.Millisecond {
			clear(routes.ways)
		}
	})
	group := probe.SolicitedNode(target6).As16()
	compare(t, sent, list, func(f []byte) bool { return bytes.Equal(f[38:54], group[:]) })
	r.wantMII("at the end", "up,up")
	r.wantActive("at the end", "eth1")
}
