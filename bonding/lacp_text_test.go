package bonding_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"
	"bondstack/bonding/lacp"
	"bondstack/link/linktest"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// The text of a bond in the place of one that was recorded on Linux, with the
// same addresses and partner, is the recorded one, but for the version and the
// churn states, which leave "monitoring" with sync here.
func TestLACPProcGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("..", "testdata", "lacp", "lacp-fast.proc.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`v6\S+`).ReplaceAllString(string(golden), "v"+bonding.ProcVersion)
	want = strings.ReplaceAll(want, "Churn State: monitoring", "Churn State: none")
	r := newLACPRig(t, 0, map[string]string{"lacp_rate": "fast"})
	for _, s := range []struct {
		name    string
		address tcpip.LinkAddress
	}{{"eth0", "\xda\xc9\xd7\x3b\x6d\x5b"}, {"eth1", "\x0e\x72\xb8\x19\xd3\xf3"}} {
		p := r.add(s.name, linktest.RecorderOptions{Address: s.address})
		p.actor.System, p.actor.Key = lacp.MAC{0xc6, 0xf8, 0xde, 0xdf, 0x45, 0x45}, 1
	}
	r.agree()
	if got := r.procText(); got != want {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
}

// procText is the text of the status, with the port numbers counted from 1: they
// are the process's, and other tests have some.
func (r *lacpRig) procText() string {
	st := r.Status()
	for i := range st.Slaves {
		st.Slaves[i].LACP.Actor.Port = uint16(i + 1)
	}
	var b strings.Builder
	if err := st.WriteProc(&b); err != nil {
		r.tb.Fatal(err)
	}
	return b.String()
}

// labels are what stands before the colons of a text, with the sections'
// headings.
func labels(text string) []string {
	var list []string
	for _, line := range strings.Split(text, "\n") {
		label, _, _ := strings.Cut(line, ": ")
		list = append(list, label)
	}
	return list
}

// Every recorded text has the labels that ours has, in order: with a partner, one
// that went away, a link that was lost, and none at all.
func TestLACPProcLabels(t *testing.T) {
	r := newLACPRig(t, 2, nil)
	ours := strings.Join(labels(r.procText()), "\n")
	files, err := filepath.Glob(filepath.Join("..", "testdata", "lacp", "*.proc.txt"))
	if err != nil || len(files) < 5 {
		t.Fatalf("recorded texts: %v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if theirs := strings.Join(labels(string(text)), "\n"); theirs != ours {
			t.Errorf("%s has the labels\n%s\nours are\n%s", filepath.Base(f), theirs, ours)
		}
	}
}

// The text of a bond that is down has no aggregator, as Linux writes it.
func TestLACPProcWithoutAggregator(t *testing.T) {
	r := newDownRig(t, bonding.Options{Mode: bonding.IEEE8023AD, Name: "bond7"}, 1)
	var b strings.Builder
	st := r.Status()
	if err := st.WriteProc(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n802.3ad info\nLACP active: on\nLACP rate: slow\nMin links: 0\n", "\nbond bond7 has no active aggregator\n", "\nAggregator ID: N/A\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The JSON has all actor and partner fields, the machines, and the counters by
// the names of Linux.
func TestLACPJSON(t *testing.T) {
	r := newLACPRig(t, 1, map[string]string{"lacp_rate": "fast"})
	r.agree()
	text, err := json.Marshal(r.Status())
	if err != nil {
		t.Fatal(err)
	}
	var st struct {
		LACP   map[string]any
		Slaves []struct{ LACP map[string]any }
	}
	if err := json.Unmarshal(text, &st); err != nil {
		t.Fatal(err)
	}
	has := func(where string, m any, keys ...string) {
		t.Helper()
		object, _ := m.(map[string]any)
		for _, k := range keys {
			if v, ok := object[k]; !ok || v == "" {
				t.Errorf("%s has no %s: %v", where, k, object)
			}
		}
	}
	port := st.Slaves[0].LACP
	has("lacp", st.LACP, "lacp_active", "lacp_rate_fast", "min_links", "ad_select", "system_priority", "system_mac_address",
		"coupled_control", "lacp_strict", "active_aggregator", "counters")
	has("active_aggregator", st.LACP["active_aggregator"], "aggregator_id", "number_of_ports", "actor_key", "partner_key", "partner_mac_address")
	has("port", port, "aggregator_id", "actor_churn_state", "partner_churn_state", "actor_churned_count", "partner_churned_count",
		"receive_machine", "mux_machine", "selection", "looped", "fallback", "explanation")
	for _, end := range []string{"actor", "partner"} {
		has(end, port[end], "system_priority", "system_mac_address", "key", "port_priority", "port_number", "port_state", "port_state_flags")
	}
	for _, c := range []any{st.LACP["counters"], port["counters"]} {
		has("counters", c, "lacpdu_rx", "lacpdu_tx", "lacpdu_unknown_rx", "lacpdu_illegal_rx", "marker_rx", "marker_tx",
			"marker_resp_rx", "marker_resp_tx", "marker_unknown_rx")
	}
}

// Explanations say why a port does not distribute, and what would make it, for
// what LACP knows and for what only the bond does.
func TestLACPExplain(t *testing.T) {
	r := newLACPRig(t, 2, map[string]string{"lacp_rate": "fast", "updelay": "2000"})
	explain := func(name string) bonding.LACPPortExplanation {
		t.Helper()
		e, err := r.ExplainLACP()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range e.Ports {
			if p.Slave == name {
				return p
			}
		}
		t.Fatalf("%s is not explained", name)
		return bonding.LACPPortExplanation{}
	}
	want := func(name string, distributes bool, state, remedy string) {
		t.Helper()
		p := explain(name)
		if p.Distributes != distributes || !strings.Contains(p.State, state) || !strings.Contains(p.Remedy, remedy) {
			t.Errorf("%s: %+v, want %q and %q", name, p, state, remedy)
		}
	}
	run(r.clock, 3*time.Second)
	want("eth0", false, "no LACPDU was received", "the partner has to send LACPDUs")
	r.agree()
	want("eth0", true, "in sync with port 1 of partner 02:00:00:00:ff:01", "")
	r.carrier("eth0", false)
	want("eth0", false, "its link is down", "has to come up")
	r.carrier("eth0", true)
	want("eth0", false, "waits for updelay", "LACP begins in 2s")
	e, _ := r.ExplainLACP()
	if !strings.Contains(e.Summary, "carrier is on") || len(e.Changes) == 0 {
		t.Errorf("explanation %+v", e)
	}
	for i, c := range e.Changes {
		if c.Cause == "" || c.Machine == "" || c.From == c.To || c.Time.IsZero() || i > 0 && c.Time.Before(e.Changes[i-1].Time) {
			t.Errorf("change %+v", c)
		}
	}
	down := newDownRig(t, bonding.Options{Mode: bonding.IEEE8023AD}, 1)
	if e, err := down.ExplainLACP(); err != nil || !strings.Contains(e.Ports[0].State, "no NIC has the bond") {
		t.Errorf("without a NIC: %+v, %v", e, err)
	}
	if _, err := newRig(t, bonding.Options{}, 1).ExplainLACP(); err == nil {
		t.Error("a bond in balance-rr explains LACP")
	}
}
