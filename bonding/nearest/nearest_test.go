package nearest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	known := []string{"show", "set", "top", "bench", "activate"}
	for word, want := range map[string]string{
		"shwo":                       "show",
		"actvate":                    "activate",
		"bnech":                      "bench",
		"benchs":                     "bench",
		"capture":                    "",
		"":                           "",
		"x":                          "",
		"sw":                         "",
		"\xff\xfe":                   "",
		strings.Repeat("x", 1<<20):   "",
		"show" + "\x00" + "activate": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("from %q to %q it is %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
