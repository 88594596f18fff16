package migrate

import (
	"strings"
	"testing"
)

// YAML over which a parser takes minutes, or all of the stack, is refused before.
func TestHostileYAML(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": "network: " + strings.Repeat("[", 20000),
		"blank":    "network:\n" + strings.Repeat("\n", 20000) + "  a: 1\n",
		"entries":  "network: " + strings.Repeat("- ", 20000),
		"keys":     "network:\n" + strings.Repeat("  a: 1\n", 5000),
	} {
		if _, err := Import("netplan", []Source{{Name: name, Text: []byte(text)}}); err == nil || !strings.Contains(err.Error(), "not YAML: line ") {
			t.Errorf("%s: error %v, want one of a line", name, err)
		}
	}
}
