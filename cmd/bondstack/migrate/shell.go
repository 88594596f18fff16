package migrate

import "strings"

// shellCommand is one simple command of a shell script.
type shellCommand struct {
	line  int // of its first word
	words []string
	// expands: the shell would replace a part of it, which is not known here.
	expands bool
	// open: a quote is not closed.
	open bool
}

// shellCommands splits a script at line ends, semicolons, && and ||, and each
// command into words without their quotes. A > outside of quotes is a word; a
// redirection of another descriptor (2>FILE) is left out.
func shellCommands(text string) []shellCommand {
	l := shellLexer{text: text, line: 1}
	for l.at < len(l.text) {
		l.step()
	}
	l.endCommand()
	return l.commands
}

type shellLexer struct {
	text     string
	at, line int
	commands []shellCommand
	command  shellCommand
	word     strings.Builder
	inWord   bool
	// skip: the next word is the file of a redirection that is left out.
	skip bool
}

func (l *shellLexer) step() {
	c := l.text[l.at]
	switch c {
	case '\n', ';':
		l.at++
		l.endCommand()
		if c == '\n' {
			l.line++
		}
	case ' ', '\t', '\r':
		l.at++
		l.endWord()
	case '#':
		if l.inWord {
			l.add(c)
			return
		}
		l.at = end(l.text, l.at, '\n')
	case '&', '|':
		l.at++
		l.endCommand()
	case '\\':
		l.escape()
	case '\'', '"':
		l.quoted(c)
	case '>':
		l.redirect()
	case '$', '`':
		l.command.expands = true
		l.add(c)
	default:
		l.add(c)
	}
}

func (l *shellLexer) add(c byte) {
	l.begin()
	l.word.WriteByte(c)
	l.at++
}

func (l *shellLexer) begin() {
	if len(l.command.words) == 0 && !l.inWord {
		l.command.line = l.line
	}
	l.inWord = true
}

func (l *shellLexer) escape() {
	l.at++
	if l.at == len(l.text) {
		return
	}
	if l.text[l.at] == '\n' {
		l.at++
		l.line++
		return
	}
	l.add(l.text[l.at])
}

// quoted reads up to the closing quote.
func (l *shellLexer) quoted(quote byte) {
	l.begin()
	for l.at++; l.at < len(l.text); l.at++ {
		c := l.text[l.at]
		switch {
		case c == quote:
			l.at++
			return
		case c == '\n':
			l.line++
		case quote == '"' && (c == '$' || c == '`'):
			l.command.expands = true
		case quote == '"' && c == '\\' && l.at+1 < len(l.text) && strings.IndexByte("\"\\$`\n", l.text[l.at+1]) >= 0:
			l.at++
			if c = l.text[l.at]; c == '\n' {
				l.line++
				continue
			}
		}
		l.word.WriteByte(c)
	}
	l.command.open = true
}

func (l *shellLexer) redirect() {
	descriptor := l.inWord && strings.Trim(l.word.String(), "0123456789") == ""
	if descriptor {
		l.word.Reset()
		l.inWord = false
	}
	l.endWord()
	for l.at < len(l.text) && (l.text[l.at] == '>' || l.text[l.at] == '&' && descriptor) {
		l.at++
	}
	if descriptor {
		l.skip = true
		return
	}
	l.begin()
	l.word.WriteByte('>')
	l.endWord()
}

func (l *shellLexer) endWord() {
	if l.inWord {
		if !l.skip {
			l.command.words = append(l.command.words, l.word.String())
		}
		l.skip = false
	}
	l.word.Reset()
	l.inWord = false
}

func (l *shellLexer) endCommand() {
	l.endWord()
	l.skip = false
	if len(l.command.words) > 0 || l.command.open {
		l.commands = append(l.commands, l.command)
	}
	l.command = shellCommand{}
}

// end returns the index of the first c at or behind i, or the text's end.
func end(text string, i int, c byte) int {
	if n := strings.IndexByte(text[i:], c); n >= 0 {
		return i + n
	}
	return len(text)
}
