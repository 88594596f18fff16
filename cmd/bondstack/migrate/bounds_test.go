package migrate

import (
	"fmt"
	"strings"
	"testing"
)

// However much a file has, the configuration is within the bounds of one, and all
// that is too much is listed.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		lines      int
	}{
		{"bonds", "ip link add b%d type bond\n", maxBonds + 20},
		{"slaves", "ip link set e%d master b\n", maxEntries + 20},
		{"addresses", "ip addr add 11.%d.%d.2/24 dev b\n", maxEntries + 20},
		{"routes", "ip route add 10.%d.%d.0/24 via 10.0.0.1\n", 500},
		{"groups", "ip addr add 224.%d.%d.2/24 dev b\n", 500}, // of which one check tells 200
		{"vlans", "ip link add link b name v%d type vlan id 5\n", 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("ip link add b type bond\nip link set s master b\nip addr add 10.0.0.2/24 dev b\n")
			for n := range tt.lines {
				args := []any{n % 250, n / 250}
				if strings.Count(tt.line, "%d") == 1 {
					args = []any{n}
				}
				fmt.Fprintf(&b, tt.line, args...)
			}
			r, err := Import("ip", []Source{{"f", []byte(b.String())}})
			if err != nil {
				t.Fatal(err)
			}
			valid(t, r.Config)
			bond := r.Config.Bonds[0]
			carried := len(r.Config.Bonds) - 1 + len(bond.Slaves) - 1 + len(bond.Addresses) - 1 + len(bond.Routes) + len(bond.VLANs)
			lost := 0
			for _, n := range r.Notices {
				if n.Kind == Lost {
					lost++
				}
			}
			if carried+lost < tt.lines {
				t.Errorf("of %d lines %d are carried and %d lost", tt.lines, carried, lost)
			}
		})
	}
}
