package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/cmd/bondstack/readonly"
	"bondstack/link/linktest"
)

// browse returns the page as a browser has made it, and what the browser said.
// BONDSTACK_SCREENSHOT in the environment names a file to have a picture in.
func browse(t *testing.T, url string) (dom, said string) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	args := []string{"--headless", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-background-networking", "--user-data-dir=" + t.TempDir(),
		"--enable-logging=stderr", "--window-size=1280,1600", "--virtual-time-budget=2500"}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	what := "--dump-dom"
	if picture := os.Getenv("BONDSTACK_SCREENSHOT"); picture != "" {
		what = "--screenshot=" + picture
	}
	cmd := exec.CommandContext(ctx, path, append(args, what, url)...)
	home := filepath.Join(t.TempDir(), "home")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := errors.Join(cmd.Run(), ctx.Err()); err != nil {
		t.Fatalf("chromium: %v\n%s", err, &stderr)
	}
	return stdout.String(), stderr.String()
}

// A browser shows the slaves, their states and the failover of a running bond,
// and has nothing to complain of. A name is shown as it is, whatever it looks
// like.
func TestChromium(t *testing.T) {
	const strange = "<b>&\"'x" // as a device may be called in Linux
	b, links := newBond(t)
	if err := b.Enslave(strange, linktest.NewRecorder(linktest.RecorderOptions{}), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		linktest.Write(b, linktest.Flow4(1).UDP(make([]byte, 958)))
	}
	links["eth0"].SetCarrier(false)
	linktest.Write(b, linktest.Flow4(1).UDP(make([]byte, 958)))
	wantPage(t, b, []string{
		`data-live="good"`,
		`<title>bond0: carrier · bondstack</title>`,
		`<strong>eth1</strong><span class="note">2 of 3 links up</span>`,
		`eth0</b></td><td data-column="Role"><span class="pills"><span class="pill ">backup</span></span></td><td data-column="Link"><span class="pill bad">down</span>`,
		`eth1</b></td><td data-column="Role"><span class="pills"><span class="pill info">active</span></span></td><td data-column="Link"><span class="pill good">up</span>`,
		`&lt;b&gt;&amp;"'x</b></td>`,
		`<b>eth0 → eth1</b><span class="pill warn">carrier</span>`,
		`class="mark-label`,
		`<dt>miimon</dt><dd>100</dd>`,
		`<p class="none">nothing was dropped</p>`,
	})
}

// In 802.3ad the page has the ports too.
func TestChromiumLACP(t *testing.T) {
	linktest.CheckGoroutines(t)
	b, err := bonding.New(bonding.Options{Mode: bonding.IEEE8023AD})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Enslave("eth0", linktest.NewRecorder(linktest.RecorderOptions{}), bonding.SlaveOptions{}); err != nil {
		t.Fatal(err)
	}
	b.Attach(&linktest.Sink{})
	wantPage(t, b, []string{
		`<section class="card wide" id="lacp-card">`,
		`<abbr title="activity" class="on">A</abbr>`,
		`<abbr title="expired" class="`,
		`<li class="none">none so far</li>`,
	})
}

// Several bonds are linked to, and the one that is asked for is shown.
func TestChromiumBonds(t *testing.T) {
	a, _ := newBond(t)
	p := New(bondsOf(a, second(t)))
	t.Cleanup(p.Close)
	wantShown(t, p, "?bond=bond1", []string{
		`<title>bond1: carrier · bondstack</title>`,
		`<nav id="bonds" aria-label="Bonds"><a href="?bond=bond0">bond0</a><a href="?bond=bond1" aria-current="page">bond1</a></nav>`,
		`eth2</b></td>`,
	})
}

// pointed is a page whose chart has the pointer on it.
func pointed(p *Page) http.Handler {
	const script = `setInterval(() => document.querySelector("#chart svg")?.dispatchEvent(new PointerEvent("pointermove", {clientX: 600})), 200)`
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/app.js" {
			p.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "text/javascript")
		io.WriteString(w, get(p, "/app.js").Body.String()+script)
	})
}

// wantPage checks what a browser shows of a bond.
func wantPage(t *testing.T, b *bonding.Bond, wants []string) {
	t.Helper()
	wantShown(t, newPage(t, b), "", wants)
}

// wantShown checks what a browser shows of a page.
func wantShown(t *testing.T, p *Page, query string, wants []string) {
	t.Helper()
	l, err := readonly.ParseListen("0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Start(pointed(p), readonly.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// The browser's time runs ahead of ours: without these it may be done before the
	// chart has two points.
	for i := range 3 {
		p.take(time.Now().Add(time.Duration(i+1) * 100 * time.Millisecond))
	}
	wants = append(wants, `class="when">`, `class="end">↑ `)
	var dom, said string
	for range 4 { // a browser on a busy machine may stop before its answers have come
		dom, said = browse(t, "http://"+s.Addr().String()+"/"+query)
		if !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(dom, want) }) {
			break
		}
	}
	if strings.Contains(said, "CONSOLE") {
		t.Errorf("the browser complains:\n%s", said)
	}
	if os.Getenv("BONDSTACK_SCREENSHOT") != "" {
		return
	}
	for _, wrong := range []string{"[object ", "undefined", "NaN", "Infinity"} {
		if strings.Contains(dom, wrong) {
			t.Errorf("the page has %s", wrong)
		}
	}
	for _, want := range wants {
		if !strings.Contains(dom, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if t.Failed() {
		t.Logf("the page is\n%s", dom)
	}
}
