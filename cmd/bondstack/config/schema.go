package config

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"bondstack/bonding"
)

// object is a JSON object of the schema.
type object map[string]any

// Schema returns the JSON schema (draft 2020-12) of the file: its form, and which
// options may be set in which mode. It is made of the types' tags and of
// bonding.OptionTable.
func Schema() []byte {
	root := schemaOfStruct(reflect.TypeFor[File]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "bondstack's configuration file"
	root["$defs"] = object{
		"vlan":    schemaOfStruct(reflect.TypeFor[VLAN]()),
		"options": schemaOfOptions(),
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // of texts and numbers alone
	}
	return append(text, '\n')
}

// schemaOf is that of a value of a field. Types that are read in a way of their
// own have a schema of their own.
func schemaOf(t reflect.Type, tag reflect.StructTag) object {
	switch t {
	case reflect.TypeFor[Mode]():
		return schemaOfMode()
	case reflect.TypeFor[Options]():
		return object{"$ref": "#/$defs/options"}
	case reflect.TypeFor[VLAN]():
		return object{"$ref": "#/$defs/vlan"}
	case reflect.TypeFor[Slave]():
		name, _ := t.FieldByName("Name")
		return object{"anyOf": []object{schemaOf(name.Type, name.Tag), schemaOfStruct(t)}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), tag)
	case reflect.Struct:
		return schemaOfStruct(t)
	case reflect.Slice:
		most, _ := strconv.Atoi(tag.Get("most"))
		list := object{"type": "array", "items": schemaOf(t.Elem(), tag), "maxItems": most}
		if tag.Get("must") != "" {
			list["minItems"] = 1
		}
		return list
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		text := object{"type": "string"}
		if a := tag.Get("allowed"); a != "" {
			text["enum"] = strings.Split(a, ",")
		}
		if f := tag.Get("form"); f != "" {
			text["pattern"] = forms[f].pattern
			if numbers(f) {
				text["type"], text["minimum"], text["maximum"] = []string{"string", "integer"}, 0, 65535
			}
		}
		return text
	}
	least, greatest := rangeOf(tag)
	return object{"type": "integer", "minimum": least, "maximum": greatest}
}

func schemaOfStruct(t reflect.Type) object {
	properties, must := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key := keyOf(f)
		if key == "" {
			continue
		}
		s := schemaOf(f.Type, f.Tag)
		s["description"] = f.Tag.Get("doc")
		properties[key] = s
		if f.Tag.Get("must") != "" {
			must = append(must, key)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(must) > 0 {
		s["required"] = must
	}
	if t == reflect.TypeFor[Bond]() {
		s["allOf"] = optionsOfModes()
	}
	return s
}

func schemaOfMode() object {
	var values []any
	for i, m := range bonding.AvailableModes() {
		values = append(values, m.String(), strconv.Itoa(i), i)
	}
	return object{"enum": values}
}

// schemaOfOptions is that of the options: what each may be in some mode.
func schemaOfOptions() object {
	properties := object{}
	for _, o := range fileOptions() {
		s := schemaOfOption(&o)
		properties[o.Name] = s
		if o.Alias != "" {
			properties[o.Alias] = s
		}
	}
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

// fileOptions are the options that a file sets as such.
func fileOptions() []bonding.OptionInfo {
	var list []bonding.OptionInfo
	for _, o := range bonding.OptionTable() {
		if o.Name != "mode" && o.Name != "queue_id" && o.Name != "weight" {
			list = append(list, o)
		}
	}
	return list
}

func schemaOfOption(o *bonding.OptionInfo) object {
	s := object{"description": describe(o)}
	switch {
	case o.Number:
		// Numbers may be written as texts too, where leading zeros and white
		// space do not count.
		of := []object{{"type": "integer", "minimum": o.Least, "maximum": o.Greatest},
			{"enum": o.Words}, {"type": "string", "pattern": "^[0-9]+$"}}
		for _, w := range o.Words {
			if w == "on" { // off is there too
				of = append(of, object{"type": "boolean"})
			}
		}
		s["anyOf"] = of
	case o.List:
		text := object{"type": "string"}
		s["anyOf"] = []object{text, {"type": "array", "items": text, "maxItems": 16}}
	default:
		s["type"] = "string"
	}
	if o.Default != "" {
		s["default"] = o.Default
	}
	return s
}

// describe is an option's description for people.
func describe(o *bonding.OptionInfo) string {
	text := o.Doc
	units := map[string]string{"ms": "milliseconds", "us": "microseconds", "s": "seconds", "bytes": "bytes"}
	if o.Unit != "" {
		text += " In " + units[o.Unit] + "."
	}
	if all := len(bonding.AvailableModes()); len(o.Modes) < all {
		text += " Only in " + modeNames(o.Modes) + "."
	} else if len(o.Used) < all {
		text += " For " + modeNames(o.Used) + "."
	}
	return text
}

// optionsOfModes forbid, for each mode, the options that may not be set in it.
func optionsOfModes() []object {
	var rules []object
	for i, m := range bonding.AvailableModes() {
		not := object{}
		for _, o := range fileOptions() {
			allowed := false
			for _, in := range o.Modes {
				allowed = allowed || in == m
			}
			if !allowed {
				not[o.Name] = false
			}
		}
		rules = append(rules, object{
			"if":   object{"properties": object{"mode": object{"enum": []any{m.String(), strconv.Itoa(i), i}}}, "required": []string{"mode"}},
			"then": object{"properties": object{"options": object{"properties": not}}},
		})
	}
	return rules
}
