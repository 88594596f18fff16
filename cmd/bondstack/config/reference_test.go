package config

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

const (
	reference = "../../../docs/configuration.md"
	marker    = "<!-- keys -->\n"
)

// The lists of keys and options in docs/configuration.md are those of the types and
// the table of options. After a change: go test ./cmd/bondstack/config -run Reference -update
func TestReference(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := bytes.Cut(text, []byte(marker))
	if !ok {
		t.Fatalf("%s has no %q", reference, marker)
	}
	want := append(append(head, marker...), keysText()...)
	if *update {
		if err := os.WriteFile(reference, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s is not up to date: run this test with -update", reference)
	}
}

// keysText is the reference behind the marker.
func keysText() string {
	var b strings.Builder
	for _, s := range []struct {
		title string
		t     reflect.Type
	}{{"The file", reflect.TypeFor[File]()}, {"`log`", reflect.TypeFor[Log]()}, {"An entry of `bonds`", reflect.TypeFor[Bond]()}, {"An entry of `slaves`", reflect.TypeFor[Slave]()},
		{"An entry of `routes`", reflect.TypeFor[Route]()}, {"`dns`", reflect.TypeFor[DNS]()}, {"An entry of `vlans`", reflect.TypeFor[VLAN]()}} {
		fmt.Fprintf(&b, "\n### %s\n\n| key | value | |\n| --- | --- | --- |\n", s.title)
		for i := range s.t.NumField() {
			f := s.t.Field(i)
			if key := keyOf(f); key != "" {
				need := ""
				if f.Tag.Get("must") != "" {
					need = " Needed."
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", key, valueText(f), cell(f.Tag.Get("doc")), need)
			}
		}
	}
	b.WriteString("\n### `options`\n\n| option | value | default | |\n| --- | --- | --- | --- |\n")
	for _, o := range fileOptions() {
		name, value := "`"+o.Name+"`", "text"
		if o.Alias != "" {
			name += ", `" + o.Alias + "`"
		}
		switch {
		case o.Number && len(o.Words) > 0:
			value = fmt.Sprintf("%d to %d; %s", o.Least, o.Greatest, strings.Join(o.Words, ", "))
		case o.Number:
			value = fmt.Sprintf("%d to %d", o.Least, o.Greatest)
		case o.List:
			value = "list of addresses"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, value, cell(o.Default), cell(describe(&o)))
	}
	return b.String()
}

// valueText says what a key may be.
func valueText(f reflect.StructField) string {
	switch f.Type {
	case reflect.TypeFor[Mode]():
		return "mode"
	case reflect.TypeFor[Options]():
		return "mapping, see below"
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		return "mapping, see below"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "list, see below"
		}
		return "list, each " + cell(forms[f.Tag.Get("form")].allowed)
	case reflect.Bool, reflect.String:
		return cell(strings.TrimPrefix(typeName(t, f.Tag), "one of "))
	}
	least, greatest := rangeOf(f.Tag)
	if least == greatest {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, greatest)
}

// cell is a text that may be in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
