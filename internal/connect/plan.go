package connect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Options say what to put into a file.
type Options struct {
	Format Format
	Binary string // the absolute path of hearsay
	// Config, if set, is the absolute path of a hearsay.yaml: one entry serves it, and no other entry is changed.
	Config  string
	Servers []string // only these, by the names of their entries; empty: all
	PassEnv []string // variables that each server gets besides those of its env
	// Label makes the name that hearsay gives a server from the name of its entry.
	Label func(string) string
}

// State is what became of an entry.
type State string

const (
	Wrapped  State = "wrapped"  // hearsay mcp now stands in front of it
	Added    State = "added"    // it was added
	Replaced State = "replaced" // it serves another hearsay.yaml now
	Guarded  State = "guarded"  // it goes through hearsay already
	Remote   State = "remote"   // it has an address: hearsay is not between
	Beside   State = "beside"   // it stays as it was
	Unknown  State = "unknown"  // it cannot be rewritten; Why says why
	Restored State = "restored" // it is as it was before connect
	Removed  State = "removed"  // connect had added it
	Edited   State = "edited"   // it was changed since connect, and stays
)

// Server is an entry of a file and what becomes of it.
type Server struct {
	Name    string `json:"name"`              // of the entry; whoever wrote the file chose it
	Project string `json:"project,omitempty"` // that the entry is for; empty: it holds everywhere
	Line    int    `json:"line,omitempty"`    // where it stands in the file as it was; 0: nowhere
	State   State  `json:"state"`
	Why     string `json:"why,omitempty"`
	// Before and After are what the entry starts, without the words that stay as they are, of which there are Kept.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
	Kept   int      `json:"kept,omitempty"`
	Env    []string `json:"env,omitempty"` // names of variables whose values stay where they are
}

// Plan is what a file becomes.
type Plan struct {
	Data    []byte // nil, of Undo: the file that connect made is empty again
	Servers []Server
}

// Changes reports whether anything of the file changes.
func (p Plan) Changes() bool {
	return slices.ContainsFunc(p.Servers, func(s Server) bool { return s.State.changes() })
}

func (s State) changes() bool {
	return s == Wrapped || s == Added || s == Replaced || s == Restored || s == Removed
}

// entryName is the name of the entry that serves a hearsay.yaml.
const entryName = "hearsay"

// Connect plans to put hearsay into a file with this text; nil is a file that is not there.
func Connect(data []byte, opt Options) (Plan, error) {
	if err := opt.check(); err != nil {
		return Plan{}, err
	}
	d, err := read(opt.Format, data)
	if err != nil {
		return Plan{}, err
	}
	c := &change{document: d, binary: opt.Binary, want: map[*entry][]string{}}
	if opt.Config != "" {
		return c.serve(opt)
	}
	for _, name := range opt.Servers {
		if !slices.ContainsFunc(d.entries, func(e *entry) bool { return e.name() == name }) {
			return Plan{}, fmt.Errorf("it has no server %q", name)
		}
	}
	var servers []Server
	for _, e := range d.entries {
		s := c.standing(e)
		switch {
		case s.State != "":
		case len(opt.Servers) > 0 && !slices.Contains(opt.Servers, e.name()):
			s.State, s.Why = Beside, "it was not named with --server"
		default:
			if s.Why = c.whyNot(e, opt.PassEnv); s.Why != "" {
				s.State = Unknown
				break
			}
			s.State = Wrapped
			c.wrap(e, &s, opt)
		}
		servers = append(servers, s)
	}
	return c.plan(servers)
}

func (opt Options) check() error {
	paths := []string{opt.Binary}
	if opt.Config != "" {
		paths = append(paths, opt.Config)
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) || !utf8.ValidString(path) || strings.ContainsAny(path, "$\x00\r\n") {
			return fmt.Errorf("the path %q cannot stand in a client's file: it must be absolute, one line, and hold no $, which clients take for a variable", path)
		}
	}
	for _, name := range opt.PassEnv {
		if !isVariable(name) {
			return fmt.Errorf("%q is no name of a variable", name)
		}
	}
	return nil
}

func isVariable(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsAny(name, "=\x00")
}

// change collects edits of a document, and what its entries shall start afterwards.
type change struct {
	*document
	binary string
	edits  []edit
	want   map[*entry][]string // command and arguments; nil: the entry is gone
	noArgs map[*entry]bool     // an entry without arguments has no args either
	before *document           // of Undo: the copy that lacks what is removed
}

// about is what can be said of an entry that is not changed.
func (c *change) about(e *entry) Server {
	s := Server{Name: e.name(), Project: e.scope(), Line: c.line(e.at)}
	switch {
	case e.problem != "":
		s.State, s.Why = Unknown, e.problem
	case e.url && e.command != nil:
		s.State, s.Why = Unknown, "it has a command and an address: which of them holds is the client's choice"
	case e.url:
		s.State = Remote
	case e.command == nil:
		s.State, s.Why = Unknown, "it has no command"
	case throughHearsay(e.words(), c.binary):
		s.State = Guarded
	}
	return s
}

// standing is about for somebody who wants to know what is guarded. A program is not this one because of its name: a project can
// bring one along that is called hearsay.
func (c *change) standing(e *entry) Server {
	s := c.about(e)
	if s.State == Guarded && !c.isThis(e) {
		s.State, s.Why = Unknown, notThis
	}
	return s
}

const notThis = "it starts a program that is called hearsay and is not this one: take it out, or --undo and connect again if connect put it there"

// isThis reports whether an entry's command is this program, as far as can be told without the client.
func (c *change) isThis(e *entry) bool {
	command := e.command.value
	switch {
	case command == c.binary:
		return true
	case command == "hearsay": // found by the client's PATH, if the entry has none of its own
		return !slices.Contains(e.env, "PATH")
	case !filepath.IsAbs(command):
		return false
	}
	its, err1 := os.Stat(command)
	this, err2 := os.Stat(c.binary)
	return err1 == nil && err2 == nil && os.SameFile(its, this)
}

// throughHearsay reports whether words start the gateway.
func throughHearsay(words []string, binary string) bool {
	return len(words) >= 2 && words[1] == "mcp" && isHearsay(words[0], binary)
}

func isHearsay(command, binary string) bool {
	return command == binary || strings.TrimSuffix(filepath.Base(command), ".exe") == "hearsay"
}

// whyNot says why a server's command cannot be put behind hearsay; empty: it can.
func (c *change) whyNot(e *entry, pass []string) string {
	command := e.command.value
	switch {
	case command == "":
		return "its command is empty"
	case strings.ContainsAny(command, " \t"):
		if _, err := os.Stat(command); err != nil && !strings.Contains(command, "${") {
			return "its command is a whole line, not a program: put the program into command and the rest into args"
		}
	}
	if e.envFile && len(pass) == 0 {
		return "it takes variables from an envFile, which hearsay gives to no server unless they are named: name them with --pass-env"
	}
	for _, name := range e.env {
		if !isVariable(name) {
			return fmt.Sprintf("%q in its env is no name of a variable", name)
		}
	}
	return ""
}

// lead is what stands before a server's own words: the arguments of hearsay.
func lead(e *entry, opt Options) []string {
	words := []string{"mcp", "--name", opt.Label(e.name())}
	var passed []string
	for _, name := range slices.Concat(e.env, opt.PassEnv) {
		if !slices.Contains(passed, name) {
			passed = append(passed, name)
			words = append(words, "--pass-env", name)
		}
	}
	return append(words, "--")
}

// wrap puts hearsay in front of a server's command. The literals of its own words are moved, not written again.
func (c *change) wrap(e *entry, s *Server, opt Options) {
	words := lead(e, opt)
	own := c.raw(e.command.span)
	s.Before, s.Env = []string{e.command.value}, e.env
	s.After = slices.Concat([]string{c.binary}, words, s.Before)
	c.want[e] = slices.Concat([]string{c.binary}, words, e.words())
	c.edits = append(c.edits, edit{e.command.span, quote(c.binary)})
	if e.args == nil {
		n := e.newArgs
		c.edits = append(c.edits, edit{span{n.at, n.at}, n.before + "[" + quoteAll(words) + ", " + own + "]" + n.after})
		return
	}
	s.Kept = len(e.args.elems)
	if s.Kept == 0 {
		at := e.args.start + 1
		c.edits = append(c.edits, edit{span{at, at}, quoteAll(words) + ", " + own})
		return
	}
	separator := c.separator(e.args)
	var b strings.Builder
	for _, w := range words {
		b.WriteString(quote(w) + separator)
	}
	at := e.args.elems[0].start
	c.edits = append(c.edits, edit{span{at, at}, b.String() + own + separator})
}

// separator is what stands between the elements of an array, as far as it is nothing but a comma and white space.
func (c *change) separator(l *list) string {
	if len(l.elems) > 1 {
		if s := c.raw(span{l.elems[0].end, l.elems[1].start}); joint(s) {
			return s
		}
	}
	if s := c.raw(span{l.start + 1, l.elems[0].start}); blank(s) && strings.Contains(s, "\n") {
		return "," + s
	}
	return ", "
}

// plan makes the edits and checks what came of them: that the entries start what they shall, and that all else is the same.
func (c *change) plan(servers []Server) (Plan, error) {
	out, err := apply(c.data, c.edits)
	if err != nil {
		return Plan{}, err
	}
	if err := c.verify(out); err != nil {
		return Plan{}, err
	}
	return Plan{out, servers}, nil
}

var errUnsure = errors.New("the changed file does not read as it should, so nothing is written: change it by hand")

func (c *change) verify(out []byte) error {
	after, err := read(c.format, out)
	if err != nil {
		return errUnsure
	}
	wanted, err := read(c.format, c.data) // a tree of its own, to change
	if err != nil {
		return errUnsure
	}
	for e, words := range c.want {
		holder := wanted.tree
		for _, key := range e.path[:len(e.path)-1] {
			holder = at(holder, key)
		}
		servers, _ := holder.(map[string]any)
		if servers == nil {
			return errUnsure
		}
		if words == nil {
			delete(servers, e.name())
			if root, _ := wanted.tree.(map[string]any); len(servers) == 0 && at(after.tree, c.format.Key) == nil {
				delete(root, c.format.Key) // the last table of them is gone
			}
			continue
		}
		one, _ := servers[e.name()].(map[string]any)
		if one == nil {
			return errUnsure
		}
		one["command"] = words[0]
		delete(one, "args")
		if len(words) > 1 || !c.noArgs[e] {
			args := make([]any, 0, len(words))
			for _, w := range words[1:] {
				args = append(args, w)
			}
			one["args"] = args
		}
	}
	if !reflect.DeepEqual(after.tree, wanted.tree) {
		return errUnsure
	}
	return nil
}

func at(tree any, key string) any {
	m, _ := tree.(map[string]any)
	return m[key]
}
