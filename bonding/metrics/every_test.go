package metrics

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"bondstack/bonding"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// unseen are the fields of a status that no metric shows, and why.
var unseen = map[string]string{
	"Name":                         "is a label",
	"ActiveSlave":                  "bondstack_slave_active",
	"Primary":                      "a setting",
	"PrimaryReselect":              "a setting",
	"MIIMonMs":                     "a setting",
	"UpDelayMs":                    "a setting",
	"DownDelayMs":                  "a setting",
	"PeerNotifMs":                  "a setting",
	"MonitorRule":                  "a setting",
	"ARPIntervalMs":                "a setting",
	"ARPMissedMax":                 "a setting",
	"ARPValidate":                  "a setting",
	"ARPIPTargets":                 "a setting",
	"NSIP6Targets":                 "a setting",
	"Options":                      "settings",
	"Warnings":                     "text; they are counted",
	"LACP.Active":                  "a setting",
	"LACP.Fast":                    "a setting",
	"LACP.Select":                  "a setting",
	"LACP.SystemPriority":          "of the actor of each port",
	"LACP.System":                  "a setting",
	"LACP.Coupled":                 "a setting",
	"LACP.Strict":                  "a setting",
	"LACP.Counters":                "the sum over ports that are here, so it may fall: sum by (master) over the ports",
	"Failovers":                    "summed up by FailoverTotals; the time of the last is shown",
	"Balance.NextMs":               "falls from the period to 0 all the time",
	"Balance.Clients.List":         "without bound",
	"Slaves.Name":                  "is a label",
	"Slaves.Priority":              "a setting",
	"Slaves.QueueID":               "a setting",
	"Slaves.Weight":                "a setting",
	"Slaves.Probe.Peers":           "counted by state",
	"Slaves.LACP.Explanation":      "text",
	"Slaves.LACP.Actor.System":     "a setting",
	"Slaves.LACP.Actor.Flags":      "State has them",
	"Slaves.LACP.Partner.Flags":    "State has them",
	"Slaves.Balance.SourceAddress": "bondstack_slave_info has the address",
}

// words are what texts are that have few values: the first while nothing is
// changed, the second to change it to.
var words = map[string][2]string{
	"Duplex":                   {"full", "half"},
	"Slaves.Duplex":            {"full", "half"},
	"Slaves.State":             {"active", "backup"},
	"Slaves.MIIStatus":         {"up", "going back"},
	"Slaves.Monitors":          {"up", "down"},
	"Slaves.Probe.Verdict":     {"alive", "nothing heard"},
	"Slaves.LACP.ActorChurn":   {"monitoring", "churned"},
	"Slaves.LACP.PartnerChurn": {"monitoring", "churned"},
	"Slaves.LACP.Receive":      {"CURRENT", "EXPIRED"},
	"Slaves.LACP.Mux":          {"ATTACHED", "DISTRIBUTING"},
	"Slaves.LACP.Selection":    {"SELECTED", "STANDBY"},
	"Slaves.LACP.Drain":        {"in use", "drained"},
}

// leaf is a number, a word or a yes of a status.
type leaf struct {
	path string
	flip func() // changes it, and back the next time
}

// leaves fills a value with something of everything, and returns its parts.
func leaves(v reflect.Value, path string) (list []leaf) {
	one := func(other reflect.Value) []leaf {
		return []leaf{{path, func() {
			now := reflect.New(v.Type()).Elem()
			now.Set(v)
			v.Set(other)
			other = now
		}}}
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1000, 0)))
		return one(reflect.ValueOf(time.Unix(2000, 0)))
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return leaves(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			at := path + "." + f.Name
			if f.Anonymous {
				at = path
			}
			list = append(list, leaves(v.Field(i), strings.TrimPrefix(at, "."))...)
		}
		return list
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return leaves(v.Index(0), path)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key := reflect.New(v.Type().Key()).Elem()
		key.SetString("key")
		value := reflect.New(v.Type().Elem()).Elem()
		for _, l := range leaves(value, path) {
			v.SetMapIndex(key, value)
			list = append(list, leaf{l.path, func() { l.flip(); v.SetMapIndex(key, value) }})
		}
		return list
	case reflect.Bool:
		return one(reflect.ValueOf(true))
	case reflect.String:
		w, ok := words[path]
		if !ok {
			w = [2]string{"this", "that"}
		}
		v.SetString(w[0])
		return one(reflect.ValueOf(w[1]).Convert(v.Type()))
	default:
		v.Set(reflect.ValueOf(int8(5)).Convert(v.Type()))
		return one(reflect.ValueOf(int8(6)).Convert(v.Type()))
	}
}

type fixed struct{ st *bonding.Status }

func (f fixed) Status() bonding.Status { return *f.st }

// everything is a status that has something of all.
func everything() Source {
	var st bonding.Status
	leaves(reflect.ValueOf(&st).Elem(), "")
	return fixed{&st}
}

func registry(t *testing.T, c prometheus.Collector) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	return r
}

// exposition is the text that Prometheus reads.
func exposition(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	r := registry(t, c)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// Every part of a status is in a metric: a change of it is seen. So none that is
// added to the status is forgotten here.
func TestEveryFieldIsAMetric(t *testing.T) {
	var st bonding.Status
	list := leaves(reflect.ValueOf(&st).Elem(), "")
	if len(list) < 120 {
		t.Fatalf("the status has %d parts only", len(list))
	}
	before := exposition(t, New(fixed{&st}))
	used := map[string]bool{}
	for _, l := range list {
		l.flip()
		shown := exposition(t, New(fixed{&st})) != before
		l.flip()
		excused := ""
		for path := range unseen {
			if l.path == path || strings.HasPrefix(l.path, path+".") {
				excused = path
			}
		}
		used[excused] = true
		if !shown && excused == "" {
			t.Errorf("%s is in no metric", l.path)
		}
		if shown && excused != "" && !slices.Contains([]string{"Name", "Slaves.Name", "Failovers", "Slaves.Probe.Peers"}, excused) {
			t.Errorf("%s is in a metric, and said not to be: %s", l.path, unseen[excused])
		}
	}
	for path := range unseen {
		if !used[path] {
			t.Errorf("the status has no %s any more", path)
		}
	}
	if after := exposition(t, New(fixed{&st})); after != before {
		t.Error("the test does not put things back")
	}
}
