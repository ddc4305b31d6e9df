package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	spec := Spec{
		Sandboxed: []string{"os"},
		Permissions: Permissions{
			Deny:  src("mail.send(to:*@evil.example)", "os.shell(curl*)"),
			Ask:   src("mail.send(subject:urgent*)"),
			Allow: src("mail.send", "os.shell(git *)", "os.shell(make test && make)", "note.add(acme/*)", "web.*"),
		},
		Rules: []Rule{
			{Answer: Deny, Tool: Source{Text: "bank.pay"}, When: Source{Text: "args.amount > 100"}},
			{Answer: Allow, Tool: Source{Text: "bank.pay"}, When: Source{Text: "args.amount < 10"}},
		},
		Tools: []ToolSpec{
			{Labels: ToolLabels{Server: "mail", Tool: "send", Effects: Send, Bind: []Binding{{Path: "to", Kind: Mail, Class: Ordinary}}, Text: []string{"body"}}},
			{Labels: ToolLabels{Server: "web", Tool: "get", Effects: Read}},
			{Labels: ToolLabels{Server: "bank", Tool: "pay", Effects: Send, Bind: []Binding{{Path: "to", Class: Money}}}},
		},
	}
	tainted := State{}.Observe(Observation{Source: "web", Text: "x"})
	num := func(s string) json.Number { return json.Number(s) }
	isolated, only, task := spec, spec, spec
	isolated.Mode, only.Mode, task.Task = Isolation, TaintOnly, src("web.*")
	for name, test := range map[string]struct {
		spec  Spec
		call  Call
		state State
		want  Answer
		has   []string // in what would change it, or in why a rule did not match
	}{
		"allowed, and later not": {spec, call("mail.send", args{"to": "ann@acme.example"}), State{}, Allow, []string{"after untrusted content was read the answer is ask (not-grounded)"}},
		"allowed for good":       {spec, call("web.get", nil), State{}, Allow, nil},
		"denied by a rule":       {spec, call("mail.send", args{"to": "eve@evil.example"}), State{}, Deny, []string{"narrow or remove the rule \"deny mail.send(to:*@evil.example) (line 1)\"", "the argument \"subject\" is not what the rule says"}},
		"condition true":         {spec, call("bank.pay", args{"amount": num("500")}), State{}, Deny, []string{"its condition is false", "narrow or remove"}},
		"condition broken":       {spec, call("bank.pay", args{}), State{}, Deny, []string{"its condition could not be evaluated"}},
		"no rule":                {spec, call("bank.pay", args{"amount": num("50")}), State{}, Ask, []string{"permissions.allow: bank.pay", "the rule \"allow bank.pay\" would allow it, but its condition is false", "a person says yes"}},
		"no rule, bare":          {spec, call("note.add", args{"text": "b"}), State{}, Ask, []string{"what it is called with is not what the rule says"}},
		"a rule that is bare":    {spec, call("note.add", args{"text": "acme/x"}), State{}, Allow, nil},
		"not grounded":           {spec, call("mail.send", args{"to": "bob@acme.example"}), tainted, Ask, []string{"to would be grounded if the user names it, or it stands in the operator's store: \"bob@acme.example\"", "in a session that has read nothing untrusted the answer is allow"}},
		"not grounded, money":    {spec, call("bank.pay", args{"amount": num("5"), "to": "DE89370400440532013000"}), tainted, Ask, []string{"to would be grounded if the user names it: "}},
		"part of a command":      {spec, call("os.shell", args{"command": "git status && ls *.go"}), State{}, Ask, []string{"a wildcard for file names"}},
		"part without a rule":    {spec, call("os.shell", args{"command": "git status && ls 'a*'"}), State{}, Ask, []string{`a rule that allows "ls a*": permissions.allow: os.shell(ls a\*)`}},
		"the very line":          {spec, call("os.shell", args{"command": "make test && make"}), State{}, Allow, nil},
		"denied command":         {spec, call("os.shell", args{"command": "git status; curl x"}), State{}, Deny, nil},
		"too long":               {spec, call("os.shell", args{"command": strings.Repeat("a", maxCommand+1)}), State{}, Deny, []string{"a shorter command"}},
		"isolation":              {isolated, call("mail.send", args{"to": "bob@acme.example"}), tainted, Deny, []string{"a session that used mail.send before"}},
		"taint only":             {only, call("mail.send", args{"to": "bob@acme.example"}), tainted, Ask, []string{"mode: grounded"}},
		"task":                   {task, call("mail.send", args{"to": "bob@acme.example"}), State{}, Deny, []string{"name mail.send in the task"}},
		"no target":              {spec, call("mail.send", args{}), tainted, Ask, []string{"a person says yes"}},
	} {
		p := compile(t, test.spec)
		e := p.Explain(test.call, test.state)
		if d := p.Decide(test.call, test.state); d.Answer != e.Decision.Answer || d.Rule != e.Decision.Rule || e.Decision.Answer != test.want {
			t.Errorf("%s: decides %v, explains %v, want %v", name, d, e.Decision, test.want)
		}
		all := strings.Join(e.Change, "\n")
		for _, k := range e.Considered {
			all += "\n" + k.Why
			if k.Matches != (k.Why == "" || strings.Contains(k.Why, "could not be evaluated") && k.Answer != Allow) {
				t.Errorf("%s: %+v", name, k)
			}
		}
		for _, has := range test.has {
			if !strings.Contains(all, has) {
				t.Errorf("%s: lacks %q:\n%s", name, has, all)
			}
		}
		if decided := e.Decision; decided.Reason == ByRule && !slices.ContainsFunc(e.Considered, func(k Considered) bool { return k.Rule == decided.Rule && k.Matches }) {
			t.Errorf("%s: the rule that decided is not among those that match: %+v", name, e.Considered)
		}
	}
}

func TestTextForms(t *testing.T) {
	for _, a := range []Answer{Deny, Ask, Allow} {
		text, _ := a.MarshalText()
		var back Answer
		if err := back.UnmarshalText(text); err != nil || back != a {
			t.Error(a, back, err)
		}
	}
	for _, m := range []Mode{Grounded, TaintOnly, Filter, Isolation} {
		text, _ := m.MarshalText()
		var back Mode
		if err := back.UnmarshalText(text); err != nil || back != m {
			t.Error(m, back, err)
		}
	}
	var a Answer
	if err := a.UnmarshalText([]byte("perhaps")); err == nil || a != Deny {
		t.Error(a, err)
	}
	var m Mode
	if err := m.UnmarshalText([]byte("lax")); err == nil || m != Grounded {
		t.Error(m, err)
	}
}

func TestCanonicalNumbers(t *testing.T) {
	for lit, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "0e5": "0", "1": "1e0", "10": "1e1", "1e1": "1e1", "1E+1": "1e1", "100e-1": "1e1", "1.50": "15e-1", "-1.5": "-15e-1", "0.05": "5e-2",
		"": "", "-": "", "01": "", "1.": "", ".5": "", "1e": "", "1e+": "", "1e+-1": "", "1e--1": "", "+1": "", "0x1": "", "1_0": "", "NaN": "", " 1": "",
		"1e99999999999999999999": "", strings.Repeat("1", maxNumber+1): "",
	} {
		if got := canonicalNumber(lit); got != want {
			t.Errorf("%q: %q, want %q", lit, got, want)
		}
	}
}

func TestNearestNames(t *testing.T) {
	names := []string{"create_issue", "search", "get"}
	for s, want := range map[string]string{"craete_issue": "create_issue", "SEARCH": "search", "serch": "search", "gett": "get", "delete": "", "": "", "g": ""} {
		got := didYouMean(s, names)
		if (want == "") != (got == "") || want != "" && !strings.Contains(got, `"`+want+`"`) {
			t.Errorf("%q: %s, want %q", s, got, want)
		}
	}
}

func TestGlobs(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		level, match  bool
	}{
		{"a*/b**c/*d", "ax/bx/y/c/zd", true, true},
		{"a*/b**c/*d", "ax/bx/y/c/z/d", true, false},
		{"**/a*b/**", "x/ay/b/azb/q", true, true},
		{"**/a*b/c", "x/ab/d/ab/c", true, true},
		{"**/a*b", "x/a/ab", true, true},
		{"**/a*b", "x/a/cb", true, false},
		{"a***b", "a/x/b", true, true},
		{"*", "", true, true},
		{"*a", "a", true, true},
		{"a*a", "a", true, false},
		{"*/*", "a/b/c", true, false},
		{"**", "a/b", true, true},
		{"x**/y*z**w", "x/1/y2z3/4w", true, true},
		{"x**/y*z**w", "x/1/y/z3/4w", true, false},
		{"*/x", "a/x", true, true},
		{"a**b*c", "abbbbbc", true, true},
	} {
		g, err := newGlob(test.pattern, test.level)
		if err != nil || g.match(test.text) != test.match {
			t.Errorf("%s on %s: %v %v", test.pattern, test.text, !test.match, err)
		}
		if g.source() == "" {
			t.Error("no source")
		}
	}
}

// FuzzPattern holds the parser of rules against bytes: what loads matches what it says, an allow never more than a deny.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"mcp__a__b(c:d/*)", "a.b(https://x.test/**)", "a.b(x=1, y:\"z\")", "a:b(git *)", `a.b(x:\*)`, "*.b", "a__b(c.d:**/e)"} {
		f.Add(s, "x", "d/e")
	}
	f.Fuzz(func(t *testing.T, rule, name, value string) {
		wide, err := Compile(Spec{Permissions: Permissions{Deny: []Source{{Text: rule}}}})
		if err != nil {
			return
		}
		narrow, err := Compile(Spec{Permissions: Permissions{Allow: []Source{{Text: rule}}}})
		if err != nil {
			return
		}
		pat, err := parsePattern(rule, nil)
		if err != nil || !pat.tool.exact() {
			return
		}
		c := Call{Server: pat.server, Tool: pat.tool.lits[0], Args: map[string]any{name: value}}
		for _, a := range pat.args {
			if a.name != "" && !strings.Contains(a.name, ".") {
				c.Args[a.name] = value
			}
		}
		if narrow.Decide(c, State{}).Answer == Allow && wide.Decide(c, State{}).Answer != Deny {
			t.Fatalf("%q allows %v, and as a deny it does not fire", rule, c.Args)
		}
	})
}
