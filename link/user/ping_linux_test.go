package user_test

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"

	"bondstack/bonding"
	"bondstack/link/netnstest"
	"bondstack/link/user"
)

const inNamespace = "BONDSTACK_TEST_PING_SOCKETS"

// Echoes reach those whom the host reaches, where it gives ping sockets. The
// namespace has two addresses of its own to be pinged.
func TestPingSockets(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		ns := netnstest.New(t)
		ns.Up("lo")
		ns.AddAddress("lo", "198.51.100.1/32")
		ns.AddAddress("lo", "2001:db8::1/128")
		for group, want := range map[string]string{"0 0": "", "1 0": "unanswered"} {
			ns.Sysctl("net.ipv4.ping_group_range", group)
			out, err := ns.TryRun("env", inNamespace+"="+want+"x", os.Args[0], "-test.run=^TestPingSockets$", "-test.v")
			if err != nil || !strings.Contains(out, "--- PASS") {
				t.Errorf("with ping_group_range %s: %v\n%s", group, err, out)
			}
		}
		return
	}
	answered := os.Getenv(inNamespace) == "x"
	r := newRig(t, bonding.ActiveBackup, user.Options{})
	for _, to := range []string{"198.51.100.1", "2001:db8::1"} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if !answered {
			before := r.network.Stats().Unanswered
			go func() {
				defer cancel()
				eventually(t, "an echo is unanswered", func() bool { return r.network.Stats().Unanswered > before })
			}()
		}
		_, err := r.host.Ping(ctx, netip.MustParseAddr(to))
		cancel()
		if answered != (err == nil) {
			t.Errorf("%s: %v", to, err)
		}
	}
}
