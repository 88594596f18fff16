package stack_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"bondstack/stack"
)

func newTable(t testing.TB, opts stack.DevicesOptions) *stack.Devices {
	t.Helper()
	d := stack.NewDevices(opts)
	t.Cleanup(d.Close)
	return d
}

func mustAdd(t testing.TB, d *stack.Devices, n stack.NewDevice) tcpip.NICID {
	t.Helper()
	dev, err := d.Add(n)
	if err != nil {
		t.Fatal(err)
	}
	return dev.Index()
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// Case T226, and the rest of the rules for names: each is the same for add and
// rename.
func TestDeviceNames(t *testing.T) {
	for _, tt := range []struct {
		name string
		ok   bool
	}{
		{"a", true}, {"fifteen-bytes-x", true}, {"...", true}, {".a", true}, {"-", true}, {"grün", true}, {"\x01", true}, {"a\x00b", true},
		{"", false}, {"sixteen-bytes-xx", false}, {strings.Repeat("x", 1000), false}, {".", false}, {"..", false},
		{"a/b", false}, {"/", false}, {"a:1", false}, {"a b", false}, {" a", false}, {"a\t", false}, {"a\n", false}, {"a\v", false}, {"a\f", false}, {"a\r", false},
		{"%", false}, {"a%", false}, {"%x", false}, {"%%d", false}, {"%d%d", false}, {"%d%", false}, {"a%db%d", false}, {"%D", false}, {"% d", false},
		{"fourteen-byt%d", true}, {"fifteen-bytes%d", true}, {"sixteen-bytes-%d", false},
	} {
		d := newTable(t, stack.DevicesOptions{})
		index := mustAdd(t, d, stack.NewDevice{Name: "present"})
		version := d.Table().Version()
		_, added := d.Add(stack.NewDevice{Name: tt.name})
		if tt.ok != (added == nil) {
			t.Errorf("Add(%q) = %v", tt.name, added)
		}
		d.DeleteAll(others(d, index))
		renamed := d.Rename(index, tt.name)
		if tt.ok != (renamed == nil) {
			t.Errorf("Rename(%q) = %v", tt.name, renamed)
		}
		if tt.ok {
			continue
		}
		for _, err := range []error{added, renamed} {
			if !errors.Is(err, stack.ErrInvalidName) || !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), fmt.Sprintf("%q", tt.name)) {
				t.Errorf("name %q: error %q, want one of kind ErrInvalidName that quotes the name", tt.name, err)
			}
		}
		if d.Table().Version() != version {
			t.Errorf("name %q: something changed", tt.name)
		}
	}
}

// others returns the indexes of all devices but one.
func others(d *stack.Devices, but tcpip.NICID) (list []tcpip.NICID) {
	for dev := range d.Table().All() {
		if dev.Index() != but {
			list = append(list, dev.Index())
		}
	}
	return list
}

func TestAltNameRules(t *testing.T) {
	for _, tt := range []struct {
		name string
		ok   bool
	}{
		{"a", true}, {"an-alternative-name-may-be-long", true}, {strings.Repeat("x", 127), true},
		{"", false}, {strings.Repeat("x", 128), false}, {".", false}, {"..", false}, {"a/b", false}, {"a:b", false}, {"a b", false}, {"a\n", false}, {"a%d", false},
	} {
		d := newTable(t, stack.DevicesOptions{})
		index := mustAdd(t, d, stack.NewDevice{Name: "present"})
		err := d.AddAltName(index, tt.name)
		_, err2 := d.Add(stack.NewDevice{Name: "other", AltNames: []string{tt.name + "2"}})
		if tt.ok != (err == nil) || !tt.ok && !errors.Is(err, stack.ErrInvalidName) {
			t.Errorf("AddAltName(%q) = %v", tt.name, err)
		}
		if tt.ok && len(tt.name) < 127 && err2 != nil {
			t.Errorf("Add with alternative name %q = %v", tt.name, err2)
		}
	}
}

func TestTemplates(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	name := func(n string) string {
		t.Helper()
		dev, err := d.Add(stack.NewDevice{Name: n})
		if err != nil {
			t.Fatal(err)
		}
		return dev.Name()
	}
	index := func(n string) tcpip.NICID {
		dev, ok := d.ByName(n)
		if !ok {
			t.Fatalf("%s is not there", n)
		}
		return dev.Index()
	}
	mustAdd(t, d, stack.NewDevice{Name: "eth1"})
	mustAdd(t, d, stack.NewDevice{Name: "eth03", AltNames: []string{"eth2"}}) // 03 is not 3, an alias counts
	for _, want := range []string{"eth0", "eth3", "eth4"} {
		if got := name("eth%d"); got != want {
			t.Errorf("eth%%d became %s, want %s", got, want)
		}
	}
	d.Delete(index("eth1"))
	d.Rename(index("eth4"), "new")
	for _, want := range []string{"eth1", "eth4"} {
		if got := name("eth%d"); got != want {
			t.Errorf("eth%%d became %s, want %s", got, want)
		}
	}
	d.DeleteAltName(index("eth03"), "eth2")
	// Renaming: the own number counts as taken, as in Linux.
	if err := d.Rename(index("eth0"), "eth%d"); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.ByName("eth2"); !ok {
		t.Error("eth0 did not become eth2")
	}
	if got := name("p%ds"); got != "p0s" {
		t.Errorf("p%%ds became %s", got)
	}
	if got := name("%d"); got != "0" {
		t.Errorf("%%d became %s", got)
	}
	// More templates than are remembered.
	for i := range 100 {
		for n := range 2 {
			if got, want := name(fmt.Sprintf("t%dx%%d", i)), fmt.Sprintf("t%dx%d", i, n); got != want {
				t.Fatalf("template became %s, want %s", got, want)
			}
		}
	}
}

func TestTemplateFull(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	list := make([]stack.NewDevice, 32768)
	for i := range list {
		list[i].Name = "d%d"
	}
	devices, err := d.AddAll(list)
	if err != nil {
		t.Fatal(err)
	}
	if got := devices[32767].Name(); got != "d32767" {
		t.Errorf("the last device is %s", got)
	}
	_, err = d.Add(stack.NewDevice{Name: "d%d"})
	mustBe(t, err, stack.ErrTableFull)
	mustBe(t, d.Rename(devices[0].Index(), "d%d"), stack.ErrTableFull)
	if _, err := d.Add(stack.NewDevice{Name: "e%d"}); err != nil {
		t.Error(err)
	}
	// There is no room for a third digit.
	for range 100 {
		mustAdd(t, d, stack.NewDevice{Name: "thirteen-byte%d"})
	}
	_, err = d.Add(stack.NewDevice{Name: "thirteen-byte%d"})
	mustBe(t, err, stack.ErrTableFull)
}

// Cases T215, T217, T218 and T227.
func TestAltNames(t *testing.T) {
	d := newTable(t, stack.DevicesOptions{})
	a := mustAdd(t, d, stack.NewDevice{Name: "a"})
	b := mustAdd(t, d, stack.NewDevice{Name: "b"})
	for _, alt := range []string{"short", "a-much-longer-alternative-name"} {
		if err := d.AddAltName(a, alt); err != nil {
			t.Fatal(err)
		}
	}
	found := func(name string) tcpip.NICID {
		dev, ok := d.ByName(name)
		if !ok {
			return 0
		}
		return dev.Index()
	}
	if found("a") != a || found("short") != a || found("a-much-longer-alternative-name") != a {
		t.Error("not found by every name")
	}
	dev, _ := d.ByName("short")
	if dev.Name() != "a" || dev.AltNames()[0] != "short" {
		t.Errorf("the device is %s, alternative names %v", dev.Name(), dev.AltNames())
	}
	version := d.Table().Version()
	for _, err := range []error{
		d.AddAltName(b, "short"), d.AddAltName(b, "a"), d.AddAltName(a, "a"), d.AddAltName(a, "short"),
		d.Rename(b, "short"), d.Rename(b, "a"), d.Rename(a, "short"),
		second(d.Add(stack.NewDevice{Name: "a"})), second(d.Add(stack.NewDevice{Name: "short"})),
		second(d.Add(stack.NewDevice{Name: "c", AltNames: []string{"a"}})), second(d.Add(stack.NewDevice{Name: "c", AltNames: []string{"d", "d"}})),
		second(d.AddAll([]stack.NewDevice{{Name: "c"}, {Name: "c"}})),
	} {
		mustBe(t, err, stack.ErrNameExists)
		mustBe(t, err, syscall.EEXIST)
	}
	if err := d.Rename(b, "short"); !strings.Contains(err.Error(), `"short" is taken by device a (index 1)`) {
		t.Errorf("error %q does not say which device has the name", err)
	}
	if d.Table().Version() != version || found("c") != 0 {
		t.Error("something changed")
	}
	if err := d.DeleteAltName(a, "short"); err != nil {
		t.Fatal(err)
	}
	if found("short") != 0 || found("a-much-longer-alternative-name") != a {
		t.Error("not the short name alone is gone")
	}
	mustBe(t, d.DeleteAltName(a, "short"), stack.ErrNoDevice)
	mustBe(t, d.DeleteAltName(a, "a"), stack.ErrNoDevice) // it is no alternative name
	if err := d.Delete(a); err != nil {
		t.Fatal(err)
	}
	if err := d.AddAltName(b, "a-much-longer-alternative-name"); err != nil {
		t.Errorf("an alternative name of a deleted device is not free: %v", err)
	}
}
