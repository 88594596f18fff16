package migrate

import (
	"strings"
	"testing"
)

// Whatever a file holds, reading it ends, without a panic, in an error or in a
// configuration that can be read again, with notices that name lines of the file.
func FuzzImport(f *testing.F) {
	for folder, format := range samples {
		for _, s := range readSamples(f, folder) {
			for n, name := range formatNames {
				if name == format {
					f.Add(uint8(n), s.Text)
				}
			}
		}
	}
	for _, text := range []string{"", "a: &x [*x]", "[Match", "{\"device\":{}}", "ip link add type bond", "iface", "x='", "- - -", "[{}]", "bonds: {b: }",
		"network: {bonds: {b: {interfaces: {a: b}, parameters: [1]}}}", "ip link add a type bond\nip link set a master a", "echo 1 >", "\\", "[NetDev]\nKind=bond"} {
		for n := range formatNames {
			f.Add(uint8(n), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, text []byte) {
		r, err := Import(formatNames[int(format)%len(formatNames)], []Source{{"file", text}})
		if r == nil {
			if err == nil {
				t.Fatal("neither a result nor an error")
			}
			return
		}
		lines := 1 + strings.Count(string(text), "\n")
		for _, n := range r.Notices {
			if n.Line < 1 || n.Line > lines || n.File != "file" {
				t.Fatalf("a notice of line %d of %d: %s", n.Line, lines, n)
			}
		}
		if err != nil {
			return
		}
		valid(t, r.Config)
		if _, err := ToIP(r.Config); err != nil {
			t.Fatal(err)
		}
	})
}
