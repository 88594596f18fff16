package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"bondstack/cmd/bondstack/config"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// node is a value of a YAML or JSON file with the line that it is on.
type node struct {
	line  int
	kind  nodeKind
	text  string // of a scalar
	items []*node
	pairs []pair
}

type nodeKind uint8

const (
	scalar nodeKind = iota
	list
	table
)

// pair is a key of a table, with the line of the key.
type pair struct {
	line  int
	key   string
	value *node
}

// maxDepth bounds how deep tables and lists are in each other.
const maxDepth = 64

// get returns a table's value by key, nil where it has none. The last of several
// counts.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i := len(n.pairs) - 1; i >= 0; i-- {
		if n.pairs[i].key == key {
			return n.pairs[i].value
		}
	}
	return nil
}

// value returns the text of a scalar, and "" of all else.
func (n *node) value() string {
	if n == nil {
		return ""
	}
	return n.text
}

// raw returns a scalar as it is, a list of scalars with commas, and all else as
// show does.
func (n *node) raw() string {
	texts := make([]string, len(n.items))
	for i, item := range n.items {
		if item.kind != scalar {
			return n.show()
		}
		texts[i] = item.text
	}
	switch n.kind {
	case scalar:
		return n.text
	case list:
		return strings.Join(texts, ",")
	}
	return n.show()
}

// show returns a value on one line, shortened, for people.
func (n *node) show() string {
	var b strings.Builder
	n.write(&b)
	return shorten(b.String())
}

const maxShown = 80

func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown-3], "") + "..."
	}
	return text
}

func (n *node) write(b *strings.Builder) {
	if b.Len() > maxShown { // aliases may make the whole text huge
		return
	}
	switch n.kind {
	case scalar:
		b.WriteString(n.text)
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if b.Len() > maxShown {
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			item.write(b)
		}
		b.WriteByte(']')
	case table:
		b.WriteByte('{')
		for i, p := range n.pairs {
			if b.Len() > maxShown {
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(p.key + ": ")
			p.value.write(b)
		}
		b.WriteByte('}')
	}
}

// parseYAML reads the documents of a YAML file.
func parseYAML(text []byte) (docs []*node, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser is not ours
			docs, err = nil, errors.New("not YAML that can be read")
		}
	}()
	tokens, err := config.ForeignTokens(text)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("not YAML: %s", first)
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		c := yamlConverter{anchors: map[string]*node{}}
		n, err := c.convert(doc.Body, 0)
		if err != nil {
			return nil, err
		}
		docs = append(docs, n)
	}
	return docs, nil
}

// yamlConverter makes nodes of a document. An alias is its anchor's node itself,
// so that aliases of aliases cost nothing.
type yamlConverter struct{ anchors map[string]*node }

func (c *yamlConverter) convert(from ast.Node, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: more than %d levels", lineOf(from), maxDepth)
	}
	switch n := from.(type) {
	case *ast.MappingNode:
		out := &node{line: lineOf(n), kind: table}
		for _, v := range n.Values {
			if err := c.pair(out, v, depth); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *ast.MappingValueNode:
		out := &node{line: lineOf(n), kind: table}
		return out, c.pair(out, n, depth)
	case *ast.SequenceNode:
		out := &node{line: lineOf(n), kind: list}
		for _, v := range n.Values {
			item, err := c.convert(v, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
		return out, nil
	case *ast.AnchorNode:
		out, err := c.convert(n.Value, depth+1)
		if err == nil && n.Name != nil {
			c.anchors[n.Name.String()] = out
		}
		return out, err
	case *ast.AliasNode:
		if out := c.anchors[n.Value.String()]; out != nil {
			return out, nil
		}
		return nil, fmt.Errorf("line %d: unknown anchor %s", lineOf(n), shorten(n.Value.String()))
	case *ast.TagNode:
		return c.convert(n.Value, depth+1)
	case nil:
		return &node{}, nil
	}
	return &node{line: lineOf(from), text: scalarText(from)}, nil
}

// pair adds a key and its value to a table, or the pairs that << merges.
func (c *yamlConverter) pair(to *node, v *ast.MappingValueNode, depth int) error {
	value, err := c.convert(v.Value, depth+1)
	if err != nil {
		return err
	}
	if v.Key.IsMergeKey() {
		to.pairs = append(append([]pair(nil), value.pairs...), to.pairs...)
		if len(to.pairs) > maxPairs {
			return fmt.Errorf("line %d: more than %d keys", lineOf(v), maxPairs)
		}
		return nil
	}
	var key string
	if k, ok := v.Key.(ast.Node); ok {
		key = scalarText(k)
	}
	to.pairs = append(to.pairs, pair{lineOf(v.Key), key, value})
	return nil
}

// maxPairs bounds the keys of a table that merges others.
const maxPairs = 10000

func scalarText(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return ""
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		if n.Value == nil {
			return ""
		}
		return n.Value.Value
	case *ast.MappingKeyNode:
		return scalarText(n.Value)
	case *ast.AnchorNode:
		return scalarText(n.Value)
	case *ast.TagNode:
		return scalarText(n.Value)
	}
	if t := n.GetToken(); t != nil { // numbers and booleans as they were written
		return t.Value
	}
	return n.String()
}

func lineOf(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0]
	}
	if v, ok := n.(*ast.MappingValueNode); ok && v.Key != nil {
		n = v.Key
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// parseJSON reads one JSON value.
func parseJSON(text []byte) (*node, error) {
	p := jsonParser{text: text, line: 1, dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err == nil {
		if _, more := p.dec.Token(); more != io.EOF {
			err = errors.New("more text behind the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: not JSON: %w", p.lineNow(), err)
	}
	return n, nil
}

type jsonParser struct {
	text []byte
	dec  *json.Decoder
	// line is that of the offset before.
	line, before int
}

// lineNow returns the line of the token that was read last.
func (p *jsonParser) lineNow() int {
	at := min(int(p.dec.InputOffset()), len(p.text))
	p.line += bytes.Count(p.text[p.before:at], []byte("\n"))
	p.before = at
	return p.line
}

func (p *jsonParser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels", maxDepth)
	}
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.lineNow()}
	switch token {
	case json.Delim('{'):
		n.kind = table
		for p.dec.More() {
			key, err := p.dec.Token()
			if err != nil {
				return nil, err
			}
			line := p.lineNow()
			v, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.pairs = append(n.pairs, pair{line, fmt.Sprint(key), v})
		}
		_, err = p.dec.Token()
	case json.Delim('['):
		n.kind = list
		for p.dec.More() {
			v, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
		_, err = p.dec.Token()
	case nil:
	default:
		n.text = fmt.Sprint(token)
	}
	return n, err
}
