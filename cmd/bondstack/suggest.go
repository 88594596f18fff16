package main

// didYouMean names the word that is nearest to one that is not known, with prefix
// before it; "" where none is near: within a third of its letters.
func didYouMean(prefix, word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, k := range known {
		if d := editDistance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + prefix + best + "?)"
}

// editDistance counts the letters to insert, delete or replace, and the neighbours
// to swap, that make one word of another.
func editDistance(a, b string) int {
	var before, last, row []int
	for j := range len(b) + 1 {
		row = append(row, j)
	}
	for i := range len(a) {
		before, last, row = last, row, []int{i + 1}
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			d := min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row = append(row, d)
		}
	}
	return row[len(b)]
}
