package gate

import "strings"

// restrict takes away from what the rules gave: what the task does not need, and after untrusted content was read what
// nobody vouches for. It never gives.
func (p *Policy) restrict(d Decision, c *Call, s *State, t *toolPolicy) Decision {
	if (p.mode == Filter || len(p.task) > 0) && !p.inTask(c) {
		return Decision{Answer: Deny, Reason: NotInTask, Text: "The task named beforehand does not use this tool."}
	}
	if !s.Tainted() {
		return d
	}
	if p.mode == Isolation && !s.Committed(c.Server, c.Tool) {
		return Decision{Answer: Deny, Reason: NotCommitted, Text: "The session has read untrusted content, and this tool was not used before."}
	}
	if !t.labels.Effects.Acting() {
		return d
	}
	d.Ungrounded = s.Ungrounded(t.labels, c.Args)
	switch {
	case p.mode == TaintOnly:
		return d.cut(Ask, Tainted, "The session has read untrusted content, and this call does more than read.")
	case len(d.Ungrounded) > 0 && p.denyBare:
		return d.cut(Deny, NotGrounded, ungroundedText)
	case len(d.Ungrounded) > 0:
		return d.cut(Ask, NotGrounded, ungroundedText)
	case !hasTarget(&t.labels, c.Args):
		return d.cut(Ask, NoTarget, "The session has read untrusted content, and this call acts on something that none of its arguments names.")
	}
	return d
}

const ungroundedText = "The session has read untrusted content, and what this call acts on was named by nobody who is trusted."

// cut lowers the answer to at most a. Where the rules already asked, their reason stays.
func (d Decision) cut(a Answer, reason Reason, text string) Decision {
	if a < d.Answer {
		d.Answer, d.Reason, d.Text = a, reason, text
	} else if d.Reason == NoRule {
		d.Text += " " + text
	}
	return d
}

// hasTarget reports whether the call has a value for any of its binding arguments: the one it acts on is in sight.
func hasTarget(l *ToolLabels, args map[string]any) bool {
	if l.Effects == 0 && len(l.Bind) == 0 && len(l.Text) == 0 {
		return len(args) > 0 // unknown: every argument is binding
	}
	for i := range l.Bind {
		if hasValue(args, l.Bind[i].Path) {
			return true
		}
	}
	return false
}

func hasValue(v any, path string) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return path == "" && v != ""
	case []any:
		for _, sub := range v {
			if hasValue(sub, path) {
				return true
			}
		}
		return false
	case map[string]any:
		if path == "" {
			return len(v) > 0
		}
		if sub, ok := v[path]; ok && hasValue(sub, "") {
			return true
		}
		head, rest, _ := strings.Cut(path, ".")
		return hasValue(v[head], rest)
	}
	return path == ""
}

func (p *Policy) inTask(c *Call) bool {
	for i := range p.task {
		if p.task[i].server == c.Server && p.task[i].tool.match(c.Tool) {
			return true
		}
	}
	return false
}
