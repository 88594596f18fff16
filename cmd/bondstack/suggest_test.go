package main

import "testing"

func TestDidYouMean(t *testing.T) {
	known := []string{"show", "set", "top", "bench", "activate"}
	for word, want := range map[string]string{
		"shwo":     " (did you mean show?)",
		"actvate":  " (did you mean activate?)",
		"bnech":    " (did you mean bench?)",
		"benchs":   " (did you mean bench?)",
		"capture":  "",
		"":         "",
		"x":        "",
		"sw":       "",
		"\xff\xfe": "",
	} {
		if got := didYouMean("", word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := editDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("from %q to %q it is %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
