package main

import "bondstack/bonding/nearest"

// didYouMean names the word that is nearest to one that is not known, with prefix
// before it; "" where none is near.
func didYouMean(prefix, word string, known []string) string {
	best := nearest.Word(word, known)
	if best == "" {
		return ""
	}
	return " (did you mean " + prefix + best + "?)"
}
