package config

import (
	"github.com/goccy/go-yaml"
)

// Marshal writes a file as YAML that Parse reads as the same. A slave that has the
// defaults is its name alone.
func Marshal(f *File) ([]byte, error) {
	return yaml.MarshalWithOptions(f, yaml.IndentSequence(true), yaml.UseSingleQuote(false))
}

// MarshalYAML writes a name for a slave that is nothing else.
func (s Slave) MarshalYAML() (any, error) {
	if s == (Slave{Name: s.Name}) {
		return s.Name, nil
	}
	type plain Slave
	return plain(s), nil
}
