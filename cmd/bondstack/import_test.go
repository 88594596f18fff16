package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bondstack/cmd/bondstack/config"
	"bondstack/cmd/bondstack/migrate"
)

const somebodysBond = "ip link add bond0 type bond mode 1 miimon 100 shiny 1\nip link set eth1 master bond0\nip addr add 10.0.0.2/24 dev bond0\n"

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImportCommand(t *testing.T) {
	path := writeFile(t, "bond.sh", somebodysBond)
	lost := path + `:1: shiny "1": not carried: unknown option` + "\n"
	r := runWith("", "import", path)
	r.check(t, "import", 0, "mode: active-backup", lost)
	if f, faults := config.Parse([]byte(r.stdout)); len(faults) > 0 || f.Bonds[0].Slaves[0].Name != "eth1" || f.Bonds[0].Addresses[0] != "10.0.0.2/24" {
		t.Error(f, faults)
	}
	runWith("", "import", path, "--strict").check(t, "--strict", 1, "mode: active-backup", "bondstack import: not everything about the bonds is carried")
	runWith(somebodysBond, "import", "--from", "ip", "-").check(t, "standard input", 0, "name: bond0", "standard input:1: shiny")
	runWith(strings.ReplaceAll(somebodysBond, " shiny 1", ""), "import", "--strict", "-").check(t, "all is carried", 0, "name: bond0", "")

	var out struct {
		Complete bool
		Config   string
		Notices  []migrate.Notice
	}
	asJSON := runWith("", "import", "--json", path)
	asJSON.check(t, "--json", 0, "{", "")
	if err := json.Unmarshal([]byte(asJSON.stdout), &out); err != nil {
		t.Fatal(err)
	}
	want := migrate.Notice{Kind: migrate.Lost, File: path, Line: 1, Key: "shiny", Value: "1", Reason: "unknown option"}
	if out.Complete || out.Config != r.stdout || len(out.Notices) != 1 || out.Notices[0] != want {
		t.Errorf("%+v", out)
	}
}

func TestImportWrong(t *testing.T) {
	for _, tt := range []struct {
		code int
		in   string
		args []string
		want string
	}{
		{2, "", nil, "no FILE is given, for instance"},
		{2, "", []string{"--from", "magic", "-"}, `--from "magic": allowed are ifcfg, ifupdown, ip, netplan, networkd, nmstate, teamd`},
		{1, "", []string{filepath.Join(t.TempDir(), "none")}, "no such file"},
		{1, "hello", []string{"-"}, "the format is not recognised"},
		{1, "network: [", []string{"-"}, "standard input: not YAML"},
		{1, strings.Repeat("#", migrate.MaxSource+100), []string{"--from", "ip", "-"}, "it has 1048577 bytes, allowed are 1048576"},
		{1, "ip link set eth0 up", []string{"-"}, "standard input:1: interface eth0: not a bond\nbondstack import: no bond is in the files"},
	} {
		runWith(tt.in, append([]string{"import"}, tt.args...)...).check(t, strings.Join(tt.args, " "), tt.code, "", tt.want)
	}
}

// What is imported can be exported, and imported again as the same.
func TestExportCommand(t *testing.T) {
	first := runWith(strings.ReplaceAll(somebodysBond, " shiny 1", ""), "import", "-")
	exported := runWith(first.stdout, "export", "-c", "-")
	exported.check(t, "export", 0, "ip link add bond0 type bond mode active-backup miimon 100\nip link set eth1 down\nip link set eth1 master bond0\n", "")
	if again := runWith(exported.stdout, "import", "-"); again.stdout != first.stdout {
		t.Errorf("%s\n%s", first.stdout, again.stdout)
	}
	path := writeFile(t, "bond.yaml", first.stdout+"    serve: [\"echo:7\"]\n")
	runWith("", "export", "--to", "ip", "-c", path).check(t, "services", 0, "ip link add bond0", "# bond0: serve: ")
	for _, tt := range []struct {
		code int
		in   string
		args []string
		want string
	}{
		{2, "", []string{"-c", "x", "--control", "y"}, "give one of -c and --control"},
		{2, "", []string{"--to", "netplan", "-c", "x"}, `--to "netplan": allowed is ip`},
		{1, "", []string{"-c", filepath.Join(t.TempDir(), "none")}, "no such file"},
		{1, "version: 1\n", []string{"-c", "-"}, "bonds: the key is missing"},
		{1, first.stdout + "    colour: red\n", []string{"-c", "-"}, "colour: there is no such key"},
		{1, strings.ReplaceAll(first.stdout, "miimon:", "lacp_rate:"), []string{"-c", "-"}, "bonds[0].options.lacp_rate: "},
		{1, "", []string{"--control", filepath.Join(t.TempDir(), "none")}, "no instance runs on"},
	} {
		runWith(tt.in, append([]string{"export"}, tt.args...)...).check(t, strings.Join(tt.args, " "), tt.code, "", tt.want)
	}
}

// A running instance makes the commands of its bond, with its addresses.
func TestExportOfInstance(t *testing.T) {
	n := newNetwork(t, "eth0", "eth1")
	i := start(t, n.kinds(), "--slave", "eth0", "--slave", "eth1", "--mode", "active-backup", "-o", "miimon=50", "-o", "primary=eth1", "--address", "10.0.0.2/24")
	r := runWith("", "export", "--control", i.socket)
	r.check(t, "export", 0, " type bond mode active-backup miimon 50 primary eth1\nip link set eth0 down\nip link set eth0 master bond0\nip link set eth1 down\n", "# bond0: routes and vlans: ")
	if !strings.Contains(r.stdout, "ip addr add 10.0.0.2/24 dev bond0\n") {
		t.Error(r.stdout)
	}
}
