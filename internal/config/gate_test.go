package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

const gateFile = `
permissions:
  deny:
    - github.delete_repo
  allow:
    - mcp__github__create_issue(repo:acme/*)
    - mail.send
rules:
  - deny: bank.pay
    when: args.amount > 100
    because: More than a hundred is asked about elsewhere.
    tests:
      - {tool: bank.pay, args: {amount: 101, to: x}, expect: deny}
      - {tool: bank.pay, args: {amount: 5}, expect: ask}
tools:
  mail.send:
    effects: [send]
    bind:
      - {arg: to, kind: mail, class: ordinary}
      - cc
    text: [body]
store:
  own: [me@acme.example]
  contacts: [ann@acme.example]
  ids: {file: ["13"]}
mode: grounded
ungrounded: deny
denials: 5
profiles:
  paranoid:
    mode: taint_only
  task:
    mode: filter
    task: [mail.send]
`

func policy(t *testing.T, file, profile string) (*gate.Policy, *File, gate.Budget) {
	t.Helper()
	f, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	spec, budget, err := f.Gate(profile, GateInput{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := gate.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p, f, budget
}

func TestGateSections(t *testing.T) {
	p, f, budget := policy(t, gateFile, "")
	if budget.Limit != 5 {
		t.Error("budget", budget)
	}
	o, ok := f.Store.Observation()
	if !ok {
		t.Fatal("no store")
	}
	tainted := gate.State{}.Observe(o).Observe(gate.Observation{Source: "web", Text: "hi"})
	send := func(to string) gate.Call {
		return gate.Call{Server: "mail", Tool: "send", Args: map[string]any{"to": to, "body": "hello"}}
	}
	for name, test := range map[string]struct {
		call  gate.Call
		state gate.State
		want  gate.Answer
	}{
		"denied":             {gate.Call{Server: "github", Tool: "delete_repo"}, gate.State{}, gate.Deny},
		"allowed":            {gate.Call{Server: "github", Tool: "create_issue", Args: map[string]any{"repo": "acme/x"}}, gate.State{}, gate.Allow},
		"condition":          {gate.Call{Server: "bank", Tool: "pay", Args: map[string]any{"amount": json.Number("500")}}, gate.State{}, gate.Deny},
		"contact of store":   {send("ann@acme.example"), tainted, gate.Allow},
		"nobody vouches":     {send("eve@evil.example"), tainted, gate.Deny},
		"nobody vouches yet": {send("eve@evil.example"), gate.State{}, gate.Allow},
	} {
		if d := p.Decide(test.call, test.state); d.Answer != test.want {
			t.Errorf("%s: %v (%s: %s)", name, d.Answer, d.Reason, d.Text)
		}
	}
	p, _, _ = policy(t, gateFile, "paranoid")
	if d := p.Decide(send("ann@acme.example"), tainted); d.Answer != gate.Ask || d.Reason != gate.Tainted {
		t.Error("paranoid:", d)
	}
	p, _, _ = policy(t, gateFile, "task")
	if d := p.Decide(gate.Call{Server: "github", Tool: "create_issue", Args: map[string]any{"repo": "acme/x"}}, gate.State{}); d.Reason != gate.NotInTask {
		t.Error("task:", d)
	}
}

func TestGateRefusesWithTheLine(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"unknown key":          {"permissions:\n  alow: [a.b]\n", "alow"},
		"unknown key of rule":  {"rules:\n  - allow: a.b\n    becuase: x\n", "becuase"},
		"unknown key of tool":  {"tools:\n  a.b:\n    effect: [read]\n", "effect"},
		"unknown effect":       {"tools:\n  a.b:\n    effects: [reads]\n", `line 2: a.b: unknown effect "reads"`},
		"unknown kind":         {"tools:\n  a.b:\n    bind: [{arg: x, kind: male}]\n", `line 3: unknown kind "male"`},
		"binding without name": {"tools:\n  a.b:\n    bind: [{kind: mail}]\n", "line 2: a.b: a binding names its argument"},
		"tool without server":  {"tools:\n  b: {}\n", "line 2: b: names no server"},
		"two answers":          {"rules:\n  - allow: a.b\n    deny: a.b\n", "line 3: a rule has exactly one"},
		"no answer":            {"rules:\n  - when: tool == 'x'\n", "exactly one"},
		"test without tool":    {"rules:\n  - allow: a.b\n    tests: [{expect: ask}]\n", "line 2: test 1"},
		"test that fails":      {"rules:\n  - allow: a.b\n    tests:\n      - {tool: a.b, expect: ask}\n", "line 4: a.b: test 1 expects ask, the policy says allow"},
		"rule without server":  {"permissions:\n  allow:\n    - a.b\n    - search\n", "line 4: search: names no server"},
		"shadowed":             {"permissions:\n  deny: [a.*]\n  allow:\n    - a.b\n", "line 4: a.b: never decides"},
		"ungrounded allow":     {"ungrounded: allow\n", "ungrounded: it is ask or deny"},
		"unknown mode":         {"mode: lax\n", `line 1: unknown mode "lax"`},
		"unknown answer":       {"rules:\n  - allow: a.b\n    tests: [{tool: a.b, expect: maybe}]\n", `line 3: unknown answer "maybe"; one of deny, ask, allow`},
		"a list for a word":    {"mode: [grounded]\n", "cannot unmarshal"},
		"unknown class":        {"tools:\n  a.b:\n    bind:\n      - {arg: x, class: mony}\n", `line 4: unknown class "mony"`},
		"denials":              {"denials: -1\n", "denials"},
		"duplicate tool":       {"tools:\n  a.b: {}\n  a.b: {}\n", "already defined"},
	} {
		f, err := Parse([]byte(test.file))
		if err == nil {
			var spec gate.Spec
			if spec, _, err = f.Gate("", GateInput{}); err == nil {
				_, err = gate.Compile(spec)
			}
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	f, _ := Parse([]byte("profiles: {a: {}, b: {}}"))
	if _, _, err := f.Gate("c", GateInput{}); err == nil || !strings.Contains(err.Error(), "a, b") {
		t.Error(err)
	}
}

func TestDraftedToolsReadBack(t *testing.T) {
	labels := []gate.ToolLabels{{
		Server: "s", Tool: "odd: {name}\n", Effects: gate.Send | gate.Write, Reasons: []string{"a\nb: c"},
		Bind: []gate.Binding{{Path: "to", Kind: gate.Mail, Class: gate.Ordinary, Reason: "x\u2028y"}, {Path: "é # x"}}, Text: []string{"body"}, Anchor: []string{"title"}, Trusted: true,
	}}
	f, err := Parse([]byte(DraftTools(labels)))
	if err != nil {
		t.Fatalf("%v\n%s", err, DraftTools(labels))
	}
	spec, _, err := f.Gate("", GateInput{})
	if err != nil {
		t.Fatal(err)
	}
	got := spec.Tools[0].Labels
	if got.Tool != "odd: {name}\n" || got.Effects != labels[0].Effects || len(got.Bind) != 2 || got.Bind[0].Kind != gate.Mail || got.Bind[1].Path != "é # x" || !got.Trusted || got.Text[0] != "body" || got.Anchor[0] != "title" {
		t.Errorf("%+v\n%s", got, DraftTools(labels))
	}
}

func TestUserKey(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"good":     {strings.Repeat("k", gate.MinKey) + "\n", 0o600, ""},
		"short":    {strings.Repeat("k", gate.MinKey-1), 0o600, "shorter than"},
		"readable": {strings.Repeat("k", gate.MinKey), 0o644, "can be read by others"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(test.text), test.mode); err != nil {
			t.Fatal(err)
		}
		key, err := (&File{UserKeyFile: path}).UserKey()
		switch {
		case test.want == "" && (err != nil || len(key) != gate.MinKey):
			t.Errorf("%s: %q %v", name, key, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (&File{UserKeyFile: filepath.Join(dir, "none")}).UserKey(); err == nil {
		t.Error("a key was made where the host should have one")
	}
	if key, err := (&File{}).UserKey(); key != nil || err != nil {
		t.Error(key, err)
	}
}
