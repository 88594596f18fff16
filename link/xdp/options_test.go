package xdp

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{}, nil},
		{Options{Mode: ModeGeneric, Share: ShareOthers, Ring: MaxRing, RefusePartial: true, PollInterval: -1}, nil},
		{Options{Ring: MinRing}, nil},
		{Options{Ring: MinRing - 1}, []string{"ring 63", "from 64 to 32768"}},
		{Options{Ring: 96}, []string{"ring 96", "power of two"}},
		{Options{Ring: 2 * MaxRing, Mode: 7, Share: -1}, []string{"ring 65536", "mode 7", "generic (3)", "share -1", "others (1)"}},
	} {
		err := c.o.Validate()
		if (err == nil) != (c.want == nil) {
			t.Errorf("Validate(%+v) = %v", c.o, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Validate(%+v) = %q, want it to say %q", c.o, err, want)
			}
		}
	}
}

func TestNames(t *testing.T) {
	if got := ModeZeroCopy.String() + " " + ModeAuto.String() + " " + ShareOthers.String() + " " + ShareNone.String(); got != "zero-copy auto others none" {
		t.Errorf("names %q", got)
	}
	if MaxMTU < 3800 {
		t.Errorf("MaxMTU = %d", MaxMTU)
	}
}
