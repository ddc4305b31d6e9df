package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxRules bounds a policy. Loading compares rules in pairs.
const maxRules = 2000

// compiler turns a Spec into a Policy and collects what is wrong with it.
type compiler struct {
	spec     Spec
	known    map[toolID]ToolDef
	pinned   map[string]bool // servers that have pins
	names    []string        // server.tool of every known tool
	rules    []*rule         // in the order they are asked
	problems []Problem
}

// Compile checks a specification and makes it ready to decide. Its error is a [*CompileError] with every fatal problem;
// [Policy.Advice] holds the rest.
func Compile(spec Spec) (*Policy, error) {
	c := &compiler{spec: spec, known: map[toolID]ToolDef{}, pinned: map[string]bool{}}
	for _, def := range spec.Known {
		c.known[toolID{def.Server, def.Name}] = def
		c.pinned[def.Server] = true
		c.names = append(c.names, def.Server+"."+def.Name)
	}
	slices.Sort(c.names)
	if len(spec.Permissions.Deny)+len(spec.Permissions.Ask)+len(spec.Permissions.Allow)+len(spec.Rules) > maxRules {
		return nil, &CompileError{[]Problem{{Text: fmt.Sprintf("more than %d rules", maxRules), Fatal: true}}}
	}
	c.compileRules()
	p := c.policy()
	c.shadows()
	c.advise(p)
	if !c.failed() {
		c.test(p)
	}
	if c.failed() {
		var fatal []Problem
		for _, pr := range c.problems {
			if pr.Fatal {
				fatal = append(fatal, pr)
			}
		}
		slices.SortStableFunc(fatal, func(a, b Problem) int { return a.Line - b.Line })
		return nil, &CompileError{fatal}
	}
	p.problems = c.problems
	return p, nil
}

// Advice lists what is not wrong but worth knowing: rules that are no boundary, and what they leave open.
func (p *Policy) Advice() []Problem { return slices.Clone(p.problems) }

// AsksForPaths reports whether some rule compares paths, so that [Call.Paths] is worth filling.
func (p *Policy) AsksForPaths() bool { return p.paths }

// Version is a digest of the policy. An answer that was given under one version says nothing about another.
func (p *Policy) Version() string { return p.version }

// Labels gives what the policy holds about a tool.
func (p *Policy) Labels(server, tool string) ToolLabels {
	t, _ := p.lookup(server, tool)
	return t.labels
}

// TrustsResults reports whether there is a tool whose results the operator trusts.
func (p *Policy) TrustsResults() bool {
	for _, t := range p.tools {
		if t.labels.Trusted {
			return true
		}
	}
	return false
}

func (c *compiler) failed() bool {
	return slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Fatal })
}

func (c *compiler) refuse(line int, rule, format string, args ...any) {
	c.problems = append(c.problems, Problem{Line: line, Rule: rule, Text: fmt.Sprintf(format, args...), Fatal: true})
}

func (c *compiler) compileRules() {
	long := map[Answer][]Rule{}
	for _, r := range c.spec.Rules {
		if r.Answer > Allow {
			c.refuse(r.Tool.Line, r.Tool.Text, "a rule denies, asks or allows")
			continue
		}
		long[r.Answer] = append(long[r.Answer], r)
	}
	short := [...][]Source{c.spec.Permissions.Deny, c.spec.Permissions.Ask, c.spec.Permissions.Allow}
	for answer, sources := range short {
		for _, src := range sources {
			c.compileRule(Rule{Answer: Answer(answer), Tool: src})
		}
		for _, r := range long[Answer(answer)] {
			c.compileRule(r)
		}
	}
}

func (c *compiler) compileRule(src Rule) {
	r := &rule{answer: src.Answer, src: src.Tool, because: src.Because}
	if src.Name != "" {
		r.src.Text = src.Name
	}
	r.sentences()
	bad := func(line int, err error) { c.refuse(line, src.Tool.Text, "%v", err) }
	var err error
	if r.pat, err = parsePattern(src.Tool.Text, c.spec.Servers); err != nil {
		if errors.Is(err, errNoServer) {
			bad(src.Tool.Line, fmt.Errorf("%w%s", err, c.toolNamed(src.Tool.Text)))
			return
		}
		bad(src.Tool.Line, err)
		return
	}
	if r.answer == Allow && r.pat.server == "*" {
		bad(src.Tool.Line, errors.New("an allow rule names its server; * would allow the tools of every server to come"))
		return
	}
	r.tool = r.pat.tool.folded()
	matched, ok := c.matched(r)
	if !ok {
		bad(src.Tool.Line, fmt.Errorf("matches no known tool%s", didYouMean(r.pat.server+"."+r.pat.tool.source(), c.names)))
		return
	}
	c.checkArgs(r, matched)
	if src.When.Text != "" {
		cond, env, checked, err := compileCondition(src.When, r.answer, matched)
		if err != nil {
			bad(max(src.When.Line, src.Tool.Line), err)
			return
		}
		r.cond = cond
		fixed := map[string]any{}
		if r.pat.server != "*" {
			fixed["server"] = r.pat.server
		}
		if r.pat.tool.exact() {
			fixed["tool"] = r.pat.tool.lits[0]
			fixed["effects"] = c.labels(r.pat.server, r.pat.tool.lits[0]).Effects.Names()
		}
		if never(env, checked, fixed) {
			bad(max(src.When.Line, src.Tool.Line), errors.New("the condition is never true, so the rule can match nothing"))
			return
		}
	}
	r.when = strings.TrimSpace(src.When.Text)
	c.rules = append(c.rules, r)
}

// source is the pattern as it could be typed.
func (g glob) source() string {
	var b strings.Builder
	for i, l := range g.lits {
		b.WriteString(l)
		if i < len(g.stars) {
			b.WriteByte('*')
		}
	}
	return b.String()
}

// toolNamed proposes the known tool that goes by a bare name.
func (c *compiler) toolNamed(bare string) string {
	bare, _, _ = strings.Cut(bare, "(")
	bare = strings.TrimPrefix(strings.TrimSpace(bare), "mcp__")
	for _, n := range c.names {
		if _, tool, _ := strings.Cut(n, "."); strings.EqualFold(tool, bare) {
			return fmt.Sprintf("; did you mean %q?", n)
		}
	}
	return "; write server." + bare
}

// matched lists the known tools the rule is about; ok is false where there should be one and is none.
func (c *compiler) matched(r *rule) (defs []ToolDef, ok bool) {
	for _, def := range c.spec.Known {
		if (r.pat.server == "*" || r.pat.server == def.Server) && r.about(def.Name) {
			defs = append(defs, def)
		}
	}
	return defs, len(defs) > 0 || !c.pinned[r.pat.server] && (r.pat.server != "*" || len(c.spec.Known) == 0)
}

func (c *compiler) toolSpec(server, tool string) *ToolSpec {
	for i := range c.spec.Tools {
		if l := &c.spec.Tools[i].Labels; l.Server == server && l.Tool == tool {
			return &c.spec.Tools[i]
		}
	}
	return nil
}

func (c *compiler) labels(server, tool string) ToolLabels {
	if t := c.toolSpec(server, tool); t != nil {
		return t.Labels
	}
	return ToolLabels{}
}

// policy builds the indexes. It works on what compiled, so that later checks can say more.
func (c *compiler) policy() *Policy {
	p := &Policy{
		tools: map[toolID]*toolPolicy{}, wild: map[string]*ruleset{}, servers: c.spec.Servers, rest: &ruleset{},
		mode: c.spec.Mode, denyBare: c.spec.DenyUngrounded, version: version(c.spec),
	}
	if c.spec.Mode > Isolation {
		c.refuse(0, "", "unknown mode")
	}
	for key := range c.known {
		p.tools[key] = &toolPolicy{labels: ToolLabels{Server: key.server, Tool: key.tool}}
	}
	c.addLabels(p)
	for _, r := range c.rules {
		p.paths = p.paths || strings.Contains(r.when, "within") || slices.ContainsFunc(r.pat.args, func(a argPattern) bool { return a.value.pathLike() && a.value.url == nil })
		if r.pat.server != "*" && p.wild[r.pat.server] == nil {
			p.wild[r.pat.server] = &ruleset{}
		}
		if key := (toolID{r.pat.server, r.pat.tool.lits[0]}); r.pat.tool.exact() && p.tools[key] == nil {
			p.tools[key] = &toolPolicy{labels: ToolLabels{Server: key.server, Tool: key.tool}}
		}
	}
	for key, t := range p.tools {
		t.effects, t.folded = t.labels.Effects.Names(), toolName(key.tool)
		for _, r := range c.rules {
			if (r.pat.server == "*" || r.pat.server == key.server) && r.about(key.tool) {
				t.rules.add(r, t.commands)
			}
		}
	}
	for _, r := range c.rules {
		if r.answer == Allow && r.pat.tool.exact() {
			continue // its tool has a set of its own
		}
		if r.pat.server == "*" {
			p.rest.add(r, nil)
		}
		for server, rs := range p.wild {
			if r.pat.server == "*" || r.pat.server == server {
				rs.add(r, nil)
			}
		}
	}
	c.task(p)
	return p
}

func (c *compiler) task(p *Policy) {
	var task []pattern
	for _, src := range c.spec.Task {
		pat, err := taskTool(src.Text, c.spec.Servers)
		if err != nil {
			c.refuse(src.Line, src.Text, "%v", err)
			continue
		}
		if _, ok := c.matched(&rule{pat: pat, answer: Allow}); !ok {
			c.refuse(src.Line, src.Text, "matches no known tool%s", didYouMean(pat.server+"."+pat.tool.source(), c.names))
		}
		task = append(task, pat)
	}
	if len(task) > 0 {
		p.tasks = [][]pattern{task}
	}
}

func (c *compiler) addLabels(p *Policy) {
	for _, t := range c.spec.Tools {
		key := toolID{t.Labels.Server, t.Labels.Tool}
		full := key.server + "." + key.tool
		def, isKnown := c.known[key]
		switch {
		case c.spec.Servers != nil && !slices.Contains(c.spec.Servers, key.server):
			c.refuse(t.Line, full, "there is no server %q%s", key.server, didYouMean(key.server, c.spec.Servers))
			continue
		case c.pinned[key.server] && !isKnown:
			c.refuse(t.Line, full, "is no known tool%s", didYouMean(full, c.names))
			continue
		case p.tools[key] != nil && len(p.tools[key].effects) > 0:
			c.refuse(t.Line, full, "is described twice")
			continue
		}
		for _, b := range t.Labels.Bind {
			c.checkLabelPath(t.Line, full, b.Path, def)
		}
		for _, name := range append(slices.Clone(t.Labels.Text), t.Commands...) {
			c.checkLabelPath(t.Line, full, name, def)
		}
		p.tools[key] = &toolPolicy{labels: t.Labels, commands: t.Commands, effects: t.Labels.Effects.Names()}
	}
}

// test runs the inline tests of the rules against the whole policy.
func (c *compiler) test(p *Policy) {
	for _, r := range c.spec.Rules {
		for i, t := range r.Tests {
			server, tool, err := SplitTool(t.Tool, c.spec.Servers)
			if err != nil {
				c.refuse(t.Line, r.Tool.Text, "test %d: %s %v", i+1, t.Tool, err)
				continue
			}
			var s State
			for _, said := range t.Said {
				s = s.Observe(Observation{Source: "user", Trust: User, Text: said})
			}
			for _, source := range t.Reads {
				s = s.Observe(Observation{Source: source, Trust: Untrusted})
			}
			if t.Tainted && len(t.Reads) == 0 {
				s = s.Observe(Observation{Source: "test", Trust: Untrusted})
			}
			d := p.Decide(Call{Server: server, Tool: tool, Args: t.Args, Principal: t.Principal}, s)
			if d.Answer != t.Expect {
				c.refuse(t.Line, r.Tool.Text, "test %d expects %s, the policy says %s: %s", i+1, t.Expect, d.Answer, d.Text)
			}
		}
	}
}

func version(spec Spec) string {
	h := sha256.New()
	for _, part := range []any{spec.Permissions, spec.Rules, spec.Tools, spec.Known, spec.Servers, spec.Sandboxed, spec.Mode, spec.DenyUngrounded, spec.Task} {
		fmt.Fprintf(h, "%#v\x00", part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
