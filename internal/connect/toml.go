package connect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxTOML bounds a TOML file: the decoder compares each name with those beside it, which takes seconds for as many as fit in this.
// Real files have a few kilobytes.
const maxTOML = 256 << 10

// tomlFile reads one file: the decoder says what it means, the parser of its syntax where that lies.
type tomlFile struct {
	*document
	tables map[string]*tomlTable // by the name of the server
}

// tomlTable is where an entry lies. It may be written under a header, with dotted names, or inline.
type tomlTable struct {
	at      int
	header  int // offset of the first name in its own header; -1: it has none
	members map[string]tomlMember
}

// tomlMember is a name with its value.
type tomlMember struct {
	span         // of both
	last    span // of the last part of its name
	value   span
	inline  bool  // between braces
	literal *text // it is a string
	elems   []text
}

func readTOML(format Format, data []byte) (*document, error) {
	f := &tomlFile{document: &document{data: data, format: format}, tables: map[string]*tomlTable{}}
	if len(data) > maxTOML {
		return nil, fmt.Errorf("it is larger than %d bytes", maxTOML)
	}
	tree := map[string]any{}
	if err := toml.Unmarshal(data, &tree); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) { // its text may quote a secret
			line, column := at.Position()
			return nil, fmt.Errorf("it is not TOML: see line %d, column %d", line, column)
		}
		return nil, errors.New("it is not TOML")
	}
	f.tree = tree
	holder, ok := tree[format.Key]
	if !ok {
		return f.document, nil
	}
	servers, ok := holder.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no table", format.Key)
	}
	if err := f.locate(); err != nil {
		return nil, err
	}
	for name, value := range servers {
		f.entries = append(f.entries, f.entry(name, value))
	}
	slices.SortFunc(f.entries, func(a, b *entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name(), b.name())) })
	return f.document, nil
}

// locate walks the file's expressions and notes where the parts of the entries lie.
func (f *tomlFile) locate() error {
	var p unstable.Parser
	p.Reset(f.data)
	var table []string
	for p.NextExpression() {
		n := p.Expression()
		if n.Kind == unstable.KeyValue {
			f.keyValue(table, n, false)
			continue
		}
		keys := parts(n)
		table = names(keys)
		if len(table) >= 2 && table[0] == f.format.Key {
			t := f.table(table[1], keys[0].start)
			if len(table) == 2 && n.Kind == unstable.Table {
				t.header = keys[0].start
			}
		}
	}
	if p.Error() != nil {
		return errors.New("it is not TOML")
	}
	return nil
}

func (f *tomlFile) table(name string, at int) *tomlTable {
	t := f.tables[name]
	if t == nil {
		t = &tomlTable{at: at, header: -1, members: map[string]tomlMember{}}
		f.tables[name] = t
	}
	return t
}

// keyValue notes a name with its value, and what an inline table holds.
func (f *tomlFile) keyValue(table []string, n *unstable.Node, inline bool) {
	keys := parts(n)
	path := append(slices.Clone(table), names(keys)...)
	if path[0] != f.format.Key {
		return
	}
	if len(path) >= 2 {
		t := f.table(path[1], keys[0].start)
		if len(path) == 3 {
			t.members[path[2]] = f.member(n, keys, inline)
		}
	}
	if v := n.Value(); v.Kind == unstable.InlineTable && len(path) < 3 {
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				f.keyValue(path, it.Node(), true)
			}
		}
	}
}

func (f *tomlFile) member(n *unstable.Node, keys []text, inline bool) tomlMember {
	m := tomlMember{span: spanOf(n.Raw), last: keys[len(keys)-1].span, inline: inline}
	m.value.start, m.value.end = m.last.end, m.end
	m.value.start += len(f.raw(m.value)) - len(strings.TrimLeft(f.raw(m.value), " \t="))
	switch v := n.Value(); v.Kind {
	case unstable.String:
		m.literal = &text{m.value, string(v.Data)}
	case unstable.Array:
		for it := v.Children(); it.Next(); {
			if e := it.Node(); e.Kind == unstable.String {
				m.elems = append(m.elems, text{spanOf(e.Raw), string(e.Data)})
			}
		}
	}
	return m
}

// entry joins what the file means with where it lies.
func (f *tomlFile) entry(name string, value any) *entry {
	e := &entry{path: []string{f.format.Key, name}}
	t := f.tables[name]
	if t == nil {
		e.problem = "it is written in a way that is not known here"
		return e
	}
	e.at = t.at
	e.without = func() ([]edit, error) { return f.withoutTable(t) }
	table, ok := value.(map[string]any)
	if !ok {
		e.problem = "it is no table"
		return e
	}
	e.members = slices.Sorted(maps.Keys(table))
	for _, key := range e.members {
		m, located := t.members[key]
		switch v := table[key].(type) {
		case string:
			switch key {
			case "command":
				if !located || m.literal == nil || m.literal.value != v {
					e.problem = "its command is written in a way that is not known here"
					continue
				}
				e.command = m.literal
				f.placeArgs(e, m)
				continue
			case "url":
				e.url = true
			}
		case []any:
			switch key {
			case "args":
				if !located || len(m.elems) != len(v) {
					e.problem = "its args are no list of texts"
					continue
				}
				e.args = &list{m.value, m.elems}
				e.withoutArgs = func() ([]edit, error) { return f.withoutMember(m) }
				continue
			case "env_vars": // names of variables that the client passes on, with or without where they come from
				for _, v := range v {
					if of, ok := v.(map[string]any); ok {
						v = of["name"]
					}
					if name, ok := v.(string); ok {
						e.env = append(e.env, name)
					} else {
						e.problem = "its env_vars hold something that is no name"
					}
				}
				continue
			}
		case map[string]any:
			if key == "env" {
				e.env = append(e.env, slices.Sorted(maps.Keys(v))...)
				continue
			}
		}
		switch key {
		case "command":
			e.problem = "its command is no text"
		case "args":
			e.problem = "its args are no list of texts"
		case "env", "env_vars":
			e.problem = "its " + key + " is of a kind that is not known here"
		}
	}
	return e
}

// placeArgs says where an array of arguments goes: on a line of its own behind that of the command, or behind it between braces.
func (f *tomlFile) placeArgs(e *entry, m tomlMember) {
	equals := f.raw(span{m.last.end, m.value.start})
	prefix := f.raw(span{m.start, m.last.start}) // the first parts of a dotted name
	if m.inline {
		e.newArgs.at, e.newArgs.before = m.end, ", "+prefix+"args"+equals
		return
	}
	lineEnd := m.end + endOfLine(f.data[m.end:])
	begin := 1 + bytes.LastIndexByte(f.data[:m.start], '\n')
	e.newArgs.at, e.newArgs.before = lineEnd, newline(f.data)+f.raw(span{begin, m.start})+prefix+"args"+equals
}

// withoutMember takes a member out, with its line or its comma.
func (f *tomlFile) withoutMember(m tomlMember) ([]edit, error) {
	before := strings.TrimRight(string(f.data[:m.start]), " \t\r\n")
	after := string(f.data[m.end:])
	switch {
	case m.inline && strings.HasSuffix(before, ","):
		return []edit{{span{len(before) - 1, m.end}, ""}}, nil
	case m.inline:
		rest, comma := strings.CutPrefix(strings.TrimLeft(after, " \t\r\n"), ",")
		if comma {
			rest = strings.TrimLeft(rest, " \t\r\n")
		}
		return []edit{{span{m.start, len(f.data) - len(rest)}, ""}}, nil
	}
	begin := 1 + bytes.LastIndexByte(f.data[:m.start], '\n')
	end := m.end + endOfLine(f.data[m.end:])
	if !blank(f.raw(span{begin, m.start})) || !blank(f.raw(span{m.end, end})) {
		return nil, errComment
	}
	if begin > 0 { // the line end before it goes, and the one behind it stays
		begin -= len(lineEnd(f.data[:begin]))
	} else {
		end += len(firstLineEnd(f.data[end:]))
	}
	return []edit{{span{begin, end}, ""}}, nil
}

// withoutTable takes out what connect appends: a header, two lines, and the empty line before.
func (f *tomlFile) withoutTable(t *tomlTable) ([]edit, error) {
	if t.header < 0 {
		return nil, errors.New("it has no header of its own")
	}
	begin := 1 + bytes.LastIndexByte(f.data[:t.header], '\n')
	headerEnd := t.header + endOfLine(f.data[t.header:])
	if line := f.raw(span{begin, headerEnd}); !strings.HasSuffix(strings.TrimRight(line, " \t"), "]") {
		return nil, errComment
	}
	members := slices.SortedFunc(maps.Values(t.members), func(a, b tomlMember) int { return cmp.Compare(a.start, b.start) })
	last := headerEnd
	for _, m := range members {
		if m.start < last || !blank(f.raw(span{last, m.start})) {
			return nil, errComment
		}
		last = m.end
	}
	end := last + endOfLine(f.data[last:])
	if !blank(f.raw(span{last, end})) {
		return nil, errComment
	}
	end += len(firstLineEnd(f.data[end:]))
	if before := f.data[:begin]; bytes.HasSuffix(before, []byte("\n\n")) || bytes.HasSuffix(before, []byte("\n\r\n")) {
		begin -= len(lineEnd(before))
	}
	return []edit{{span{begin, end}, ""}}, nil
}

// parts are the parts of a name.
func parts(n *unstable.Node) (out []text) {
	for it := n.Key(); it.Next(); {
		out = append(out, text{spanOf(it.Node().Raw), string(it.Node().Data)})
	}
	return out
}

func names(keys []text) (out []string) {
	for _, k := range keys {
		out = append(out, k.value)
	}
	return out
}

func spanOf(r unstable.Range) span { return span{int(r.Offset), int(r.Offset + r.Length)} }

// endOfLine is the offset of the first line end in data; without one, of the end.
func endOfLine(data []byte) int {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		return len(data)
	}
	if i > 0 && data[i-1] == '\r' {
		i--
	}
	return i
}

// lineEnd is the line end that data ends with, firstLineEnd the one it begins with; newline is the one a file uses.
func lineEnd(data []byte) string {
	for _, end := range []string{"\r\n", "\n"} {
		if bytes.HasSuffix(data, []byte(end)) {
			return end
		}
	}
	return ""
}

func firstLineEnd(data []byte) string {
	for _, end := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(data, []byte(end)) {
			return end
		}
	}
	return ""
}

func newline(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
