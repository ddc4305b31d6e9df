package gate

import (
	"fmt"
	"slices"
)

// rule is one compiled rule.
type rule struct {
	answer  Answer
	id      string // as decisions name it: "deny github.delete_repo (line 12)"
	src     Source
	because string
	pat     pattern
	cond    *condition
	when    string // the source of cond
	text    string // the sentence for the person when it decides
	errText string
}

// ruleset holds the rules that may be about a tool, in the order they are asked.
type ruleset struct {
	deny, ask, allow []*rule
	commands         bool // some rule may be about a shell command
	guards           bool // a deny or ask rule is
}

func (rs *ruleset) add(r *rule, commands []string) {
	switch r.answer {
	case Deny:
		rs.deny = append(rs.deny, r)
	case Ask:
		rs.ask = append(rs.ask, r)
	case Allow:
		rs.allow = append(rs.allow, r)
	}
	for i := range r.pat.args {
		if r.pat.args[i].mayBeCommand(commands) {
			rs.commands = true
			rs.guards = rs.guards || r.answer != Allow
		}
	}
}

// mayBeCommand reports whether the argument can hold a shell command; commands are names the operator gave.
func (a *argPattern) mayBeCommand(commands []string) bool {
	return a.name == "" || isCommandArg(a.name, commands)
}

func isCommandArg(name string, commands []string) bool {
	for _, c := range commands {
		if c == name {
			return true
		}
	}
	return isCommandName(name)
}

// inquiry is one call while rules are held against it.
type inquiry struct {
	call  *Call
	state *State
	tool  *toolPolicy
	rules *ruleset
	line  *commandLine // nil where the call holds no shell command, or no rule asks about one
}

// holds evaluates the condition of r. It copies what the condition sees, so that calls without conditions stay off the heap.
func (q *inquiry) holds(r *rule) (bool, error) {
	return r.cond.holds(&evaluation{call: *q.call, state: *q.state, labels: q.tool.labels, effects: q.tool.effects})
}

func (q *inquiry) isCommand(a *argPattern) bool {
	return q.line != nil && (a.name == "" || isCommandArg(a.name, q.tool.commands))
}

// fires reports whether a deny or ask rule is about the call. Its patterns match in any spelling, any element of a list,
// and any command of a line; a condition that fails counts as true.
func (r *rule) fires(q *inquiry) (fires, failed bool) {
	for i := range r.pat.args {
		a := &r.pat.args[i]
		if q.isCommand(a) {
			if !q.line.denied(&a.value) {
				return false, false
			}
			continue
		}
		if !anyLeaf(q.call.Args, a) {
			return false, false
		}
	}
	if r.cond == nil {
		return true, false
	}
	holds, err := q.holds(r)
	return holds || err != nil, err != nil
}

// admits reports whether an allow rule is about the call, its command aside: command is the pattern for it, or nil.
func (r *rule) admits(q *inquiry) (ok bool, command *valuePattern) {
	for i := range r.pat.args {
		a := &r.pat.args[i]
		if q.isCommand(a) {
			command = &a.value
			continue
		}
		if !allLeaves(q.call.Args, a) {
			return false, nil
		}
	}
	if r.cond != nil {
		if holds, err := q.holds(r); err != nil || !holds {
			return false, nil
		}
	}
	return true, command
}

// anyLeaf reports whether any value at the argument's place matches in the wide reading. Names are compared without case:
// a server may read them so. Without a name every value of the call counts.
func anyLeaf(args map[string]any, a *argPattern) bool {
	if a.name == "" {
		for _, v := range args {
			if leafDenied(v, a, 0) {
				return true
			}
		}
		return false
	}
	if v, ok := args[a.name]; ok && leafDenied(v, a, 0) {
		return true
	}
	return pathDenied(args, a.path, a)
}

func pathDenied(v any, path []string, a *argPattern) bool {
	if len(path) == 0 {
		return leafDenied(v, a, 0)
	}
	switch v := v.(type) {
	case map[string]any:
		if sub, ok := v[path[0]]; ok && pathDenied(sub, path[1:], a) {
			return true
		}
		for k, sub := range v {
			if k != path[0] && foldText(k) == foldText(path[0]) && pathDenied(sub, path[1:], a) {
				return true
			}
		}
	case []any:
		for _, sub := range v {
			if pathDenied(sub, path, a) {
				return true
			}
		}
	}
	return false
}

func leafDenied(v any, a *argPattern, depth int) bool {
	if depth > maxDepth {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, sub := range v {
			if leafDenied(sub, a, depth+1) {
				return true
			}
		}
		return false
	case []any:
		for _, sub := range v {
			if leafDenied(sub, a, depth+1) {
				return true
			}
		}
		return false
	}
	text, isString, ok := scalar(v)
	if !ok || a.quoted && !isString {
		return !ok
	}
	if !isString && a.value.number != "" && a.value.number == canonicalNumber(text) {
		return true
	}
	return a.value.denies(text)
}

// maxDepth bounds the nesting of a value that is judged.
const maxDepth = 128

// allLeaves reports whether the argument is there and every value at its place matches exactly as typed.
func allLeaves(args map[string]any, a *argPattern) bool {
	if a.name == "" {
		if len(args) != 1 {
			return false
		}
		for _, v := range args {
			return leafAllowed(v, a, 0)
		}
	}
	if ambiguous(args, a.path[0]) {
		return false
	}
	if v, ok := args[a.name]; ok {
		return leafAllowed(v, a, 0)
	}
	return pathAllowed(args, a.path, a)
}

// ambiguous reports whether another key of args is the same name to a reader without letter case.
func ambiguous(args map[string]any, name string) bool {
	if len(args) < 2 {
		return false
	}
	folded := foldText(name)
	for k := range args {
		if k != name && foldText(k) == folded {
			return true
		}
	}
	return false
}

func pathAllowed(v any, path []string, a *argPattern) bool {
	if len(path) == 0 {
		return leafAllowed(v, a, 0)
	}
	switch v := v.(type) {
	case map[string]any:
		sub, ok := v[path[0]]
		return ok && !ambiguous(v, path[0]) && pathAllowed(sub, path[1:], a)
	case []any:
		for _, sub := range v {
			if !pathAllowed(sub, path, a) {
				return false
			}
		}
		return len(v) > 0
	}
	return false
}

func leafAllowed(v any, a *argPattern, depth int) bool {
	if list, ok := v.([]any); ok && depth < maxDepth {
		for _, sub := range list {
			if !leafAllowed(sub, a, depth+1) {
				return false
			}
		}
		return len(list) > 0
	}
	text, isString, ok := scalar(v)
	switch {
	case !ok:
		return false
	case isString:
		return a.value.allows(text)
	case a.quoted:
		return false
	case a.value.number != "":
		return a.value.number == canonicalNumber(text)
	case a.value.text.exact():
		return text == a.value.text.lits[0]
	}
	return a.value.text.all()
}

// commandLine is the shell command of a call, from all arguments that hold one.
type commandLine struct {
	raw    string // the text as received, where one argument holds it; "" otherwise
	script script

	folded    []string // the parts as deny and ask rules compare them
	foldedRaw string
}

// readCommands finds and reads the shell commands of a call; nil where it holds none.
func readCommands(args map[string]any, commands []string) *commandLine {
	var names []string
	for name := range args {
		if isCommandArg(name, commands) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names) // the same answer every time
	l := &commandLine{}
	var p shellParser
	for _, name := range names {
		switch v := args[name].(type) {
		case string:
			l.raw = p.readCommand(args, v)
		case []any:
			p.argv(v, isPlural(name))
		default:
			p.doubt("a command that is no text")
		}
	}
	if setsContext(args) {
		p.doubt("an environment or input that the call sets")
		l.raw = ""
	}
	if len(names) > 1 {
		l.raw = ""
	}
	l.script = p.out
	return l
}

// setsContext reports whether a call changes what its command does from outside the command: LD_PRELOAD runs other code in
// any program, and a shell runs its input.
func setsContext(args map[string]any) bool {
	for name, v := range args {
		if !oneOf(contextNames, name) {
			continue
		}
		switch v := v.(type) {
		case nil:
		case string:
			if v != "" {
				return true
			}
		case map[string]any:
			if len(v) > 0 {
				return true
			}
		case []any:
			if len(v) > 0 {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// readCommand reads one command text and gives it back where it is the whole line; where the call has a list of arguments
// beside it, they are its words.
func (p *shellParser) readCommand(args map[string]any, text string) string {
	for name, v := range args {
		if name != "args" && name != "argv" && name != "arguments" {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			p.doubt("a command with arguments that are no list")
		}
		p.argv(append([]any{text}, list...), false)
		return ""
	}
	if len(text) > maxCommand {
		p.over()
	} else {
		p.nested(text)
	}
	return text
}

// argv reads a command given as a list of words, or a list of lines.
func (p *shellParser) argv(list []any, lines bool) {
	words := make([]word, 0, len(list))
	size := 0
	for _, v := range list {
		s, ok := v.(string)
		if size += len(s) + 1; size > maxCommand {
			p.over()
			return
		}
		if !ok {
			p.doubt("a word of the command is no text")
		}
		words = append(words, word{text: s, known: ok})
	}
	if lines {
		for _, w := range words {
			p.nested(w.text)
		}
		return
	}
	if len(words) == 0 {
		return
	}
	for _, c := range words[0].text {
		if c <= ' ' || c == ';' || c == '|' || c == '&' || c == '$' || c == '`' {
			p.doubt("a command with separate arguments")
			p.nested(words[0].text)
			break
		}
	}
	p.depth++
	p.command(words)
	p.depth--
}

func isPlural(name string) bool {
	return name != "" && (name[len(name)-1] == 's' || name[len(name)-1] == 'S')
}

// denied reports whether a deny or ask pattern matches the line or any command in it.
func (l *commandLine) denied(v *valuePattern) bool {
	if v.wide.all() {
		return true
	}
	l.fold()
	for i, pt := range l.script.parts {
		if v.deniesPart(l.folded[i], pt.runs) {
			return true
		}
	}
	return l.raw != "" && v.wide.match(l.foldedRaw)
}

func (l *commandLine) fold() {
	if l.folded != nil {
		return
	}
	l.folded = make([]string, 0, len(l.script.parts)+1)
	for _, pt := range l.script.parts {
		l.folded = append(l.folded, foldText(pt.text))
	}
	l.foldedRaw = foldText(l.raw)
}

// hides reports whether a command that is not known to run its arguments might run one that a deny or ask pattern means.
func (l *commandLine) hides(i int, q *inquiry) bool {
	l.fold()
	for _, list := range [2][]*rule{q.rules.deny, q.rules.ask} {
		for _, r := range list {
			for j := range r.pat.args {
				a := &r.pat.args[j]
				if !q.isCommand(a) {
					continue
				}
				if a.value.deniesPart(l.folded[i], true) {
					return true
				}
			}
		}
	}
	return false
}

func (r *rule) sentences() {
	verb := [...]string{"refuses this call", "asks before this call", "allows this call"}[r.answer]
	r.id = fmt.Sprintf("%s %s", r.answer, r.src.Text)
	if r.src.Line > 0 {
		r.id = fmt.Sprintf("%s (line %d)", r.id, r.src.Line)
	}
	r.text = fmt.Sprintf("The rule %q %s.", r.id, verb)
	r.errText = fmt.Sprintf("The condition of the rule %q could not be evaluated for this call, so the rule counts.", r.id)
	if r.because != "" {
		r.text += " " + r.because
		r.errText += " " + r.because
	}
}
