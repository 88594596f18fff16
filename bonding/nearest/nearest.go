// Package nearest finds the word that somebody meant who wrote one that is not known:
//
//	nearest.Word("miimom", []string{"mode", "miimon"}) // "miimon"
//
// It works on bytes; words are taken as they are, upper case being other than lower.
package nearest

// Word returns the word among the known that is nearest to another, the first one of
// several; "" where none is near: within a third of its letters.
func Word(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, k := range known {
		if max(len(word)-len(k), len(k)-len(word)) >= least {
			continue // so that a long text costs no time
		}
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace, and the neighbours
// to swap, that make one word of another.
func distance(a, b string) int {
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
