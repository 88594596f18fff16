package migrate

import (
	"fmt"
	"strings"
	"testing"
)

// A file of the greatest size makes a configuration that is within the bounds of
// one, with all that is too much listed.
func TestBounds(t *testing.T) {
	for name, line := range map[string]string{
		"bonds":     "ip link add b%d type bond\n",
		"slaves":    "ip link set e%d master b\n",
		"addresses": "ip addr add 11.%d.%d.2/24 dev b\n",
		"routes":    "ip route add 10.%d.%d.0/24 via 10.0.0.1\n",
		"groups":    "ip addr add 224.%d.%d.2/24 dev b\n",
		"vlans":     "ip link add link b name v%d type vlan id 5\n",
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("ip link add b type bond\nip link set s master b\nip addr add 10.0.0.2/24 dev b\n")
			lines := 0
			for b.Len() < MaxSource/8-100 {
				args := []any{lines % 250, lines / 250}
				if strings.Count(line, "%d") == 1 {
					args = []any{lines}
				}
				fmt.Fprintf(&b, line, args...)
				lines++
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
			if carried+lost < lines {
				t.Errorf("of %d lines %d are carried and %d lost", lines, carried, lost)
			}
		})
	}
}
