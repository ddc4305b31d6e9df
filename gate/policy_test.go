package gate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func src(texts ...string) []Source {
	var out []Source
	for i, t := range texts {
		out = append(out, Source{Text: t, Line: i + 1})
	}
	return out
}

func compile(t *testing.T, spec Spec) *Policy {
	t.Helper()
	p, err := Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func deny(texts ...string) Spec  { return Spec{Permissions: Permissions{Deny: src(texts...)}} }
func ask(texts ...string) Spec   { return Spec{Permissions: Permissions{Ask: src(texts...)}} }
func allow(texts ...string) Spec { return Spec{Permissions: Permissions{Allow: src(texts...)}} }

type args = map[string]any

func call(tool string, a args) Call {
	server, tool, err := SplitTool(tool, nil)
	if err != nil {
		panic(err)
	}
	return Call{Server: server, Tool: tool, Args: a}
}

func TestZeroValuesDeny(t *testing.T) {
	var d Decision
	if d.Answer != Deny {
		t.Error("the zero decision does not deny")
	}
	for name, p := range map[string]*Policy{"nil": nil, "zero": {}} {
		if d := p.Decide(call("a.b", nil), State{}); d.Answer != Deny {
			t.Errorf("%s policy: %v", name, d)
		}
		if e := p.Explain(call("a.b", nil), State{}); e.Decision.Answer != Deny {
			t.Errorf("%s policy: %v", name, e)
		}
	}
	if d := Least(); d.Answer != Deny {
		t.Error("least of nothing:", d)
	}
	if d := compile(t, Spec{}).Decide(call("a.b", nil), State{}); d.Answer != Ask || d.Reason != NoRule {
		t.Error("the empty policy:", d)
	}
	if Answer(9).String() != "9" || Mode(9).String() != "9" {
		t.Error("unknown values have a name")
	}
}

func TestDenyBeforeAskBeforeAllow(t *testing.T) {
	spec := Spec{
		Permissions: Permissions{Deny: src("s.drop", "s.x(a:1)"), Ask: src("s.x(a:2)"), Allow: src("s.*")},
		Rules: []Rule{
			{Answer: Ask, Tool: Source{Text: "s.y"}, When: Source{Text: "args.n > 1"}, Because: "More than one."},
			{Answer: Deny, Tool: Source{Text: "s.y"}, When: Source{Text: "args.n > 10"}, Name: "many"},
		},
	}
	p := compile(t, spec)
	for _, test := range []struct {
		call Call
		want Answer
		rule string
	}{
		{call("s.drop", nil), Deny, "deny s.drop (line 1)"},
		{call("s.x", args{"a": "1"}), Deny, "deny s.x(a:1) (line 2)"},
		{call("s.x", args{"a": "2"}), Ask, "ask s.x(a:2) (line 1)"},
		{call("s.x", args{"a": "3"}), Allow, "allow s.* (line 1)"},
		{call("s.y", args{"n": json.Number("1")}), Allow, "allow s.* (line 1)"},
		{call("s.y", args{"n": json.Number("2")}), Ask, "ask s.y"},
		{call("s.y", args{"n": json.Number("11")}), Deny, "deny many"},
		{call("s.unheard", nil), Allow, "allow s.* (line 1)"},
		{call("other.x", nil), Ask, ""},
	} {
		if d := p.Decide(test.call, State{}); d.Answer != test.want || d.Rule != test.rule {
			t.Errorf("%v: %v %q, want %v %q", test.call, d.Answer, d.Rule, test.want, test.rule)
		}
	}
	d := p.Decide(call("s.y", args{"n": json.Number("2")}), State{})
	if !strings.Contains(d.Text, "More than one.") {
		t.Error("the rule's because is not shown:", d.Text)
	}
}

func TestSpellingsOfTools(t *testing.T) {
	for _, rule := range []string{"mcp__github__create_issue", "github__create_issue", "github.create_issue", "github:create_issue", "mcp__github", "mcp__github__*", "github.create_*", " github.create_issue "} {
		p := compile(t, allow(rule))
		for _, name := range []string{"mcp__github__create_issue", "github__create_issue", "github.create_issue", "github:create_issue"} {
			if d := p.Decide(call(name, nil), State{}); d.Answer != Allow {
				t.Errorf("%s: %s: %v", rule, name, d.Answer)
			}
		}
		if d := p.Decide(Call{Server: "evil", Tool: "github.create_issue"}, State{}); d.Answer != Ask {
			t.Errorf("%s follows the name to another server", rule)
		}
	}
	for rule, tools := range map[string][]string{"s.delete_repo": {"Delete_Repo", "DELETE_REPO", "ｄelete_repo"}, "s.delete_*": {"Delete_Repo", "DELETE_X"}, "*.drop": {"Drop"}} {
		for _, tool := range tools {
			for _, known := range [][]ToolSpec{nil, {{Labels: ToolLabels{Server: "s", Tool: tool, Effects: Write}}}} {
				spec := deny(rule)
				spec.Tools = known
				if d := compile(t, spec).Decide(Call{Server: "s", Tool: tool}, State{}); d.Answer != Deny {
					t.Errorf("%s passes a deny of %s", tool, rule)
				}
				if rule[0] == '*' {
					continue
				}
				spec = allow(rule)
				spec.Tools = known
				if d := compile(t, spec).Decide(Call{Server: "s", Tool: tool}, State{}); d.Answer == Allow {
					t.Errorf("an allow of %s follows the name to %s", rule, tool)
				}
			}
		}
	}
	servers := []string{"my__server", "a.b", "plain"}
	for name, want := range map[string][2]string{
		"mcp__my__server__tool": {"my__server", "tool"},
		"my__server.tool":       {"my__server", "tool"},
		"a.b.c":                 {"a.b", "c"},
		"plain__x__y":           {"plain", "x__y"},
		"plain.x.y":             {"plain", "x.y"},
		"plain:x":               {"plain", "x"},
	} {
		if s, tool, err := SplitTool(name, servers); err != nil || s != want[0] || tool != want[1] {
			t.Errorf("%s: %q %q %v", name, s, tool, err)
		}
	}
	for name, want := range map[string]string{
		"a.b.c": "could mean a tool of", "nope.x": "no server", "x": "names no server", "plain": "names no server", "mcp__plain": "no tool of it", "": "names no tool", "plain.*": "without wildcards",
	} {
		if _, _, err := SplitTool(name, []string{"a", "a.b", "plain"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestArgumentPatterns(t *testing.T) {
	num := func(s string) json.Number { return json.Number(s) }
	for _, test := range []struct {
		pattern string
		args    args
		allow   bool // as an allow rule it matches
		deny    bool // as a deny rule it matches
	}{
		// Exact by default.
		{"repo:acme/x", args{"repo": "acme/x"}, true, true},
		{"repo=acme/x", args{"repo": "acme/x"}, true, true},
		{"repo: acme/x", args{"repo": "acme/x", "title": "t"}, true, true},
		{"repo:acme/x", args{"repo": "acme/xy"}, false, false},
		{"repo:acme/x", args{"repo": "ACME/X"}, false, true},
		{"repo:acme/x", args{}, false, false},
		{"repo:acme/x", nil, false, false},
		{"repo:acme/x", args{"Repo": "acme/x"}, false, true},
		{"repo:acme/x", args{"repo": "acme/x", "REPO": "evil/y"}, false, true},
		{"repo:acme/x", args{"repo": "acme/y", "ＲＥＰＯ": "acme/x"}, false, true},
		// Stars that the operator typed.
		{"repo:acme/*", args{"repo": "acme/x"}, true, true},
		{"repo:acme/*", args{"repo": "acme/x/y"}, false, true}, // an allow stays on its level
		{"repo:acme/**", args{"repo": "acme/x/y"}, true, true},
		{"repo:acme/*", args{"repo": "acmee/x"}, false, false},
		{"repo:acme/*", args{"repo": "acme/../evil/x"}, false, true},
		{"repo:acme/**", args{"repo": "acme/../evil/x"}, false, true},
		{"repo:acme/**", args{"repo": "acme//x"}, false, true},
		{"repo:acme/**", args{"repo": "acme/%2e%2e/x"}, false, true},
		{"repo:acme/**", args{"repo": "acme/x\\..\\y"}, false, true},
		{"repo:acme/**", args{"repo": "acme/x\x00"}, false, true},
		{"title:*", args{"title": "any / thing\n"}, true, true},
		{"title:fix *", args{"title": "fix a/b"}, true, true},
		{"title:a*b*c", args{"title": "a1b2c"}, true, true},
		{"title:a*b*c", args{"title": "a1b2d"}, false, false},
		{`q:a\*b`, args{"q": "a*b"}, true, true},
		{`q:a\*b`, args{"q": "axb"}, false, false},
		{`q:a\\b`, args{"q": `a\b`}, true, true},
		{"p:**/x", args{"p": "a/b/x"}, true, true},
		{"p:**/x", args{"p": "x"}, false, true},
		{"p:a/*/c/**", args{"p": "a/b/c/d/e"}, true, true},
		{"p:a/*/c/**", args{"p": "a/b/b/c/d"}, false, true},
		// Several arguments, and commas that are text.
		{"repo:acme/x, title:hi", args{"repo": "acme/x", "title": "hi"}, true, true},
		{"repo:acme/x, title:hi", args{"repo": "acme/x", "title": "ho"}, false, false},
		{"title:a, b", args{"title": "a, b"}, true, true},
		{`title:"a, b: c"`, args{"title": "a, b: c"}, true, true},
		{`title:"a\"b"`, args{"title": `a"b`}, true, true},
		{`title:""`, args{"title": ""}, true, true},
		// Numbers and other scalars.
		{"n:5", args{"n": num("5")}, true, true},
		{"n:5", args{"n": num("5.0")}, true, true},
		{"n:5", args{"n": num("0.5e1")}, true, true},
		{"n:5", args{"n": 5.0}, true, true},
		{"n:5", args{"n": 5}, true, true},
		{"n:5", args{"n": int64(5)}, true, true},
		{"n:5", args{"n": "5"}, true, true},
		{"n:5", args{"n": num("50")}, false, false},
		{"n:-5", args{"n": num("5")}, false, false},
		{`n:"5"`, args{"n": num("5")}, false, false},
		{`n:"5"`, args{"n": "5"}, true, true},
		{"n:5*", args{"n": num("55")}, false, true},
		{"n:*", args{"n": num("55")}, true, true},
		{"n:1000000000000000000000", args{"n": num("1e21")}, true, true},
		{"b:true", args{"b": true}, true, true},
		{"b:true", args{"b": "true"}, true, true},
		{"b:true", args{"b": false}, false, false},
		{"b:null", args{"b": nil}, true, true},
		{"b:x", args{"b": struct{}{}}, false, true}, // what is no JSON is not let through
		// Lists: all for an allow, any for a deny.
		{"to:a@x.test", args{"to": []any{"a@x.test", "a@x.test"}}, true, true},
		{"to:a@x.test", args{"to": []any{"a@x.test", "b@x.test"}}, false, true},
		{"to:a@x.test", args{"to": []any{}}, false, false},
		{"to:a@x.test", args{"to": []any{[]any{"a@x.test"}}}, true, true},
		{"to:a@x.test", args{"to": args{"mail": "a@x.test"}}, false, true},
		// Fields of objects.
		{"to.mail:a@x.test", args{"to": args{"mail": "a@x.test"}}, true, true},
		{"to.mail:a@x.test", args{"to": args{"Mail": "a@x.test"}}, false, true},
		{"to.mail:a@x.test", args{"to": []any{args{"mail": "a@x.test"}, args{"mail": "b@x.test"}}}, false, true},
		{"to.mail:a@x.test", args{"to": []any{args{"mail": "a@x.test"}}}, true, true},
		{"to.mail:a@x.test", args{"to.mail": "a@x.test"}, true, true},
		{"to.mail:a@x.test", args{"to": "a@x.test"}, false, false},
		// One pattern without a name.
		{"acme/*", args{"repo": "acme/x"}, true, true},
		{"acme/*", args{"repo": "acme/x", "b": "c"}, false, true},
		{"acme/*", args{"a": args{"b": []any{"acme/x"}}}, false, true},
		{"acme/*", args{"a": "b"}, false, false},
		// Links.
		{"url:https://docs.x.test/**", args{"url": "https://docs.x.test/a/b?c=d"}, true, true},
		{"url:https://docs.x.test/**", args{"url": "https://DOCS.x.test/a"}, true, true},
		{"url:https://docs.x.test/**", args{"url": "https://docs.x.test"}, true, false},
		{"url:https://docs.x.test/*", args{"url": "https://docs.x.test/a/b"}, false, true},
		{"url:https://docs.x.test/**", args{"url": "http://docs.x.test/a"}, false, false},
		{"url:https://docs.x.test/**", args{"url": "https://docs.x.test.evil.test/a"}, false, false},
		{"url:https://docs.x.test/**", args{"url": "https://docs.x.test@evil.test/a"}, false, false},
		{"url:https://docs.x.test/**", args{"url": "https://docs.x.test/../a"}, false, true},
		{"url:https://docs.x.test/**", args{"url": "https://docs.x.test\\@evil.test/a"}, false, true},
		{"url:https://*.x.test/**", args{"url": "https://a.x.test/b"}, true, true},
		{"url:https://*.x.test/**", args{"url": "https://evil.test?.x.test/b"}, false, true},
		{"url:https://*.x.test/**", args{"url": "https://evil.test#.x.test/b"}, false, true},
		{"url:https://*.x.test/**", args{"url": "https://evil.test/.x.test/b"}, false, true},
		{"url:https://*.x.test/**", args{"url": "https://evil.test:80.x.test/b"}, false, true},
		{"url:https://*.x.test/**", args{"url": "https://[evil].x.test/b"}, false, true},
		{"url:https://*.x.test/**", args{"url": "https://x.test/b"}, false, false},
		{"url:https://*.x.test/**", args{"url": "javascript://a.x.test/b"}, false, false},
		{"url:https://x.test/a", args{"url": "https://x.test/a"}, true, true},
		{"url:https://x.test/a", args{"url": "https://x.test/A"}, false, true},
		{"url:https://x.test/**", args{"url": "https://x.test/a b"}, false, true},
		{"url:https://x.test/**", args{"url": "https://x.test/%2e%2e/b"}, false, true},
		{"url:https://x.test/**", args{"url": "//x.test/a"}, false, false},
		{"url:https://x.test/**", args{"url": "1https://x.test/a"}, false, false},
		{"url:https://x.test/**", args{"url": strings.Repeat("a", maxWildText) + "https://x.test/"}, false, false},
		{"p:/a/**", args{"p": "/a/" + strings.Repeat("b", maxWildText)}, false, true},
		// Spellings that name the same thing.
		{"p:**/.ssh/**", args{"p": "/h/.SSH/id"}, false, true},
		{"p:**/.git/**", args{"p": "/w/.Git/hooks/x"}, false, true},
		{"p:/etc/passwd", args{"p": "/srv/../etc/passwd"}, false, true},
		{"p:/etc/passwd", args{"p": "file:///etc/passwd"}, false, true},
		{"p:/etc/passwd", args{"p": "/etc/%70asswd"}, false, true},
		{"p:/etc/passwd", args{"p": "/etc/%2570asswd"}, false, true},
		{"p:/etc/passwd", args{"p": "/etc//passwd"}, false, true},
		{"p:/etc/passwd", args{"p": "\\etc\\passwd"}, false, true},
		{"p:**/.env", args{"p": ".env"}, false, true},
		{"p:/café", args{"p": "/cafe\u0301"}, false, true},
		{"p:/etc/passwd", args{"p": "/etc/passwds"}, false, false},
	} {
		c := call("s.t", test.args)
		if got := compile(t, allow("s.t("+test.pattern+")")).Decide(c, State{}).Answer == Allow; got != test.allow {
			t.Errorf("allow %s: %v: %v", test.pattern, test.args, got)
		}
		if got := compile(t, deny("s.t("+test.pattern+")")).Decide(c, State{}).Answer == Deny; got != test.deny {
			t.Errorf("deny %s: %v: %v", test.pattern, test.args, got)
		}
		if got := compile(t, ask("s.t("+test.pattern+")")).Decide(c, State{}).Reason == ByRule; got != test.deny {
			t.Errorf("ask %s: %v: %v", test.pattern, test.args, got)
		}
	}
}

func TestLinksAreFollowed(t *testing.T) {
	paths := map[string]string{"/srv/link": "/etc/passwd", "/srv/inside": "/srv/data/x", "/srv/broken": "", "/srv/plain": "/srv/plain"}
	for _, test := range []struct {
		pattern     string
		path        any
		allow, deny bool
	}{
		{"p:/srv/**", "/srv/plain", true, true},
		{"p:/srv/**", "/srv/inside", true, true},
		{"p:/srv/**", "/srv/link", false, true},
		{"p:/srv/**", "/srv/broken", false, true},
		{"p:/srv/**", "/srv/unknown", true, true},
		{"p:/srv/**", []any{"/srv/plain", "/srv/link"}, false, true},
		{"p:/srv/link", "/srv/link", true, true}, // spelt out
		{"p:/etc/*", "/srv/link", false, true},
		{"p:/etc/passwd", "/srv/link", false, true},
		{"p:/etc/passwd", "/srv/broken", false, true},
		{"p:passwd", "/srv/broken", false, false},
		{"p:*", "/srv/link", true, true},
		{"o.p:/srv/**", "/srv/link", false, false},
	} {
		c := call("s.t", args{"p": test.path})
		c.Paths = paths
		if got := compile(t, allow("s.t("+test.pattern+")")).Decide(c, State{}).Answer == Allow; got != test.allow {
			t.Errorf("allow %s: %v: %v", test.pattern, test.path, got)
		}
		if got := compile(t, deny("s.t("+test.pattern+")")).Decide(c, State{}).Answer == Deny; got != test.deny {
			t.Errorf("deny %s: %v: %v", test.pattern, test.path, got)
		}
	}
	if compile(t, allow("s.t(p:x*)")).AsksForPaths() || !compile(t, allow("s.t(p:/srv/*)")).AsksForPaths() {
		t.Error("paths")
	}
}

func TestDeepValuesAreNotLetThrough(t *testing.T) {
	var deep any = "x"
	for range maxDepth + 2 {
		deep = []any{deep}
	}
	if d := compile(t, allow("s.t(a:x)")).Decide(call("s.t", args{"a": deep}), State{}); d.Answer == Allow {
		t.Error("allowed")
	}
	if d := compile(t, deny("s.t(a:y)")).Decide(call("s.t", args{"a": deep}), State{}); d.Answer != Deny {
		t.Error("not denied")
	}
}

func TestRulesThatDoNotLoad(t *testing.T) {
	schema := func(props args) args { return args{"type": "object", "properties": props} }
	known := []ToolDef{
		{Server: "docs", Name: "search", InputSchema: schema(args{"query": args{"type": "string"}, "limit": args{"type": "integer"}, "kind": args{"enum": []any{"page", "post"}}, "fresh": args{"type": "boolean"}})},
		{Server: "docs", Name: "get", InputSchema: schema(args{"id": args{"type": "string"}})},
		{Server: "docs", Name: "tree", InputSchema: schema(args{"at": args{"type": "object", "properties": args{"path": args{"type": "string"}}}, "list": args{"type": "array", "items": args{"type": "object", "properties": args{"id": args{"const": "x"}}}}})},
		{Server: "docs", Name: "odd", InputSchema: args{"$ref": "#/x"}},
		{Server: "os", Name: "run", InputSchema: schema(args{"command": args{"type": "string"}, "cwd": args{"type": "string"}})},
	}
	servers := []string{"docs", "os", "bare"}
	rule := func(a Answer, tool, when string) Spec {
		return Spec{Rules: []Rule{{Answer: a, Tool: Source{Text: tool, Line: 7}, When: Source{Text: when, Line: 8}}}}
	}
	for name, test := range map[string]struct {
		spec Spec
		want string // "" loads
	}{
		"fine":                                {allow("docs.search(query:x, limit:5, kind:page, fresh:true)"), ""},
		"fine without pins":                   {allow("bare.anything(x:y)"), ""},
		"fine nested":                         {allow("docs.tree(at.path:x)", "docs.tree(list.id:x)"), ""},
		"fine odd schema":                     {allow("docs.odd(x:y)"), ""},
		"fine bare only argument":             {allow("docs.get(x*)"), ""},
		"fine bare command":                   {allow("os.run(ls *)"), ""},
		"fine wildcard":                       {allow("docs.*"), ""},
		"no server":                           {allow("search"), `line 1: search: names no server: the tool of any server could take the name; did you mean "docs.search"?`},
		"no server, unknown":                  {allow("frob(x:y)"), "write server.frob"},
		"unknown server":                      {allow("dcos.search"), `there is no server "dcos"; did you mean "docs"?`},
		"unknown tool":                        {allow("docs.serch"), `matches no known tool; did you mean "docs.search"?`},
		"unknown tool, nothing near":          {allow("docs.completely_different"), "matches no known tool"},
		"unknown argument":                    {allow("docs.search(qurey:x)"), `there is no argument "qurey"; did you mean "query"?`},
		"unknown nested argument":             {allow("docs.tree(at.pth:x)"), `there is no argument "at.pth"; did you mean "at.path"?`},
		"not in the enum":                     {allow("docs.search(kind:pag)"), `can match nothing: the argument "kind" is one of page, post; did you mean "page"?`},
		"not the const":                       {deny("docs.tree(list.id:y)"), "can match nothing"},
		"text for a number":                   {allow("docs.search(limit:many)"), "is a number"},
		"quoted number":                       {deny(`docs.search(limit:"5")`), "is a number"},
		"text for a boolean":                  {allow("docs.search(fresh:maybe)"), "is true or false"},
		"argument twice":                      {allow("docs.search(query:a, query:b)"), `names the argument "query" twice`},
		"bare with several":                   {allow("docs.search(x)"), "write which one: docs.search(fresh: …)"},
		"allow of all servers":                {allow("*"), "an allow rule names its server"},
		"allow of all servers' tool":          {allow("*.search"), "an allow rule names its server"},
		"server with wildcard":                {allow("do*.search"), "a wildcard in the server's name"},
		"star of no known tool":               {deny("*.nosuch"), "matches no known tool"},
		"not closed":                          {allow("docs.search(query:x"), "not closed"},
		"empty parentheses":                   {allow("docs.search()"), "parentheses are empty"},
		"empty pattern":                       {allow("docs.search(query:)"), "the pattern is empty"},
		"empty name":                          {allow("docs.search(a..b:x)"), "empty name between dots"},
		"control character":                   {allow("docs.search(query:\x07)"), "control character"},
		"backslash":                           {allow(`docs.search(query:a\b)`), "a backslash stands before"},
		"quote in quotes":                     {allow(`docs.search(query:"a"b")`), "a quote inside"},
		"too long":                            {allow("docs.search(query:" + strings.Repeat("x", maxPattern) + ")"), "longer than"},
		"long tool":                           {allow("docs." + strings.Repeat("x", maxPattern)), "longer than"},
		"backslash in tool":                   {allow(`docs.a\b`), "a backslash stands before"},
		"empty":                               {allow(""), "names no tool"},
		"host with open end":                  {allow("bare.get(url:https://x.test*)"), "also matches other hosts"},
		"host of another scheme":              {allow("bare.get(url:*://x.test/)"), "write the scheme"},
		"host empty":                          {allow("bare.get(url:https:///*)"), "the link has no host"},
		"host odd":                            {allow("bare.get(url:https://u@x.test/*)"), "letters, digits"},
		"command chain":                       {allow("os.run(git * && ls)"), "judged one by one"},
		"command chain, named":                {allow("bare.t(command:git * | sh)"), "judged one by one"},
		"command chain, shell name":           {allow("bare.run_shell(git * | sh)"), "judged one by one"},
		"command colon star":                  {allow("os.run(npm run test:*)"), "write a space before the *"},
		"command quote":                       {allow("os.run(echo 'a*)"), "a quote is not closed"},
		"condition unknown":                   {rule(Allow, "docs.search", "args.qery == 'x'"), `line 8: docs.search: condition: undefined field 'qery'; did you mean "query"?`},
		"condition unknown name":              {rule(Allow, "docs.search", "arg.query == 'x'"), `did you mean 'args'?`},
		"condition unknown function":          {rule(Allow, "docs.search", "hots(args.query) == 'x'"), `did you mean 'host'?`},
		"condition wrong type":                {rule(Allow, "docs.search", "args.limit == 'x'"), "no matching overload"},
		"condition no bool":                   {rule(Allow, "docs.search", "args.query"), "it must be true or false"},
		"condition pattern":                   {rule(Allow, "docs.search", "args.query.matches('[')"), "condition: "},
		"command, allow of any":               {rule(Allow, "docs.search(limit:*)", ""), ""},
		"covered by command name":             {allow("bare.t(command:git *)", "bare.t(command:git push)"), "never decides"},
		"link pattern with escape":            {allow(`bare.get(url:https://x\*y/*)`), "letters, digits"},
		"condition syntax":                    {rule(Allow, "docs.search", "args.query =="), "condition: "},
		"condition long":                      {rule(Allow, "docs.search", "true || "+strings.Repeat("(true) || ", maxCondition/10)+"true"), "condition: "},
		"condition on lines":                  {rule(Allow, "docs.search", "true &&\n args.qery == ''"), "line 2 of it"},
		"condition never true":                {rule(Allow, "docs.search", "server == 'other'"), "never true"},
		"condition never, effects":            {rule(Deny, "docs.search", "'read' in effects && args.limit > 5"), "never true"},
		"condition never, constant":           {rule(Deny, "docs.*", "1 > 2"), "never true"},
		"condition grounded of no argument":   {rule(Allow, "docs.search", "grounded('x')"), "grounded takes an argument of the call"},
		"allow that taint opens":              {rule(Allow, "docs.search", "session.tainted"), "an allow rule must not start to match"},
		"allow that a read opens":             {rule(Allow, "docs.search", "'web' in session.reads"), "an allow rule must not start"},
		"allow that reads open":               {rule(Allow, "docs.search", "session.reads.exists(r, r == 'web')"), "an allow rule must not start"},
		"allow by number of reads":            {rule(Allow, "docs.search", "size(session.reads) == 1"), "the session may stand only as"},
		"allow by choice":                     {rule(Allow, "docs.search", "session.tainted ? args.query == 'a' : false"), "the session may stand only as"},
		"allow by all reads":                  {rule(Allow, "docs.search", "!session.reads.all(r, r == 'web')"), "the session may stand only as"},
		"allow by own reads":                  {rule(Allow, "docs.search", "!(session.reads[0] in session.reads)"), "the session may stand only as"},
		"deny that taint closes":              {rule(Deny, "docs.search", "!session.tainted"), "a deny or ask rule must not stop to match"},
		"ask that taint closes":               {rule(Ask, "docs.search", "args.query == 'x' && !(session.tainted)"), "a deny or ask rule must not stop"},
		"allow that taint closes":             {rule(Allow, "docs.search", "!session.tainted && args.query == 'x'"), ""},
		"deny that taint opens":               {rule(Deny, "docs.search", "session.tainted || 'web' in session.reads || session.reads.exists(r, r.startsWith('w'))"), ""},
		"duplicate":                           {allow("docs.get", "mcp__docs__get"), `line 2: mcp__docs__get: says the same as the rule "allow docs.get (line 1)"`},
		"covered":                             {allow("docs.*", "docs.get(id:x)"), "line 2: docs.get(id:x): never decides"},
		"covered by a deny":                   {Spec{Permissions: Permissions{Deny: src("docs.get"), Allow: src("docs.get(id:x)")}}, "line 1: docs.get(id:x): never decides: the rule \"deny docs.get (line 1)\""},
		"covered by an ask":                   {Spec{Permissions: Permissions{Ask: src("docs.search(query:A*)"), Allow: src("docs.search(query:ab, limit:1)")}}, "never decides"},
		"covered by every server":             {Spec{Permissions: Permissions{Deny: src("*"), Allow: src("docs.get")}}, "never decides"},
		"same condition twice":                {Spec{Rules: []Rule{{Answer: Deny, Tool: Source{Text: "docs.get"}, When: Source{Text: "args.id == 'x'"}}, {Answer: Deny, Tool: Source{Text: "docs.get"}, When: Source{Text: " args.id == 'x' "}}}}, "says the same"},
		"other condition":                     {Spec{Rules: []Rule{{Answer: Deny, Tool: Source{Text: "docs.get"}, When: Source{Text: "args.id == 'x'"}}, {Answer: Deny, Tool: Source{Text: "docs.get"}, When: Source{Text: "args.id == 'y'"}}}}, ""},
		"condition covers nothing":            {Spec{Permissions: Permissions{Allow: src("docs.get")}, Rules: []Rule{{Answer: Deny, Tool: Source{Text: "docs.get"}, When: Source{Text: "args.id == 'x'"}}}}, ""},
		"exceptions":                          {Spec{Permissions: Permissions{Deny: src("docs.get(id:x)"), Ask: src("docs.get(id:y*)"), Allow: src("docs.get")}}, ""},
		"covered link":                        {allow("bare.get(url:https://*.x.test/**)", "bare.get(url:https://a.x.test/b/*)"), "never decides"},
		"covered exact link":                  {allow("bare.get(url:https://*.x.test/**)", "bare.get(url:https://a.x.test/b)"), "never decides"},
		"other link":                          {allow("bare.get(url:https://*.x.test/*)", "bare.get(url:https://a.x.test/**)"), ""},
		"not covered, no path":                {allow("bare.get(p:a/**)", "bare.get(p:a*)"), ""},
		"covered command":                     {allow("os.run(git *)", "os.run(git status)"), "never decides"},
		"covered chain":                       {allow("os.run(ls && pwd)", "os.run(ls && pwd)"), "says the same"},
		"other quotes":                        {allow(`docs.get(id:"x")`, "docs.get(id:x)"), ""},
		"unknown answer":                      {rule(7, "docs.get", ""), "denies, asks or allows"},
		"unknown mode":                        {Spec{Mode: 9}, "unknown mode"},
		"deny by command, allow all":          {Spec{Permissions: Permissions{Deny: src("os.run(git push*)"), Allow: src("os.run(*)")}}, "allows every other command"},
		"deny by command, allow tool":         {Spec{Permissions: Permissions{Deny: src("os.run(command:git push*)"), Allow: src("os.*")}}, "allows every other command"},
		"deny by command, allow tool by name": {Spec{Permissions: Permissions{Deny: src("bare.run_shell(git push*)"), Allow: src("bare.*")}}, "allows every other command"},
		"deny by command, in the sandbox":     {Spec{Sandboxed: []string{"os"}, Permissions: Permissions{Deny: src("os.run(git push*)"), Allow: src("os.run(*)")}}, ""},
		"deny by command, allow some":         {Spec{Permissions: Permissions{Deny: src("os.run(git push*)"), Allow: src("os.run(git *)")}}, ""},
		"labels of no tool":                   {Spec{Tools: []ToolSpec{{Line: 3, Labels: ToolLabels{Server: "docs", Tool: "serch"}}}}, `line 3: docs.serch: is no known tool; did you mean "docs.search"?`},
		"labels of no server":                 {Spec{Tools: []ToolSpec{{Line: 3, Labels: ToolLabels{Server: "x", Tool: "y"}}}}, `there is no server "x"`},
		"labels twice":                        {Spec{Tools: []ToolSpec{{Labels: ToolLabels{Server: "docs", Tool: "get"}}, {Labels: ToolLabels{Server: "docs", Tool: "get"}}}}, "described twice"},
		"labels of no argument":               {Spec{Tools: []ToolSpec{{Labels: ToolLabels{Server: "docs", Tool: "get", Bind: []Binding{{Path: "idd"}}}}}}, `did you mean "id"?`},
		"text of no argument":                 {Spec{Tools: []ToolSpec{{Labels: ToolLabels{Server: "docs", Tool: "get", Text: []string{"idd"}}}}}, `did you mean "id"?`},
		"command of no argument":              {Spec{Tools: []ToolSpec{{Labels: ToolLabels{Server: "docs", Tool: "get"}, Commands: []string{"idd"}}}}, `did you mean "id"?`},
		"task":                                {Spec{Task: src("docs.get", "docs.s*")}, ""},
		"task of no tool":                     {Spec{Task: src("docs.gett")}, `matches no known tool; did you mean "docs.get"?`},
		"task with arguments":                 {Spec{Task: src("docs.get(id:x)")}, "without arguments"},
		"task of all":                         {Spec{Task: src("*")}, "tools of a server"},
		"task without server":                 {Spec{Task: src("get")}, "names no server"},
		"test fails":                          {Spec{Rules: []Rule{{Answer: Allow, Tool: Source{Text: "docs.get"}, Tests: []RuleTest{{Line: 9, Tool: "docs.get", Expect: Deny}}}}}, "line 9: docs.get: test 1 expects deny, the policy says allow"},
		"test without server":                 {Spec{Rules: []Rule{{Answer: Allow, Tool: Source{Text: "docs.get"}, Tests: []RuleTest{{Line: 9, Tool: "get", Expect: Deny}}}}}, "test 1: get names no server"},
		"tests pass": {Spec{Rules: []Rule{{Answer: Allow, Tool: Source{Text: "docs.get"}, Tests: []RuleTest{
			{Tool: "docs.get", Args: args{"id": "x"}, Expect: Allow},
			{Tool: "docs.get", Args: args{"id": "x"}, Tainted: true, Expect: Ask},
			{Tool: "docs.get", Args: args{"id": "x"}, Reads: []string{"web"}, Expect: Ask},
			{Tool: "docs.get", Args: args{"id": "rec-8812"}, Reads: []string{"web"}, Said: []string{"get rec-8812"}, Expect: Allow},
		}}}}, ""},
	} {
		test.spec.Known, test.spec.Servers = known, servers
		_, err := Compile(test.spec)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		var refused *CompileError
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: a %T", name, err)
		}
	}
	many := make([]string, maxRules+1)
	for i := range many {
		many[i] = "a.b"
	}
	if _, err := Compile(deny(many...)); err == nil || !strings.Contains(err.Error(), "more than 2000 rules") {
		t.Error(err)
	}
	if _, err := Compile(deny("a", "b")); err == nil || !strings.Contains(err.Error(), "2 problems in the policy:\n  line 1:") {
		t.Error(err)
	}
	if (&CompileError{}).Error() == "" {
		t.Error("an error without words")
	}
}

func TestConditions(t *testing.T) {
	def := ToolDef{Server: "s", Name: "t", InputSchema: args{"properties": args{
		"path": args{"type": "string"}, "url": args{"type": "string"}, "n": args{"type": "integer"}, "f": args{"type": "number"}, "b": args{"type": "boolean"},
		"tags": args{"type": "array", "items": args{"type": "string"}}, "o": args{"type": "object", "properties": args{"x": args{"type": "string"}}},
		"content-type": args{"type": "string"}, "any": args{}, "free": args{"type": "object"}, "to": args{"type": "string"},
	}}}
	num := func(s string) json.Number { return json.Number(s) }
	said := State{}.Observe(Observation{Source: "user", Trust: User, Text: "write to ann@acme.example"})
	read := State{}.Observe(Observation{Source: "web"})
	for _, test := range []struct {
		when  string
		args  args
		state State
		want  string // true, false or error
	}{
		{"server == 's' && tool == 't' && principal == 'me' && effects == ['write', 'send']", nil, State{}, "true"},
		{"args.n > 5", args{"n": num("6")}, State{}, "true"},
		{"args.n > 5", args{"n": num("5")}, State{}, "false"},
		{"args.n > 5", args{"n": num("6.0")}, State{}, "true"},
		{"args.n > 5", args{"n": 6.0}, State{}, "true"},
		{"args.n > 5", args{"n": 6}, State{}, "true"},
		{"args.n > 5", args{"n": int64(6)}, State{}, "true"},
		{"args.n > 5", args{"n": num("6.5")}, State{}, "error"},
		{"args.n > 5", args{"n": "6"}, State{}, "error"},
		{"args.n > 5", args{"n": num("1e999")}, State{}, "error"},
		{"args.n > 5", args{}, State{}, "error"},
		{"args.n > 5", nil, State{}, "error"},
		{"has(args.n) && args.n > 5", nil, State{}, "false"},
		{"args.f > 5.5", args{"f": num("6")}, State{}, "true"},
		{"args.f > 5.5", args{"f": num("5.6")}, State{}, "true"},
		{"args.f > 5", args{"f": num("5.6")}, State{}, "true"},
		{"args.f > 5.5", args{"f": true}, State{}, "error"},
		{"args.b", args{"b": true}, State{}, "true"},
		{"args.b", args{"b": "true"}, State{}, "error"},
		{"args.path == 'a'", args{"path": nil}, State{}, "error"},
		{"'x' in args.tags", args{"tags": []any{"y", "x"}}, State{}, "true"},
		{"args.tags.exists(t, t == 'x')", args{"tags": []any{"y"}}, State{}, "false"},
		{"'x' in args.tags", args{"tags": []any{num("1")}}, State{}, "error"},
		{"'x' in args.tags", args{"tags": "x"}, State{}, "error"},
		{"args.o.x == 'a'", args{"o": args{"x": "a"}}, State{}, "true"},
		{"args.o.x == 'a'", args{"o": args{}}, State{}, "error"},
		{"has(args.o.x)", args{"o": args{}}, State{}, "false"},
		{"args.o.x == 'a'", args{"o": "a"}, State{}, "error"},
		{"args.any == 5", args{"any": num("5")}, State{}, "true"},
		{"args.any == 5", args{"any": "5"}, State{}, "false"},
		{"args.any > 5.5", args{"any": num("1e300")}, State{}, "true"},
		{"args.any > 5", args{"any": num("1e999")}, State{}, "error"},
		{"args.any.a[0].b == 'c'", args{"any": args{"a": []any{args{"b": "c"}}}}, State{}, "true"},
		{"args.free.k == 1", args{"free": args{"k": num("1")}}, State{}, "true"},
		{"args.free.k == 1", args{"free": num("1")}, State{}, "error"},
		{"args.any", args{"any": "x"}, State{}, "error"},
		{"args.`content-type` == 'a'", args{"content-type": "a"}, State{}, "true"},
		{"args.any == args.any", args{"any": args{"a": []any{"b"}}}, State{}, "true"},
		{"args.any.x == args.any.x", args{"any": args{"x": args{"a": num("1")}}}, State{}, "true"},
		{"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e > 0)))))", nil, State{}, "error"},

		{"host(args.url) == 'x.test'", args{"url": "https://X.test:8443/a"}, State{}, "true"},
		{"host(args.url) == 'x.test'", args{"url": "https://x.test./a"}, State{}, "true"},
		{"host(args.url) == '::1'", args{"url": "http://[::1]:80/"}, State{}, "true"},
		{"host(args.url).endsWith('.test')", args{"url": "https://u@x.test/"}, State{}, "error"},
		{"host(args.url) == 'x.test'", args{"url": "x.test"}, State{}, "error"},
		{"host(args.url) == 'x.test'", args{"url": "https://x.test:8a/"}, State{}, "error"},
		{"host(args.url) == 'x.test'", args{"url": "https://[x.test"}, State{}, "error"},
		{"host(args.url) == 'x.test'", args{"url": "https://[::1]x/"}, State{}, "error"},
		{"host(args.url) == 'x.test'", args{"url": "https://x]test/"}, State{}, "error"},
		{"host(args.url) == 'x.test'", args{"url": "https:///x.test"}, State{}, "error"},
		{"host(args.url) == 'x.test'", args{"url": "https://x.test\\.evil.test/"}, State{}, "error"},
		{"host(args.url) == 'x.test'", args{"url": "ht tp://x.test/"}, State{}, "error"},

		{"within(args.path, '/srv/data')", args{"path": "/srv/data/x"}, State{}, "true"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data"}, State{}, "true"},
		{"within(args.path, '/srv/data/')", args{"path": "/srv/data/a/../b"}, State{}, "true"},
		{"within(args.path, '/')", args{"path": "/x"}, State{}, "true"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data-private/x"}, State{}, "false"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data/../etc/passwd"}, State{}, "false"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data//../../etc/passwd"}, State{}, "false"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data/./.."}, State{}, "false"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data/%2e%2e/x"}, State{}, "error"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/DATA/x"}, State{}, "error"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data\x00/../x"}, State{}, "error"},
		{"within(args.path, '/srv/data')", args{"path": "file:///srv/data/../x"}, State{}, "error"},
		{"within(args.path, '/srv/data')", args{"path": "~/x"}, State{}, "error"},
		{"within(args.path, '/srv/data')", args{"path": "srv/data/x"}, State{}, "error"},
		{"within(args.path, '/srv/data')", args{"path": `/srv/data\..\x`}, State{}, "error"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data/link"}, State{}, "false"},
		{"within(args.path, '/srv/data')", args{"path": "/srv/data/odd"}, State{}, "error"},
		{"within(args.path, 'srv')", args{"path": "/srv/data/x"}, State{}, "error"},

		{"grounded(args.to)", args{"to": "ann@acme.example"}, said, "true"},
		{"grounded(args.to)", args{"to": "eve@acme.example"}, said, "false"},
		{"grounded(args.to)", args{"to": "ann@acme.example"}, State{}, "false"},
		{"grounded(args.to)", args{}, said, "error"},
		{"grounded(args.o.x)", args{"o": args{"x": "ann@acme.example"}}, said, "true"},
		{"session.tainted", nil, State{}, "false"},
		{"session.tainted", nil, read, "true"},
		{"'web' in session.reads", nil, read, "true"},
		{"session.reads.exists(r, r == 'mail')", nil, read, "false"},
	} {
		spec := Spec{Known: []ToolDef{def}, Rules: []Rule{{Answer: Deny, Tool: Source{Text: "s.t"}, When: Source{Text: test.when}}}}
		c := Call{Server: "s", Tool: "t", Args: test.args, Principal: "me", Paths: map[string]string{"/srv/data/link": "/etc/passwd", "/srv/data/odd": "etc"}}
		p, err := Compile(spec)
		if err != nil {
			t.Errorf("%s: %v", test.when, err)
			continue
		}
		d := p.Decide(c, test.state)
		got := "false"
		switch {
		case d.Reason == RuleError && d.Answer == Deny:
			got = "error"
		case d.Answer == Deny:
			got = "true"
		}
		if got != test.want {
			t.Errorf("deny when %s, %v: %s, want %s (%s)", test.when, test.args, got, test.want, d.Text)
		}
		if strings.Contains(test.when, "session") {
			continue
		}
		spec.Rules[0].Answer = Allow
		p, err = Compile(spec)
		if err != nil {
			t.Errorf("%s: %v", test.when, err)
			continue
		}
		if got := p.Decide(c, test.state).Answer == Allow; got != (test.want == "true") {
			t.Errorf("allow when %s, %v: %v", test.when, test.args, got)
		}
	}
}

func TestConditionsWithoutASchema(t *testing.T) {
	p := compile(t, Spec{Rules: []Rule{
		{Answer: Deny, Tool: Source{Text: "s.*"}, When: Source{Text: "args.n > 5"}},
		{Answer: Ask, Tool: Source{Text: "*"}, When: Source{Text: "tool.startsWith('x')"}},
		{Answer: Allow, Tool: Source{Text: "s.x"}},
	}})
	for _, test := range []struct {
		call Call
		want Answer
	}{
		{call("s.x", args{"n": json.Number("6")}), Deny},
		{call("s.x", args{"n": json.Number("5")}), Ask},
		{call("s.y", args{"n": json.Number("5")}), Ask},
		{call("s.y", args{}), Deny}, // cannot be evaluated
	} {
		if d := p.Decide(test.call, State{}); d.Answer != test.want {
			t.Errorf("%v: %v", test.call, d)
		}
	}
}

func TestModes(t *testing.T) {
	labels := []ToolSpec{
		{Labels: ToolLabels{Server: "web", Tool: "search", Effects: Read}},
		{Labels: ToolLabels{Server: "mail", Tool: "send", Effects: Send, Bind: []Binding{{Path: "to", Kind: Mail, Class: Ordinary}}, Text: []string{"body"}}},
		{Labels: ToolLabels{Server: "mail", Tool: "broadcast", Effects: Send, Bind: []Binding{{Path: "list", Class: Ordinary}}}},
	}
	fresh := State{}.Observe(Observation{Source: "user", Trust: User, Text: "write to ann@acme.example"})
	used := fresh.Commit(call("mail.send", nil))
	tainted, usedTainted := fresh.Observe(Observation{Source: "web", Text: "x"}), used.Observe(Observation{Source: "web", Text: "x"})
	ann := call("mail.send", args{"to": "ann@acme.example", "body": "hi"})
	eve := call("mail.send", args{"to": "eve@evil.example", "body": "hi"})
	look := call("web.search", args{"q": "x"})
	noTarget := call("mail.broadcast", args{})
	for _, test := range []struct {
		mode   Mode
		deny   bool
		task   []string
		call   Call
		state  State
		answer Answer
		reason Reason
	}{
		{Grounded, false, nil, eve, fresh, Allow, ByRule},
		{Grounded, false, nil, ann, tainted, Allow, ByRule},
		{Grounded, false, nil, eve, tainted, Ask, NotGrounded},
		{Grounded, true, nil, eve, tainted, Deny, NotGrounded},
		{Grounded, false, nil, noTarget, fresh, Allow, ByRule},
		{Grounded, false, nil, noTarget, tainted, Ask, NoTarget},
		{Grounded, true, nil, noTarget, tainted, Deny, NoTarget},
		{Grounded, false, nil, look, tainted, Allow, ByRule},
		{Grounded, false, nil, call("mail.unlabelled", args{"to": "eve@evil.example"}), tainted, Ask, NotGrounded},
		{Grounded, false, nil, call("mail.unlabelled", args{"to": "ann@acme.example"}), tainted, Allow, ByRule},
		{Grounded, false, []string{"web.search"}, ann, fresh, Deny, NotInTask},
		{Grounded, false, []string{"mail.*"}, ann, fresh, Allow, ByRule},

		{TaintOnly, false, nil, ann, fresh, Allow, ByRule},
		{TaintOnly, false, nil, ann, tainted, Ask, Tainted},
		{TaintOnly, false, nil, look, tainted, Allow, ByRule},

		{Filter, false, nil, look, fresh, Deny, NotInTask},
		{Filter, false, []string{"mail.send"}, ann, tainted, Allow, ByRule},
		{Filter, false, []string{"mail.send"}, eve, tainted, Ask, NotGrounded},
		{Filter, false, []string{"mail.send"}, look, tainted, Deny, NotInTask},

		{Isolation, false, nil, ann, fresh, Allow, ByRule},
		{Isolation, false, nil, ann, tainted, Deny, NotCommitted},
		{Isolation, false, nil, look, usedTainted, Deny, NotCommitted},
		{Isolation, false, nil, ann, usedTainted, Allow, ByRule},
		{Isolation, false, nil, eve, usedTainted, Ask, NotGrounded},
	} {
		spec := allow("web.*", "mail.*")
		spec.Tools, spec.Mode, spec.DenyUngrounded, spec.Task = labels, test.mode, test.deny, src(test.task...)
		d := compile(t, spec).Decide(test.call, test.state)
		if d.Answer != test.answer || d.Reason != test.reason {
			t.Errorf("%s deny:%v task:%v %s.%s %v tainted:%v: %v %s, want %v %s", test.mode, test.deny, test.task, test.call.Server, test.call.Tool, test.call.Args, test.state.Tainted(), d.Answer, d.Reason, test.answer, test.reason)
		}
		if (d.Reason == NotGrounded) != (len(d.Ungrounded) > 0) && d.Reason != NoTarget && d.Reason != Tainted {
			t.Errorf("%s: ungrounded %v", d.Reason, d.Ungrounded)
		}
	}
	// What the rules said stays said: a deny stays, an ask keeps its rule.
	spec := Spec{Permissions: Permissions{Deny: src("web.search"), Ask: src("mail.send")}, Tools: labels}
	p := compile(t, spec)
	if d := p.Decide(look, tainted); d.Answer != Deny || d.Reason != ByRule {
		t.Error(d)
	}
	if d := p.Decide(eve, tainted); d.Answer != Ask || d.Reason != ByRule || len(d.Ungrounded) == 0 {
		t.Error("the person is not told what is not grounded:", d)
	}
	if d := compile(t, Spec{Tools: labels}).Decide(eve, tainted); d.Answer != Ask || d.Reason != NoRule || !strings.Contains(d.Text, "untrusted") {
		t.Error(d)
	}
}

func TestTasksNarrow(t *testing.T) {
	p := compile(t, allow("a.*", "b.*"))
	one, err := p.ForTask("a.*", "b.x")
	if err != nil {
		t.Fatal(err)
	}
	two, err := one.ForTask("a.y", "b.*")
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string][3]bool{"a.y": {true, true, true}, "a.z": {true, true, false}, "b.x": {true, true, true}, "b.z": {true, false, false}} {
		for i, p := range []*Policy{p, one, two} {
			if d := p.Decide(call(tool, nil), State{}); (d.Answer == Allow) != want[i] {
				t.Errorf("%s %d: %v", tool, i, d)
			}
		}
	}
	if _, err := p.ForTask("x"); err == nil {
		t.Error("a task without server")
	}
}

func TestBudget(t *testing.T) {
	b := Budget{Limit: 2}
	for i, step := range []struct {
		answer Answer
		halt   bool
	}{{Allow, false}, {Deny, false}, {Ask, false}, {Deny, true}, {Allow, true}} {
		var halt bool
		if b, halt = b.Spend(Decision{Answer: step.answer}); halt != step.halt {
			t.Errorf("step %d: %v", i, halt)
		}
	}
	var fresh Budget
	for range DefaultDenials - 1 {
		fresh, _ = fresh.Spend(Decision{})
	}
	if fresh.Halted() {
		t.Error("halts early")
	}
	if fresh, _ = fresh.Spend(Decision{}); !fresh.Halted() {
		t.Error("does not halt")
	}
}

func TestLeast(t *testing.T) {
	a, b, c := Decision{Answer: Allow, Rule: "a"}, Decision{Answer: Ask, Rule: "b"}, Decision{Answer: Ask, Rule: "c"}
	if d := Least(a, b, c); d.Rule != "b" {
		t.Error(d)
	}
	if d := Least(a); d.Rule != "a" {
		t.Error(d)
	}
}

func TestDenialsTellTheAgentNothing(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range []Reason{ByRule, RuleError, NoRule, CommandParts, Unresolved, Limit, Tainted, NotGrounded, NoTarget, NotInTask, NotCommitted, BudgetSpent} {
		text := r.AgentText()
		if !strings.Contains(text, "("+string(r)+")") || seen[text] {
			t.Errorf("%s: %s", r, text)
		}
		seen[text] = true
	}
	// Neither does the sentence for the person hold words of the call: it goes into logs.
	p := compile(t, Spec{Permissions: Permissions{Deny: src("s.t(a:x*)"), Allow: src("s.sh(ls *)", "s.u")}})
	tainted := State{}.Observe(Observation{Source: "planted"})
	for _, c := range []Call{
		call("s.t", args{"a": "xplanted"}), call("s.sh", args{"command": "ls; planted"}), call("s.sh", args{"command": "ls $planted"}), call("s.u", args{"planted": "planted"}), call("s.v", args{"planted": "planted"}),
	} {
		if d := p.Decide(c, tainted); strings.Contains(d.Text, "planted") || strings.Contains(d.Rule, "planted") {
			t.Errorf("%v: %s", c.Args, d.Text)
		}
	}
}

func TestAdvice(t *testing.T) {
	schema := func(names ...string) args {
		props := args{}
		for _, n := range names {
			props[n] = args{"type": "string"}
		}
		return args{"properties": props}
	}
	spec := Spec{
		Known: []ToolDef{
			{Server: "os", Name: "shell", InputSchema: schema("command")}, {Server: "fs", Name: "read", InputSchema: schema("path")},
			{Server: "fs", Name: "search", InputSchema: schema("path")}, {Server: "fs", Name: "a", InputSchema: schema("file")}, {Server: "fs", Name: "b", InputSchema: schema("path")}, {Server: "note", Name: "x", InputSchema: schema("t")},
		},
		Permissions: Permissions{
			Deny:  src("os.shell(rm -rf /*)", "fs.read(**/.env)", "note.x(t:bad)", "note.x(t:https://evil.test/**)"),
			Allow: src("os.shell(git *)", "os.shell(wget *)", "fs.search"),
		},
	}
	p := compile(t, spec)
	var all string
	for _, a := range p.Advice() {
		if a.Fatal {
			t.Error("fatal advice:", a)
		}
		all += a.String() + "\n"
	}
	for _, want := range []string{
		"line 1: os.shell(rm -rf /*): a deny by the text of a command is no boundary",
		"line 2: fs.read(**/.env): only the calls of this tool are denied; fs.a, fs.b, fs.search, and others may reach the same file",
		"line 3: note.x(t:bad): compares the text of an argument",
		"line 4: note.x(t:https://evil.test/**): compares the text",
		"os.shell: the rules let these reach the network without asking: wget http://x.test · git clone http://x.test/a. Use the sandbox",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("lacks %q:\n%s", want, all)
		}
	}
	spec = Spec{Permissions: Permissions{Deny: src("fs.read(**/.env)"), Allow: src("x.run_shell(curl *)", "x.other(curl *)")}}
	all = ""
	for _, a := range compile(t, spec).Advice() {
		all += a.String() + "\n"
	}
	if !strings.Contains(all, "other tools may reach") || !strings.Contains(all, "x.run_shell: the rules let these reach the network without asking: curl") || strings.Contains(all, "x.other: the rules") {
		t.Error(all)
	}
	spec.Sandboxed = []string{"x"}
	for _, a := range compile(t, spec).Advice() {
		if strings.Contains(a.Text, "network") {
			t.Error("a sandboxed server is probed")
		}
	}
}

func TestAdviceOnCommandsThatAreNotRead(t *testing.T) {
	exec := ToolSpec{Labels: ToolLabels{Server: "pty", Tool: "send", Effects: Exec}}
	for rule, want := range map[string]bool{"pty.send(input:git *)": true, "pty.send(input:git)": false, "pty.send(input:*)": false, "pty.send(command:git *)": false, "pty.other(input:git *)": false} {
		spec := allow(rule)
		spec.Tools = []ToolSpec{exec}
		got := false
		for _, a := range compile(t, spec).Advice() {
			got = got || strings.Contains(a.Text, "commands: [input]")
		}
		if got != want {
			t.Errorf("%s: %v", rule, got)
		}
		spec.Tools[0].Commands = []string{"input"}
		for _, a := range compile(t, spec).Advice() {
			if strings.Contains(a.Text, "commands: [input]") {
				t.Errorf("%s: %s", rule, a)
			}
		}
	}
}

func TestVersionsTellPoliciesApart(t *testing.T) {
	base := func() Spec {
		return Spec{Permissions: Permissions{Deny: src("a.b")}, Tools: []ToolSpec{{Labels: ToolLabels{Server: "a", Tool: "c", Effects: Read}}}, Known: nil}
	}
	one := compile(t, base()).Version()
	if one != compile(t, base()).Version() || len(one) != 32 {
		t.Error("not stable:", one)
	}
	changed := base()
	changed.Tools[0].Labels.Effects = Send
	other := base()
	other.Mode = Isolation
	if v := compile(t, changed).Version(); v == one || v == compile(t, other).Version() {
		t.Error("two policies, one version")
	}
	p := compile(t, base())
	within := base()
	within.Rules = []Rule{{Answer: Deny, Tool: Source{Text: "a.d"}, When: Source{Text: "within(args.x, '/a')"}}}
	if p.AsksForPaths() || !compile(t, within).AsksForPaths() {
		t.Error("paths")
	}
	if p.Labels("a", "c").Effects != Read || p.Labels("x", "y").Effects != 0 {
		t.Error("labels")
	}
}
