package gateway

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func modernMail(id int, tool, to, more string) string {
	args := ""
	if to != "" {
		args = fmt.Sprintf(`"to":%q`, to)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{%s},"_meta":%s%s}}`, id, tool, args, modernMeta, more)
}

// A client of 2026-07-28 takes a question to its user and comes back with the answer: for that call, once, and no other.
func TestAModernClientTakesTheQuestionAway(t *testing.T) {
	r := newRig(t, Options{Policy: mailPolicy(t), Launch: launcher(nil, mailServer), Elicit: true})
	r.ask(modernMail(1, "read", "", ""))
	ask := func(id int, tool, to string) strictjson.Value {
		t.Helper()
		return r.ask(modernMail(id, tool, to, "")).Get("result")
	}
	back := func(id int, tool, to, state, action string) string {
		t.Helper()
		more := fmt.Sprintf(`,"requestState":%q,"inputResponses":{"hearsay-approval":{"action":%q}}`, state, action)
		return string(r.ask(modernMail(id, tool, to, more)).Append(nil))
	}
	question := ask(2, "send", "x@evil.example")
	asked := question.Get("inputRequests").Get(askKey)
	state := question.Get("requestState").Str()
	if question.Get("resultType").Str() != "input_required" || asked.Get("method").Str() != "elicitation/create" || state == "" ||
		!strings.Contains(asked.Get("params").Get("message").Str(), `to = "x@evil.example"`) {
		t.Fatalf("%s", question.Append(nil))
	}
	if got := back(3, "send", "y@evil.example", state, "accept"); strings.Contains(got, "done") {
		t.Errorf("the answer for another call: %s", got)
	}
	if got := back(4, "send", "x@evil.example", state, "accept"); strings.Contains(got, "done") {
		t.Errorf("an answer counts once, also a wrong one: %s", got)
	}
	state = ask(5, "send", "x@evil.example").Get("requestState").Str()
	if got := back(6, "send", "x@evil.example", state, "accept"); !strings.Contains(got, "done") {
		t.Errorf("accepted: %s", got)
	}
	if got := back(7, "send", "x@evil.example", state, "accept"); strings.Contains(got, "done") {
		t.Errorf("the same answer again: %s", got)
	}
	state = ask(8, "send", "x@evil.example").Get("requestState").Str()
	if got := back(9, "send", "x@evil.example", state, "decline"); strings.Contains(got, "done") {
		t.Errorf("declined: %s", got)
	}
	if got := back(10, "send", "x@evil.example", askState+"guess", "accept"); strings.Contains(got, "done") {
		t.Errorf("a guessed state: %s", got)
	}
	if got := ask(11, "pay", "x@evil.example"); got.Get("inputRequests").Kind() != strictjson.KindAbsent {
		t.Errorf("money is not asked through the client: %s", got.Append(nil))
	}
}

// A call that answers a question of the server's and then one of the gateway's reaches the server with the answer to its own.
func TestOurQuestionKeepsTheServersAnswer(t *testing.T) {
	var mu sync.Mutex
	got := ""
	r := newRig(t, Options{Policy: mailPolicy(t), Elicit: true, Launch: launcher(nil, answering(func(method string, m strictjson.Value) string {
		mu.Lock()
		defer mu.Unlock()
		got = string(m.Get("params").Append(nil))
		if !strings.Contains(got, "inputResponses") && strings.Contains(got, "evil") {
			return `"result":{"resultType":"input_required","requestState":"theirs","inputRequests":{"k":{"method":"roots/list"}}}`
		}
		return `"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
	}))})
	r.ask(modernMail(1, "read", "", ""))
	back := func(id int, state, key string) strictjson.Value {
		return r.ask(modernMail(id, "send", "x@evil.example", fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:{"action":"accept"}}`, state, key)))
	}
	state := func(v strictjson.Value) string { return v.Get("result").Get("requestState").Str() }
	ours := state(r.ask(modernMail(2, "send", "x@evil.example", "")))
	theirs := state(back(3, ours, askKey))
	if !strings.HasPrefix(ours, askState) || !strings.HasPrefix(theirs, boundState) {
		t.Fatalf("the first question: %s, the second: %s", ours, theirs)
	}
	ours = state(back(4, theirs, "k"))
	if !strings.HasPrefix(ours, askState) {
		t.Fatalf("no question: %s", ours)
	}
	if v := r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","_meta":%s,"requestState":%q}}`, modernMeta, ours)); v.Get("result").Kind() != strictjson.KindObject {
		t.Errorf("another call with the answer: %s", v.Append(nil))
	}
	mu.Lock()
	if strings.Contains(got, "requestState") || strings.Contains(got, "hearsay") {
		t.Errorf("another call brought the server %s", got)
	}
	mu.Unlock()
	ours = state(back(6, theirs, "k"))
	answer := back(7, ours, askKey)
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(string(answer.Append(nil)), "done") || !strings.Contains(got, `"requestState":"theirs"`) || !strings.Contains(got, `"inputResponses":{"k":`) || strings.Contains(got, "hearsay") {
		t.Errorf("%s, the server got %s", answer.Append(nil), got)
	}
}
