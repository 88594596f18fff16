package tap_test

import (
	"strings"
	"testing"
	"time"

	"bondstack/link"
	"bondstack/link/linktest"
	"bondstack/link/netnstest"
	"bondstack/link/tap"

	"github.com/vishvananda/netlink"
)

// A device that somebody moves to another namespace, and renames, is still set
// and heard there.
func TestMovedDevice(t *testing.T) {
	linktest.CheckGoroutines(t)
	ns, other := netnstest.New(t), netnstest.New(t)
	e := newTAP(t, ns, tap.Options{})
	told := make(chan struct{}, 1)
	defer e.SubscribeAddresses(func() {
		select {
		case told <- struct{}{}:
		default:
		}
	})()
	ns.Do(func() {
		kernel, err := netlink.LinkByName("tap0")
		if err == nil {
			err = netlink.LinkSetNsFd(kernel, int(other.File().Fd()))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	other.Run("ip", "link", "set", "tap0", "name", "moved0")
	await(t, "the device is found", func() bool { return e.DeviceAddress() != "" })
	for len(told) > 0 {
		<-told
	}
	for _, err := range []error{e.ChangeMTU(1400), e.SetSpeed(25000, link.DuplexFull), e.SetUp()} {
		if err != nil {
			t.Error(err)
		}
	}
	if out := other.Run("ip", "link", "show", "moved0"); !strings.Contains(out, "mtu 1400") || !e.LinkState().Up {
		t.Errorf("the kernel shows %s", out)
	}
	other.AddAddress("moved0", "10.9.0.7/24")
	await(t, "the address is told", func() bool {
		list, err := e.Addresses()
		return err == nil && len(told) > 0 && len(list) > 0 && list[0].Addr.String() == "10.9.0.7"
	})
	if e.Is("moved0") {
		t.Error("the device is said to be in the test's own namespace")
	}
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}
