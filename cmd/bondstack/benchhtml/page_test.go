package benchhtml

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// sample is a page of everything, with names that need escaping.
func sample() *Page {
	return &Page{Title: "a <b> title", Lead: "lead", Facts: []Fact{{"links", "2"}},
		Ratios: &Ratios{First: "bare", Second: "bond", Remark: "retransmits", Rows: []Ratio{
			{Name: "balance-rr", First: 1e9, Second: 2e9, Ratio: &Spread{1.9, 2, 2.1}, PerCPU: &Spread{1, 1, 1}, Shares: []Share{{"eth0", 0.25}, {"</script>", 0.75}}, Note: "0 / 3"},
			{Name: "unknown"},
		}},
		Timelines: []Timeline{{Title: "rounds", Text: "text", Slaves: []string{"eth0", "</script>"},
			Segments: []Segment{
				{Kind: Bare, Start: 0, Times: []float64{1, 2}, Bits: [][]float64{{1e9}, {2e9}}},
				{Kind: "bond", Start: 2, Times: []float64{1, 2}, Bits: [][]float64{{1e9, 1e9}, {2e9, 0}}},
				{Kind: "empty", Start: 4},
			},
			Marks: []Mark{{At: 3, What: "eth0 → <i>", Facts: []Fact{{"outage", "5 µs"}}}},
			Down:  []Down{{Slave: 0, From: 3, To: 9}},
		}}}
}

func write(t *testing.T, p *Page) (string, *html.Node) {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), doc
}

// count counts the elements of that name, and with a class that has it.
func count(n *html.Node, name, class string) (found int) {
	if n.Type == html.ElementNode && n.Data == name {
		for _, a := range append(n.Attr, html.Attribute{Key: "class"}) {
			if a.Key == "class" && (class == "" || strings.Contains(" "+a.Val+" ", " "+class+" ")) {
				found = 1
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		found += count(c, name, class)
	}
	return found
}

func TestPage(t *testing.T) {
	text, doc := write(t, sample())
	for _, tt := range []struct {
		name, class string
		want        int
	}{
		{"section", "", 2}, {"svg", "spread", 1}, {"path", "area", 3}, {"path", "plain", 1}, {"path", "s0", 1}, {"path", "s1", 1},
		{"g", "mark", 1}, {"rect", "part", 2}, {"rect", "link", 2}, {"rect", "down", 1}, {"script", "", 1}, {"b", "", 3}, {"i", "s1", 2},
	} {
		if got := count(doc, tt.name, tt.class); got != tt.want {
			t.Errorf("%d elements %s of class %q, want %d", got, tt.name, tt.class, tt.want)
		}
	}
	for _, want := range []string{"<title>a &lt;b&gt; title</title>", "1.00 Gbit/s", "2.00 Gbit/s", "eth0 → &lt;i&gt;", "5 µs", "3.00 s", "&lt;/script&gt; 75 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// Nothing is loaded from elsewhere.
func TestSelfContained(t *testing.T) {
	text, _ := write(t, sample())
	if found := regexp.MustCompile(`(?i)https?:|//[a-z]|src=|href=|url\(|@import|fetch\(|<link|<img|<iframe`).FindAllString(text, -1); found != nil {
		t.Errorf("the page has %q", found)
	}
}

// The script gets the figures as they are.
func TestData(t *testing.T) {
	text, _ := write(t, sample())
	m := regexp.MustCompile(`const plots = (.*);\n`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("no data")
	}
	var got []plotData
	if err := json.Unmarshal([]byte(m[1]), &got); err != nil {
		t.Fatalf("%v: %s", err, m[1])
	}
	if len(got) != 1 || got[0].End != 4 || got[0].Slaves[1] != "</script>" || got[0].Segments[1].Bits[0][1] != 1e9 {
		t.Errorf("got %+v", got)
	}
}

// A sample is as high as its bits and as wide as its time, on top of the slave below.
func TestArea(t *testing.T) {
	tl := sample().Timelines[0]
	a := tl.axes()
	if a.end != 4 || a.most != 2e9*1.08 {
		t.Fatalf("axes %+v, want 4 s and 2 Gbit/s with some room", a)
	}
	a = axes{end: 4, most: 2e9, bottom: height - bottom}
	var b strings.Builder
	tl.drawSegment(&b, a, 1)
	paths := regexp.MustCompile(` d="([^"]*)"`).FindAllStringSubmatch(b.String(), -1)
	want := []string{
		"M526.00 150.00H757.00L757.00 34.00H988.00L988.00 266.00H757.00L757.00 266.00H526.00Z",
		"M526.00 34.00H757.00L757.00 34.00H988.00L988.00 34.00H757.00L757.00 150.00H526.00Z",
	}
	if len(paths) != 2 || paths[0][1] != want[0] || paths[1][1] != want[1] {
		t.Errorf("paths %q, want %q", paths, want)
	}
}

func TestStep(t *testing.T) {
	for _, tt := range []struct {
		most float64
		n    int
		want float64
	}{{10, 5, 2}, {9.9e9, 5, 2e9}, {26, 5, 10}, {1, 10, 0.1}, {3, 10, 0.5}, {0.07, 5, 0.02}} {
		if got := step(tt.most, tt.n); round(got/tt.want) != 1 {
			t.Errorf("step(%v, %d) = %v, want %v", tt.most, tt.n, got, tt.want)
		}
	}
}

func TestBitsText(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00 bit/s", 950: "950 bit/s", 1e3: "1.00 kbit/s", 12.34e6: "12.3 Mbit/s", 123.4e9: "123 Gbit/s"} {
		if got := bitsText(v); got != want {
			t.Errorf("bitsText(%v) = %q, want %q", v, got, want)
		}
	}
}

// A page without figures is a page.
func TestEmptyPage(t *testing.T) {
	_, doc := write(t, &Page{Title: "none", Timelines: []Timeline{{Title: "nothing"}}})
	if got := count(doc, "svg", ""); got != 1 {
		t.Errorf("%d plots, want 1", got)
	}
}
