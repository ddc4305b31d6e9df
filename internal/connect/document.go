package connect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A document is a configuration file as its parser sees it: where the entries lie, and what the whole says.
type document struct {
	data    []byte
	format  Format
	entries []*entry
	tree    any         // the meaning of the whole, to compare
	root    *jsonObject // of JSON; nil: the file is empty
	holder  *jsonObject // of JSON: what holds the servers; nil: nothing does
}

// span is a range of bytes of the file.
type span struct{ start, end int }

// text is a string of the file: where its literal lies, and what it says.
type text struct {
	span
	value string
}

// list is an array of strings.
type list struct {
	span
	elems []text
}

// entry is one server of the file.
type entry struct {
	path    []string // of members, down to the server's name
	at      int      // the offset of its name
	command *text
	args    *list // nil: the entry has none
	env     []string
	envFile bool
	url     bool
	members []string // names of all its members
	problem string   // why it cannot be rewritten

	// newArgs is where an array of arguments goes if there is none: between these texts, at that offset.
	newArgs struct {
		at            int
		before, after string
	}
	// withoutArgs and without give the edits that take the member args, or the whole entry, out.
	withoutArgs, without func() ([]edit, error)
}

func (e *entry) name() string { return e.path[len(e.path)-1] }

// scope is the project that the entry is for; empty: all.
func (e *entry) scope() string {
	if len(e.path) == 4 {
		return e.path[1]
	}
	return ""
}

// words are the command and its arguments.
func (e *entry) words() []string {
	if e.command == nil {
		return nil
	}
	words := []string{e.command.value}
	if e.args != nil {
		for _, a := range e.args.elems {
			words = append(words, a.value)
		}
	}
	return words
}

func (d *document) find(path []string) *entry {
	for _, e := range d.entries {
		if slices.Equal(e.path, path) {
			return e
		}
	}
	return nil
}

func (d *document) line(at int) int { return 1 + bytes.Count(d.data[:at], []byte("\n")) }

func (d *document) raw(s span) string { return string(d.data[s.start:s.end]) }

// edit replaces a range of bytes.
type edit struct {
	span
	text string
}

// apply makes all edits; they must not overlap.
func apply(data []byte, edits []edit) ([]byte, error) {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var out []byte
	last := 0
	for _, e := range edits {
		if e.start < last || e.end < e.start || e.end > len(data) {
			return nil, errors.New("two changes of the file overlap")
		}
		out = append(append(out, data[last:e.start]...), e.text...)
		last = e.end
	}
	return append(out, data[last:]...), nil
}

// read parses data as format says.
func read(format Format, data []byte) (*document, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxFile)
	}
	if format.TOML {
		return readTOML(format, data)
	}
	return readJSON(format, data)
}

// quote writes a string as both JSON and TOML read it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s { // what is no UTF-8 becomes U+FFFD; the callers refuse it before
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7F:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteAll(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, quote(w))
	}
	return strings.Join(quoted, ", ")
}

// blank reports whether text is white space only.
func blank(text string) bool { return strings.Trim(text, " \t\r\n") == "" }

// joint reports whether text is white space around at most one comma.
func joint(text string) bool { return blank(strings.Replace(text, ",", "", 1)) }

var errComment = errors.New("something was written beside what connect put there")
