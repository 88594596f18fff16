package metrics

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// rows are the lines of the tables in docs/metrics.md: name, type, labels, help.
func rows(t *testing.T) (list []string) {
	r := registry(t, withAll(t))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		list = append(list, fmt.Sprintf("| `%s` | %s | %s | %s |", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()))
	}
	return list
}

// The documentation has each metric, as it is, and no other.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	list := rows(t)
	for _, row := range list {
		if !strings.Contains(string(b), row+"\n") {
			t.Errorf("docs/metrics.md lacks\n%s", row)
		}
	}
	for _, line := range strings.Split(string(b), "\n") {
		if (strings.HasPrefix(line, "| `bondstack_") || strings.HasPrefix(line, "| `node_")) && !slices.Contains(list, line) && !strings.Contains(line, "bondstack_build_info") {
			t.Errorf("docs/metrics.md has what is no metric:\n%s", line)
		}
	}
}
