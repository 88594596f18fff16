package main

import (
	"os/exec"
	"strings"
	"testing"

	"bondstack/link/linktest"
)

// Where links, and the device as well, cut segments by themselves, 10 MB come
// through right both ways, over IPv4 and IPv6, and segments were joined.
func TestTapWithoutOffloads(t *testing.T) {
	if _, err := exec.LookPath("ethtool"); err != nil {
		t.Skip("needs root and ethtool: ", err)
	}
	for _, mode := range []string{"active-backup", "balance-rr"} {
		t.Run(mode, func(t *testing.T) {
			linktest.CheckGoroutines(t)
			l := newTapLAN(t)
			off := []string{"tso", "off", "gso", "off", "gro", "off", "tx", "off"}
			for _, name := range []string{"s0", "s1"} {
				l.near.Run("ethtool", append([]string{"-K", name}, off...)...)
				l.far.Run("ethtool", append([]string{"-K", peer(name)}, off...)...)
			}
			i := l.tap("--mode", mode, "-o", "rx_reorder=off")
			if mode == "balance-rr" {
				l.far.Run("ip", "link", "set", "br0", "type", "bridge", "ageing_time", "0")
			}
			dir, sum := writeRandom(t, 10<<20)
			serve(t, l.box, dir)
			serve(t, l.far, dir)
			fetch := func() {
				for _, c := range []struct{ far, box string }{{"10.9.0.1", "10.9.0.2"}, {"[fd00:9::1]", "[fd00:9::2]"}} {
					out := l.box.Run("sh", "-c", "curl --silent --show-error --fail --max-time 60 http://"+c.far+"/file | sha256sum")
					if !strings.HasPrefix(out, sum) {
						t.Errorf("from %s came %s, want %s", c.far, out, sum)
					}
					l.curl("http://" + c.box + "/file").finish(sum)
				}
			}
			fetch()
			l.box.Run("ethtool", append([]string{"-K", "bond0"}, off...)...)
			fetch()
			d := i.status().Device
			if d.Device.TXPackets >= d.Bridge.In*3/4 && mode == "active-backup" {
				t.Errorf("%d frames came in, and the device was given %d packets", d.Bridge.In, d.Device.TXPackets)
			}
			if d.Device.TXDroppedInvalid != 0 || d.Bridge.OutMalformed != 0 {
				t.Errorf("device %+v", d)
			}
			if err := i.end(); err != nil {
				t.Error(err)
			}
		})
	}
}
