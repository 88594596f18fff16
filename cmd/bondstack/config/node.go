package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file.
const (
	MaxSize     = 1 << 20 // bytes
	maxDepth    = 16      // of mappings and lists in each other
	maxOnOneRow = 32      // keys and entries that open on one line, outside of brackets
	maxKeys     = 256     // of a mapping, outside of brackets
	maxEntries  = 5000    // of a list, outside of brackets
	maxBrackets = 10000   // tokens from a bracket to the one that closes it
	maxBlank    = 200     // lines without anything in a row
)

// kind is what a node of the text is.
type kind uint8

const (
	null kind = iota
	boolean
	integer // its text is as it is written
	float
	text
	mapping
	sequence
)

var kindNames = []string{"nothing", "a truth value", "a whole number", "a number", "a text", "a mapping", "a list"}

func (k kind) String() string { return kindNames[k] }

// node is a value of the text and where it is.
type node struct {
	place
	kind    kind
	text    string // of a scalar
	entries []entry
	items   []*node
}

// entry is a key of a mapping.
type entry struct {
	place
	key   string
	value *node
}

// readNode reads YAML. A fault of its form ends it: the result is nil then.
func readNode(data []byte, l *list) (root *node) {
	if len(data) > MaxSize {
		l.addAt(place{1, 1}, "", "the file has %d bytes, allowed are %d", len(data), MaxSize)
		return nil
	}
	defer func() {
		// The parser is not ours: what it does not bear is a fault of the file.
		if r := recover(); r != nil {
			l.addAt(place{1, 1}, "", "this is no YAML that can be read")
			root = nil
		}
	}()
	if line := tooBlank(data); line > 0 {
		l.addAt(place{line, 1}, "", "more than %d lines without anything follow one another", maxBlank)
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if !bounded(tokens, l, false) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		l.addAt(placeOfError(err), "", "this is not YAML: %s", messageOf(err))
		return nil
	}
	var body ast.Node
	for _, d := range file.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			l.addAt(placeOf(d.Body.GetToken()), "", "a second document begins here, allowed is one")
			return nil
		}
		body = d.Body
	}
	if body == nil {
		l.addAt(place{1, 1}, "", "the file is empty; a smallest one is in docs/configuration.md")
		return nil
	}
	c := converter{l}
	root, ok := c.convert(body, "", 0)
	if !ok {
		return nil
	}
	return root
}

// ForeignTokens reads the tokens of another program's YAML, in which anchors and tags
// may be. The bounds are those of Parse but for the size: beyond them a parser may take
// far too long. The error names the line.
func ForeignTokens(data []byte) (tokens token.Tokens, err error) {
	defer func() {
		if r := recover(); r != nil { // the scanner is not ours
			err = errors.New("this is no YAML that can be read")
		}
	}()
	if line := tooBlank(data); line > 0 {
		return nil, fmt.Errorf("line %d: more than %d lines without anything follow one another", line, maxBlank)
	}
	tokens = lexer.Tokenize(string(data))
	if l := (&list{}); !bounded(tokens, l, true) {
		return nil, fmt.Errorf("line %d: %s", l.faults[0].Line, l.faults[0].Message)
	}
	return tokens, nil
}

// tooBlank returns the line with which too many lines are blank, over which the
// scanner takes a time that goes with their square; 0 where none is.
func tooBlank(data []byte) int {
	line, run := 1, 0
	for _, c := range data {
		switch c {
		case '\n', '\r':
			line++
			if run++; run > maxBlank {
				return line
			}
		case ' ', '\t':
		default:
			run = 0
		}
	}
	return 0
}

// bounded looks for what a parser could choke on, before one sees it, and for what
// is not allowed here; in a foreign text all is that a parser can bear.
func bounded(tokens token.Tokens, l *list, foreign bool) bool {
	rows := rows{}
	depth, inside := 0, 0
	for _, t := range tokens {
		why := ""
		if inside++; depth == 0 {
			inside = 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			why = unless(foreign, "anchors and aliases are not allowed: write the value out")
		case token.TagType, token.DirectiveType:
			why = unless(foreign, "tags and directives are not allowed")
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth > maxDepth {
				why = fmt.Sprintf("more than %d brackets are open", maxDepth)
			}
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.InvalidType:
			why = "this is not YAML: " + t.Error
		}
		if inside > maxBrackets {
			why = fmt.Sprintf("more than %d tokens are in one pair of brackets", maxBrackets)
		}
		if why == "" && depth == 0 && t.Type != token.CommentType {
			why = rows.next(t)
		}
		if why != "" {
			l.addAt(placeOf(t), "", "%s", why)
			return false
		}
	}
	return true
}

// rows counts what begins on one line, and lines that begin at one column. A
// parser may take a time that goes with the square of either.
type rows struct {
	line, onLine int
	open         []siblings // the columns at which lines begin, each greater than the one before
}

type siblings struct{ column, count int }

// next counts a token outside of brackets, and says what there is too much of.
func (r *rows) next(t *token.Token) string {
	p := placeOf(t)
	if opens := t.Type == token.SequenceEntryType || t.Type == token.MappingKeyType || t.Type == token.MappingValueType; opens {
		r.onLine++
	}
	if p.line == r.line {
		return unless(r.onLine <= maxOnOneRow, "too many keys or entries are inside each other")
	}
	r.line, r.onLine = p.line, 1
	for len(r.open) > 0 && r.open[len(r.open)-1].column > p.column {
		r.open = r.open[:len(r.open)-1]
	}
	if len(r.open) == 0 || r.open[len(r.open)-1].column < p.column {
		r.open = append(r.open, siblings{p.column, 0})
	}
	s := &r.open[len(r.open)-1]
	s.count++
	most := maxKeys
	if t.Type == token.SequenceEntryType {
		most = maxEntries
	}
	switch {
	case len(r.open) > maxOnOneRow:
		return "too many keys or entries are inside each other"
	case s.count > most:
		return fmt.Sprintf("more than %d keys or entries follow one another", most)
	}
	return ""
}

func placeOf(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{t.Position.Line, t.Position.Column}
}

func placeOfError(err error) place {
	var e yaml.Error
	if errors.As(err, &e) {
		return placeOf(e.GetToken())
	}
	return place{1, 1}
}

func messageOf(err error) string {
	var e yaml.Error
	if errors.As(err, &e) {
		return e.GetMessage()
	}
	return err.Error()
}

// converter makes nodes of a syntax tree.
type converter struct{ *list }

func (c converter) convert(n ast.Node, key string, depth int) (*node, bool) {
	if n == nil {
		return &node{}, true
	}
	out := &node{place: placeOf(n.GetToken())}
	if depth > maxDepth {
		c.addAt(out.place, key, "more than %d mappings and lists are inside each other", maxDepth)
		return nil, false
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		out.kind, out.text = boolean, fmt.Sprint(n.Value)
	case *ast.IntegerNode:
		out.kind, out.text = integer, n.Token.Value
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = float, n.GetToken().Value
	case *ast.StringNode:
		out.kind, out.text = text, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = text, strings.TrimSuffix(n.Value.Value, "\n")
	case *ast.MappingValueNode:
		return c.mapping(out, []*ast.MappingValueNode{n}, key, depth)
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			out.place = placeOf(n.Values[0].Key.GetToken())
		}
		return c.mapping(out, n.Values, key, depth)
	case *ast.SequenceNode:
		out.kind = sequence
		for i, v := range n.Values {
			item, ok := c.convert(v, fmt.Sprintf("%s[%d]", key, i), depth+1)
			if !ok {
				return nil, false
			}
			out.items = append(out.items, item)
		}
	default:
		c.addAt(out.place, key, "YAML of this kind is not allowed here")
		return nil, false
	}
	return out, true
}

func (c converter) mapping(out *node, values []*ast.MappingValueNode, key string, depth int) (*node, bool) {
	out.kind = mapping
	seen := map[string]bool{}
	for _, v := range values {
		at := placeOf(v.Key.GetToken())
		if len(out.entries) == 0 && (out.line == 0 || v.GetToken() != nil && out.place == placeOf(v.GetToken())) {
			out.place = at
		}
		name, ok := v.Key.(*ast.StringNode)
		switch {
		case !ok:
			c.addAt(at, key, "the key %q is no text", v.Key.GetToken().Value)
			continue
		case seen[name.Value]:
			c.addAt(at, join(key, name.Value), "the key is there twice")
			continue
		}
		seen[name.Value] = true
		value, ok := c.convert(v.Value, join(key, name.Value), depth+1)
		if !ok {
			return nil, false
		}
		out.entries = append(out.entries, entry{at, name.Value, value})
	}
	return out, true
}

// join is the key of a value inside another.
func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
