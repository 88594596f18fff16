package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bondstack/bonding"
	"bondstack/bonding/control"
	"bondstack/cmd/bondstack/config"
	"bondstack/link/linktest"
)

// fromFile is a program that runs a file in this process.
type fromFile struct {
	*instance
	path   string
	reload chan os.Signal
}

// runText runs a configuration file on the network's devices, and waits until all of
// it runs. SOCKET in the text stands for the first control socket.
func runText(t *testing.T, n *network, text string) *fromFile {
	t.Helper()
	linktest.CheckGoroutines(t)
	r := &fromFile{instance: &instance{t: t, socket: tempSocket(t), ended: make(chan struct{})},
		path: filepath.Join(t.TempDir(), "bondstack.yaml"), reload: make(chan os.Signal)}
	r.write(text)
	f, faults, err := readConfig(r.path)
	if err != nil || len(faults.Errors()) > 0 {
		t.Fatal(err, faults)
	}
	level := &slog.LevelVar{}
	p := &program{path: r.path, file: f, kinds: n.kinds(), level: level,
		log: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: level}))}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() {
		defer close(r.ended)
		r.err = p.run(ctx, r.reload)
	}()
	t.Cleanup(func() {
		r.end()
		if t.Failed() {
			t.Logf("log of the program:\n%s", &r.log)
		}
	})
	eventually(t, "the program is ready", func() bool {
		select {
		case <-r.ended:
			t.Fatalf("run() = %v", r.err)
		default:
		}
		return strings.Contains(r.log.String(), "msg=ready")
	})
	return r
}

func (r *fromFile) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path, []byte(strings.ReplaceAll(text, "SOCKET", r.socket)), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// again writes the file anew, has it read and returns what was logged.
func (r *fromFile) again(text string) (log string) {
	r.t.Helper()
	r.write(text)
	before := len(r.log.String())
	r.reload <- syscall.SIGHUP
	eventually(r.t, "the reload ends", func() bool {
		log = r.log.String()[before:]
		return strings.Contains(log, "reloaded") || strings.Contains(log, "nothing is changed")
	})
	return log
}

// has reports whether these are the slaves. In memory a link that was closed stays
// down when it is opened again.
func (st *instanceStatus) has(names ...string) bool {
	return slices.EqualFunc(st.Slaves, names, func(s bonding.SlaveStatus, name string) bool { return s.Name == name })
}

const firstFile = `version: 1
bonds:
- name: bond0
  mode: active-backup
  options: {miimon: 100, primary: eth0}
  slaves: [eth0, eth1]
  addresses: [10.0.0.2/24]
  serve: ["echo:7"]
  control: SOCKET
`

// A file that changes is put into force: options, slaves, what they join with,
// addresses, routes and services, and the rest stays.
func TestReload(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1", "eth2")
	r := runText(t, n, firstFile)
	c := n.dial("10.0.0.2:7")
	talks := func() {
		t.Helper()
		c.Write([]byte("hello"))
		if got, err := io.ReadAll(io.LimitReader(c, 5)); string(got) != "hello" || err != nil {
			t.Errorf("the connection gave back %q, %v", got, err)
		}
	}
	talks() // so it is accepted
	free := listenLoopback(t)
	proxy := free.Addr().String()
	free.Close()
	log := r.again(strings.Replace(`version: 1
log: {level: debug, format: json}
bonds:
- name: bond0
  mode: active-backup
  mtu: 1400
  hardware_address: 02:00:00:00:00:77
  options: {miimon: 50, primary: eth1, updelay: 100, fail_over_mac: active}
  slaves: [{name: eth1, prio: 7, weight: 9, queue_id: 3}, {name: eth2, disabled: true}, eth9]
  addresses: [10.0.0.2/24, 10.0.0.3/24, "fd00::2/64"]
  routes: [{to: default, via: 10.0.0.1}]
  serve: ["discard:9"]
  forwards: ["tcp:8=127.0.0.1:9"]
  socks: PROXY
  flow_limit: 10
  control: SOCKET
`, "PROXY", proxy, 1))
	st := r.status()
	if st.MIIMonMs != 50 || st.Primary != "eth1" || st.UpDelayMs != 100 || st.MTU != 1400 || st.ActiveSlave != "eth1" || !slices.Equal(st.Absent, []string{"eth9"}) {
		t.Errorf("status %+v", st)
	}
	if len(st.Slaves) != 2 || st.Slaves[0].Name != "eth1" || st.Slaves[0].Priority != 7 || st.Slaves[0].Weight != 9 || st.Slaves[0].QueueID != 3 ||
		st.Slaves[1].Name != "eth2" || st.Slaves[1].Enabled {
		t.Errorf("slaves %+v", st.Slaves)
	}
	for _, want := range []string{"log.format", "hardware_address", "flow_limit", "options.fail_over_mac"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not tell that %s stays:\n%s", want, log)
		}
	}
	for _, want := range []string{"10.0.0.2/24", "10.0.0.3/24", "fd00::2/64"} {
		r.await(want+" is there", func(st instanceStatus) bool {
			return slices.ContainsFunc(st.Addresses, func(a hostAddress) bool { return a.Prefix == netip.MustParsePrefix(want) && a.State == "assigned" })
		})
	}
	talks() // a service that ends leaves its connections be
	n.dial("10.0.0.3:9")
	if _, err := n.host.DialContext(t.Context(), "tcp", "10.0.0.2:7"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a service that is not in the file any more: %v", err)
	}
	if p, err := net.Dial("tcp", proxy); err != nil {
		t.Errorf("the proxy: %v", err)
	} else {
		p.Close()
	}
	swap := func(one, two int) string {
		return strings.Replace(firstFile, "[eth0, eth1]", fmt.Sprintf("[{name: eth1, queue_id: %d}, {name: eth2, queue_id: %d}]", one, two), 1)
	}
	r.again(strings.Replace(swap(4, 3), "primary: eth0", "primary: eth1", 1))
	if st = r.status(); st.Slaves[0].QueueID != 4 || st.Slaves[1].QueueID != 3 || !st.Slaves[1].Enabled {
		t.Errorf("slaves whose queues change %+v", st.Slaves)
	}
	r.again(strings.Replace(swap(3, 4), "primary: eth0", "primary: eth1", 1))
	if st = r.status(); st.Slaves[0].QueueID != 3 || st.Slaves[1].QueueID != 4 {
		t.Errorf("slaves that swap queues %+v", st.Slaves)
	}
	if _, err := net.Dial("tcp", proxy); err == nil {
		t.Error("the proxy is there when the file has none any more")
	}
	// Back again: defaults come back with the options that are gone.
	r.again(firstFile)
	st = r.status()
	if st.MIIMonMs != 100 || st.UpDelayMs != 0 || st.Primary != "eth0" || len(st.Absent) != 0 || !st.has("eth1", "eth0") || len(st.Addresses) != 2 {
		t.Errorf("status after the way back %+v", st)
	}
	n.dial("10.0.0.2:7")
}

// The mode changes with slaves, and connections stay.
func TestReloadMode(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1", "eth2")
	r := runText(t, n, firstFile)
	c := n.dial("10.0.0.2:7")
	r.again(strings.NewReplacer("active-backup", "balance-xor", ", primary: eth0", ", xmit_hash_policy: layer3+4", "[eth0, eth1]", "[eth0, eth2]").Replace(firstFile))
	st := r.status()
	if st.Mode.String() != "balance-xor" || st.XmitHashPolicy != "layer3+4" || !st.up("eth0", "eth2") {
		t.Errorf("status %+v", st)
	}
	c.Write([]byte("still"))
	if got, err := io.ReadAll(io.LimitReader(c, 5)); string(got) != "still" || err != nil {
		t.Errorf("the connection gave back %q, %v", got, err)
	}
}

// What does not check, or cannot be put into force in any part, changes nothing.
func TestReloadRefused(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1", "eth2", "eth3")
	second := "- {name: bond1, mode: 1, slaves: [eth3], addresses: [10.0.0.5/24], serve: [\"echo:7\"], control: SOCKET2}\n"
	r := runText(t, n, firstFile+second)
	changed := strings.NewReplacer("miimon: 100", "miimon: 30", "[eth0, eth1]", "[eth0, eth2]", `["echo:7"]`, `["discard:9"]`, "10.0.0.2/24]", "10.0.0.2/24, 10.0.0.9/24]").Replace(firstFile)
	for _, tt := range []struct {
		what, text string
		want       []string
	}{
		{"not YAML", "a: [", []string{"this is not YAML"}},
		{"two faults", strings.ReplaceAll(changed, "10.0.0.2/24", "10.0.0.2") + second + "speed: 1\n", []string{"bonds[0].addresses[0]", "speed: there is no such key", "faults=2"}},
		{"a bond with a service too many", changed + strings.Replace(second, `"echo:7"`, `"echo:8", "discard:8"`, 1), []string{"bond bond1: --serve discard:8", "in use"}},
		{"a proxy whose users cannot be read", changed + strings.Replace(second, "slaves:", "socks: 127.0.0.1:1, socks_users: /no/such/users, slaves:", 1), []string{"bond bond1: --socks 127.0.0.1:1", "/no/such/users"}},
		{"a slave that has to be there", changed + strings.Replace(second, "slaves: [eth3]", "require_slaves: true, slaves: [eth3, eth8]", 1), []string{"bond bond1: slave eth8"}},
		{"a new bond whose socket is taken", changed + second + "- {name: bond2, mode: 1, slaves: [eth1], addresses: [10.0.0.6/24], control: SOCKET/x}\n", []string{"bond bond2: control socket"}},
	} {
		log := r.again(tt.text)
		for _, want := range append(tt.want, "nothing is changed") {
			if !strings.Contains(log, want) {
				t.Errorf("%s: the log has no %q:\n%s", tt.what, want, log)
			}
		}
		st := r.status()
		if st.MIIMonMs != 100 || slices.ContainsFunc(st.Addresses, func(a hostAddress) bool { return a.Prefix == netip.MustParsePrefix("10.0.0.9/24") }) || !st.up("eth0", "eth1") {
			t.Fatalf("%s: status %+v", tt.what, st)
		}
		n.dial("10.0.0.2:7")
		n.dial("10.0.0.5:7")
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	r.reload <- syscall.SIGHUP
	eventually(t, "the log tells that there is no file", func() bool { return strings.Contains(r.log.String(), "the file cannot be read") })
}

// Bonds come and go with the file, and the metrics are of those that there are.
// A service that an earlier reload could not start again can be taken from the file.
func TestReloadServiceGone(t *testing.T) {
	r := &reloading{}
	h := &hosted{services: map[string]func(){}}
	if err := r.host(h, config.HostChange{Serve: config.Change[string]{Remove: []string{"echo:7"}}}); err != nil {
		t.Error(err)
	}
}

func TestReloadBonds(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1", "eth2", "eth3")
	first := "metrics: 127.0.0.1:0\n" + firstFile
	r := runText(t, n, first)
	address := regexp.MustCompile(`serving metrics.* address=(\S+)\n`).FindStringSubmatch(r.log.String())
	if address == nil {
		t.Fatal("the log does not tell where the metrics are")
	}
	active := func() string {
		t.Helper()
		transport := &http.Transport{DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: transport, Timeout: patience}).Get("http://" + address[1] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(regexp.MustCompile(`node_bonding_active{.*`).FindAllString(string(body), -1), "\n")
	}
	const one, two = `node_bonding_active{master="bond0"} 2`, `node_bonding_active{master="bond1"} 1`
	if got := active(); got != one {
		t.Errorf("metrics of one bond:\n%s", got)
	}
	second := "- {name: bond1, mode: 1, slaves: [eth3], addresses: [10.0.0.5/24], serve: [\"echo:7\"], control: SOCKET2}\n"
	r.again(first + second)
	if st, err := askStatus(r.socket + "2"); err != nil || st.Name != "bond1" || !st.up("eth3") {
		t.Errorf("the new bond: %+v, %v", st, err)
	}
	n.dial("10.0.0.5:7")
	if got := active(); got != one+"\n"+two {
		t.Errorf("metrics of two bonds:\n%s", got)
	}
	r.again(first)
	if _, err := os.Stat(r.socket + "2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket of the bond that went: %v", err)
	}
	n.dial("10.0.0.2:7")
	if got := active(); got != one {
		t.Errorf("metrics after that:\n%s", got)
	}
}

// While a change waits for its confirmation there is no reload; and clients at
// once with reloads get an answer each, and all is as the last said.
func TestReloadBesideClients(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1", "eth2")
	r := runText(t, n, firstFile)
	client := control.NewClient(r.socket)
	set := func(option, value string, confirm int64) error {
		_, err := client.Change(t.Context(), control.Request{ConfirmWithinMs: confirm,
			Operations: []control.Operation{{Op: control.Set, Option: option, Value: value}}})
		return err
	}
	if err := set("num_grat_arp", "3", 60_000); err != nil {
		t.Fatal(err)
	}
	if log := r.again(strings.Replace(firstFile, "miimon: 100", "miimon: 20", 1)); !strings.Contains(log, "a change waits for its confirmation") || r.status().MIIMonMs != 100 {
		t.Errorf("a reload beside a change that waits:\n%s", log)
	}
	if err := client.Confirm(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for k := range 15 {
				if err := set("resend_igmp", fmt.Sprint(1+(i+k)%9), 0); err != nil {
					t.Errorf("set: %v", err)
				}
			}
		})
	}
	for k := range 6 {
		file := firstFile
		if k%2 == 0 {
			file = strings.NewReplacer("miimon: 100", "miimon: 20", "[eth0, eth1]", "[eth0, eth2]").Replace(firstFile)
		}
		if log := r.again(file); !strings.Contains(log, "reloaded") {
			t.Error(log)
		}
	}
	wg.Wait()
	r.again(firstFile)
	st := r.status()
	if st.MIIMonMs != 100 || st.Options["resend_igmp"] != "1" || st.Options["num_grat_arp"] != "1" || !st.has("eth0", "eth1") {
		t.Errorf("the file does not win: %+v", st)
	}
}
