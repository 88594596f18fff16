package main

import "testing"

func TestDidYouMean(t *testing.T) {
	for word, want := range map[string]string{"benhc": " (did you mean --bench?)", "other": ""} {
		if got := didYouMean("--", word, []string{"show", "bench"}); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
