package bonding_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"bondstack/bonding"
)

// FuzzSetOption: any text for any option is refused with an error that names it
// and changes nothing, or is taken and then reads back as something that is
// taken again and changes nothing.
func FuzzSetOption(f *testing.F) {
	for _, c := range optionCases {
		for text := range c.accepts {
			f.Add(uint8(1), c.name, text)
		}
		for text := range c.refuses {
			f.Add(uint8(0), c.name, text)
		}
	}
	f.Add(uint8(1), "active_slave", "eth1\n")
	f.Add(uint8(1), "queue_id", "eth1:16")
	f.Add(uint8(2), "arp_ip_target", "+1.2.3.4")
	f.Add(uint8(3), "miimon", "99999999999999999999")
	f.Add(uint8(7), "mode", "802.3ad")
	f.Fuzz(func(t *testing.T, mode uint8, name, text string) {
		r := newRig(t, bonding.Options{Mode: bonding.Mode(mode % 4), MIIMon: 1e6}, 2)
		if mode >= 128 {
			r = newDownRig(t, bonding.Options{Mode: bonding.Mode(mode % 4)}, 0)
		}
		before := r.Status()
		if err := r.SetOption(name, text); err != nil {
			var oe *bonding.OptionError
			if !errors.As(err, &oe) || oe.Option != name || oe.Value != text || oe.Err == nil || oe.Reason == "" {
				t.Errorf("SetOption(%q, %q) = %#v", name, text, err)
			}
			if after := r.Status(); !sameStatus(before, after) {
				t.Errorf("SetOption(%q, %q) = %v left\n %s, was\n %s", name, text, err, after.Options, before.Options)
			}
			return
		}
		if err := bonding.CheckOption(name, text); err != nil {
			t.Errorf("CheckOption(%q, %q) = %v, and it was set", name, text, err)
		}
		got, err := r.Option(name)
		if err != nil {
			t.Fatalf("Option(%q) = %v after it was set", name, err)
		}
		if name == "queue_id" || name == "weight" { // reads as a list
			got, _, _ = strings.Cut(got, " ")
		}
		taken := r.Status()
		if err := r.SetOption(name, got); err != nil {
			t.Errorf("SetOption(%q, %q), then its value %q = %v", name, text, got, err)
		}
		if again := r.Status(); !maps.Equal(again.Options, taken.Options) {
			t.Errorf("SetOption(%q, %q), then its value %q changed\n %s to\n %s", name, text, got, taken.Options, again.Options)
		}
		r.ms(10)
	})
}

// FuzzOptionsTogether: two options in one change are both taken or neither.
func FuzzOptionsTogether(f *testing.F) {
	f.Add("miimon", "0", "updelay", "100")
	f.Add("primary", "eth0", "active_slave", "eth1")
	f.Add("mode", "1", "primary", "eth0")
	f.Add("num_grat_arp", "1", "num_unsol_na", "2")
	f.Fuzz(func(t *testing.T, name1, text1, name2, text2 string) {
		r := newRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 2)
		before := r.Status()
		values := map[string]string{name1: text1, name2: text2}
		if err := r.SetOptions(values); err != nil {
			if after := r.Status(); !sameStatus(before, after) {
				t.Errorf("SetOptions(%q) = %v left\n %s, was\n %s", values, err, text(after), text(before))
			}
		}
	})
}
