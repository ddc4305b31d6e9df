package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Keeper keeps what a client may do over a restart, and hears what the user says meanwhile. [StateFile] is one.
type Keeper interface {
	// State is what was kept.
	State() (gate.State, gate.Budget)
	// Save keeps a state durably. On an error what the state was taken for must not happen.
	Save(gate.State, gate.Budget) error
	// Heard gives what was heard since the last call, in order.
	Heard() ([]gate.Observation, error)
	Close() error
}

// authority is what a client may do: it shrinks when untrusted text was read. All sessions of one principal share it, so that
// a new session gives nothing back.
type authority struct {
	users int // sessions; guarded by Gateway.mu

	mu     sync.Mutex // guards all below
	state  gate.State
	budget gate.Budget
	keep   Keeper // may be nil
	heard  bool   // something outside the session that was not kept yet
}

// authorityFor gives the authority of a client. Who is not known by name has one of its own.
func (g *Gateway) authorityFor(principal string) (*authority, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a, ok := g.authorities[principal]; ok && principal != "" {
		a.users++
		return a, nil
	}
	a := &authority{users: 1, budget: g.opt.Budget}
	for _, o := range g.opt.Trusted {
		a.state = a.state.Observe(o)
	}
	if g.opt.Keep != nil {
		var err error
		if a.keep, err = g.opt.Keep(principal); err != nil {
			return nil, err
		}
		if kept, spent := a.keep.State(); kept.Tainted() || len(kept.Reads()) > 0 || spent != (gate.Budget{}) {
			a.state, a.budget = kept, spent
			for _, o := range g.opt.Trusted { // the operator may have added to the store
				a.state = a.state.Observe(o)
			}
		}
	}
	if principal != "" {
		g.authorities[principal] = a
	}
	return a, nil
}

// release lets go of an authority. What is not kept in a file stays in memory for the principal's next session.
func (g *Gateway) release(a *authority, principal string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.users--
	if a.users > 0 || a.keep == nil {
		return nil
	}
	delete(g.authorities, principal)
	return a.keep.Close()
}

// hear takes in what was said or read outside the session. It is called with mu held.
func (a *authority) hear() error {
	if a.keep == nil {
		return nil
	}
	heard, err := a.keep.Heard()
	for _, o := range heard {
		a.state, a.heard = a.state.Observe(o), true
	}
	return err
}

// change keeps a new state before it counts. It is called with mu held.
func (a *authority) change(s gate.State, b gate.Budget) error {
	if !a.heard && b == a.budget && s.Same(a.state) { // most calls and answers
		return nil
	}
	if a.keep != nil {
		if err := a.keep.Save(s, b); err != nil {
			return err
		}
	}
	a.state, a.budget, a.heard = s, b, false
	return nil
}

// judge gives the policy's decision on a call.
func (a *authority) judge(p *gate.Policy, c gate.Call) (gate.Decision, []string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.hear(); err != nil {
		return gate.Decision{}, nil, err
	}
	if a.budget.Halted() {
		return gate.Decision{Reason: gate.BudgetSpent}, nil, nil
	}
	return p.Decide(c, a.state), a.state.Reads(), nil
}

// settle notes what became of a call by the policy: it goes ahead, with values a person vouched for, or it was refused. deaf
// says that no result is trusted.
func (a *authority) settle(c gate.Call, d gate.Decision, vouched []gate.Ungrounded, deaf bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.Answer != gate.Allow {
		budget, _ := a.budget.Spend(d)
		return a.change(a.state, budget)
	}
	s := a.state
	for _, u := range vouched {
		s = s.Endorse(u.Kind, u.Value)
	}
	if deaf {
		s = s.Deaf()
	}
	return a.change(s.Commit(c), a.budget)
}

// read takes from the authority what reading costs, before the text leaves. It reports whether that tainted it.
func (a *authority) read(observations ...gate.Observation) (tainted bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state
	for _, o := range observations {
		s = s.Observe(o)
	}
	tainted = s.Tainted() && !a.state.Tainted()
	return tainted, a.change(s, a.budget)
}

var errNotRecorded = errors.New("this call was not made: the decision could not be recorded")

// decide asks the gate, and a person where the gate says so, and records the answer before it takes effect. It returns what to
// tell the client if the call may not happen, or the answer with which the client takes a question to its user.
func (s *session) decide(f *flight, up *upstream, about About, params strictjson.Value) (refused string, later strictjson.Value) {
	if s.g.opt.Policy == nil {
		return "", later
	}
	args, _ := params.Get("arguments").Any().(map[string]any)
	c := gate.Call{Server: up.name(), Tool: about.Name, Args: args, Principal: s.who}
	if s.g.opt.Policy.AsksForPaths() && len(up.Command) > 0 {
		c.Paths = s.lookUp(f, args)
	}
	d, reads, err := s.authority.judge(s.g.opt.Policy, c)
	if err != nil {
		s.log.Error("reading what the user said", "why", err)
		return "This call was not made: what the user said could not be read.", later
	}
	raw := params.Get("arguments").Append(nil)
	if d.Answer == gate.Ask || s.g.opt.Audit != nil && f.readOn != nil && !s.alone() { // the disk takes one time for all that wait for it
		f.away()
	}
	err = s.record(audit.Event{
		Kind: audit.Decision, Server: c.Server, Tool: c.Tool, Answer: d.Answer.String(), Rule: d.Rule, Reason: string(d.Reason), Text: d.Text,
		Shape: audit.Shape(args), Digest: audit.Digest(raw),
	})
	if err != nil {
		return errNotRecorded.Error(), later
	}
	var vouched []gate.Ungrounded
	if d.Answer == gate.Ask {
		f.passTurn() // others need not wait for the person
		var answer approve.Answer
		answer, later = s.ask(f, up, about, s.question(f, up, c, d, raw, reads), params)
		if later.Kind() != strictjson.KindAbsent {
			return "", later
		}
		d.Answer, vouched = verdict(answer, d)
	}
	if err := s.authority.settle(c, d, vouched, s.g.deaf); err != nil {
		s.log.Error("keeping what the session may do", "why", err)
		return errNotRecorded.Error(), later
	}
	if d.Answer != gate.Allow {
		return d.Reason.AgentText(), later
	}
	return "", later
}

// question is what a person is asked about a call.
func (s *session) question(f *flight, up *upstream, c gate.Call, d gate.Decision, raw []byte, reads []string) approve.Question {
	labels := s.g.opt.Policy.Labels(c.Server, c.Tool)
	q := approve.Question{
		Session: s.id, Principal: s.who, Server: c.Server, Tool: c.Tool, Args: c.Args, Call: raw, Policy: s.g.opt.Policy.Version(),
		Effects: labels.Effects.Names(), Rule: d.Rule, Why: d.Text, Reads: reads, Warnings: up.Warnings,
		HighRisk: labels.Effects&gate.Exec != 0 || labels.Effects == 0,
	}
	for _, b := range labels.Bind { // also before anything untrusted was read, when every value counts as grounded
		q.HighRisk = q.HighRisk || b.Class.OwnWords()
	}
	for _, u := range d.Ungrounded {
		q.Ungrounded = append(q.Ungrounded, approve.Ungrounded{Path: u.Path, Kind: u.Kind.String(), Value: u.Value, Why: u.Why})
		q.HighRisk = q.HighRisk || u.Class.OwnWords()
	}
	if s.g.opt.Elicit && s.canElicit() {
		q.Elicit = func(ctx context.Context, text string) (approve.Verdict, error) { return s.elicit(ctx, f, text) }
	}
	return q
}

// canElicit reports whether the client said that it puts questions to its user.
func (s *session) canElicit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello.Get("capabilities").Get("elicitation").Kind() == strictjson.KindObject
}

// elicit puts a question of our own to the client's user.
func (s *session) elicit(ctx context.Context, f *flight, text string) (approve.Verdict, error) {
	call, err := s.client.Open(nil)
	if err != nil {
		return approve.Deny, err
	}
	schema := strictjson.Object(strictjson.Member{Name: "type", Value: strictjson.String("object")}, strictjson.Member{Name: "properties", Value: strictjson.Object()})
	m, err := call.Do(jsonrpc.About(ctx, f.ID), "elicitation/create", strictjson.Object(
		strictjson.Member{Name: "message", Value: strictjson.String(text)},
		strictjson.Member{Name: "requestedSchema", Value: schema}))
	if err != nil {
		return approve.Deny, err
	}
	if m.Error.Kind() != strictjson.KindAbsent {
		return approve.Deny, errors.New("the client does not put questions to its user")
	}
	if m.Result.Get("action").Str() == "accept" {
		return approve.Once, nil
	}
	return approve.Deny, nil
}

// observe takes from the session's authority what reading an answer or message costs it. On an error the text must not leave.
func (s *session) observe(up *upstream, about About, t Treated, raw strictjson.Value) error {
	s.counts.members.Add(int64(t.Dropped))
	s.counts.withheld.Add(int64(t.Withheld))
	for _, f := range t.Findings {
		s.log.Debug("treated", "server", up.name(), "method", about.Method, "where", f.Where, "rule", f.Rule, "note", f.Note)
	}
	if s.g.opt.Policy == nil {
		return nil
	}
	base := gate.Observation{Source: up.name(), Tool: about.Name, Trust: gate.Untrusted}
	if up.Trust == FirstParty || about.Method == "tools/call" && s.g.opt.Policy.Labels(up.name(), about.Name).Trusted {
		base.Trust = gate.FirstParty
	}
	var read []gate.Observation
	if base.Trust == gate.FirstParty {
		base.Data = structured(raw)
		read = append(read, base)
	} else {
		for _, text := range t.Texts {
			o := base
			o.Text = text.Text
			read = append(read, o)
		}
		if len(read) == 0 && (saysSomething[about.Method] || namesContent(about.Method, t.Value)) {
			read = append(read, base) // that there is nothing, or only a number, is someone's word too
		}
	}
	tainted, err := s.authority.read(read...)
	if err == nil && tainted {
		err = s.record(audit.Event{Kind: audit.Taint, Server: up.name(), Tool: about.label()})
	}
	if err != nil {
		s.log.Error("keeping what the session may do", "why", err)
	}
	return err
}

// saysSomething names the methods whose every answer is content.
var saysSomething = map[string]bool{"tools/call": true, "resources/read": true, "prompts/get": true}

// namesContent reports whether an answer names what a server keeps: the subject of a mail, the name of a file. Whoever wrote that
// may be a stranger, so it is read like content. Definitions are the server's own words, and pinned.
func namesContent(method string, result strictjson.Value) bool {
	switch method {
	case "resources/list":
		return result.Get("resources").Len() > 0
	case "completion/complete":
		return result.Get("completion").Get("values").Len() > 0
	}
	return false
}

// structured gives the data of a trusted result: its structuredContent, else the JSON that its only text holds, else nothing.
func structured(result strictjson.Value) any {
	if v := result.Get("structuredContent"); v.Kind() != strictjson.KindAbsent {
		return v.Any()
	}
	content := result.Get("content")
	if content.Len() != 1 {
		return nil
	}
	for _, block := range content.Elems() {
		if v, err := strictjson.ParseString(block.Get("text").Str(), strictjson.Limits{}); err == nil {
			return v.Any()
		}
	}
	return nil
}
