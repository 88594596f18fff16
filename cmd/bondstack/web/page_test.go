package web

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/link/linktest"
)

func TestMain(m *testing.M) { linktest.Main(m) }

// newBond is an active-backup bond of two Recorders.
func newBond(t testing.TB) (*bonding.Bond, map[string]*linktest.Recorder) {
	t.Helper()
	linktest.CheckGoroutines(t)
	b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup, MIIMon: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	links := map[string]*linktest.Recorder{}
	for _, name := range []string{"eth0", "eth1"} {
		links[name] = linktest.NewRecorder(linktest.RecorderOptions{})
		if err := b.Enslave(name, links[name], bonding.SlaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.Attach(&linktest.Sink{})
	return b, links
}

// bondsOf returns what has the present status of bonds.
func bondsOf(bonds ...*bonding.Bond) BondsFunc {
	return func() []Bond {
		var list []Bond
		for _, b := range bonds {
			st := b.Status()
			list = append(list, Bond{st, &st})
		}
		return list
	}
}

func newPage(t testing.TB, b *bonding.Bond) *Page {
	t.Helper()
	p := New(bondsOf(b))
	t.Cleanup(p.Close)
	return p
}

func get(p *Page, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// Each file is there, with the policy that keeps others out, and the page has
// nothing that the policy forbids or that is elsewhere.
func TestFiles(t *testing.T) {
	b, _ := newBond(t)
	p := newPage(t, b)
	kinds := map[string]string{"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
	files, err := fs.Glob(embedded, "assets/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("files %v, %v", files, err)
	}
	elsewhere := regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]|@import|url\(|style="|\son[a-z]+="|innerHTML|eval\(`)
	for _, file := range files {
		name := strings.TrimPrefix(file, "assets/")
		path := "/" + strings.TrimSuffix(name, "index.html")
		w := get(p, path)
		kind := kinds[name[strings.LastIndexByte(name, '.')+1:]]
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("GET %s: %d, %v", path, w.Code, w.Header())
		}
		content := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "") // a name, not a place
		if found := elsewhere.FindString(content); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
	for _, path := range []string{"/nothing", "/../page.go", "/api/", "/assets/"} {
		if w := get(p, path); w.Code == 200 {
			t.Errorf("GET %s: %d", path, w.Code)
		}
	}
}

// The status is that of bondstack show --json, and what happens is in it with the
// next point.
func TestStatus(t *testing.T) {
	b, links := newBond(t)
	p := newPage(t, b)
	links["eth0"].SetCarrier(false)
	p.take(time.Now())
	w := get(p, "/api/status")
	want, err := json.Marshal(b.Status())
	if err != nil {
		t.Fatal(err)
	}
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Body.String() != string(want) {
		t.Errorf("status is %d %v %s, want %s", w.Code, w.Header(), w.Body, want)
	}
}

// The history has two minutes and no more, and what comes after a time.
func TestHistory(t *testing.T) {
	b, _ := newBond(t)
	p := newPage(t, b)
	p.Close() // no points but the test's
	first := time.Now().Add(time.Minute).Truncate(time.Second)
	for i := range 200 {
		if _, err := linktest.Write(b, linktest.Flow4(1).UDP(make([]byte, 58))); err != nil { // 100 bytes
			t.Fatal(err)
		}
		p.take(first.Add(time.Duration(i) * time.Second))
	}
	list := func(query string) (points []point) {
		w := get(p, "/api/history"+query)
		if err := json.Unmarshal(w.Body.Bytes(), &points); err != nil || w.Code != 200 {
			t.Fatalf("%s: %d %s %v", query, w.Code, w.Body, err)
		}
		return points
	}
	all := list("")
	if len(all) != kept || all[0].TimeMs != first.Add(79*time.Second).UnixMilli() || all[kept-1].Slaves["eth0"] != (traffic{TxBytes: 20000, TxPackets: 200}) {
		t.Errorf("%d points from %d to %+v", len(all), all[0].TimeMs, all[len(all)-1])
	}
	if got := list(fmt.Sprintf("?since=%d", first.Add(197*time.Second).UnixMilli())); len(got) != 2 {
		t.Errorf("%d points after the last but two", len(got))
	}
	if got := list(fmt.Sprintf("?since=%d", first.Add(time.Hour).UnixMilli())); len(got) != 0 {
		t.Errorf("%d points in the future", len(got))
	}
	if w := get(p, "/api/history?since=yesterday"); w.Code != 400 || !strings.Contains(w.Body.String(), `"yesterday"`) {
		t.Errorf("since=yesterday: %d %s", w.Code, w.Body)
	}
}

// second returns another bond, of balance-rr.
func second(t testing.TB) *bonding.Bond {
	t.Helper()
	b, err := bonding.New(bonding.Options{Name: "bond1", Mode: bonding.BalanceRR})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Enslave("eth2", linktest.NewRecorder(linktest.RecorderOptions{}), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	b.Attach(&linktest.Sink{})
	return b
}

// Each of several bonds has its status and its history; when the first goes the next
// is the first, and keeps its history.
func TestSeveralBonds(t *testing.T) {
	a, _ := newBond(t)
	b := second(t)
	bonds := []*bonding.Bond{a, b}
	p := New(func() []Bond { return bondsOf(bonds...)() })
	p.Close() // the test takes the status itself
	want := func(path, text string) {
		t.Helper()
		if w := get(p, path); w.Code != 200 || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, text)
		}
	}
	want("/api/bonds", `["bond0","bond1"]`)
	want("/api/status", `"name":"bond0"`)
	want("/api/status?bond=bond1", `"name":"bond1"`)
	want("/api/history?bond=bond1", `"eth2":{`)
	if w := get(p, "/api/status?bond=bond2"); w.Code != 404 || !strings.Contains(w.Body.String(), `"bond2"`) {
		t.Errorf("a bond that is not there: %d %s", w.Code, w.Body)
	}
	bonds = bonds[1:]
	p.take(time.Now())
	want("/api/bonds", `["bond1"]`)
	want("/api/status", `"name":"bond1"`)
	if n := strings.Count(get(p, "/api/history").Body.String(), "time_ms"); n != 2 {
		t.Errorf("%d points, want 2", n)
	}
	if w := get(p, "/api/history?bond=bond0"); w.Code != 404 {
		t.Errorf("a bond that has gone: %d", w.Code)
	}
}

// What the page costs each second.
func BenchmarkTake(b *testing.B) {
	bond, _ := newBond(b)
	p := newPage(b, bond)
	b.ReportAllocs()
	for b.Loop() {
		p.take(time.Now())
	}
}

// Reading changes nothing, whatever is asked for.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{"/", "/api/status", "/api/history?since=5", "/api/bonds", "/api/status?bond=bond0", "/app.js", "/api/history?since=-1&since=x", "/%2e%2e/page.go", "/0\x93"} {
		f.Add(s)
	}
	b, err := bonding.New(bonding.Options{Mode: bonding.ActiveBackup})
	if err != nil {
		f.Fatal(err)
	}
	defer b.Close()
	p := New(bondsOf(b))
	defer p.Close()
	f.Fuzz(func(t *testing.T, target string) {
		if !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return // no HTTP request
		}
		req := httptest.NewRequest("GET", "/", nil)
		u, err := req.URL.Parse(target)
		if err != nil {
			return
		}
		req.URL = u
		w := httptest.NewRecorder()
		p.ServeHTTP(w, req)
		if w.Code >= 500 || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%q: %d %v", target, w.Code, w.Header())
		}
	})
}
