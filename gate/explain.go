package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Explanation is a decision with everything that led to it, for people.
type Explanation struct {
	Decision   Decision
	Effects    []string     // what the tool can do
	Labelled   bool         // the operator said so; false: nothing is known, and it counts as the worst
	Considered []Considered // the rules about the tool, in the order they are asked
	Change     []string     // what would change the answer
}

// Considered is one rule held against the call.
type Considered struct {
	Rule    string
	Answer  Answer
	Matches bool
	Why     string // what did not match, or could not be evaluated
}

// Explain decides a call and says why. It does not change what [Policy.Decide] says.
func (p *Policy) Explain(c Call, s State) Explanation {
	e := Explanation{Decision: p.Decide(c, s)}
	if p == nil || p.rest == nil {
		return e
	}
	t, rs := p.lookup(c.Server, c.Tool)
	e.Effects, e.Labelled = t.effects, t.labels.Effects != 0
	q := newInquiry(&c, &s, t, rs)
	if rs.commands {
		q.line = readCommands(c.Args, t.commands)
	}
	for _, list := range [][]*rule{rs.deny, rs.ask, rs.allow} {
		for _, r := range list {
			if r.about(c.Tool) {
				e.Considered = append(e.Considered, q.consider(r))
			}
		}
	}
	e.Change = p.change(&c, &s, &q, e)
	return e
}

// consider says how a rule stands to the call.
func (q *inquiry) consider(r *rule) Considered {
	out := Considered{Rule: r.id, Answer: r.answer}
	for i := range r.pat.args {
		a := &r.pat.args[i]
		var ok bool
		switch {
		case q.isCommand(a) && r.answer == Allow:
			ok = a.value.line != "" && q.line.raw == a.value.line || q.allPartsMatch(a)
		case q.isCommand(a):
			ok = q.line.denied(&a.value)
		case r.answer == Allow:
			ok = allLeaves(q.call, a)
		default:
			ok = anyLeaf(q.call, a)
		}
		if !ok {
			out.Why = a.label() + " is not what the rule says"
			return out
		}
	}
	if r.cond != nil {
		holds, err := q.holds(r)
		switch {
		case err != nil:
			out.Why = "its condition could not be evaluated: " + err.Error()
			out.Matches = r.answer != Allow
			return out
		case !holds:
			out.Why = "its condition is false"
			return out
		}
	}
	out.Matches = true
	return out
}

// allPartsMatch reports whether one pattern allows every command of the line.
func (q *inquiry) allPartsMatch(a *argPattern) bool {
	s := q.line.script
	return s.unresolved == "" && len(s.parts) > 0 && !slices.ContainsFunc(s.parts, func(pt part) bool { return !a.value.allowsPart(pt) })
}

func (a *argPattern) label() string {
	if a.name == "" {
		return "what it is called with"
	}
	return "the argument " + strconv.Quote(a.name)
}

// change says what would change the answer: first what a person can do for this call, then what the operator can.
func (p *Policy) change(c *Call, s *State, q *inquiry, e Explanation) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	full := c.Server + "." + c.Tool
	switch e.Decision.Reason {
	case ByRule, RuleError:
		if e.Decision.Answer != Allow {
			say("narrow or remove the rule %q", e.Decision.Rule)
		}
	case NoRule:
		say("a rule that allows it: permissions.allow: %s", full)
		for _, k := range e.Considered {
			if k.Answer == Allow {
				say("the rule %q would allow it, but %s", k.Rule, k.Why)
			}
		}
	case CommandParts:
		for _, pt := range q.line.script.parts {
			if q.allowedByAny(pt) {
				continue
			}
			say("a rule that allows %q: permissions.allow: %s(%s)", pt.text, full, escapeStars(pt.text))
		}
	case Unresolved:
		say("write the command without it, so that its whole effect is in its text: %s", q.line.script.unresolved)
		say("a rule with exactly this line")
	case Limit:
		say("a shorter command, or several calls")
	case NotInTask:
		say("name %s in the task, before it starts", full)
	case NotCommitted:
		say("a session that used %s before it read untrusted content", full)
	case Tainted:
		say("a profile with mode: grounded would judge the arguments instead")
	}
	for _, u := range e.Decision.Ungrounded {
		if u.Path == "" {
			continue
		}
		by := "the user names it"
		if !u.Class.OwnWords() {
			by += ", or it stands in the operator's store"
		}
		if line := fmt.Sprintf("%s would be grounded if %s: %s", u.Path, by, strconv.QuoteToGraphic(u.Value)); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	if e.Decision.Answer == Ask {
		say("a person says yes")
	}
	if s.Tainted() && e.Decision.Answer != Allow {
		if before := p.Decide(*c, State{}); before.Answer > e.Decision.Answer {
			say("in a session that has read nothing untrusted the answer is %s", before.Answer)
		}
	}
	if !s.Tainted() && e.Decision.Answer == Allow {
		if after := p.Decide(*c, s.Observe(Observation{})); after.Answer < Allow {
			say("after untrusted content was read the answer is %s (%s)", after.Answer, after.Reason)
		}
	}
	return out
}

// allowedByAny reports whether some allow rule about the tool matches the command.
func (q *inquiry) allowedByAny(pt part) bool {
	for _, r := range q.rules.allow {
		for i := range r.pat.args {
			if a := &r.pat.args[i]; q.isCommand(a) && a.value.allowsPart(pt) {
				return true
			}
		}
	}
	return false
}

func escapeStars(s string) string { return strings.ReplaceAll(s, "*", `\*`) }
