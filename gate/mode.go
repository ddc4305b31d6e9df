package gate

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

func (p *Policy) inTask(c *Call) bool {
	for i := range p.task {
		if p.task[i].server == c.Server && p.task[i].tool.match(c.Tool) {
			return true
		}
	}
	return false
}
