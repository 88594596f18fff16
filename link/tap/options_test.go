package tap

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"bond0", "a", "fifteen-bytes-x", "bond0.5"} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "a b", "a:b", "bond%d", "sixteen-bytes-xx", "a\nb", "a\x00", "all", "default"} {
		if err := CheckName(name); !errors.Is(err, ErrName) {
			t.Errorf("CheckName(%q) = %v, want ErrName", name, err)
		}
	}
}

func TestValidateTellsAllFaults(t *testing.T) {
	if err := (Options{Queues: 4, MTU: 9000, Address: "\x02\x00\x00\x00\x00\x01"}).Validate(); err != nil {
		t.Error(err)
	}
	err := Options{Queues: 65, MTU: 67, Address: "\x02", DeviceAddress: "\x01\x00\x00\x00\x00\x01"}.Validate()
	for _, part := range []string{"queues 65: allowed are 1 to 64", "MTU 67: allowed are 68 to 65521", "has 1 bytes", "a group's"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Validate() = %v, want it to tell %q", err, part)
		}
	}
}
