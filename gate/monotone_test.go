package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Small worlds: few names, so that rules, labels, calls and what is said meet often.
var (
	worldServers = []string{"mail", "web"}
	worldTools   = []string{"send", "get", "sh"}
	worldArgs    = []string{"to", "url", "command", "n"}
	worldValues  = []any{"ann@acme.example", "eve@evil.example", "https://x.test/a", "https://evil.test/b", "git status", "git status; id", "curl x", json.Number("7"), json.Number("700"), []any{"ann@acme.example", "eve@evil.example"}, "", nil}
	worldTexts   = []string{"write to ann@acme.example", "see https://x.test/a", "number 700", "run git status", ""}
	worldWhens   = []string{
		"", "!session.tainted", "grounded(args.to)", "has(args.n) && args.n > 100", "!('web' in session.reads) && server == 'mail'",
		"host(args.url) == 'x.test'", "!session.reads.exists(r, r == 'mail')", "principal == 'me'", "!session.tainted || !('mail' in session.reads)",
		// These do not load; if they did, authority could grow.
		"session.tainted", "'web' in session.reads", "size(session.reads) > 0", "session.tainted ? true : false",
	}
	worldDenyWhens   = []string{"", "session.tainted", "'web' in session.reads", "session.tainted && args.n > 100", "session.reads.exists(r, r == 'mail') || !grounded(args.to)", "!session.tainted", "!('web' in session.reads)"}
	worldArgPatterns = []string{"", "(to:ann@acme.example)", "(to:*@acme.example)", "(url:https://x.test/**)", "(git *)", "(n:7)", "(command:*)"}
)

func genRule(t *rapid.T, answer Answer) Rule {
	tool := rapid.SampledFrom(worldServers).Draw(t, "server") + "." + rapid.SampledFrom(append(worldTools, "*")).Draw(t, "tool")
	whens := worldWhens
	if answer != Allow {
		whens = worldDenyWhens
	}
	return Rule{Answer: answer, Tool: Source{Text: tool + rapid.SampledFrom(worldArgPatterns).Draw(t, "args")}, When: Source{Text: rapid.SampledFrom(whens).Draw(t, "when")}}
}

// genPolicy draws a policy, leaving out rules that do not load beside those before them.
func genPolicy(t *rapid.T) *Policy {
	spec := Spec{
		Sandboxed: worldServers, Mode: Mode(rapid.IntRange(0, 3).Draw(t, "mode")), DenyUngrounded: rapid.Bool().Draw(t, "deny"),
	}
	for _, server := range worldServers {
		for _, tool := range worldTools {
			if !rapid.Bool().Draw(t, "labelled") {
				continue
			}
			spec.Tools = append(spec.Tools, ToolSpec{Labels: ToolLabels{
				Server: server, Tool: tool, Effects: Effects(rapid.IntRange(0, 15).Draw(t, "effects")),
				Bind: []Binding{{Path: rapid.SampledFrom(worldArgs).Draw(t, "bind"), Class: Class(rapid.IntRange(0, 3).Draw(t, "class"))}},
				Text: []string{"n"}, Trusted: rapid.Bool().Draw(t, "trusted"),
			}})
		}
	}
	if rapid.Bool().Draw(t, "task") || spec.Mode == Filter {
		spec.Task = []Source{{Text: rapid.SampledFrom(worldServers).Draw(t, "task") + ".*"}}
	}
	policy, err := Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(1, 6).Draw(t, "rules") {
		with := spec
		with.Rules = append(slices.Clip(spec.Rules), genRule(t, Answer(rapid.IntRange(0, 2).Draw(t, "answer"))))
		if p, err := Compile(with); err == nil {
			spec, policy = with, p
		}
	}
	return policy
}

func genCall(t *rapid.T) Call {
	c := Call{Server: rapid.SampledFrom(worldServers).Draw(t, "server"), Tool: rapid.SampledFrom(append(worldTools, "new")).Draw(t, "tool"), Principal: rapid.SampledFrom([]string{"", "me"}).Draw(t, "who"), Args: map[string]any{}}
	for range rapid.IntRange(0, 2).Draw(t, "n") {
		c.Args[rapid.SampledFrom(worldArgs).Draw(t, "arg")] = rapid.SampledFrom(worldValues).Draw(t, "value")
	}
	return c
}

// step is one event of a session that no person takes part in, unless voices is set.
func genStep(t *rapid.T, voices bool) func(State) State {
	trust := Untrusted
	kinds := 2
	if voices {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds).Draw(t, "step") {
	case 0:
		c := genCall(t)
		return func(s State) State { return s.Commit(c) }
	case 1:
		trust = FirstParty
	case 3:
		trust = User
	case 4:
		trust = Store
	}
	o := Observation{
		Source: rapid.SampledFrom(worldServers).Draw(t, "source"), Tool: rapid.SampledFrom(worldTools).Draw(t, "from"), Trust: trust,
		Text: rapid.SampledFrom(worldTexts).Draw(t, "text"),
	}
	if rapid.Bool().Draw(t, "structured") {
		o.Data = map[string]any{"name": rapid.SampledFrom(worldTexts).Draw(t, "name"), "email": rapid.SampledFrom(worldValues).Draw(t, "email")}
	}
	return func(s State) State { return s.Observe(o) }
}

// everyCall is every call of the small world with at most one argument, and some with two.
func everyCall() []Call {
	var out []Call
	for _, server := range worldServers {
		for _, tool := range append(worldTools, "new") {
			out = append(out, Call{Server: server, Tool: tool, Principal: "me"})
			for _, arg := range worldArgs {
				for _, v := range worldValues {
					out = append(out, Call{Server: server, Tool: tool, Principal: "me", Args: map[string]any{arg: v}})
				}
			}
			out = append(out, Call{Server: server, Tool: tool, Args: map[string]any{"to": "ann@acme.example", "n": json.Number("7")}})
		}
	}
	return out
}

// Authority only shrinks: after an untrusted observation, now and after whatever follows without a person, nothing is
// allowed that would not have been allowed without it, and no call that was denied asks.
func TestAuthorityOnlyShrinks(t *testing.T) {
	calls := everyCall()
	rapid.Check(t, func(t *rapid.T) {
		p := genPolicy(t)
		var s State
		for range rapid.IntRange(0, 6).Draw(t, "before") {
			s = genStep(t, true)(s)
		}
		bad := Observation{Source: rapid.SampledFrom(worldServers).Draw(t, "web"), Trust: Untrusted, Text: rapid.SampledFrom(worldTexts).Draw(t, "lie"), Data: map[string]any{"email": "eve@evil.example"}}
		without, with := s, s.Observe(bad)
		compare := func(when string) {
			for _, c := range calls {
				a, b := p.Decide(c, without), p.Decide(c, with)
				if b.Answer > a.Answer {
					t.Fatalf("%s: %s.%s %v: %v (%s) without the untrusted text, %v (%s %s) with it", when, c.Server, c.Tool, c.Args, a.Answer, a.Reason, b.Answer, b.Reason, b.Rule)
				}
			}
		}
		compare("at once")
		for i := range rapid.IntRange(0, 4).Draw(t, "after") {
			step := genStep(t, false)
			without, with = step(without), step(with)
			compare(fmt.Sprintf("after %d more", i+1))
		}
	})
}

// The same session over a restart decides the same.
func TestStateOutlivesItsText(t *testing.T) {
	calls := everyCall()
	rapid.Check(t, func(t *rapid.T) {
		p := genPolicy(t)
		var s State
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			s = genStep(t, true)(s)
		}
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var again State
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			if a, b := p.Decide(c, s), p.Decide(c, again); a.Answer != b.Answer || a.Reason != b.Reason {
				t.Fatalf("%v: %v, after the restart %v", c, a, b)
			}
		}
	})
}
