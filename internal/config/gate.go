package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

// Permissions are rules in their short form, such as github.create_issue(repo:acme/*). Deny is asked first, then ask, then
// allow; what no rule is about asks.
type Permissions struct {
	Deny  []Line `yaml:"deny"`
	Ask   []Line `yaml:"ask"`
	Allow []Line `yaml:"allow"`
}

// Rule is a rule in its long form. One of Deny, Ask and Allow holds its pattern.
type Rule struct {
	Name    string     `yaml:"name"`
	Deny    Line       `yaml:"deny"`
	Ask     Line       `yaml:"ask"`
	Allow   Line       `yaml:"allow"`
	When    Line       `yaml:"when"`
	Because string     `yaml:"because"`
	Tests   []RuleTest `yaml:"tests"`
}

// RuleTest is a call and the answer the policy must give to it. It runs whenever the file is read.
type RuleTest struct {
	Tool      Line              `yaml:"tool"`
	Args      map[string]any    `yaml:"args"`
	Principal string            `yaml:"principal"`
	Tainted   bool              `yaml:"tainted"`
	Reads     []string          `yaml:"reads"`
	Said      []string          `yaml:"said"`
	Expect    Word[gate.Answer] `yaml:"expect"`
}

// Tools says what tools can do, by server.tool. A tool that is not here can write and send, and each of its arguments
// says who or what.
type Tools map[string]Tool

// Tool is the operator's word about one tool.
type Tool struct {
	Effects  []string  `yaml:"effects"`
	Bind     []Binding `yaml:"bind"`
	Text     []string  `yaml:"text"`
	Anchor   []string  `yaml:"anchor"`
	Commands []string  `yaml:"commands"`
	Trusted  bool      `yaml:"trusted"`

	line int
}

// Binding is an argument that says who or what a call acts on: its name, or its name with kind and class.
type Binding struct {
	Arg   string           `yaml:"arg"`
	Kind  Word[gate.Kind]  `yaml:"kind"`
	Class Word[gate.Class] `yaml:"class"`
}

// Store holds what the operator vouches for: it grounds ordinary arguments from the start.
type Store struct {
	Own      []string            `yaml:"own"` // the user's own addresses and accounts
	Contacts []string            `yaml:"contacts"`
	Accounts []string            `yaml:"accounts"`
	Hosts    []string            `yaml:"hosts"`
	Paths    []string            `yaml:"paths"`
	IDs      map[string][]string `yaml:"ids"` // by what they are ids of, such as file
}

// Profile says what a session may do after it read untrusted content.
type Profile struct {
	Mode       Word[gate.Mode]   `yaml:"mode"`
	Ungrounded Word[gate.Answer] `yaml:"ungrounded"` // ask (default) or deny
	Task       []Line            `yaml:"task"`       // the tools a task needs
	Denials    int               `yaml:"denials"`    // refusals after which the session halts; 0: gate.DefaultDenials
}

// Word is one of a fixed list of words; set is false where the file says nothing.
type Word[T any] struct {
	Is  T
	set bool
}

// UnmarshalYAML says the line of a word that is not in the list.
func (w *Word[T]) UnmarshalYAML(node ast.Node) error {
	var text string
	if err := yaml.NodeToValue(node, &text); err != nil {
		return err
	}
	w.set = true
	if err := any(&w.Is).(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("line %d: %w", node.GetToken().Position.Line, err)
	}
	return nil
}

// Line is a text of the file with its line.
type Line struct {
	Text string
	Line int
}

// UnmarshalYAML keeps the line.
func (l *Line) UnmarshalYAML(node ast.Node) error {
	if err := yaml.NodeToValue(node, &l.Text); err != nil {
		return err
	}
	l.Line = node.GetToken().Position.Line
	return nil
}

func (l Line) source() gate.Source { return gate.Source{Text: l.Text, Line: l.Line} }

func sources(lines []Line) []gate.Source {
	var out []gate.Source
	for _, l := range lines {
		out = append(out, l.source())
	}
	return out
}

// UnmarshalYAML keeps the line of each tool.
func (t *Tools) UnmarshalYAML(node ast.Node) error {
	entries, ok := node.(ast.MapNode)
	if !ok {
		return fmt.Errorf("line %d: tools is a list of server.tool: with what each can do", node.GetToken().Position.Line)
	}
	*t = Tools{}
	for it := entries.MapRange(); it.Next(); {
		var tool Tool
		if err := yaml.NodeToValue(it.Value(), &tool, yaml.Strict()); err != nil {
			return err
		}
		tool.line = it.Key().GetToken().Position.Line
		(*t)[it.Key().GetToken().Value] = tool
	}
	return nil
}

// UnmarshalYAML also takes the bare name of an argument.
func (b *Binding) UnmarshalYAML(node ast.Node) error {
	if s, ok := node.(*ast.StringNode); ok {
		b.Arg = s.Value
		return nil
	}
	type plain Binding
	return yaml.NodeToValue(node, (*plain)(b), yaml.Strict())
}

// GateInput is what the gate needs to know besides its own sections.
type GateInput struct {
	Servers   []string // the servers of the file; nil: any server
	Sandboxed []string // those that run in the sandbox
	Known     []gate.ToolDef
}

// Gate gives the policy of a profile, with the budget of refusals of its sessions. "" is the profile of the file's own
// mode, ungrounded, task and denials.
func (f *File) Gate(profile string, in GateInput) (gate.Spec, gate.Budget, error) {
	prof := f.Profile
	if profile != "" {
		var ok bool
		if prof, ok = f.Profiles[profile]; !ok {
			return gate.Spec{}, gate.Budget{}, fmt.Errorf("there is no profile %q; the file has %s", profile, nameList(f.Profiles))
		}
	}
	spec := gate.Spec{
		Servers: in.Servers, Sandboxed: in.Sandboxed, Known: in.Known,
		Mode: prof.Mode.Is, Task: sources(prof.Task),
	}
	if prof.Ungrounded.set {
		if prof.Ungrounded.Is == gate.Allow {
			return spec, gate.Budget{}, fmt.Errorf("ungrounded: it is ask or deny")
		}
		spec.DenyUngrounded = prof.Ungrounded.Is == gate.Deny
	}
	if prof.Denials < 0 {
		return spec, gate.Budget{}, fmt.Errorf("denials: it is a number of refusals, or 0 for %d", gate.DefaultDenials)
	}
	if p := f.Permissions; p != nil {
		spec.Permissions = gate.Permissions{Deny: sources(p.Deny), Ask: sources(p.Ask), Allow: sources(p.Allow)}
	}
	for i, r := range f.Rules {
		rule, err := r.rule()
		if err != nil {
			return spec, gate.Budget{}, fmt.Errorf("rule %d: %w", i+1, err)
		}
		if profile != "" {
			rule.Tests = nil // they say what the file's own profile does
		}
		spec.Rules = append(spec.Rules, rule)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tools)) {
		tool, err := f.Tools[name].spec(name, in.Servers)
		if err != nil {
			return spec, gate.Budget{}, err
		}
		spec.Tools = append(spec.Tools, tool)
	}
	return spec, gate.Budget{Limit: prof.Denials}, nil
}

func nameList[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

func (r *Rule) rule() (gate.Rule, error) {
	out := gate.Rule{Name: r.Name, When: r.When.source(), Because: r.Because}
	n := 0
	for answer, l := range map[gate.Answer]Line{gate.Deny: r.Deny, gate.Ask: r.Ask, gate.Allow: r.Allow} {
		if l.Text != "" {
			n++
			out.Answer, out.Tool = answer, l.source()
		}
	}
	if n != 1 {
		return out, fmt.Errorf("line %d: a rule has exactly one of deny, ask and allow, with its pattern", max(r.Deny.Line, r.Ask.Line, r.Allow.Line, r.When.Line))
	}
	for i, t := range r.Tests {
		if !t.Expect.set || t.Tool.Text == "" {
			return out, fmt.Errorf("line %d: test %d: a test has a tool and says what to expect: deny, ask or allow", max(t.Tool.Line, out.Tool.Line), i+1)
		}
		args, _ := asJSON(t.Args).(map[string]any)
		out.Tests = append(out.Tests, gate.RuleTest{
			Line: t.Tool.Line, Tool: t.Tool.Text, Args: args, Principal: t.Principal,
			Tainted: t.Tainted, Reads: t.Reads, Said: t.Said, Expect: t.Expect.Is,
		})
	}
	return out, nil
}

// asJSON gives a YAML value as the JSON of a call would have it.
func asJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = asJSON(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = asJSON(e)
		}
		return out
	case uint64:
		return json.Number(strconv.FormatUint(v, 10))
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return v
}

func (t Tool) spec(name string, servers []string) (gate.ToolSpec, error) {
	out := gate.ToolSpec{Line: t.line, Commands: t.Commands}
	server, tool, err := gate.SplitTool(name, servers)
	if err != nil {
		return out, fmt.Errorf("line %d: %s: %w", t.line, name, err)
	}
	effects, err := gate.ParseEffects(t.Effects)
	if err != nil {
		return out, fmt.Errorf("line %d: %s: %w", t.line, name, err)
	}
	out.Labels = gate.ToolLabels{Server: server, Tool: tool, Effects: effects, Text: t.Text, Anchor: t.Anchor, Trusted: t.Trusted}
	for _, b := range t.Bind {
		if b.Arg == "" {
			return out, fmt.Errorf("line %d: %s: a binding names its argument: {arg: to, kind: mail, class: ordinary}", t.line, name)
		}
		out.Labels.Bind = append(out.Labels.Bind, gate.Binding{Path: b.Arg, Kind: b.Kind.Is, Class: b.Class.Is})
	}
	return out, nil
}

// Observation is the store as the gate takes it, at the start of a session. ok is false where there is none.
func (s *Store) Observation() (o gate.Observation, ok bool) {
	if s == nil {
		return o, false
	}
	data := map[string]any{}
	add := func(label string, values []string) {
		if len(values) > 0 {
			list := make([]any, len(values))
			for i, v := range values {
				list[i] = v
			}
			data[label] = list
		}
	}
	add("own", s.Own)
	add("contacts", s.Contacts)
	add("accounts", s.Accounts)
	add("hosts", s.Hosts)
	add("paths", s.Paths)
	for label, ids := range s.IDs {
		add(label+"_ids", ids)
	}
	return gate.Observation{Source: "store", Trust: gate.Store, Data: data}, true
}

// UserKey reads the key with which the agent's host signs what the user said; nil where none is named.
func (f *File) UserKey() ([]byte, error) {
	if f.UserKeyFile == "" {
		return nil, nil
	}
	if _, err := os.Stat(f.UserKeyFile); err != nil {
		return nil, fmt.Errorf("user_key_file: %w", err)
	}
	key, err := Token(f.UserKeyFile)
	if err != nil {
		return nil, fmt.Errorf("user_key_file: %w", err)
	}
	if len(key) < gate.MinKey {
		return nil, fmt.Errorf("user_key_file: the key in %s is shorter than %d characters", f.UserKeyFile, gate.MinKey)
	}
	return []byte(key), nil
}
