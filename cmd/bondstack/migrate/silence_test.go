package migrate

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var word = regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_.:/+-]*`)

// exempt are lines of the samples that are about something that is no bond, listed
// once as a whole, or that tell a state.
var exempt = map[string]string{
	"50-bonds.yaml": "16 19 97 98 101", "40-wlan.network": "1 2 4 5", "ifcfg-lo": "1 2", "interfaces": "3 5 93 94 96 97",
	"state.yml": "83 94 95 96 108 115", "link.json": "1 2 3 4 5 6 8 9 16 17 18 19 20 22", "bonds.sh": "41 42 31",
}

func exempted(file string, line int) bool {
	return slices.Contains(strings.Fields(exempt[file]), strconv.Itoa(line))
}

// parts counts what is listed as not a bond.
func parts(r *Result) (n int) {
	for _, notice := range r.Notices {
		if notice.Kind == NotBond {
			n++
		}
	}
	return n
}

// No word of a bond's part is dropped silently: whichever is replaced by one that
// nothing knows, that one is in the configuration or in a notice, or the part is
// listed as no bond's.
func TestNothingIsSilent(t *testing.T) {
	for folder, format := range samples {
		t.Run(folder, func(t *testing.T) {
			sources := readSamples(t, folder)
			base, err := Import(format, sources)
			if err != nil {
				t.Fatal(err)
			}
			for n, s := range sources {
				for k, at := range word.FindAllIndex(s.Text, -1) {
					if k%stride != 0 {
						continue
					}
					line := 1 + bytes.Count(s.Text[:at[0]], []byte("\n"))
					lineText := strings.TrimSpace(strings.Split(string(s.Text), "\n")[line-1])
					if strings.HasPrefix(lineText, "#") || exempted(s.Name, line) {
						continue
					}
					changed := append([]Source(nil), sources...)
					text := append([]byte(nil), s.Text[:at[0]]...)
					text = append(append(text, "zzz"...), s.Text[at[1]:]...)
					changed[n].Text = text
					r, err := Import(format, changed)
					if err != nil {
						continue // told
					}
					if !strings.Contains(show(t, r), "zzz") && parts(r) <= parts(base) {
						t.Errorf("%s:%d: %s: %s", s.Name, line, s.Text[at[0]:at[1]], lineText)
					}
				}
			}
		})
	}
}
