package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/link/linktest"
	"bondstack/link/packet"

	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
)

// served returns the address that the log of an instance tells for a flag.
func (i *instance) served(flag string) string {
	i.t.Helper()
	m := regexp.MustCompile(`msg="serving ` + flag + `".* address=(\S+)`).FindStringSubmatch(i.log.String())
	if m == nil {
		i.t.Fatalf("the log tells no address of --%s:\n%s", flag, &i.log)
	}
	return m[1]
}

func request(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A running instance has metrics and a page, on loopback, and nothing can be
// changed by them. With the instance they end.
func TestSeeing(t *testing.T) {
	linktest.CheckGoroutines(t)
	i := start(t, newNetwork(t, "eth0", "eth1").kinds(), append([]string{"--metrics", "0", "--web", ":0"}, backup...)...)
	metrics, web := i.served("metrics"), i.served("web")
	for _, address := range []string{metrics, web} {
		if !strings.HasPrefix(address, "127.0.0.1:") {
			t.Errorf("it listens on %s, want 127.0.0.1", address)
		}
	}
	code, text := request(t, "GET", "http://"+metrics+"/metrics")
	for _, want := range []string{"\nnode_bonding_slaves{master=\"bond0\"} 2\n", "\nnode_bonding_active{master=\"bond0\"} 2\n", "\nbondstack_tcp_retransmitted_segments_total{master=\"bond0\"} 0\n",
		"\nbondstack_build_info{version=", "\ngo_goroutines "} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q: %d", want, code)
		}
	}
	code, text = request(t, "GET", "http://"+web+"/api/status")
	var got, want instanceStatus
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 {
		t.Fatalf("the page's status: %d %v", code, err)
	}
	if want = i.status(); got.Name != want.Name || got.PID != want.PID || len(got.Addresses) != len(want.Addresses) || len(got.Slaves) != 2 {
		t.Errorf("the page's status is %+v, that of show --json %+v", got, want)
	}
	if code, text := request(t, "GET", "http://"+web+"/"); code != 200 || !strings.Contains(text, "app.js") {
		t.Errorf("the page: %d %s", code, text)
	}
	for _, url := range []string{"http://" + metrics + "/metrics", "http://" + web + "/", "http://" + web + "/api/status"} {
		if code, _ := request(t, "POST", url); code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", url, code)
		}
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", metrics); err == nil {
		c.Close()
		t.Error("the metrics are served after the end")
	}
}

// untouched are kinds of which no link is to be opened.
func untouched(t testing.TB) map[string]openFunc {
	open := func(name string, _ linkOptions) (netstack.LinkEndpoint, []string, error) {
		t.Errorf("slave %s is opened", name)
		return nil, nil, packet.ErrNoInterface
	}
	return map[string]openFunc{"packet": open, "fdbased": open}
}

// A port that is taken ends the start, with nothing touched before and left behind;
// a wrong address is wrong usage.
func TestSeeingRefused(t *testing.T) {
	linktest.CheckGoroutines(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	i := launch(t, tempSocket(t), untouched(t), append([]string{"--metrics", "0", "--web", l.Addr().String()}, backup...)...)
	<-i.ended
	if i.err == nil || !strings.Contains(i.err.Error(), "--web "+l.Addr().String()) {
		t.Errorf("run() with a port in use = %v", i.err)
	}
	path := inFile(t, strings.ReplaceAll(firstFile, "SOCKET", tempSocket(t))+"web: 0\nmetrics: "+l.Addr().String()+"\n")
	f, faults, err := readConfig(path)
	if err != nil || len(faults.Errors()) > 0 {
		t.Fatal(err, faults)
	}
	p := &program{path: path, file: f, kinds: untouched(t), level: &slog.LevelVar{}, log: slog.New(slog.DiscardHandler)}
	if err := p.run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "--metrics "+l.Addr().String()) {
		t.Errorf("run() of a file with a port in use = %v", err)
	}
	var stderr bytes.Buffer
	code := run(append([]string{"run", "--metrics", "example.com:1", "--web", "x"}, backup...), nil, io.Discard, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), "--metrics: ") || !strings.Contains(stderr.String(), "--web: ") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}

// The bonds of a file have their metrics at one address, those too that come with
// a reload, for as long as they are there.
func TestSeeingOfAFile(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	text := firstFile + "metrics: " + address + "\n"
	second := "- {name: bond1, mode: 1, slaves: [eth3], addresses: [10.0.0.5/24], control: SOCKET2}\n"
	r := runText(t, newNetwork(t, "eth0", "eth1", "eth2", "eth3"), text)
	bonds := func() string {
		_, text := request(t, "GET", "http://"+address+"/metrics")
		return strings.Join(regexp.MustCompile(`(?m)^node_bonding_slaves.*|^bondstack_tcp_connections.*`).FindAllString(text, -1), "\n")
	}
	const first, both = "bondstack_tcp_connections{master=\"bond0\"} 0\nnode_bonding_slaves{master=\"bond0\"} 2",
		"bondstack_tcp_connections{master=\"bond0\"} 0\nbondstack_tcp_connections{master=\"bond1\"} 0\nnode_bonding_slaves{master=\"bond0\"} 2\nnode_bonding_slaves{master=\"bond1\"} 1"
	for _, step := range []struct{ text, want string }{{"", first}, {firstFile + second + "metrics: " + address + "\n", both}, {text, first}} {
		if step.text != "" {
			r.again(step.text)
		}
		if got := bonds(); got != step.want {
			t.Errorf("the metrics have\n%s\nwant\n%s", got, step.want)
		}
	}
}

// What a forward and the network of user slaves carry, and what they do not, is in
// the metrics.
func TestSeeingRelays(t *testing.T) {
	linktest.CheckGoroutines(t)
	l := listenLoopback(t)
	go serveEach(l, func(c net.Conn) { io.Copy(c, c) })
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	echo, denied, datagrams := freePort(t), freePort(t), freePort(t)
	i := start(t, linkKinds, "--slave", "user:,loopback=on", "--slave", "user:", "--mode", "balance-rr", "--address", "10.0.2.15/24",
		"--gateway", "10.0.2.2", "--metrics", "0", "--forward", "host:tcp:"+echo+"=10.0.2.2:"+portOf(l.Addr()),
		"--forward", "host:tcp:"+denied+"=169.254.1.1:80", "--forward", "host:udp:"+datagrams+"=10.0.2.2:"+portOf(udp.LocalAddr()))
	for _, c := range []struct {
		network, port string
		send          int
		back          bool
	}{{"tcp", echo, 5000, true}, {"tcp", denied, 0, false}, {"udp", datagrams, 30, true}} {
		conn, err := net.Dial(c.network, "127.0.0.1:"+c.port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		conn.Write(make([]byte, c.send))
		if c.network == "udp" {
			b := make([]byte, 100)
			if n, from, err := udp.ReadFrom(b); err == nil {
				udp.WriteTo(b[:n-10], from)
				c.send = n - 10
			}
		}
		if n, err := io.ReadFull(conn, make([]byte, max(1, c.send))); (err == nil) != c.back || c.back && n != c.send {
			t.Errorf("%s by port %s: %d bytes, %v", c.network, c.port, n, err)
		}
		conn.Close()
	}
	var text string
	has := func(what string) bool { return strings.Contains(text, "\nbondstack_relay_"+what+"\n") }
	wanted := []string{
		`open_flows{master="bond0",protocol="tcp",relay="forward"} 0`, `open_flows{master="bond0",protocol="tcp",relay="user"} 0`,
		`open_flows{master="bond0",protocol="udp",relay="user"} 1`,
		`opened_flows_total{master="bond0",protocol="tcp",relay="forward"} 2`, `opened_flows_total{master="bond0",protocol="udp",relay="forward"} 1`,
		`failed_flows_total{master="bond0",protocol="tcp",relay="forward"} 1`,
		`to_far_bytes_total{master="bond0",protocol="tcp",relay="forward"} 5000`, `to_near_bytes_total{master="bond0",protocol="tcp",relay="forward"} 5000`,
		`to_far_bytes_total{master="bond0",protocol="tcp",relay="user"} 5000`, `to_near_bytes_total{master="bond0",protocol="tcp",relay="user"} 5000`,
		`to_far_bytes_total{master="bond0",protocol="udp",relay="user"} 30`, `to_near_bytes_total{master="bond0",protocol="udp",relay="user"} 20`,
		`drops_total{master="bond0",reason="denied",relay="user"} 1`, `drops_total{master="bond0",reason="not_passed_on",relay="forward"} 0`,
	}
	eventually(t, "all is counted", func() bool {
		_, text = request(t, "GET", "http://"+i.served("metrics")+"/metrics")
		return !slices.ContainsFunc(wanted, func(what string) bool { return !has(what) })
	})
}

func portOf(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}
