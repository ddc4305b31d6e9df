package replay

import (
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/gate"
)

// stages is one session as the gateway runs it: what becomes of a call, and what of a result reaches the agent.
type stages interface {
	decide(gate.Call) gate.Decision
	commit(gate.Call)                 // the call was let through
	approve(gate.Call, gate.Decision) // a person let it through, and vouches for its values
	result(tool, text string) string  // what the agent gets to read
	fork() stages                     // the same session, to try something in
}

// session runs the gate, the state and the frame as the gateway does, in its order.
type session struct {
	world *world
	gate  *gate.Policy
	state gate.State
	texts string // trusted texts, for the ablation that matches substrings
}

func (w *world) session(task *UserTask) (*session, error) {
	s := &session{world: w, state: w.store}
	if w.words {
		s.state = s.state.Observe(gate.Observation{Source: "user", Trust: gate.User, Text: task.Prompt})
	}
	if w.policy.loose {
		s.texts = strings.ToLower(w.suite.storeText())
		if w.words {
			s.texts += "\n" + strings.ToLower(task.Prompt)
		}
	}
	if w.policy.none || w.policy.all {
		return s, nil
	}
	var err error
	s.gate, err = w.gate(task)
	return s, err
}

func (s *session) fork() stages { f := *s; return &f }

func (s *session) decide(c gate.Call) gate.Decision {
	p := s.world.policy
	switch {
	case p.none:
		return gate.Decision{Answer: gate.Allow}
	case p.all:
		return gate.Decision{}
	}
	d := s.gate.Decide(c, s.state)
	if d.Answer == gate.Ask && len(d.Ungrounded) > 0 && (len(p.off) > 0 || p.loose) {
		left := slices.DeleteFunc(slices.Clone(d.Ungrounded), func(u gate.Ungrounded) bool {
			return slices.Contains(p.off, u.Rule) || p.loose && u.Value != "" && strings.Contains(s.texts, strings.ToLower(u.Value))
		})
		if len(left) == 0 {
			return gate.Decision{Answer: gate.Allow}
		}
	}
	return d
}

func (s *session) commit(c gate.Call) {
	if !s.world.policy.noSaid {
		s.state = s.state.Commit(c)
	}
}

func (s *session) approve(_ gate.Call, d gate.Decision) {
	for _, u := range d.Ungrounded {
		s.state = s.state.Endorse(u.Kind, u.Value)
	}
}

func (s *session) result(tool, text string) string {
	p := s.world.policy
	o := gate.Observation{Source: s.world.suite.server(), Tool: tool, Text: text}
	if s.world.labels[tool].Trusted && !p.noTrust {
		o.Trust, o.Data = gate.FirstParty, s.world.data(text)
		if p.noNames {
			o.Data = nameless(o.Data)
		}
		if p.noMade {
			o.Tool = ""
		}
	}
	s.state = s.state.Observe(o)
	return envelope.Envelope{Kind: "connector-tool-result", Lookalikes: true}.Wrap(text)
}
