package gateway

import (
	"crypto/rand"
	"time"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// From 2026-07-28 on nothing can be asked of a client in the middle of a call. A call that waits for its user is answered with
// "input_required" instead, and comes again with what the user said and the state that the answer carried.

const (
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	// askState begins the requestState of the gateway's own questions; a server's own state passes by.
	askState = "hearsay-approval:"
	// askKey names the question among the answers.
	askKey     = "hearsay-approval"
	maxWaiting = 64 // questions of a session that a client has taken away
	askFor     = 5 * time.Minute
)

// asking is a question that the client has taken to its user.
type asking struct {
	digest string // of the exact call
	until  time.Time
	// What the client brought a question of the server's, of the same call: ours must not lose it.
	state, responses strictjson.Value
}

// elicitLater says whether a question may go to the user of a client that cannot be asked in the middle of a call.
func (s *session) elicitLater(f *flight, q approve.Question) bool {
	caps := f.Params.Get("_meta").Get(metaCapabilities)
	return s.g.opt.Elicit && !q.HighRisk && f.version >= modernVersion && caps.Get("elicitation").Kind() == strictjson.KindObject
}

// cameBack takes the answer to a question of the gateway's out of a call. ok is false where the call carries none; params are
// those that the server may get.
func (s *session) cameBack(params strictjson.Value, q approve.Question) (answer approve.Answer, rest strictjson.Value, ok bool) {
	state := params.Get("requestState").Str()
	if len(state) < len(askState) || state[:len(askState)] != askState {
		return approve.Answer{}, params, false
	}
	rest = params.Without("requestState", "inputResponses")
	answer = approve.Answer{Channel: "elicitation", Reason: "conflict"}
	s.mu.Lock()
	waiting, known := s.asked[state]
	delete(s.asked, state) // an answer counts once
	s.mu.Unlock()
	if waiting.state.Kind() != strictjson.KindAbsent {
		rest = rest.With("requestState", waiting.state)
	}
	if waiting.responses.Kind() != strictjson.KindAbsent {
		rest = rest.With("inputResponses", waiting.responses)
	}
	switch {
	case !known || waiting.digest != q.Digest():
	case time.Now().After(waiting.until):
		answer.Reason = "timeout"
	default:
		answer.Reason = "answered"
		if params.Get("inputResponses").Get(askKey).Get("action").Str() == "accept" {
			answer.Verdict = approve.Once
		}
	}
	return answer, rest, true
}

// takeAway makes the answer with which the client takes a question to its user.
func (s *session) takeAway(q approve.Question, params strictjson.Value) (strictjson.Value, bool) {
	state := askState + rand.Text()
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
	s.asked[state] = asking{q.Digest(), time.Now().Add(askFor), params.Get("requestState"), params.Get("inputResponses")}
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

// recordApproval records an answer that came by way of the client, as the desk records its own.
func (s *session) recordApproval(q approve.Question, a approve.Answer) error {
	return s.record(audit.Event{
		Kind: audit.Approval, Server: q.Server, Tool: q.Tool, Rule: q.Rule, Answer: a.Verdict.String(), Reason: a.Reason, Digest: q.Digest(),
		Shape: audit.Shape(q.Args), Detail: map[string]string{"channel": a.Channel},
	})
}

// ask puts a call to a person. later is the answer to the client where it takes the question away itself; rest are the params
// without what only the gateway understands.
func (s *session) ask(f *flight, q approve.Question, params strictjson.Value) (a approve.Answer, rest, later strictjson.Value) {
	if answer, rest, ok := s.cameBack(params, q); ok {
		if s.recordApproval(q, answer) != nil {
			answer.Verdict = approve.Deny
		}
		return answer, rest, strictjson.Value{}
	}
	if s.elicitLater(f, q) {
		if later, ok := s.takeAway(q, params); ok {
			return approve.Answer{}, params, later
		}
	}
	if s.g.opt.Ask == nil {
		return approve.Answer{}, params, strictjson.Value{}
	}
	return s.g.opt.Ask(f.ctx, q), params, strictjson.Value{}
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
