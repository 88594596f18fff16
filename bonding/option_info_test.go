package bonding_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"bondstack/bonding"
)

// The table describes each option, and what it says a bond takes and refuses.
func TestOptionTable(t *testing.T) {
	var names []string
	for _, o := range bonding.OptionTable() {
		names = append(names, o.Name)
		if !strings.HasSuffix(o.Doc, ".") {
			t.Errorf("%s: %q is no sentence", o.Name, o.Doc)
		}
		for _, m := range o.Used {
			if !slices.Contains(o.Modes, m) {
				t.Errorf("%s is used in %s, where it may not be set", o.Name, m)
			}
		}
		if !o.Number || o.Name == "mode" || o.Name == "use_carrier" {
			continue
		}
		b, err := bonding.New(bonding.Options{Mode: o.Modes[0]})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for _, good := range append(o.Words, strconv.FormatUint(o.Least, 10), strconv.FormatUint(o.Greatest, 10)) {
			if err := b.SetOption(o.Name, good); err != nil {
				t.Errorf("%s=%s: %v", o.Name, good, err)
			}
			b.SetOption("miimon", "100") // the delays need it
		}
		for _, bad := range []string{"", "no-such-word", strconv.FormatUint(o.Greatest+1, 10)} {
			if b.SetOption(o.Name, bad) == nil {
				t.Errorf("%s=%q is taken", o.Name, bad)
			}
		}
		if got, _ := mustBond(t, o.Modes[0]).Option(o.Name); got != o.Default {
			t.Errorf("%s: the default is %q, the table says %q", o.Name, got, o.Default)
		}
	}
	if !slices.Equal(names, bonding.OptionNames()) {
		t.Errorf("the table has %v, the names are %v", names, bonding.OptionNames())
	}
}

func mustBond(t *testing.T, m bonding.Mode) *bonding.Bond {
	t.Helper()
	b, err := bonding.New(bonding.Options{Mode: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}
