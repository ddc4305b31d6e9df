package era

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// ask puts what a newer server needs for a call to the client, as requests of the older era.
func (t *toModern) ask(r *round, need strictjson.Value) {
	r.rounds++
	r.state, r.inputs = strictjson.Value{}, nil
	state := need.Get("requestState")
	questions := need.Get("inputRequests")
	switch {
	case r.rounds > maxRounds:
		t.fail(r, "the server asked for input too often")
		return
	case t.tooMuch(state):
		t.fail(r, "the server wants too much brought back")
		return
	}
	if state.Kind() == strictjson.KindString {
		r.state = str(strings.Clone(state.Str())) // without all that it came with
	}
	if questions.Len() == 0 {
		t.later(r)
		return
	}
	t.put(r, questions)
}

// put puts questions of a server to the client.
func (t *toModern) put(r *round, questions strictjson.Value) {
	if questions.Len() > maxInputs {
		t.fail(r, "the server asked for too much input at once")
		return
	}
	var out []jsonrpc.Message
	var asked []question
	for key, q := range questions.Members() {
		method, params := q.Get("method").Str(), q.Get("params")
		if !inputs(method) || !absent(params) && params.Kind() != strictjson.KindObject {
			t.fail(r, "the server asked the client for something that no client gives")
			return
		}
		if len(key) > maxKey {
			t.fail(r, "the server asked for input under a name that is too long")
			return
		}
		m := request(jsonrpc.RandomID(), method, legacyQuestion(method, params))
		if m.On = r.id; r.of != nil {
			if absent(m.Params) {
				m.Params = strictjson.Object()
			}
			m.Params = ofTask(r.of, m.Params)
		}
		asked = append(asked, question{m.ID, strings.Clone(key)})
		out = append(out, m)
	}
	delete(t.calls, r.server.Key())
	r.questions = map[string]question{}
	for i, m := range out {
		t.asked[m.ID.Key()], r.questions[m.ID.Key()] = r, asked[i]
		t.b.toClient(m)
	}
}

// tooMuch says that a state is too large beside those that are kept.
func (t *toModern) tooMuch(state strictjson.Value) bool {
	n := 0
	for _, r := range t.byClient {
		if !absent(r.state) {
			n += r.state.Size()
		}
	}
	return n > 0 && n+state.Size() > maxStates
}

// legacyQuestion adds what the older era asks for.
func legacyQuestion(method string, params strictjson.Value) strictjson.Value {
	if method == "elicitation/create" && params.Get("mode").Str() == "url" && absent(params.Get("elicitationId")) {
		return params.With("elicitationId", str(rand.Text()))
	}
	return params
}

// later retries for a server that asks for no input but to come back.
func (t *toModern) later(r *round) {
	if r.busy++; r.busy > maxBusy || absent(r.state) {
		t.fail(r, "the server is busy")
		return
	}
	delete(t.calls, r.server.Key())
	r.timer = time.AfterFunc(busyWait<<(r.busy-1), func() {
		t.b.mu.Lock()
		defer t.b.mu.Unlock()
		if t.byClient[r.id.Key()] == r {
			t.retry(r)
		}
	})
}

// input takes the client's answer to a question.
func (t *toModern) input(m jsonrpc.Message) {
	r := t.asked[m.ID.Key()]
	if r == nil {
		return
	}
	delete(t.asked, m.ID.Key())
	key := r.questions[m.ID.Key()].key
	delete(r.questions, m.ID.Key())
	if !absent(m.Error) || m.Result.Kind() != strictjson.KindObject {
		t.fail(r, "the client did not give the input that the server needs for this")
		return
	}
	r.inputs = append(r.inputs, member(key, unrelated(m.Result)))
	if len(r.questions) == 0 && r.method == "tasks/update" {
		t.update(r)
	} else if len(r.questions) == 0 {
		t.retry(r)
	}
}

// retry sends a call again, with what the client answered.
func (t *toModern) retry(r *round) {
	params := r.params
	if len(r.inputs) > 0 {
		params = params.With("inputResponses", strictjson.Object(r.inputs...))
	}
	if !absent(r.state) {
		params = params.With("requestState", r.state)
	}
	r.inputs = nil
	t.send(r, jsonrpc.RandomID(), params)
}
