package gate

import (
	"fmt"
	"slices"
	"strings"
)

// rule is one compiled rule.
type rule struct {
	answer  Answer
	id      string // as decisions name it: "deny github.delete_repo (line 12)"
	src     Source
	because string
	pat     pattern
	tool    glob // of a deny or ask rule: the tool's name without letter case
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

// about reports whether the rule is about a tool: a deny or ask rule in any letter case.
func (r *rule) about(tool string) bool {
	if r.answer == Allow {
		return r.pat.tool.match(tool)
	}
	return r.tool.match(toolName(tool))
}

// mayBeCommand reports whether the argument can hold a shell command; commands are names the operator gave.
func (a *argPattern) mayBeCommand(commands []string) bool {
	return a.name == "" || isCommandArg(a.name, commands)
}

// isCommandArg judges an argument by its name, with dots for fields of objects.
func isCommandArg(name string, commands []string) bool {
	for _, c := range commands {
		if c == name {
			return true
		}
	}
	return isCommandName(name[strings.LastIndexByte(name, '.')+1:])
}

// inquiry is one call while rules are held against it.
type inquiry struct {
	call   *Call
	state  *State
	tool   *toolPolicy
	rules  *ruleset
	folded string       // the tool's name as deny and ask rules compare it
	line   *commandLine // nil where the call holds no shell command, or no rule asks about one
}

func newInquiry(c *Call, s *State, t *toolPolicy, rs *ruleset) inquiry {
	q := inquiry{call: c, state: s, tool: t, rules: rs, folded: t.folded}
	if q.folded == "" {
		q.folded = toolName(c.Tool)
	}
	return q
}

// guarded reports whether the call holds a command that a deny or ask rule looks at.
func (q *inquiry) guarded() bool {
	if q.line == nil || !q.rules.guards {
		return false
	}
	for _, list := range [2][]*rule{q.rules.deny, q.rules.ask} {
		for _, r := range list {
			if r.tool.match(q.folded) && slices.ContainsFunc(r.pat.args, func(a argPattern) bool { return q.isCommand(&a) }) {
				return true
			}
		}
	}
	return false
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
		if !anyLeaf(q.call, a) {
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
		if q.isCommand(a) && (a.name == "" || has(q.call.Args, a.path)) {
			command = &a.value
			continue
		}
		if !allLeaves(q.call, a) {
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
