package stack

import (
	"strings"
	"testing"
)

// Whatever the names are, a template and its number make one name, and a table
// finds what was put into it.
func FuzzDeviceNames(f *testing.F) {
	for _, s := range []string{"dev%d", "dev12", "%d", "a%db", "", "..", "a/b", "%%d", "dev007", "9999999999999999999999", "eth0\x00"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if checkDeviceName(pattern) == nil && strings.ContainsAny(pattern, "/: \t\n\v\f\r") {
			t.Errorf("name %q is accepted", pattern)
		}
		if tpl, ok := parseTemplate(pattern); ok {
			if n := tpl.number(name); n >= 0 && tpl.name(n) != name {
				t.Errorf("template %q finds number %d in %q", pattern, n, name)
			}
		}
		d := NewDevices(DevicesOptions{})
		defer d.Close()
		dev, err := d.Add(NewDevice{Name: pattern, AltNames: []string{name}})
		if err != nil {
			if d.Table().Len() != 0 || d.Table().byName.size != 0 {
				t.Errorf("%v, but something is there", err)
			}
			return
		}
		for _, n := range []string{dev.Name(), name} {
			if found, ok := d.ByName(n); !ok || found != dev {
				t.Errorf("%q is not found", n)
			}
		}
	})
}
