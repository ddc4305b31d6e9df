package gate

// Policy is a compiled [Spec]. It is immutable and safe for concurrent use. A nil or zero Policy denies everything.
type Policy struct {
	tools    map[toolID]*toolPolicy // every tool that some rule, label or pin names
	wild     map[string]*ruleset    // by server: rules with wildcards, for tools nobody named
	rest     *ruleset               // rules about every server
	servers  []string               // the known ones; nil: any
	mode     Mode
	denyBare bool // refuse what is not grounded
	tasks    [][]pattern
	paths    bool // some rule compares paths
	problems []Problem
	version  string
}

type toolID struct{ server, tool string }

// toolPolicy is what the policy holds about one tool.
type toolPolicy struct {
	rules    ruleset
	folded   string // its name as deny and ask rules compare it; "" where it has to be made
	labels   ToolLabels
	effects  []string
	commands []string
}

// Decide judges one call in one session. It keeps neither.
func (p *Policy) Decide(c Call, s State) Decision {
	if p == nil || p.rest == nil {
		return Decision{Answer: Deny, Reason: NoRule, Text: "There is no policy."}
	}
	t, rs := p.lookup(c.Server, c.Tool)
	d := judge(&c, &s, t, rs)
	if d.Answer == Deny {
		return d
	}
	return p.restrict(d, &c, &s, t)
}

// unknownTool is a tool nobody named.
var unknownTool = &toolPolicy{effects: Effects(0).Names()}

// lookup finds what is known about a tool and the rules that may be about it.
func (p *Policy) lookup(server, tool string) (*toolPolicy, *ruleset) {
	if t := p.tools[toolID{server, tool}]; t != nil {
		return t, &t.rules
	}
	if rs := p.wild[server]; rs != nil {
		return unknownTool, rs
	}
	return unknownTool, p.rest
}

// judge holds the rules against a call: deny, then ask, then allow.
func judge(c *Call, s *State, t *toolPolicy, rs *ruleset) Decision {
	q := newInquiry(c, s, t, rs)
	if rs.commands {
		if q.line = readCommands(c.Args, t.commands); q.line != nil && q.line.script.limit {
			return Decision{Answer: Deny, Reason: Limit, Text: "The command is longer, or has more parts, than the gate will judge."}
		}
	}
	for _, r := range rs.deny {
		if r.tool.match(q.folded) {
			if fires, failed := r.fires(&q); fires {
				return r.decision(failed)
			}
		}
	}
	for _, r := range rs.ask {
		if r.tool.match(q.folded) {
			if fires, failed := r.fires(&q); fires {
				return r.decision(failed)
			}
		}
	}
	return permit(&q)
}

func (r *rule) decision(failed bool) Decision {
	if failed {
		return Decision{Answer: r.answer, Rule: r.id, Reason: RuleError, Text: r.errText}
	}
	return Decision{Answer: r.answer, Rule: r.id, Reason: ByRule, Text: r.text}
}

// candidate is an allow rule that is about the call if its command pattern, where it has one, matches.
type candidate struct {
	rule    *rule
	command *valuePattern
}

// permit looks for allow rules. A command line is allowed only if all of it is understood and each of its commands is
// allowed by some rule.
func permit(q *inquiry) Decision {
	var space [8]candidate
	found := space[:0]
	for _, r := range q.rules.allow {
		if !r.pat.tool.match(q.call.Tool) {
			continue
		}
		ok, command := r.admits(q)
		switch {
		case !ok:
		case command == nil && !q.guarded():
			return r.decision(false)
		case command != nil && command.line != "" && q.line.raw == command.line:
			return r.decision(false) // the operator typed this very line
		default:
			found = append(found, candidate{r, command})
		}
	}
	if len(found) == 0 {
		return Decision{Answer: Ask, Reason: NoRule, Text: "No rule allows this call."}
	}
	switch l := q.line; { // every rule that was found wants to see a command
	case l.script.unresolved != "":
		return Decision{Answer: Ask, Reason: Unresolved, Text: "What this command does cannot be read from its text: " + l.script.unresolved + "."}
	case len(l.script.parts) == 0:
		return Decision{Answer: Ask, Reason: Unresolved, Text: "The command is empty."}
	}
	var by *rule
	for i := range q.line.script.parts {
		r := q.line.allowedBy(i, found, q)
		if r == nil {
			return Decision{Answer: Ask, Reason: CommandParts, Text: "A part of this command is allowed by no rule."}
		}
		if by == nil {
			by = r
		}
	}
	return by.decision(false)
}
