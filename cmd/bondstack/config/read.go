package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"bondstack/bonding"
)

// Parse reads a file and finds every fault of its form: keys that are not known or
// missing, types, ranges, texts that are not of their form. The file is nil where
// the text is no YAML; else it holds what could be read. Check finds the rest.
func Parse(data []byte) (*File, Faults) {
	l := &list{at: map[string]place{}}
	root := readNode(data, l)
	if root == nil {
		return nil, l.faults
	}
	f := &File{at: l.at}
	reader{l}.read(root, reflect.ValueOf(f).Elem(), "", "")
	l.faults.sort()
	return f, l.faults
}

// reader fills Go values from nodes.
type reader struct{ *list }

// special are types that have a reading of their own.
type special interface {
	readNode(r reader, n *node, key string)
}

// read fills v. tag is that of the field, "" where there is none.
func (r reader) read(n *node, v reflect.Value, tag reflect.StructTag, key string) {
	r.at[key] = n.place
	if s, ok := v.Addr().Interface().(special); ok {
		s.readNode(r, n, key)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if n.kind != null {
			v.Set(reflect.New(v.Type().Elem()))
			r.read(n, v.Elem(), tag, key)
			return
		}
		r.wrong(n, key, typeName(v.Type().Elem(), tag))
	case reflect.Struct:
		r.structure(n, v, key)
	case reflect.Slice:
		r.slice(n, v, tag, key)
	case reflect.Bool:
		if n.kind != boolean {
			r.wrong(n, key, typeName(v.Type(), tag))
			return
		}
		v.SetBool(n.text == "true")
	case reflect.String:
		if n.kind != text && (n.kind != integer || !numbers(tag.Get("form"))) {
			r.wrong(n, key, typeName(v.Type(), tag))
			return
		}
		v.SetString(n.text)
		r.check(n.place, key, n.text, tag)
	default:
		r.number(n, v, tag, key)
	}
}

// wrong tells of a value of a wrong type.
func (r reader) wrong(n *node, key, want string) {
	is := n.kind.String()
	if n.text != "" {
		is = fmt.Sprintf("%s (%s)", is, shorten(n.text))
	}
	r.addAt(n.place, key, "%s is given; allowed is %s", is, want)
}

// typeName says what a field may be.
func typeName(t reflect.Type, tag reflect.StructTag) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		if a := tag.Get("allowed"); a != "" {
			return "one of " + strings.ReplaceAll(a, ",", ", ")
		}
		if f := tag.Get("form"); f != "" {
			return forms[f].allowed
		}
		return "a text"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "a mapping with the keys " + strings.Join(keysOf(t), ", ")
	}
	least, greatest := rangeOf(tag)
	return fmt.Sprintf("a whole number from %d to %d", least, greatest)
}

// keysOf returns the keys of a struct in their order.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if key := keyOf(t.Field(i)); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// keyOf returns the key of a field, "" where it has none.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

// rangeOf returns the range of a number.
func rangeOf(tag reflect.StructTag) (least, greatest int64) {
	a, b, _ := strings.Cut(tag.Get("range"), ",")
	least, _ = strconv.ParseInt(a, 10, 64)
	greatest, _ = strconv.ParseInt(b, 10, 64)
	return least, greatest
}

func (r reader) structure(n *node, v reflect.Value, key string) {
	t := v.Type()
	if n.kind != mapping {
		r.wrong(n, key, typeName(t, ""))
		return
	}
	byKey := map[string]int{}
	for i := range t.NumField() {
		if k := keyOf(t.Field(i)); k != "" {
			byKey[k] = i
		}
	}
	given := map[string]bool{}
	for _, e := range n.entries {
		i, known := byKey[e.key]
		if !known {
			r.addAt(e.place, join(key, printable(e.key)), "there is no such key; allowed are %s", strings.Join(keysOf(t), ", "))
			continue
		}
		given[e.key] = true
		r.read(e.value, v.Field(i), t.Field(i).Tag, join(key, e.key))
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if k := keyOf(f); f.Tag.Get("must") != "" && !given[k] {
			r.addAt(n.place, join(key, k), "the key is missing: %s", f.Tag.Get("doc"))
		}
	}
}

func (r reader) slice(n *node, v reflect.Value, tag reflect.StructTag, key string) {
	if n.kind != sequence {
		r.wrong(n, key, "a list")
		return
	}
	if most, _ := strconv.Atoi(tag.Get("most")); len(n.items) > most {
		r.addAt(n.place, key, "the list has %d entries, allowed are %d", len(n.items), most)
		return
	}
	if tag.Get("must") != "" && len(n.items) == 0 {
		r.addAt(n.place, key, "the list is empty; at least one entry is needed")
	}
	list := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		r.read(item, list.Index(i), tag, fmt.Sprintf("%s[%d]", key, i))
	}
	v.Set(list)
}

func (r reader) number(n *node, v reflect.Value, tag reflect.StructTag, key string) {
	least, greatest := rangeOf(tag)
	i, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind != integer || err != nil || i < least || i > greatest {
		r.wrong(n, key, typeName(v.Type(), tag))
		return
	}
	if v.CanInt() {
		v.SetInt(i)
	} else {
		v.SetUint(uint64(i))
	}
}

// check checks a text by the tag of its field.
func (l *list) check(at place, key, value string, tag reflect.StructTag) {
	if allowed := tag.Get("allowed"); allowed != "" && !slices.Contains(strings.Split(allowed, ","), value) {
		l.addAt(at, key, "%s is given; allowed are %s", shorten(value), strings.ReplaceAll(allowed, ",", ", "))
	}
	if form := tag.Get("form"); form != "" {
		if why := forms[form].fault(value); why != "" {
			l.addAt(at, key, "%s %s; allowed is %s", shorten(value), why, forms[form].allowed)
		}
	}
}

// shorten quotes a text so that a message stays a line.
func shorten(value string) string {
	const most = 80
	if len(value) > most {
		return strconv.QuoteToASCII(value[:most]) + "..."
	}
	return strconv.Quote(value)
}

// printable is a key as it is, or quoted where it could spoil a line.
func printable(key string) string {
	if q := shorten(key); q != `"`+key+`"` {
		return q
	}
	return key
}

func (m *Mode) readNode(r reader, n *node, key string) {
	mode, err := bonding.ParseMode(n.text)
	if n.kind != text && n.kind != integer || err != nil {
		r.wrong(n, key, "one of "+strings.Join(bonding.ModeNames(), ", "))
		return
	}
	*m = Mode(mode)
}

// readNode takes a slave's name alone too.
func (s *Slave) readNode(r reader, n *node, key string) {
	if n.kind != text {
		r.structure(n, reflect.ValueOf(s).Elem(), key)
		return
	}
	s.Name = n.text
	field, _ := reflect.TypeFor[Slave]().FieldByName("Name")
	r.check(n.place, key, n.text, field.Tag)
}

// readNode takes scalars, and lists of them. What the names and values mean is for
// the bond to say.
func (o *Options) readNode(r reader, n *node, key string) {
	if n.kind != mapping {
		r.wrong(n, key, "a mapping of options by their Linux names")
		return
	}
	*o = Options{}
	for _, e := range n.entries {
		at := join(key, e.key)
		r.at[at] = e.value.place
		if text, ok := r.optionText(e.value, e.key, at); ok {
			(*o)[e.key] = text
		}
	}
}

// optionText is an option's value as text.
func (r reader) optionText(n *node, name, key string) (string, bool) {
	switch n.kind {
	case text, integer:
		return n.text, true
	case boolean:
		return map[string]string{"true": "on", "false": "off"}[n.text], true
	case sequence:
		if !slices.Contains(listOptions, name) {
			break
		}
		var texts []string
		for i, item := range n.items {
			if item.kind != text {
				r.wrong(item, fmt.Sprintf("%s[%d]", key, i), "a text")
				return "", false
			}
			texts = append(texts, item.text)
		}
		return strings.Join(texts, ","), true
	}
	r.wrong(n, key, "a text or a whole number")
	return "", false
}

// listOptions are the options that are lists.
var listOptions = []string{"arp_ip_target", "ns_ip6_target"}
