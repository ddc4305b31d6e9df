package connect

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// serve plans the one entry that serves a hearsay.yaml.
func (c *change) serve(opt Options) (Plan, error) {
	path := []string{opt.Format.Key, entryName}
	words := []string{opt.Binary, "mcp", "-c", opt.Config}
	var servers []Server
	for _, e := range c.entries {
		s := c.standing(e)
		if len(e.path) == 2 && e.name() == entryName {
			switch {
			case e.problem != "" || e.args == nil || !c.servesFile(e.words()):
				return Plan{}, errors.New(`it has an entry "hearsay" that does something else than serve a file: rename it first`)
			case slices.Equal(e.words(), words):
			default:
				s.State, s.Before, s.After = Replaced, e.words(), words
				c.want[e] = words
				c.edits = append(c.edits, edit{e.command.span, quote(words[0])}, edit{e.args.span, "[" + quoteAll(words[1:]) + "]"})
			}
		} else if s.State == "" {
			s.State = Beside
		}
		servers = append(servers, s)
	}
	if c.find(path) != nil {
		return c.plan(servers)
	}
	servers = append(servers, Server{Name: entryName, State: Added, After: words})
	var out []byte
	var err error
	if opt.Format.TOML {
		out, err = apply(c.data, []edit{c.appendTable(words)})
	} else {
		out, err = c.addMember(words)
	}
	if err != nil {
		return Plan{}, err
	}
	// What was added is there, and without it the file says what it said.
	d, err := read(c.format, out)
	if err != nil {
		return Plan{}, errUnsure
	}
	e := d.find(path)
	if e == nil || e.problem != "" || !slices.Equal(e.words(), words) {
		return Plan{}, errUnsure
	}
	if err := c.sameWithout(out); err != nil {
		return Plan{}, err
	}
	return Plan{out, servers}, nil
}

// servesFile reports whether words start the gateway for a hearsay.yaml, with nothing that could be a secret among them.
func (c *change) servesFile(words []string) bool {
	if !throughHearsay(words, c.binary) {
		return false
	}
	file := false
	for i := 2; i < len(words); i++ {
		switch words[i] {
		case "-c", "--config", "--profile":
			file = file || words[i] != "--profile"
			if i++; i == len(words) {
				return false
			}
		case "-v", "--verbose":
		default:
			return false
		}
	}
	return file
}

// sameWithout checks that the file says the same as before but for the added entry, and the member that holds it if that is new.
func (c *change) sameWithout(out []byte) error {
	after, err := read(c.format, out)
	if err != nil {
		return errUnsure
	}
	root, _ := after.tree.(map[string]any)
	servers, _ := at(root, c.format.Key).(map[string]any)
	delete(servers, entryName)
	if _, had := c.tree.(map[string]any)[c.format.Key]; !had && len(servers) == 0 {
		delete(root, c.format.Key)
	}
	if !reflect.DeepEqual(after.tree, c.tree) {
		return errUnsure
	}
	return nil
}

// appendTable puts a table at the end of the file.
func (c *change) appendTable(words []string) edit {
	nl := newline(c.data)
	var b strings.Builder
	if len(c.data) > 0 {
		if !bytes.HasSuffix(c.data, []byte("\n")) {
			b.WriteString(nl)
		}
		b.WriteString(nl)
	}
	b.WriteString("[" + c.format.Key + "." + entryName + "]" + nl)
	b.WriteString("command = " + quote(words[0]) + nl + "args = [" + quoteAll(words[1:]) + "]" + nl)
	return edit{span{len(c.data), len(c.data)}, b.String()}
}

// addMember puts a member into the object that holds the servers, which it makes where there is none.
func (c *change) addMember(words []string) ([]byte, error) {
	if c.root == nil { // nothing but white space
		l := layout{newline: "\n", unit: "  "}
		inner := l.in(1).member(c.format.Key, l.in(1).object(l.in(2).member(entryName, c.value(l.in(2), words))))
		return []byte(string(c.data[:c.start()]) + l.object(inner) + "\n"), nil
	}
	l := layoutOf(c.document)
	if c.holder == nil {
		value := l.in(1).object(l.in(2).member(entryName, c.value(l.in(2), words)))
		return apply(c.data, c.insert(c.root, l, l.in(1).member(c.format.Key, value)))
	}
	return apply(c.data, c.insert(c.holder, l.in(1), l.in(2).member(entryName, c.value(l.in(2), words))))
}

// start is where the text begins: behind a byte order mark.
func (d *document) start() int {
	if bytes.HasPrefix(d.data, []byte("\ufeff")) {
		return len("\ufeff")
	}
	return 0
}

// value is the entry itself.
func (c *change) value(l layout, words []string) string {
	var members []string
	if c.format.Typed {
		members = append(members, l.in(1).member("type", quote("stdio")))
	}
	members = append(members, l.in(1).member("command", quote(words[0])), l.in(1).member("args", "["+quoteAll(words[1:])+"]"))
	return l.object(members...)
}

// insert puts a member at the end of an object.
func (c *change) insert(o *jsonObject, l layout, member string) []edit {
	n := len(o.members)
	if n == 0 {
		at := o.start + 1
		text := l.in(1).lead() + member
		if c.raw(o.inner()) == "" {
			text += l.lead()
		}
		return []edit{{span{at, at}, text}}
	}
	end := o.members[n-1].value.end
	lead := o.members[n-1].lead
	if !blank(lead) || n == 1 && !strings.Contains(lead, "\n") {
		lead = l.in(1).lead()
	}
	at, comma := (&jsonFile{document: c.document}).behind(o)
	switch {
	case at == end: // the comma goes between, and one that stands there stays behind
		return []edit{{span{at, at}, "," + lead + member}}
	case comma:
		return []edit{{span{at, at}, lead + member + ","}}
	}
	return []edit{{span{end, end}, ","}, {span{at, at}, lead + member}}
}

// layout is how a file is indented.
type layout struct {
	newline, unit string // newline empty: all in one line
	depth         int
}

// layoutOf takes it from the first member.
func layoutOf(d *document) layout {
	l := layout{newline: "\n", unit: "  "}
	if len(d.root.members) == 0 {
		return l
	}
	lead := d.root.members[0].lead
	i := strings.LastIndexByte(lead, '\n')
	if i < 0 {
		return layout{unit: ""}
	}
	if i > 0 && lead[i-1] == '\r' {
		l.newline = "\r\n"
	}
	if unit := lead[i+1:]; blank(unit) {
		l.unit = unit
	}
	return l
}

func (l layout) in(n int) layout {
	l.depth += n
	return l
}

// lead is what stands before a member.
func (l layout) lead() string {
	if l.newline == "" {
		return ""
	}
	return l.newline + strings.Repeat(l.unit, l.depth)
}

func (l layout) member(name, value string) string { return quote(name) + ": " + value }

func (l layout) object(members ...string) string {
	if l.newline == "" {
		return "{" + strings.Join(members, ", ") + "}"
	}
	inner := l.in(1).lead()
	return "{" + inner + strings.Join(members, ","+inner) + l.lead() + "}"
}
