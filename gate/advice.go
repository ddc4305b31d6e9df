package gate

import (
	"fmt"
	"slices"
	"strings"
)

// shadows refuses rules that never decide because an earlier one always does.
func (c *compiler) shadows() {
	for j, later := range c.rules {
		for _, earlier := range c.rules[:j] {
			if !earlier.covers(later) {
				continue
			}
			if earlier.answer == later.answer && earlier.when == later.when && later.covers(earlier) {
				c.refuse(later.src.Line, later.src.Text, "says the same as the rule %q", earlier.id)
			} else {
				c.refuse(later.src.Line, later.src.Text, "never decides: the rule %q comes first and covers it", earlier.id)
			}
			break
		}
	}
}

// covers reports whether r decides every call that s is about. False may also mean "not known".
func (r *rule) covers(s *rule) bool {
	if r.when != "" && (r.when != s.when || r.answer != s.answer) {
		return false
	}
	if r.pat.server != "*" && r.pat.server != s.pat.server || !r.pat.tool.covers(s.pat.tool) {
		return false
	}
	for i := range r.pat.args {
		a := &r.pat.args[i]
		if !slices.ContainsFunc(s.pat.args, func(b argPattern) bool { return a.covers(&b, r.answer) }) {
			return false
		}
	}
	return true
}

func (a *argPattern) covers(b *argPattern, answer Answer) bool {
	if a.name != b.name || a.quoted && !b.quoted {
		return false
	}
	command := isCommandArg(a.name, nil)
	if (command || a.name == "") && !commandCovers(a, b, answer) {
		return false
	}
	switch {
	case command:
		return true
	case answer == Allow:
		return a.value.covers(&b.value)
	}
	return a.value.wide.covers(b.value.wide)
}

func commandCovers(a, b *argPattern, answer Answer) bool {
	as, bs := a.value.command, b.value.command
	if answer != Allow {
		as, bs = a.value.folded, b.value.folded
	}
	if len(as) == 0 || len(bs) == 0 {
		return a.value.line != "" && a.value.line == b.value.line
	}
	for _, h := range bs {
		if !slices.ContainsFunc(as, func(g glob) bool { return g.covers(h) }) {
			return false
		}
	}
	return true
}

// networkProbes are commands that reach the network, each by another way. What a policy says to them shows what its
// denies by text leave open.
var networkProbes = []string{
	"curl http://x.test", "wget http://x.test", "python3 -c 'import urllib.request'", "git clone http://x.test/a",
	"ssh x.test", "nc x.test 80", "node -e 'fetch(0)'", "perl -MIO::Socket -e 1", "pip install x", "npm install x",
	"openssl s_client x.test:443", "dig x.test", "./x",
}

// advise says what the rules do not do. What looks like a boundary and is none, where nothing else stands, is refused.
func (c *compiler) advise(p *Policy) {
	note := func(r *rule, format string, args ...any) {
		c.problems = append(c.problems, Problem{Line: r.src.Line, Rule: r.src.Text, Text: fmt.Sprintf(format, args...)})
	}
	for _, r := range c.rules {
		if name := c.unreadCommand(r); name != "" {
			note(r, "the tool runs what it is given, and %q is compared as text: a * there also allows what follows. If it holds shell commands, say so under tools: commands: [%s]", name, name)
		}
		if r.answer != Deny || len(r.pat.args) == 0 {
			continue
		}
		sandboxed := slices.Contains(c.spec.Sandboxed, r.pat.server)
		switch {
		case c.aboutCommands(r):
			if open := c.opener(r); open != nil && !sandboxed {
				c.refuse(r.src.Line, r.src.Text, "denies by the text of a command while the rule %q allows every other command: the same deed has other spellings (env, find -exec, a script, an alias). Run the server %q in the sandbox, or write the commands that are allowed", open.id, r.pat.server)
				continue
			}
			note(r, "a deny by the text of a command is no boundary: other spellings do the same. Let the allow rules say what may run, and run the server in the sandbox")
		case r.pat.args[0].value.pathLike() && r.pat.args[0].value.url == nil:
			note(r, "only the calls of this tool are denied; %s may reach the same file. Keep the file out of the sandbox's view", c.others(r))
		default:
			note(r, "compares the text of an argument, which is no boundary if the server accepts other spellings of it")
		}
	}
	c.probe(p)
}

// unreadCommand names an argument of a tool that runs things, which an allow rule matches with a wildcard and which is not
// read as a command.
func (c *compiler) unreadCommand(r *rule) string {
	if r.answer != Allow || !r.pat.tool.exact() || c.labels(r.pat.server, r.pat.tool.lits[0]).Effects&Exec == 0 {
		return ""
	}
	commands := c.toolSpec(r.pat.server, r.pat.tool.lits[0]).Commands
	for i := range r.pat.args {
		if a := &r.pat.args[i]; !a.mayBeCommand(commands) && !a.value.text.exact() && !a.value.text.all() {
			return a.name
		}
	}
	return ""
}

// aboutCommands reports whether a rule looks at the text of shell commands.
func (c *compiler) aboutCommands(r *rule) bool {
	matched, _ := c.matched(r)
	for i := range r.pat.args {
		a := &r.pat.args[i]
		if a.name != "" && isCommandArg(a.name, nil) {
			return true
		}
		for _, def := range matched {
			names, _ := c.commandArgs(def)
			if slices.Contains(names, a.name) || a.name == "" && len(names) > 0 {
				return true
			}
		}
		if a.name == "" && len(matched) == 0 && (isShellName(r.pat.tool.source()) || c.labels(r.pat.server, r.pat.tool.source()).Effects&Exec != 0) {
			return true
		}
	}
	return false
}

// shellWords are words in the names of tools that run shell commands.
var shellWords = set(`shell bash sh zsh terminal exec execute command cmd powershell run process`)

func isShellName(tool string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(tool), func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == '*' }),
		func(w string) bool { return shellWords[w] })
}

// opener finds an allow rule under which any command runs that r does not name.
func (c *compiler) opener(r *rule) *rule {
	for _, a := range c.rules {
		if a.answer != Allow || a.when != "" || r.pat.server != "*" && a.pat.server != r.pat.server ||
			!a.pat.tool.covers(r.pat.tool) && !r.pat.tool.covers(a.pat.tool) {
			continue
		}
		open := true
		for i := range a.pat.args {
			open = open && (a.pat.args[i].value.text.all() || !a.pat.args[i].mayBeCommand(nil))
		}
		if open {
			return a
		}
	}
	return nil
}

// others names known tools that the rule does not cover.
func (c *compiler) others(r *rule) string {
	var names []string
	for _, def := range c.spec.Known {
		if (r.pat.server == "*" || def.Server == r.pat.server) && r.about(def.Name) {
			continue
		}
		if props := plainProps(def.InputSchema); props["path"] != nil || props["file"] != nil || props["command"] != nil || c.labels(def.Server, def.Name).Effects&Exec != 0 {
			names = append(names, def.Server+"."+def.Name)
		}
	}
	if len(names) == 0 {
		return "other tools"
	}
	slices.Sort(names)
	if len(names) > 3 {
		names = append(names[:3], "and others")
	}
	return strings.Join(names, ", ")
}

// probe says which ways to the network the rules leave open to each tool that runs commands.
func (c *compiler) probe(p *Policy) {
	var keys []toolID
	for key, t := range p.tools {
		if t.rules.commands && !slices.Contains(c.spec.Sandboxed, key.server) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b toolID) int { return strings.Compare(a.server+a.tool, b.server+b.tool) })
	for _, key := range keys {
		name := "command"
		if def, ok := c.known[key]; ok {
			names, _ := c.commandArgs(def)
			if len(names) == 0 {
				continue
			}
			name = slices.Min(names)
		} else if !isShellName(key.tool) && p.tools[key].labels.Effects&Exec == 0 {
			continue
		}
		var open []string
		for _, probe := range networkProbes {
			if p.Decide(Call{Server: key.server, Tool: key.tool, Args: map[string]any{name: probe}}, State{}).Answer == Allow {
				open = append(open, probe)
			}
		}
		if len(open) > 0 {
			c.problems = append(c.problems, Problem{Rule: key.server + "." + key.tool,
				Text: "the rules let these reach the network without asking: " + strings.Join(open, " · ") + ". Use the sandbox, where the proxy decides whatever the rules say"})
		}
	}
}
