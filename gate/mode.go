package gate

import (
	"errors"
	"fmt"
	"slices"
)

// restrict takes away from what the rules gave: what the task does not need, and after untrusted content was read what
// nobody vouches for. It never gives.
func (p *Policy) restrict(d Decision, c *Call, s *State, t *toolPolicy) Decision {
	if !p.inTask(c) {
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
	labels := t.labels
	labels.Server, labels.Tool = c.Server, c.Tool
	d.Ungrounded = s.Ungrounded(labels, c.Args)
	switch {
	case p.mode == TaintOnly:
		return d.cut(Ask, Tainted, "The session has read untrusted content, and this call does more than read.")
	case len(d.Ungrounded) == 0:
		return d
	}
	answer := Ask
	if p.denyBare {
		answer = Deny
	}
	for _, u := range d.Ungrounded {
		if u.Path != "" {
			return d.cut(answer, NotGrounded, "The session has read untrusted content, and what this call acts on was named by nobody who is trusted.")
		}
	}
	return d.cut(answer, NoTarget, "The session has read untrusted content, and this call acts on something that none of its arguments names.")
}

// cut lowers the answer to at most a. Where the rules already asked, their reason stays.
func (d Decision) cut(a Answer, reason Reason, text string) Decision {
	if a < d.Answer {
		d.Answer, d.Reason, d.Text = a, reason, text
	} else if d.Reason == NoRule {
		d.Text += " " + text
	}
	return d
}

// inTask reports whether every task that was named uses the tool; in the mode [Filter] without a task none does.
func (p *Policy) inTask(c *Call) bool {
	if p.mode == Filter && len(p.tasks) == 0 {
		return false
	}
	for _, task := range p.tasks {
		if !slices.ContainsFunc(task, func(t pattern) bool { return t.server == c.Server && t.tool.match(c.Tool) }) {
			return false
		}
	}
	return true
}

// ForTask gives the policy of a task: the same, but for tools that the task does not use, which are denied. Tools are
// named as in rules, without arguments. A task of a task can only narrow it.
func (p *Policy) ForTask(tools ...string) (*Policy, error) {
	var task []pattern
	for _, tool := range tools {
		pat, err := taskTool(tool, p.servers)
		if err != nil {
			return nil, fmt.Errorf("task: %s: %w", tool, err)
		}
		task = append(task, pat)
	}
	narrow := *p
	narrow.tasks = append(slices.Clip(p.tasks), task)
	return &narrow, nil
}

// taskTool reads one tool of a task.
func taskTool(src string, servers []string) (pattern, error) {
	pat, err := parsePattern(src, servers)
	switch {
	case err != nil:
	case len(pat.args) > 0:
		err = errors.New("a task names tools, without arguments")
	case pat.server == "*":
		err = errors.New("a task names the tools of a server")
	}
	return pat, err
}
