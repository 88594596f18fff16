package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bondstack/bonding"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write docs/bondstack.schema.json anew")

const published = "../../../docs/bondstack.schema.json"

// The schema in docs is the one that the program prints. After a change of the
// types: go test ./cmd/bondstack/config -run Published -update
func TestSchemaPublished(t *testing.T) {
	if *update {
		if err := os.WriteFile(published, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(published)
	if err != nil || !bytes.Equal(text, Schema()) {
		t.Errorf("%s is not what bondstack schema prints (%v): run this test with -update", published, err)
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("bondstack.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("bondstack.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid asks the schema about a file.
func valid(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func samples(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples %s: %v", pattern, err)
	}
	files := map[string][]byte{}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(p)] = text
	}
	return files
}

// Schema and check take the files in docs/examples and the good samples, without
// a warning.
func TestGoodSamples(t *testing.T) {
	s := compiled(t)
	files := samples(t, "../../../docs/examples/*.yaml")
	files["whole"] = []byte(strings.Replace(whole, ", actor_port_prio: 100", "", 1))
	modes := map[Mode]bool{}
	for name, text := range files {
		f, faults := Parse(text)
		if f == nil || len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		faults = f.Check(Checks{})
		if name == "whole" { // it has what does nothing
			faults = faults.Errors()
		}
		if len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
		if err := valid(t, s, text); err != nil {
			t.Errorf("%s: the schema refuses it: %v", name, err)
		}
		for _, b := range f.Bonds {
			modes[b.Mode] = true
		}
	}
	if len(modes) != 7 {
		t.Errorf("the samples are of %d modes, want all 7", len(modes))
	}
}

// Schema and check agree on single lines of a bond: bad ones both refuse, those
// that only meaning shows the schema takes.
func TestSchemaAgrees(t *testing.T) {
	const head = "version: 1\nbonds:\n- name: b\n"
	const rest = "  slaves: [eth0, eth1]\n  addresses: [10.0.0.2/24]\n"
	s := compiled(t)
	for _, tt := range []struct {
		lines         string
		schema, check bool
	}{
		{"mode: 1", true, true},
		{"mode: '1'", true, true},
		{"mode: 802.3ad", true, true},
		{"mode: 7", false, false},
		{"mode: fast", false, false},
		{"mode: [1]", false, false},
		{"mode: 1\nspeed: 3", false, false},
		{"mode: 1\nmtu: 9000", true, true},
		{"mode: 1\nmtu: 67", false, false},
		{"mode: 1\nmtu: '9000'", false, false},
		{"mode: 1\nhardware_address: 02:00:00:00:00:01", true, true},
		{"mode: 1\nhardware_address: 02:00:00:00:00", false, false},
		{"mode: 1\nhardware_address: 01:00:00:00:00:01", true, false},
		{"mode: 1\nexclusive: true", true, true},
		{"mode: 1\nexclusive: 'yes'", false, false},
		{"mode: 1\ndevice: bridge", false, false},
		{"mode: 1\nnetns: a/b", false, false},
		{"mode: 1\ncontrol: here.sock", false, false},
		{"mode: 1\nsocks: 1080", true, true},
		{"mode: 1\nsocks: ':1080'", true, true},
		{"mode: 1\nsocks: 65536", false, false},
		{"mode: 1\nsocks: true", false, false},
		{"mode: 1\nuser_network: loopback", false, false},
		{"mode: 1\nuser_network: loopback=maybe", true, false},
		{"mode: 1\nsocks: '[::1]:1080'", true, true},
		{"mode: 1\nsocks: '127.0.0.1:0'", true, false},
		{"mode: 1\nserve: [\"echo:7\"]", true, true},
		{"mode: 1\nserve: [\"ftp:7\"]", false, false},
		{"mode: 1\nserve: [\"echo:70000\"]", true, false},
		{"mode: 1\nforwards: [\"tcp:1=h:2\"]", true, true},
		{"mode: 1\nforwards: [\"tcp\"]", false, false},
		{"mode: 1\nroutes: [{to: default, via: 10.0.0.1}]", true, true},
		{"mode: 1\nroutes: [{via: 10.0.0.1}]", false, false},
		{"mode: 1\nroutes: [{to: default, via: 10.0.0.1, metric: -1}]", false, false},
		{"mode: 1\nroutes: [{to: default}]", true, false},
		{"mode: 1\ndns: {servers: [10.0.0.1], search: [example.org]}", true, true},
		{"mode: 1\ndns: {servers: [ns.example.org]}", false, false},
		{"mode: 1\nvlans: [{id: 5, priority: 7}]", true, true},
		{"mode: 1\nvlans: [{id: 4095}]", false, false},
		{"mode: 1\nvlans: [{id: 5, protocol: qinq}]", false, false},
		{"mode: 1\noptions: {miimon: 100}", true, true},
		{"mode: 1\noptions: {miimon: '100'}", true, true},
		{"mode: 1\noptions: {miimon: -1}", false, false},
		{"mode: 1\noptions: {miimon: 1.5}", false, false},
		{"mode: 1\noptions: {miimon: soon}", false, false},
		{"mode: 1\noptions: {miimon: null}", false, false},
		{"mode: 1\noptions: {miimon: true}", false, false},
		{"mode: 1\noptions: {all_slaves_active: true}", true, true},
		{"mode: 1\noptions: {speed: 1}", false, false},
		{"mode: 1\noptions: {mode: 1}", false, false},
		{"mode: 1\noptions: {queue_id: 'eth0:1'}", false, false},
		{"mode: 1\noptions: {primary: eth0}", true, true},
		{"mode: 1\noptions: {primary: eth9}", true, false},
		{"mode: 0\noptions: {primary: eth0}", false, false},
		{"mode: 1\noptions: {lacp_rate: fast}", false, false},
		{"mode: 4\noptions: {lacp_rate: fast}", true, true},
		{"mode: 4\noptions: {lacp_rate: 2}", false, false},
		{"mode: 1\noptions: {arp_interval: 100, arp_ip_target: [10.0.0.1]}", true, true},
		{"mode: 1\noptions: {arp_interval: 100, arp_ip_target: 10.0.0.1}", true, true},
		{"mode: 1\noptions: {arp_interval: 100, arp_ip_target: [1]}", false, false},
		{"mode: 1\noptions: {arp_interval: 100, arp_ip_target: [nowhere]}", true, false},
	} {
		text := head + "  " + strings.ReplaceAll(tt.lines, "\n", "\n  ") + "\n" + rest
		f, faults := Parse([]byte(text))
		faults = append(faults, f.Check(Checks{})...)
		if err := valid(t, s, []byte(text)); (err == nil) != tt.schema {
			t.Errorf("%q: the schema says %v", tt.lines, err)
		}
		if errs := faults.Errors(); (len(errs) == 0) != tt.check {
			t.Errorf("%q: the check says %v", tt.lines, errs)
		}
	}
}

// What the schema refuses the check refuses as well, for options at the ends of
// their ranges and beyond, in a mode in which each may be set and one in which it
// may not.
func TestSchemaOfOptionsAgrees(t *testing.T) {
	s := compiled(t)
	for _, o := range fileOptions() {
		if !o.Number || o.Name == "use_carrier" {
			continue
		}
		values := append([]any{o.Least, o.Greatest, o.Greatest + 1, "no-such-word"}, any(int64(o.Least)-1))
		for _, w := range o.Words {
			values = append(values, w)
		}
		modes := []bonding.Mode{o.Modes[0]}
		for _, m := range bonding.AvailableModes() {
			if !slices.Contains(o.Modes, m) {
				modes = append(modes, m)
				break
			}
		}
		for _, mode := range modes {
			for _, v := range values {
				asJSON, _ := json.Marshal(object{"version": 1, "bonds": []any{object{"name": "b", "mode": int(mode), "slaves": []any{"a"},
					"addresses": []any{"10.0.0.2/24"}, "options": object{o.Name: v}}}})
				f, faults := Parse(asJSON)
				faults = append(faults, f.Check(Checks{})...)
				if err := valid(t, s, asJSON); (err == nil) != (len(faults.Errors()) == 0) {
					t.Errorf("%s: %v in mode %s: the schema says %v, the check %v", o.Name, v, mode, err, faults.Errors())
				}
			}
		}
	}
}
