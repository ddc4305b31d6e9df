package gate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// hundredRules is a policy of a size that teams have: ten servers, ten rules about each, of every kind.
func hundredRules(tb testing.TB) *Policy {
	var spec Spec
	for i := range 10 {
		s := fmt.Sprintf("server%d", i)
		add := func(list *[]Source, rules ...string) {
			for _, r := range rules {
				*list = append(*list, Source{Text: s + "." + r})
			}
		}
		add(&spec.Permissions.Deny, "delete_*", "create_issue(repo:secret/*)", "transfer", "read_file(path:**/.env)")
		add(&spec.Permissions.Ask, "update_issue(state:closed)", "merge")
		add(&spec.Permissions.Allow, "create_issue(repo:acme/*)", "search", "read_file(path:/srv/**)")
		spec.Rules = append(spec.Rules, Rule{Answer: Deny, Tool: Source{Text: s + ".pay"}, When: Source{Text: "args.amount > 100"}})
		spec.Tools = append(spec.Tools, ToolSpec{Labels: ToolLabels{Server: s, Tool: "create_issue", Effects: Write, Bind: []Binding{{Path: "repo", Kind: Path, Class: Ordinary}}, Text: []string{"title"}}})
	}
	p, err := Compile(spec)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func BenchmarkDecide(b *testing.B) {
	hundred := hundredRules(b)
	one, err := Compile(Spec{Permissions: Permissions{Allow: []Source{{Text: "server7.create_issue(repo:acme/*)"}}}})
	if err != nil {
		b.Fatal(err)
	}
	issue := Call{Server: "server7", Tool: "create_issue", Args: map[string]any{"repo": "acme/web", "title": "The page is empty"}}
	tainted := State{}.Observe(Observation{Source: "user", Trust: User, Text: "file an issue in acme/web"}).Observe(Observation{Source: "web", Text: "x"})
	for _, bench := range []struct {
		name  string
		p     *Policy
		call  Call
		state State
		want  Answer
	}{
		{"baseline, one rule", one, issue, State{}, Allow},
		{"100 rules, allow", hundred, issue, State{}, Allow},
		{"100 rules, deny by pattern", hundred, Call{Server: "server7", Tool: "create_issue", Args: map[string]any{"repo": "secret/web"}}, State{}, Deny},
		{"100 rules, tool nobody named", hundred, Call{Server: "server7", Tool: "delete_all"}, State{}, Deny},
		{"100 rules, server nobody named", hundred, Call{Server: "other", Tool: "x"}, State{}, Ask},
		{"100 rules, condition", hundred, Call{Server: "server7", Tool: "pay", Args: map[string]any{"amount": json.Number("500")}}, State{}, Deny},
		{"100 rules, tainted and grounded", hundred, issue, tainted, Allow},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := bench.p.Decide(bench.call, bench.state); d.Answer != bench.want {
					b.Fatal(d)
				}
			}
		})
	}
}

func BenchmarkCommand(b *testing.B) {
	p, err := Compile(Spec{Sandboxed: []string{"os"}, Permissions: Permissions{
		Deny:  []Source{{Text: "os.shell(curl*)"}, {Text: "os.shell(rm -rf *)"}},
		Allow: []Source{{Text: "os.shell(git status*)"}, {Text: "os.shell(go test *)"}, {Text: "os.shell(*)"}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	for name, command := range map[string]string{
		"short":              "git status && go test ./...",
		"a megabyte":         strings.Repeat("true; ", 1<<20/6),
		"largest judged":     strings.Repeat("ls aaaaaaaaaaaaaaaaaaaaaaaaaaaaa; ", maxCommand/34),
		"many words":         "xargs " + strings.Repeat("a ", maxCommand/2-8),
		"one long quote":     "echo '" + strings.Repeat("a ", maxCommand/2-8) + "'",
		"nested quotes":      strings.Repeat("sh -c \"", 20) + strings.Repeat("a;", 10000),
		"runs of wrappers":   strings.Repeat("env ", 20) + strings.Repeat("a ", 50000),
		"many substitutions": strings.Repeat("$(a)", maxParts-1),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c := Call{Server: "os", Tool: "shell", Args: map[string]any{"command": command}}
			for b.Loop() {
				p.Decide(c, State{})
			}
		})
	}
}
