package bonding_test

import (
	"errors"
	"testing"

	"bondstack/bonding"
)

// What no bond takes is known without one, with the words of SetOption; what depends
// on the bond is not judged.
func TestCheckOption(t *testing.T) {
	r := newDownRig(t, bonding.Options{Mode: bonding.ActiveBackup}, 0)
	for _, wrong := range [][2]string{
		{"mimon", "5"}, {"", ""}, {"mode", "best"}, {"mode", "7"}, {"miimon", "-1"}, {"miimon", "x"}, {"updelay", "2147483648"},
		{"use_carrier", "0"}, {"xmit_hash_policy", "layer5"}, {"num_unsol_na", "256"}, {"arp_ip_target", "10.0.0.1,fd00::1"},
		{"ns_ip6_target", "10.0.0.1"}, {"primary", "a/b"}, {"arp_validate", "some"},
	} {
		err, want := bonding.CheckOption(wrong[0], wrong[1]), r.SetOption(wrong[0], wrong[1])
		if err == nil || want == nil || err.Error() != want.Error() {
			t.Errorf("CheckOption(%q, %q) = %v, and SetOption says %v", wrong[0], wrong[1], err, want)
		}
	}
	for _, elsewhere := range [][2]string{{"lacp_rate", "always"}, {"packets_per_slave", "65536"}} {
		if err := bonding.CheckOption(elsewhere[0], elsewhere[1]); !errors.Is(err, bonding.ErrInvalid) {
			t.Errorf("CheckOption(%q, %q) = %v", elsewhere[0], elsewhere[1], err)
		}
	}
	for _, perhaps := range [][2]string{
		{"mode", "802.3ad"}, {"num_unsol_na", "3"}, {"active_slave", "eth9"}, {"queue_id", "eth9:1"}, {"weight", "eth9:x"}, {"lacp_rate", "fast"},
		{"arp_ip_target", "-10.0.0.1"}, {"primary", "eth-9"}, {"tlb_dynamic_lb", "0"}, {"updelay", "250"}, {"arp_interval", "100"}, {"fail_over_mac", "1"},
	} {
		if err := bonding.CheckOption(perhaps[0], perhaps[1]); err != nil {
			t.Errorf("CheckOption(%q, %q) = %v", perhaps[0], perhaps[1], err)
		}
	}
}
