package gateway

import (
	"crypto/rand"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// From 2026-07-28 on nothing can be asked of a client in the middle of a call. A call that waits for its user is answered with
// "input_required" instead, and comes again with what the user said and the state that the answer carried.

const (
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	// askState begins the requestState of the gateway's own questions.
	askState = "hearsay-approval:"
	// askKey names the question among the answers.
	askKey     = "hearsay-approval"
	maxWaiting = 64 // questions of a session that a client has taken away
	askFor     = 5 * time.Minute
)

// asking is a question that the client has taken to its user.
type asking struct {
	digest  string // of the exact call
	subject string // and what a server's state would belong to
	until   time.Time
	// What the client brought a question of the server's, of the same call: ours must not lose it.
	state, responses strictjson.Value
}

// elicitLater says whether a question may go to the user of a client that cannot be asked in the middle of a call.
func (s *session) elicitLater(f *flight, q approve.Question) bool {
	caps := f.Params.Get("_meta").Get(metaCapabilities)
	return s.g.opt.Elicit && !q.HighRisk && f.version >= modernVersion && caps.Get("elicitation").Kind() == strictjson.KindObject
}

// answered is what a call brings back of a question of the gateway's.
type answered struct {
	asking
	known, accepted bool
}

// cameBack takes the answer to a question of the gateway's out of a call, and gives the call back what the question held up. It
// counts once, for the call it was given for.
func (s *session) cameBack(f *flight, up *upstream, about About, params strictjson.Value) strictjson.Value {
	state := params.Get("requestState").Str()
	s.mu.Lock()
	waiting, known := s.asked[state]
	delete(s.asked, state)
	s.mu.Unlock()
	known = known && waiting.subject == string(s.subject(up, about, f.Params.Get("arguments"), ""))
	f.answer = &answered{waiting, known, params.Get("inputResponses").Get(askKey).Get("action").Str() == "accept"}
	params = params.Without("requestState", "inputResponses")
	if known && waiting.state.Kind() != strictjson.KindAbsent {
		params = params.With("requestState", waiting.state)
	}
	if known && waiting.responses.Kind() != strictjson.KindAbsent {
		params = params.With("inputResponses", waiting.responses)
	}
	return params
}

// verdict is what the answer says about a question.
func (a *answered) verdict(q approve.Question) approve.Answer {
	answer := approve.Answer{Channel: "elicitation", Reason: "answered"}
	switch {
	case !a.known || a.digest != q.Digest():
		answer.Reason = "conflict"
	case time.Now().After(a.until):
		answer.Reason = "timeout"
	case a.accepted:
		answer.Verdict = approve.Once
	}
	return answer
}

// takeAway makes the answer with which the client takes a question to its user.
func (s *session) takeAway(f *flight, up *upstream, about About, q approve.Question, params strictjson.Value) (strictjson.Value, bool) {
	state := askState + rand.Text()
	subject := string(s.subject(up, about, f.Params.Get("arguments"), ""))
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, waiting := range s.asked {
		if time.Now().After(waiting.until) {
			delete(s.asked, old)
		}
	}
	if len(s.asked) >= maxWaiting {
		return strictjson.Value{}, false
	}
	if s.asked == nil {
		s.asked = map[string]asking{}
	}
	s.asked[state] = asking{q.Digest(), subject, time.Now().Add(askFor), params.Get("requestState"), params.Get("inputResponses")}
	m := func(name string, v strictjson.Value) strictjson.Member {
		return strictjson.Member{Name: name, Value: v}
	}
	question := strictjson.Object(
		m("method", strictjson.String("elicitation/create")),
		m("params", strictjson.Object(
			m("message", strictjson.String(q.Text())),
			m("requestedSchema", strictjson.Object(m("type", strictjson.String("object")), m("properties", strictjson.Object()))))))
	return strictjson.Object(
		m("resultType", strictjson.String("input_required")),
		m("inputRequests", strictjson.Object(m(askKey, question))),
		m("requestState", strictjson.String(state))), true
}

// ask puts a call to a person. later is the answer to the client where it takes the question away itself.
func (s *session) ask(f *flight, up *upstream, about About, q approve.Question, params strictjson.Value) (a approve.Answer, later strictjson.Value) {
	if f.answer != nil {
		a = f.answer.verdict(q)
		if s.record(q.Event(a)) != nil {
			a.Verdict = approve.Deny
		}
		return a, later
	}
	if s.elicitLater(f, q) {
		if later, ok := s.takeAway(f, up, about, q, params); ok {
			return a, later
		}
	}
	if s.g.opt.Ask == nil {
		return a, later
	}
	return s.g.opt.Ask(f.ctx, q), later
}

// verdict is what an answer makes of a decision, and the values that it vouches for.
func verdict(a approve.Answer, d gate.Decision) (gate.Answer, []gate.Ungrounded) {
	switch a.Verdict {
	case approve.Once:
		return gate.Allow, nil
	case approve.Session:
		return gate.Allow, d.Ungrounded
	}
	return gate.Deny, nil
}
