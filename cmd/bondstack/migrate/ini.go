package migrate

import "strings"

// iniSection is a section of a systemd unit file.
type iniSection struct {
	place
	name    string
	entries []setting
}

// get returns the last value of a key.
func (s *iniSection) get(key string) string {
	value := ""
	for _, e := range s.entries {
		if e.key == key {
			value = e.value
		}
	}
	return value
}

// show returns all entries on one line.
func (s *iniSection) show() string {
	texts := make([]string, len(s.entries))
	for i, e := range s.entries {
		texts[i] = e.key + "=" + e.value
	}
	return strings.Join(texts, " ")
}

// readINI reads a file in systemd's syntax: a backslash at a line's end joins it
// with the next that is no comment. wrong are the lines that are neither a
// section, an assignment nor a comment.
func readINI(name string, text string) (sections []*iniSection, wrong []setting) {
	var current *iniSection
	number, from := 0, 0
	var joined strings.Builder
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if comment := strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"); comment {
			continue
		}
		if joined.Len() == 0 {
			from = number
		}
		if before, more := strings.CutSuffix(line, "\\"); more {
			joined.WriteString(before + " ")
			continue
		}
		joined.WriteString(line)
		at, whole := place{name, from}, strings.TrimSpace(joined.String())
		joined.Reset()
		key, value, ok := strings.Cut(whole, "=")
		switch {
		case whole == "":
		case whole[0] == '[' && whole[len(whole)-1] == ']':
			current = &iniSection{place: at, name: whole[1 : len(whole)-1]}
			sections = append(sections, current)
		case !ok || current == nil:
			wrong = append(wrong, setting{at, shorten(whole), ""})
		default:
			current.entries = append(current.entries, setting{at, strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	if rest := strings.TrimSpace(joined.String()); rest != "" {
		wrong = append(wrong, setting{place{name, from}, shorten(rest), ""})
	}
	return sections, wrong
}
