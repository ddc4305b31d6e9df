package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// maxDepth bounds how deep a file may nest: the parser goes down by calling itself. Real files nest less than ten deep.
// maxValues bounds how many values it holds, each of which costs about a kilobyte while the file is compared: a history of years
// has a hundred thousand.
const (
	maxDepth  = 500
	maxValues = 500_000
)

// jsonObject is an object of the file, with offsets into it.
type jsonObject struct {
	span
	members []jsonMember
}

type jsonMember struct {
	name, value span
	key         string
	trimmed     hujson.ValueTrimmed
	lead, after string // white space and comments before the name, and between the value and its comma
}

func (o *jsonObject) get(key string) (jsonMember, bool) {
	for _, m := range o.members {
		if m.key == key {
			return m, true
		}
	}
	return jsonMember{}, false
}

// jsonFile reads one file.
type jsonFile struct {
	*document
	shift int // of the parser's offsets: a byte order mark
}

func readJSON(format Format, data []byte) (*document, error) {
	f := &jsonFile{document: &document{data: data, format: format}}
	body := data
	if rest, ok := bytes.CutPrefix(data, []byte("\ufeff")); ok {
		body, f.shift = rest, len(data)-len(rest)
	}
	if blank(string(body)) {
		f.tree = map[string]any{}
		return f.document, nil
	}
	if err := bounded(body); err != nil {
		return nil, err
	}
	body = append(bytes.Clone(body), '\n') // a comment may end with the file
	v, err := hujson.Parse(body)
	if err != nil {
		return nil, where(err)
	}
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it holds no JSON object")
	}
	root, err := f.object(obj, v.StartOffset, v.EndOffset)
	if err != nil {
		return nil, err
	}
	f.root = root
	if err := f.servers(nil, root); err != nil {
		return nil, err
	}
	if projects, ok := root.get("projects"); ok && format.Projects {
		if err := f.projects(projects); err != nil {
			return nil, err
		}
	}
	v = v.Clone()
	v.Standardize()
	decoder := json.NewDecoder(bytes.NewReader(v.Pack()))
	decoder.UseNumber()
	if err := decoder.Decode(&f.tree); err != nil {
		return nil, errors.New("it is not JSON")
	}
	return f.document, nil
}

var position = regexp.MustCompile(`line \d+, column \d+`)

// where is a parser's error without the text it quotes, which may be a secret.
func where(err error) error {
	return fmt.Errorf("it is not JSON, with or without comments: see %s", position.FindString(err.Error()))
}

// bounded refuses what nests too deep or holds too much. It need not be JSON.
func bounded(data []byte) error {
	depth, values := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case ',':
			if values++; values > maxValues {
				return fmt.Errorf("it holds more than %d values", maxValues)
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("it nests more than %d deep", maxDepth)
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			switch {
			case bytes.HasPrefix(data[i:], []byte("//")):
				i += endOf(data[i:], "\n")
			case bytes.HasPrefix(data[i:], []byte("/*")):
				i += 2 + endOf(data[i+2:], "*/")
			}
		}
	}
	return nil
}

// endOf is the offset of the last byte of the first end in data; without one, of data.
func endOf(data []byte, end string) int {
	if i := bytes.Index(data, []byte(end)); i >= 0 {
		return i + len(end) - 1
	}
	return len(data)
}

// object gives the members of an object that is looked into. One that says a name twice is refused: readers differ in which
// of the two they take.
func (f *jsonFile) object(o *hujson.Object, start, end int) (*jsonObject, error) {
	out := &jsonObject{span: span{start + f.shift, end + f.shift}}
	seen := map[string]bool{}
	for _, m := range o.Members {
		key := m.Name.Value.(hujson.Literal).String()
		if seen[key] {
			return nil, fmt.Errorf("line %d: the name %q stands twice in one object", f.line(m.Name.StartOffset+f.shift), key)
		}
		seen[key] = true
		out.members = append(out.members, jsonMember{
			name:    span{m.Name.StartOffset + f.shift, m.Name.EndOffset + f.shift},
			value:   span{m.Value.StartOffset + f.shift, m.Value.EndOffset + f.shift},
			key:     key,
			trimmed: m.Value.Value,
			lead:    string(m.Name.BeforeExtra),
			after:   string(m.Value.AfterExtra),
		})
	}
	return out, nil
}

// member gives the object that a member holds; nil if it holds something else.
func (f *jsonFile) member(m jsonMember) (*jsonObject, error) {
	o, ok := m.trimmed.(*hujson.Object)
	if !ok {
		return nil, nil
	}
	return f.object(o, m.value.start-f.shift, m.value.end-f.shift)
}

// readAs gives which of names a key is read as by a client that does not tell cases apart; "" for none.
func readAs(key string, names ...string) string {
	for _, name := range names {
		if key != name && strings.EqualFold(key, name) {
			return name
		}
	}
	return ""
}

// servers reads the entries that the object at path holds.
func (f *jsonFile) servers(path []string, in *jsonObject) error {
	for _, m := range in.members {
		if readAs(m.key, f.format.Key) != "" {
			return fmt.Errorf("line %d: some clients read %q as %s", f.line(m.name.start), m.key, f.format.Key)
		}
	}
	m, ok := in.get(f.format.Key)
	if !ok {
		return nil
	}
	holder, err := f.member(m)
	if err != nil {
		return err
	}
	if holder == nil {
		return fmt.Errorf("line %d: %s is no object", f.line(m.name.start), f.format.Key)
	}
	if path == nil {
		f.holder = holder
	}
	for i, m := range holder.members {
		e := &entry{path: append(slices.Clone(path), f.format.Key, m.key), at: m.name.start}
		o, err := f.member(m)
		if err != nil {
			return err
		}
		if o == nil {
			e.problem = "it is no object"
		} else if err := f.entry(e, o); err != nil {
			return err
		}
		e.without = func() ([]edit, error) { return f.remove(holder, i) }
		f.entries = append(f.entries, e)
	}
	return nil
}

func (f *jsonFile) projects(m jsonMember) error {
	folders, err := f.member(m)
	if err != nil || folders == nil {
		return err
	}
	for _, m := range folders.members {
		project, err := f.member(m)
		if err != nil {
			return err
		}
		if project == nil {
			continue
		}
		if err := f.servers([]string{"projects", m.key}, project); err != nil {
			return err
		}
	}
	return nil
}

// entry reads what matters of one.
func (f *jsonFile) entry(e *entry, o *jsonObject) error {
	for i, m := range o.members {
		e.members = append(e.members, m.key)
		switch m.key {
		case "command":
			s, ok := f.text(m.value, m.trimmed)
			if !ok {
				e.problem = "its command is no text"
				continue
			}
			e.command = &s
			separator := m.lead
			if !blank(separator) || i == 0 && separator == "" {
				separator = " "
			}
			colon := f.raw(span{m.name.end, m.value.start})
			if !blank(strings.Replace(colon, ":", "", 1)) {
				colon = ": "
			}
			e.newArgs.at, e.newArgs.before = m.value.end, ","+separator+`"args"`+colon
		case "args":
			if e.args = f.list(m); e.args == nil {
				e.problem = "its args are no list of texts"
			}
			e.withoutArgs = func() ([]edit, error) { return f.remove(o, i) }
		case "env":
			vars, err := f.member(m)
			if err != nil {
				return err
			}
			if vars == nil {
				if l, ok := m.trimmed.(hujson.Literal); !ok || l.Kind() != 'n' {
					e.problem = "its env is no object"
				}
				continue
			}
			for _, v := range vars.members {
				e.env = append(e.env, v.key)
			}
		case "envFile":
			e.envFile = true
		case "url", "httpUrl", "serverUrl":
			e.url = true
		default:
			if known := readAs(m.key, "command", "args", "env", "url", "httpUrl", "serverUrl"); known != "" {
				e.problem = fmt.Sprintf("some clients read its %q as %s", m.key, known)
			}
		}
	}
	return nil
}

func (f *jsonFile) text(at span, v hujson.ValueTrimmed) (text, bool) {
	l, ok := v.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return text{}, false
	}
	return text{at, l.String()}, true
}

func (f *jsonFile) list(m jsonMember) *list {
	a, ok := m.trimmed.(*hujson.Array)
	if !ok {
		return nil
	}
	l := &list{span: m.value}
	for _, v := range a.Elements {
		s, ok := f.text(span{v.StartOffset + f.shift, v.EndOffset + f.shift}, v.Value)
		if !ok {
			return nil
		}
		l.elems = append(l.elems, s)
	}
	return l
}

// remove takes the member at i out of o, with the comma that is no longer needed. What connect puts in stands behind another
// member, or alone in an empty object, so this gives back what was there.
func (f *jsonFile) remove(o *jsonObject, i int) ([]edit, error) {
	m := o.members[i]
	own := 0 // bytes behind the member up to and with its comma
	rest := f.raw(span{m.value.end, o.end - 1})
	if trimmed := strings.TrimLeft(rest, " \t\r\n"); strings.HasPrefix(trimmed, ",") {
		own = len(rest) - len(trimmed) + 1
	}
	if i == 0 && len(o.members) > 1 { // to the name of the next
		gone := span{m.name.start, o.members[1].name.start}
		if !joint(f.raw(span{m.value.end, gone.end})) {
			return nil, errComment
		}
		return []edit{{gone, ""}}, nil
	}
	start := m.name.start - (len(m.lead) - len(strings.TrimRight(m.lead, " \t\r\n")))
	if i == 0 {
		return []edit{{span{start, m.value.end + own}, ""}}, nil
	}
	before := o.members[i-1].value.end
	switch {
	case joint(f.raw(span{before, m.name.start})):
		return []edit{{span{before, m.value.end}, ""}}, nil
	case own > 0: // a comment of the one before stands between
		return []edit{{span{start, m.value.end + own}, ""}}, nil
	case f.data[before] == ',':
		return []edit{{span{before, before + 1}, ""}, {span{start, m.value.end}, ""}}, nil
	}
	return nil, errComment
}

// behind is where a further member goes behind the last of o: after a comment that stands on the same line. comma reports
// whether one stands there already.
func (f *jsonFile) behind(o *jsonObject) (at int, comma bool) {
	last := o.members[len(o.members)-1]
	at = last.value.end
	if !blank(last.after) {
		return at, false
	}
	rest := f.raw(span{at, o.end - 1})
	if trimmed := strings.TrimLeft(rest, " \t\r\n"); strings.HasPrefix(trimmed, ",") {
		comma = true
		rest = trimmed[1:]
	}
	line, _, more := strings.Cut(rest, "\n")
	line = strings.TrimRight(line, " \t\r")
	if trimmed := strings.TrimLeft(line, " \t"); more && (strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "/*") && strings.Index(trimmed, "*/") == len(trimmed)-2) {
		return o.end - 1 - len(rest) + len(line), comma
	}
	return at, comma
}
