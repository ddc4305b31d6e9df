package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

// Policy is what stands between the agent and the tools in one run.
type Policy struct {
	Name string
	What string // a sentence for the table

	none    bool           // everything is allowed
	all     bool           // everything is denied
	mode    gate.Mode      // of the gate
	oracle  bool           // the task's own tools are named beforehand
	off     []gate.Grounds // rules of the gate switched off, for the ablation
	noStore bool           // no operator's store
	noTrust bool           // every result is untrusted
	noNames bool           // records have no naming fields
	noMade  bool           // results are of no tool, so nothing counts as made here
	noSaid  bool           // what the agent passed is not remembered
	loose   bool           // a value counts as grounded where it is a substring of a trusted text
}

// Policies are compared by default: the gate's modes, and what there would be without.
func Policies() []Policy {
	return []Policy{
		{Name: "none", What: "no gate", none: true},
		{Name: "taint_only", What: "after taint every call that acts asks", mode: gate.TaintOnly},
		{Name: "isolation", What: "after taint only tools used before it", mode: gate.Isolation},
		{Name: "filter", What: "only the task's own tools, named beforehand", mode: gate.Filter, oracle: true},
		Default(),
	}
}

// Default is the gate as it comes.
func Default() Policy {
	return Policy{Name: "grounded", What: "binding arguments are grounded in trusted text"}
}

// Ablations are the default with one rule switched off each. Rules that forbid are seen by the attacks they stop, rules that
// vouch by the questions they save.
func Ablations() []Policy {
	return []Policy{
		{Name: "grounded - values", What: "binding values are not compared at all", off: []gate.Grounds{gate.RuleValue}},
		{Name: "grounded - whole values", What: "a substring of a trusted text grounds", loose: true},
		{Name: "grounded - classes", What: "any trusted text grounds money, deletion, sharing …", off: []gate.Grounds{gate.RuleClass}},
		{Name: "grounded - free text", What: "links and addresses in free text are not looked at", off: []gate.Grounds{gate.RuleText}},
		{Name: "grounded - disguises", What: "values in disguise pass", off: []gate.Grounds{gate.RuleDisguise}},
		{Name: "grounded - anchors", What: "calls that name nobody pass", off: []gate.Grounds{gate.RuleAnchor}},
		{Name: "grounded - echoes", What: "a server that repeats a value vouches for it", noSaid: true},
		{Name: "grounded - store", What: "no operator's store", noStore: true},
		{Name: "grounded - results", What: "no result is trusted", noTrust: true},
		{Name: "grounded - named records", What: "the record the user named is like any other", noNames: true},
		{Name: "grounded - made ids", What: "what the session made is like anything else", noMade: true},
	}
}

// PolicyByName finds one of [Policies] or [Ablations].
func PolicyByName(name string) (Policy, error) {
	all := append(Policies(), Ablations()...)
	if i := slices.IndexFunc(all, func(p Policy) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return Policy{}, fmt.Errorf("no policy %q; there are %s", name, strings.Join(names, ", "))
}

// world is a suite with labels, ready to be run: what the operator of a gateway would have configured.
type world struct {
	suite  *Suite
	labels map[string]gate.ToolLabels
	gates  map[string]*gate.Policy // by mode and task
	policy Policy
	words  bool
	parsed map[string]any
	store  gate.State // the session before the user says anything
}

func newWorld(s *Suite, p Policy, labels map[string]gate.ToolLabels, words bool) (*world, error) {
	w := &world{suite: s, labels: labels, policy: p, words: words, gates: map[string]*gate.Policy{}, parsed: map[string]any{}}
	if !p.noStore {
		w.store = w.store.Observe(gate.Observation{Source: "store", Trust: gate.Store, Data: map[string]any(s.KnownStore)})
	}
	if p.none || p.all || p.oracle {
		return w, nil
	}
	g, err := w.compile(nil)
	w.gates[""] = g
	return w, err
}

func (w *world) compile(task *UserTask) (*gate.Policy, error) {
	server := w.suite.server()
	spec := gate.Spec{Mode: w.policy.mode, Permissions: gate.Permissions{Allow: []gate.Source{{Text: server + ".*"}}}}
	for _, t := range w.suite.Tools {
		spec.Tools = append(spec.Tools, gate.ToolSpec{Labels: w.labels[t.Name]})
	}
	if task != nil {
		for _, tool := range task.tools() {
			spec.Task = append(spec.Task, gate.Source{Text: server + "." + tool})
		}
	}
	return gate.Compile(spec)
}

// gate gives the compiled policy for a task.
func (w *world) gate(task *UserTask) (*gate.Policy, error) {
	if !w.policy.oracle {
		return w.gates[""], nil
	}
	if g := w.gates[task.ID]; g != nil {
		return g, nil
	}
	g, err := w.compile(task)
	w.gates[task.ID] = g
	return g, err
}

// server is the name under which the suite's tools stand behind the gateway.
func (s *Suite) server() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, s.Name)
}

func (t *UserTask) tools() []string {
	var out []string
	for _, c := range t.Calls {
		if !slices.Contains(out, c.Tool) {
			out = append(out, c.Tool)
		}
	}
	return out
}

func (t Tool) def(server string) gate.ToolDef {
	return gate.ToolDef{Server: server, Name: t.Name, Description: t.Description, InputSchema: map[string]any(t.InputSchema)}
}

// drafted are the labels that `hearsay pin` would propose.
func (s *Suite) drafted() map[string]gate.ToolLabels {
	out := map[string]gate.ToolLabels{}
	for _, t := range s.Tools {
		out[t.Name] = gate.Draft(t.def(s.server()))
	}
	return out
}

// given are the labels in the suite: effects, binding arguments and trust are a person's word, the kinds and classes of
// the arguments, about which the suite says nothing, are drafted.
func (s *Suite) given() map[string]gate.ToolLabels {
	out := map[string]gate.ToolLabels{}
	for _, t := range s.Tools {
		l := gate.ToolLabels{Effects: map[string]gate.Effects{"read": gate.Read, "egress": gate.Send, "write": gate.Write}[t.Effect], Text: t.TextArgs, Trusted: !t.ReturnsUntrusted}
		for _, arg := range t.BindArgs {
			l.Bind = append(l.Bind, gate.Binding{Path: arg})
		}
		out[t.Name] = gate.Complete(l, t.def(s.server()))
	}
	return out
}

// data is the structured form of a result, kept because the same results come again for every attack.
func (w *world) data(text string) any {
	if v, ok := w.parsed[text]; ok {
		return v
	}
	v := structured(text)
	w.parsed[text] = v
	return v
}

// nameless is a structured value without the fields that name records.
func nameless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			switch k {
			case "name", "title", "subject", "label", "filename", "username":
			default:
				out[k] = nameless(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = nameless(e)
		}
		return out
	}
	return v
}

// storeText is the operator's store as one text.
func (s *Suite) storeText() string {
	var lines []string
	for _, list := range s.KnownStore {
		if list, ok := list.([]any); ok {
			for _, v := range list {
				lines = append(lines, fmt.Sprint(v))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
