package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const whole = `version: 1
log: {level: debug, format: json}
metrics: 127.0.0.1:9090
web: "[::1]:8080"
bonds:
  - name: bond0
    mode: 1
    hardware_address: 02:00:00:00:00:01
    mtu: 1400
    exclusive: false
    set_hardware_addresses: true
    require_slaves: true
    options: {miimon: 50, primary: eth1, all_slaves_active: true, num_grat_arp: "3"}
    slaves:
      - eth1
      - {name: eth2, kind: packet, prio: -5, weight: 10, queue_id: 3, actor_port_prio: 100, disabled: true}
    addresses: [10.0.0.2/24, fd00::2/64, dhcp, auto]
    routes:
      - {to: default, via: 10.0.0.1}
      - to: 10.9.0.0/16
        via: 10.0.0.9
        metric: 10
    dns: {servers: [10.0.0.1], search: [example.org]}
    host_name: gate
    vlans:
      - {id: 5, protocol: 802.1Q, priority: 3, addresses: [10.5.0.2/24], routes: [{to: 10.6.0.0/16, via: 10.5.0.1}]}
      - {id: 7, protocol: 802.1ad, vlans: [{id: 5, addresses: [10.75.0.2/24]}]}
    serve: ["echo:7", "http:80=/srv/www"]
    forwards: ["tcp:2222=127.0.0.1:22"]
    socks: 127.0.0.1:1080
    socks_users: /etc/bondstack.users
    flow_limit: 100
    tcp_idle: 600000
    udp_idle: 30000
    tx_queue: 64
    user_network: loopback=on,dns=192.0.2.1
    control: /run/bondstack/bond0.sock
  - name: bond1
    mode: balance-xor
    device: tap
    netns: box
    queues: 2
    options: {arp_interval: 100, arp_ip_target: [10.0.0.1, 10.0.0.9]}
    slaves: [eth3]
`

func no() *bool { v := false; return &v }

var wholeFile = &File{Version: 1, Log: Log{"debug", "json"}, Metrics: "127.0.0.1:9090", Web: "[::1]:8080", Bonds: []Bond{{
	Name: "bond0", Mode: 1, HardwareAddress: "02:00:00:00:00:01", MTU: 1400, Exclusive: no(), SetAddresses: true, RequireSlaves: true,
	Options:   Options{"miimon": "50", "primary": "eth1", "all_slaves_active": "on", "num_grat_arp": "3"},
	Slaves:    []Slave{{Name: "eth1"}, {Name: "eth2", Kind: "packet", Prio: -5, Weight: 10, QueueID: 3, ActorPortPrio: 100, Disabled: true}},
	Addresses: []string{"10.0.0.2/24", "fd00::2/64", "dhcp", "auto"},
	Routes:    []Route{{To: "default", Via: "10.0.0.1"}, {"10.9.0.0/16", "10.0.0.9", 10}},
	DNS:       &DNS{[]string{"10.0.0.1"}, []string{"example.org"}},
	HostName:  "gate",
	VLANs: []VLAN{{ID: 5, Protocol: "802.1Q", Priority: 3, Addresses: []string{"10.5.0.2/24"}, Routes: []Route{{To: "10.6.0.0/16", Via: "10.5.0.1"}}},
		{ID: 7, Protocol: "802.1ad", VLANs: []VLAN{{ID: 5, Addresses: []string{"10.75.0.2/24"}}}}},
	Serve: []string{"echo:7", "http:80=/srv/www"}, Forwards: []string{"tcp:2222=127.0.0.1:22"}, Socks: "127.0.0.1:1080",
	SocksUsers: "/etc/bondstack.users", FlowLimit: 100, TCPIdle: 600000, UDPIdle: 30000, TxQueue: 64,
	UserNetwork: "loopback=on,dns=192.0.2.1", Control: "/run/bondstack/bond0.sock",
}, {
	Name: "bond1", Mode: 2, Device: "tap", NetNS: "box", Queues: 2,
	Options: Options{"arp_interval": "100", "arp_ip_target": "10.0.0.1,10.0.0.9"}, Slaves: []Slave{{Name: "eth3"}},
}}}

var equal = cmp.Options{cmpopts.IgnoreUnexported(File{}), cmpopts.EquateEmpty()}

// Every key is read, and written so that it is read again.
func TestParseAndMarshal(t *testing.T) {
	f, faults := Parse([]byte(whole))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if d := cmp.Diff(wholeFile, f, equal); d != "" {
		t.Error(d)
	}
	text, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	again, faults := Parse(text)
	if len(faults) > 0 {
		t.Fatalf("%v\n%s", faults, text)
	}
	if d := cmp.Diff(f, again, equal); d != "" {
		t.Errorf("%s\n%s", d, text)
	}
	if !strings.Contains(string(text), "- eth1\n") {
		t.Errorf("a slave that is a name alone is written otherwise:\n%s", text)
	}
}

// Each fault is told with its place, its key and what is allowed, and all at once.
func TestParseFaults(t *testing.T) {
	const head = "version: 1\nbonds:\n- name: b\n  mode: 1\n  slaves: [eth0]\n"
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", []string{"1:1: the file is empty"}},
		{"# nothing\n", []string{"1:1: the file is empty"}},
		{"- a\n", []string{"1:1: a list is given; allowed is a mapping with the keys version, log"}},
		{"just text", []string{`1:1: a text ("just text") is given`}},
		{"{}", []string{"1:1: version: the key is missing", "1:1: bonds: the key is missing"}},
		{"version: 2\nbonds: []\n", []string{`1:10: version: a whole number ("2") is given; allowed is a whole number from 1 to 1`, "2:8: bonds: the list is empty"}},
		{head + "  speed: 1\n  mtu: many\n", []string{"6:3: bonds[0].speed: there is no such key; allowed are name, mode,", `7:8: bonds[0].mtu: a text ("many") is given; allowed is a whole number from 68 to 65535`}},
		{head + "  mtu: 67\n", []string{`6:8: bonds[0].mtu: a whole number ("67")`}},
		{head + "  mtu: 0x600\n", []string{`6:8: bonds[0].mtu: a whole number ("0x600")`}},
		{head + "  mtu: 99999999999999999999\n", []string{"6:8: bonds[0].mtu:"}},
		{head + "  mtu: 1500\n  mtu: 1500\n", []string{"7:3: bonds[0].mtu: the key is there twice"}},
		{head + "  addresses: [10.0.0.2, dhcp6]\n", []string{`6:15: bonds[0].addresses[0]: "10.0.0.2" is none; allowed is an address with a prefix length`, `6:25: bonds[0].addresses[1]: "dhcp6"`}},
		{head + "  device: bridge\n", []string{`6:11: bonds[0].device: "bridge" is given; allowed are stack, tap`}},
		{head + "  exclusive: 1\n", []string{`6:14: bonds[0].exclusive: a whole number ("1") is given; allowed is true or false`}},
		{head + "  options: {miimon: 1.5, miimon_: null, primary: [a], arp_ip_target: [1]}\n", []string{
			"6:21: bonds[0].options.miimon: a number (\"1.5\")", "bonds[0].options.miimon_: nothing is given", "bonds[0].options.primary: a list is given", "bonds[0].options.arp_ip_target[0]: a whole number"}},
		{"version: 1\nbonds:\n- name: b:c\n  mode: 7\n  slaves:\n  - a b\n  - {name: eth1, prio: x}\n  - {kind: wire}\n", []string{
			`3:9: bonds[0].name: "b:c" has a slash, a colon`, `4:9: bonds[0].mode: a whole number ("7") is given; allowed is one of balance-rr (0)`,
			`6:5: bonds[0].slaves[0]: "a b" has`, `7:24: bonds[0].slaves[1].prio`, `8:5: bonds[0].slaves[2].name: the key is missing`, `8:12: bonds[0].slaves[2].kind: "wire" is given; allowed are packet`}},
		{head + "  metrics: x\nmetrics: host:9090\nweb: 127.0.0.1:65536\n", []string{"6:3: bonds[0].metrics: there is no such key", `7:10: metrics: "host:9090" has no IP address`, `8:6: web: "127.0.0.1:65536" has no port`}},
		{head + "  routes: [{to: 10.9.0.1/16}]\n", []string{`6:17: bonds[0].routes[0].to: "10.9.0.1/16" has bits outside of its prefix (10.9.0.0/16 is meant?)`}},
		{"a: [", []string{"this is not YAML"}},
		{"a: &x 1\nb: *x\n", []string{"1:4: anchors and aliases are not allowed"}},
		{"a: !!str 1\n", []string{"1:4: tags and directives"}},
		{"version: 1\n---\nversion: 1\n", []string{"a second document begins here"}},
		{strings.Repeat("[", 1000), []string{"more than 16 brackets are open"}},
		{strings.Repeat("- ", 1000), []string{"too many keys or entries"}},
		{strings.Repeat("a", MaxSize+1), []string{"the file has 1048577 bytes, allowed are 1048576"}},
	} {
		_, faults := Parse([]byte(tt.text))
		if len(faults) != len(tt.want) {
			t.Errorf("%.80q has %d faults, want %d: %v", tt.text, len(faults), len(tt.want), faults)
			continue
		}
		for i, want := range tt.want {
			if got := faults[i].Error(); !strings.Contains(got, want) {
				t.Errorf("%.80q: fault %q, want %q", tt.text, got, want)
			}
		}
	}
}

// What the parser would take minutes for is refused before it sees it.
func TestParseBounds(t *testing.T) {
	for _, tt := range []struct{ begin, unit, want string }{
		{"", "a: \n", "more than 256 keys or entries follow one another"},
		{"", "- a\n", "more than 5000 keys or entries follow one another"},
		{"a: |\n  ", "\n", "more than 200 lines without anything"},
		{"{", "a,", "more than 10000 tokens are in one pair of brackets"},
		{"[", "a: b\n ", "more than 10000 tokens are in one pair of brackets"},
		{"", "? ", "too many keys or entries are inside each other"},
		{"", "{a: ", "more than 16 brackets are open"},
	} {
		_, faults := Parse([]byte(tt.begin + strings.Repeat(tt.unit, 1<<15/len(tt.unit))))
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), tt.want) {
			t.Errorf("%q and many of %q: %v, want %q", tt.begin, tt.unit, faults, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	for _, s := range []string{"a: &a [*a]", "{", "- - -", "? a\n: b", "|", ">-\n x", "\"\\x\"", "%YAML 1.2\n---\n", "<<: *a", "a:\n\tb", "version: 1\nbonds: [{name: a, mode: 4, slaves: [b]}]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, faults := Parse(data)
		if file == nil && len(faults) == 0 {
			t.Fatal("neither a file nor a fault")
		}
		if len(faults) > 0 {
			return
		}
		text, err := Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		again, faults := Parse(text)
		if len(faults) > 0 {
			t.Fatalf("what was written is not read: %v\n%s", faults, text)
		}
		if d := cmp.Diff(file, again, equal); d != "" {
			t.Fatalf("%s\n%s", d, text)
		}
	})
}

// Whatever a file says, the checks of its meaning bear it, and tell no more than a
// reader can use.
func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("version: 1\nbonds: [{name: a, mode: 4, slaves: [b], options: {lacp_rate: fast}, addresses: [10.0.0.2/24, dhcp], routes: [{to: default}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, faults := Read(data, Checks{})
		if file == nil && len(faults) == 0 || len(faults) > 2*maxFaults {
			t.Fatalf("%d faults", len(faults))
		}
		for _, fault := range faults {
			if strings.ContainsAny(fault.Error(), "\n\r") {
				t.Fatalf("a fault is not a line: %q", fault.Error())
			}
		}
	})
}
