package migrate

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bondstack/cmd/bondstack/config"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// samples are the folders of testdata, and the format of each.
var samples = map[string]string{"netplan": "netplan", "networkd": "networkd", "ifcfg": "ifcfg", "ifupdown": "ifupdown",
	"teamd": "teamd", "nmstate": "nmstate", "ip": "ip", "ipdump": "ip"}

func readSamples(t testing.TB, folder string) []Source {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatal(err, len(paths))
	}
	var sources []Source
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, Source{filepath.Base(p), text})
	}
	return sources
}

// show is a result as the command prints it.
func show(t testing.TB, r *Result) string {
	t.Helper()
	text, err := config.Marshal(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	b := strings.Builder{}
	b.Write(text)
	b.WriteString("# ----\n")
	for _, n := range r.Notices {
		b.WriteString("# " + n.String() + "\n")
	}
	return b.String()
}

// valid checks that a configuration can be read again, and run.
func valid(t testing.TB, f *config.File) {
	t.Helper()
	text, err := config.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	again, faults := config.Parse(text)
	if len(faults) == 0 {
		faults = again.Check(config.Checks{}).Errors()
	}
	for _, fault := range faults {
		// A bond whose slaves are not named is there, and in a notice.
		if !strings.Contains(fault.Error(), "slaves: the list is empty") {
			t.Errorf("%v\n%s", fault, text)
		}
	}
}

// Every sample gives its golden file: the configuration and the notices.
func TestGolden(t *testing.T) {
	for folder, format := range samples {
		t.Run(folder, func(t *testing.T) {
			sources := readSamples(t, folder)
			r, err := Import(format, sources)
			if err != nil {
				t.Fatal(err)
			}
			valid(t, r.Config)
			for _, s := range sources {
				if got := Guess(s); got != format {
					t.Errorf("%s is taken for %q", s.Name, got)
				}
			}
			golden := filepath.Join("testdata", folder+".golden")
			got := show(t, r)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	for _, tt := range []struct {
		format, text, want string
	}{
		{"netplan", "a: [", "f: not YAML"},
		{"nmstate", "a: {", "f: not YAML"},
		{"teamd", "{\n\"device\": }", "f: line 2: not JSON"},
		{"teamd", "{} {}", "more text behind the value"},
		{"ip", "[{]", "f: line 1: not JSON"},
		{"magic", "", `format "magic": allowed are ifcfg, ifupdown, ip, netplan, networkd, nmstate, teamd`},
		{"", "hello", "f: the format is not recognised"},
		{"ip", strings.Repeat("#", MaxSource+1), "f: it has 1048577 bytes, allowed are 1048576"},
	} {
		_, err := Import(tt.format, []Source{{"f", []byte(tt.text)}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %.20q: %v, want %q", tt.format, tt.text, err, tt.want)
		}
	}
	r, err := Import("ip", []Source{{"f", []byte("ip link set eth0 up\n")}})
	if !errors.Is(err, ErrNoBond) || len(r.Notices) != 1 || r.Notices[0].Kind != NotBond {
		t.Error(r, err)
	}
}
