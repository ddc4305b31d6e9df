package era

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// ask sends a call that needs input, has the server ask for it, and gives the state that the client must bring back.
func (r *rig) ask(call, question string) (state string) {
	r.t.Helper()
	r.client(call)
	r.atServer()
	r.server(question)
	got := r.atClient()
	if len(got) != 1 || got[0].Result.Get("resultType").Str() != "input_required" {
		r.t.Fatalf("not asked for input: %s", written(got))
	}
	return got[0].Result.Get("requestState").Str()
}

const (
	callA   = `{"id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":1},` + meta + `}}`
	sample  = `{"id":7,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}`
	elicit  = `{"id":8,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`
	doneA   = `{"id":"a","result":{"content":[]}}`
	sampled = `{"role":"assistant","model":"m","content":{"type":"text","text":"s"}}`
)

func retry(id, state, responses string) string {
	return `{"id":"` + id + `","method":"tools/call","params":{"name":"t","arguments":{"x":1},"inputResponses":` + responses + `,"requestState":"` + state + `",` + meta + `}}`
}

func TestCallsOfAModernClient(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		for _, tt := range []struct{ ask, sent, answer, got string }{
			{`"method":"tools/list","params":{` + meta + `}}`, `"method":"tools/list","params":{}}`,
				`"result":{"tools":[{"name":"t","z":1.0}],"nextCursor":"c"}}`, `"result":{"tools":[{"name":"t","z":1.0}],"nextCursor":"c","resultType":"complete","ttlMs":0,"cacheScope":"private"}}`},
			{`"method":"tools/call","params":{"name":"t","arguments":{"n":9007199254740993},"_meta":{"traceparent":"x","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
				`"method":"tools/call","params":{"name":"t","arguments":{"n":9007199254740993},"_meta":{"traceparent":"x"}}}`,
				`"result":{"content":[],"isError":true}}`, `"result":{"content":[],"isError":true,"resultType":"complete"}}`},
			{`"method":"tools/call","params":{"name":"t","task":{"ttl":1},` + meta + `}}`, `"method":"tools/call","params":{"name":"t"}}`,
				`"result":{"resultType":"input_required","requestState":"forged","inputRequests":{}}}`, `"result":{"resultType":"complete"}}`},
			{`"method":"resources/read","params":{"uri":"a://b",` + meta + `}}`, `"method":"resources/read","params":{"uri":"a://b"}}`,
				`"error":{"code":-32002,"message":"gone","data":{"uri":"a://b"}}}`, `"error":{"code":-32602,"message":"gone","data":{"uri":"a://b"}}}`},
			{`"method":"completion/complete","params":{"ref":{},` + meta + `}}`, `"method":"completion/complete","params":{"ref":{}}}`,
				`"error":{"code":-32022,"message":"m"}}`, `"error":{"code":-32603,"message":"m"}}`},
		} {
			r.client(`{"id":"q",` + tt.ask)
			one(t, r.atServer(), `{"id":"q",`+tt.sent)
			r.server(`{"id":"q",` + tt.answer)
			one(t, r.atClient(), `{"id":"q",`+tt.got)
		}
		for _, method := range []string{"ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/list", "tasks/result"} {
			r.client(`{"id":"q","method":"` + method + `","params":{` + meta + `}}`)
			if got := r.atClient(); len(got) != 1 || !strings.Contains(written(got), "is not translated") {
				t.Errorf("%s: %s", method, written(got))
			}
		}
		r.client(`{"id":"q","method":"tasks/get","params":{"taskId":"t",` + meta + `}}`)
		one(t, r.atClient(), `{"id":"q","error":{"code":-32601,"message":"tasks/get: the server has no tasks"}}`)
		r.client(`{"id":"q","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}`)
		one(t, r.atClient(), `{"id":"q","error":{"code":-32022,"message":"the protocol version is not supported","data":{"supported":["2026-07-28"],"requested":"2027-01-01"}}}`)
		r.client(`{"id":"q","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
		one(t, r.atClient(), `{"id":"q","error":{"code":-32602,"message":"params._meta lacks io.modelcontextprotocol/clientCapabilities"}}`)
		r.client(`{"method":"notifications/roots/list_changed"}`)
		none(t, "the server", r.atServer())
	})
}

// A question in the middle of a call becomes an answer that needs input, and the retry goes on with the same call.
func TestQuestionsOfAnOlderServer(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		state := r.ask(callA, sample)
		r.server(elicit) // a second one, while the client is at the first
		none(t, "the client", r.atClient())

		r.client(retry("b", state, `{"input-1":`+sampled+`,"more":{}}`))
		one(t, r.atServer(), `{"id":7,"result":`+sampled+`}`)
		again := one2(t, r.atClient(), "b")
		if q := again.Result.Get("inputRequests").Get("input-2"); q.Get("method").Str() != "elicitation/create" || q.Get("params").Get("message").Str() != "m" {
			t.Errorf("the second round: %s", again.Append(nil))
		}
		r.client(retry("c", again.Result.Get("requestState").Str(), `{"input-2":{"action":"accept","content":{}}}`))
		one(t, r.atServer(), `{"id":8,"result":{"action":"accept","content":{}}}`)
		r.server(doneA)
		one(t, r.atClient(), `{"id":"c","result":{"content":[],"resultType":"complete"}}`)

		for name, s := range map[string]string{"used": state, "made up": "x"} {
			r.client(retry("d", s, `{}`))
			if got := written(r.atClient()); !strings.Contains(got, "-32602") || !strings.Contains(got, "make the call anew") {
				t.Errorf("a state that was %s: %s", name, got)
			}
		}
		none(t, "the server", r.atServer())
	})
}

func one2(t testing.TB, messages []jsonrpc.Message, as string) jsonrpc.Message {
	t.Helper()
	if len(messages) != 1 || id(messages[0]) != `"`+as+`"` || messages[0].Result.Get("resultType").Str() != "input_required" {
		t.Fatalf("no request for input in the answer to %s: %s", as, written(messages))
	}
	return messages[0]
}

func TestAStateBelongsToItsCall(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		state := r.ask(callA, sample)
		r.client(strings.Replace(retry("b", state, `{"input-1":`+sampled+`}`), `"x":1`, `"x":2`, 1))
		if got := written(r.atClient()); !strings.Contains(got, "belongs to another call") {
			t.Error(got)
		}
		none(t, "the server", r.atServer())
		r.client(retry("c", state, `{"input-1":`+sampled+`}`)) // which is still waited for
		one(t, r.atServer(), `{"id":7,"result":`+sampled+`}`)
	})
}

// What a server asks at once comes in one round.
func TestQuestionsAtOnce(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.client(callA)
		r.atServer()
		r.server(sample, elicit, `{"id":9,"method":"roots/list"}`, `{"method":"notifications/cancelled","params":{"requestId":8}}`)
		got := one2(t, r.atClient(), "a").Result
		if got.Get("inputRequests").Len() != 2 {
			t.Fatalf("%s", got.Append(nil))
		}
		r.client(retry("b", got.Get("requestState").Str(), `{"input-2":{"roots":[]},"input-1":`+sampled+`}`))
		if sent := r.atServer(); len(sent) != 2 {
			t.Error(written(sent))
		}
		r.server(elicit, `{"method":"notifications/cancelled","params":{"requestId":8}}`, elicit, doneA) // answered before it is passed on
		one(t, r.atClient(), `{"id":"b","result":{"content":[],"resultType":"complete"}}`)
		one(t, r.atServer(), `{"id":8,"error":{"code":-32603,"message":"the call that needed this has ended"}}`)
	})
}

func TestInputThatDoesNotCome(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		state := r.ask(callA, sample)
		r.client(retry("b", state, `{}`)) // asked for once more
		again := one2(t, r.atClient(), "b").Result
		none(t, "the server", r.atServer())
		r.client(retry("c", again.Get("requestState").Str(), `{"input-2":null}`))
		one(t, r.atServer(), `{"id":7,"error":{"code":-32603,"message":"the client gave no answer"}}`)

		r.server(doneA)
		r.atClient()
		r.ask(callA, elicit) // and never again
		time.Sleep(suspendFor)
		synctest.Wait()
		got := r.atServer()
		if len(got) != 2 || string(got[0].Append(nil)) != `{"jsonrpc":"2.0","id":8,"error":{"code":-32603,"message":"the call that needed this has ended"}}` || got[1].Params.Get("requestId").Str() != "a" {
			t.Errorf("after the client stayed away: %s", written(got))
		}
		if tr := r.b.tr.(*toLegacy); len(tr.calls)+len(tr.suspended)+len(tr.wanted)+len(tr.byClient) > 0 {
			t.Errorf("left behind: %+v", tr)
		}
	})
}

func TestAnswerBeforeTheInput(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		state := r.ask(callA, sample)
		r.server(`{"method":"notifications/cancelled","params":{"requestId":7}}`, doneA)
		none(t, "the client", r.atClient())
		r.client(retry("b", state, `{"input-1":`+sampled+`}`))
		one(t, r.atClient(), `{"id":"b","result":{"content":[],"resultType":"complete"}}`)
		none(t, "the server", r.atServer())
	})
}

func TestQuestionsThatTheClientDoesNotTake(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.client(strings.Replace(strings.Replace(callA, `"sampling":{},`, ``, 1), `,"url":{}`, ``, 1))
		r.atServer()
		for _, q := range []string{sample, `{"id":8,"method":"elicitation/create","params":{"mode":"url","url":"https://e.example","message":"m"}}`, `{"id":9,"method":"tasks/list"}`} {
			r.server(q)
			if got := r.atServer(); len(got) != 1 || got[0].Error.Get("code").Number() != "-32601" {
				t.Errorf("%s: %s", q, written(got))
			}
		}
		r.server(`{"id":7,"method":"ping"}`)
		one(t, r.atServer(), `{"id":7,"result":{}}`)
		none(t, "the client", r.atClient())
		r.server(`{"id":"a","error":{"code":-1,"message":"m"}}`)
		one(t, r.atClient(), `{"id":"a","error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}`)
	})
}

// What a server asks when it has just started comes with the first call, and before it.
func TestQuestionsOutsideACall(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.server(`{"id":7,"method":"roots/list"}`, `{"id":8,"method":"roots/list"}`, `{"method":"notifications/cancelled","params":{"requestId":8}}`)
		r.client(`{"id":"l","method":"tools/list","params":{` + meta + `}}`)
		one(t, r.atServer(), `{"id":"l","method":"tools/list","params":{}}`)
		none(t, "the client", r.atClient())
		r.client(callA)
		none(t, "the server", r.atServer())
		got := one2(t, r.atClient(), "a")
		if got.Result.Get("inputRequests").Len() != 1 {
			t.Errorf("%s", got.Append(nil))
		}
		r.client(retry("b", got.Result.Get("requestState").Str(), `{"input-1":{"roots":[]}}`))
		sent := r.atServer()
		if len(sent) != 2 {
			t.Fatal(written(sent))
		}
		same(t, sent[0], `{"id":7,"result":{"roots":[]}}`)
		same(t, sent[1], `{"id":"b","method":"tools/call","params":{"name":"t","arguments":{"x":1}}}`)
	})
}

func TestAddressesToOpenFirst(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		const needed = `{"id":"%s","error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://e.example/","elicitationId":"1","message":"m"}]}}}`
		call := func(name string) string { return strings.Replace(callA, `"id":"a"`, `"id":"`+name+`"`, 1) }
		r.client(call("a"))
		r.atServer()
		r.server(fmt.Sprintf(needed, "a"))
		got := one2(t, r.atClient(), "a").Result
		if q := string(got.Get("inputRequests").Append(nil)); q != `{"input-1":{"method":"elicitation/create","params":{"mode":"url","url":"https://e.example/","message":"m"}}}` {
			t.Error(q)
		}
		r.client(retry("b", got.Get("requestState").Str(), `{"input-1":{"action":"accept"}}`))
		one(t, r.atServer(), `{"id":"b","method":"tools/call","params":{"name":"t","arguments":{"x":1}}}`) // anew
		r.server(`{"id":"b","result":{"content":[]}}`)
		r.atClient()

		r.client(call("c"))
		r.atServer()
		r.server(fmt.Sprintf(needed, "c"))
		state := one2(t, r.atClient(), "c").Result.Get("requestState").Str()
		r.client(retry("d", state, `{"input-1":{"action":"decline"}}`))
		if got := written(r.atClient()); !strings.Contains(got, "the user did not") {
			t.Error(got)
		}
		none(t, "the server", r.atServer())

		r.client(strings.Replace(call("e"), `,"url":{}`, ``, 1))
		r.atServer()
		r.server(fmt.Sprintf(needed, "e"))
		one(t, r.atClient(), `{"id":"e","error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}`)
	})
}

func TestProgressAndLogsFindTheirRequest(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		withToken := func(text, id string) string {
			return strings.Replace(text, `"_meta":{`, `"_meta":{"progressToken":"`+id+`","io.modelcontextprotocol/logLevel":"info",`, 1)
		}
		r.client(withToken(callA, "a"))
		set := one(t, r.atServer(), `{"id":ID,"method":"logging/setLevel","params":{"level":"info"}}`)
		r.server(`{"id":` + id(set) + `,"result":{}}`)
		one(t, r.atServer(), `{"id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":1},"_meta":{"progressToken":"a"}}}`)
		r.client(`{"id":"z","method":"tools/call","params":{"name":"quiet",` + meta + `}}`)
		r.atServer()

		const log = `{"method":"notifications/message","params":{"level":"%s","data":"x"}}`
		r.server(fmt.Sprintf(log, "error")) // of the call that was sent last, which wants none
		none(t, "the client", r.atClient())
		r.on(`"a"`, fmt.Sprintf(log, "debug"))
		none(t, "the client", r.atClient())
		r.on(`"a"`, fmt.Sprintf(log, "warning"))
		if m := one(t, r.atClient(), fmt.Sprintf(log, "warning")); m.On.Key() != `"a` {
			t.Errorf("a log of the request %q", m.On.Key())
		}
		r.on(`"a"`, sample)
		state := one2(t, r.atClient(), "a").Result.Get("requestState").Str()
		r.client(withToken(retry("b", state, `{"input-1":`+sampled+`}`), "b"))
		r.atServer()
		r.server(`{"method":"notifications/progress","params":{"progressToken":"a","progress":1}}`, `{"method":"notifications/progress","params":{"progressToken":"other","progress":1}}`)
		one(t, r.atClient(), `{"method":"notifications/progress","params":{"progressToken":"b","progress":1}}`)

		r.client(`{"method":"notifications/cancelled","params":{"requestId":"b","reason":"r"}}`)
		one(t, r.atServer(), `{"method":"notifications/cancelled","params":{"requestId":"a","reason":"r"}}`)
	})
}

func TestSubscriptionsOfAModernClient(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.client(`{"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a://1","a://2"]},` + meta + `}}`)
		asked := r.atServer()
		if len(asked) != 2 {
			t.Fatal(written(asked))
		}
		same(t, asked[0], `{"id":ID,"method":"resources/subscribe","params":{"uri":"a://1"}}`)
		r.server(`{"method":"notifications/tools/list_changed"}`) // before the acknowledgement nothing may come
		none(t, "the client", r.atClient())
		r.server(`{"id":`+id(asked[0])+`,"result":{}}`, `{"id":`+id(asked[1])+`,"error":{"code":-32602,"message":"no"}}`)
		one(t, r.atClient(), `{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://1"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`)

		r.server(`{"method":"notifications/tools/list_changed"}`)
		one(t, r.atClient(), `{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`)
		r.server(`{"method":"notifications/resources/updated","params":{"uri":"a://1"}}`)
		one(t, r.atClient(), `{"method":"notifications/resources/updated","params":{"uri":"a://1","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`)
		r.server(`{"method":"notifications/resources/updated","params":{"uri":"a://2"}}`, `{"method":"notifications/prompts/list_changed"}`, `{"method":"notifications/resources/list_changed"}`)
		none(t, "the client", r.atClient())

		r.client(`{"id":"m","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a://1"]},` + meta + `}}`)
		none(t, "the server", r.atServer()) // it is told already
		r.atClient()
		r.client(`{"method":"notifications/cancelled","params":{"requestId":"l"}}`)
		none(t, "the server", r.atServer())
		r.client(`{"method":"notifications/cancelled","params":{"requestId":"m"}}`)
		one(t, r.atServer(), `{"id":ID,"method":"resources/unsubscribe","params":{"uri":"a://1"}}`)
	})
}

// A client may ask what there is, and prefer the other era.
func TestAClientThatInitializesAfterAll(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.client(`{"id":1,"method":"initialize",` + oldHello + `}`)
		one(t, r.atClient(), `{"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":`+oldCan+`,"serverInfo":{"name":"s","version":"2"},"instructions":"i"}}`)
		r.client(`{"method":"notifications/initialized"}`)
		none(t, "the server", r.atServer())
		r.client(`{"id":2,"method":"ping"}`)
		one(t, r.atServer(), `{"id":2,"method":"ping"}`)
		r.server(sample)
		one(t, r.atClient(), sample)
	})
}

func TestManyQuestionsAreBounded(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		for i := range 3 * maxWanted { // of no call
			r.server(fmt.Sprintf(`{"id":"q%d","method":"roots/list"}`, i))
		}
		if refused := len(r.atServer()); refused != 2*maxWanted {
			t.Errorf("%d of %d questions were refused", refused, 3*maxWanted)
		}
		for i := range 2 * maxWanted { // asked and taken back
			r.server(fmt.Sprintf(`{"method":"notifications/cancelled","params":{"requestId":"q%d"}}`, i), fmt.Sprintf(`{"id":"q%d","method":"roots/list"}`, i))
		}
		if tr := r.b.tr.(*toLegacy); len(tr.orphans) > maxWanted || len(tr.wanted) > maxWanted {
			t.Errorf("%d and %d questions are kept", len(tr.orphans), len(tr.wanted))
		}
	})
	inBubble(t, nil, func(r *rig) { // one after the other, in one call
		r.modernClient()
		state := r.ask(callA, `{"id":0,"method":"roots/list"}`)
		for i := 1; ; i++ {
			if i > 2*maxRounds {
				t.Fatal("a call comes back for input without end")
			}
			r.client(retry(fmt.Sprintf("r%d", i), state, fmt.Sprintf(`{"input-%d":{"roots":[]}}`, i)))
			r.atServer()
			r.server(fmt.Sprintf(`{"id":%d,"method":"roots/list"}`, i))
			got := r.atClient()
			if len(got) == 0 {
				if refused := written(r.atServer()); i != maxRounds || !strings.Contains(refused, "too often") {
					t.Errorf("round %d: %s", i, refused)
				}
				break
			}
			state = got[0].Result.Get("requestState").Str()
		}
	})
	inBubble(t, nil, func(r *rig) { // in many calls
		r.modernClient()
		for i := range maxSuspended + 1 {
			r.client(strings.Replace(callA, `"id":"a"`, fmt.Sprintf(`"id":"a%d"`, i), 1))
			r.atServer()
			r.server(fmt.Sprintf(`{"id":%d,"method":"roots/list"}`, i))
		}
		if refused := written(r.atServer()); !strings.Contains(refused, "too many") {
			t.Errorf("the last call: %q", refused)
		}
	})
	inBubble(t, nil, func(r *rig) { // and by errors, which wait for nothing at the server
		r.modernClient()
		for i := range maxSuspended + 1 {
			r.client(strings.Replace(callA, `"id":"a"`, fmt.Sprintf(`"id":"a%d"`, i), 1))
			r.server(fmt.Sprintf(`{"id":"a%d","error":{"code":-32042,"message":"m","data":{"elicitations":[{"url":"https://e.example/","message":"m"}]}}}`, i))
		}
		if got := r.atClient(); len(got) != maxSuspended+1 || !strings.Contains(written(got[maxSuspended:]), "too many calls wait for input") {
			t.Errorf("%d answers, the last: %s", len(got), written(got[len(got)-1:]))
		}
	})
}

// Answers that nobody has come back for are kept within a bound.
func TestAnswersBeforeTheInputAreBounded(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		large := strictjson.Object(member("content", str(strings.Repeat("x", maxHeld/2+1))))
		var states []string
		for i := range 2 {
			call := strings.Replace(callA, `"id":"a"`, fmt.Sprintf(`"id":"a%d"`, i), 1)
			states = append(states, r.ask(call, fmt.Sprintf(`{"id":%d,"method":"roots/list"}`, i)))
			r.w.in <- queued{m: result(message(t, call).ID, large)}
			synctest.Wait()
		}
		for i, kept := range []bool{true, false} {
			r.client(retry(fmt.Sprintf("b%d", i), states[i], `{"input-1":{"roots":[]}}`))
			got := r.atClient()
			if len(got) != 1 || (len(got[0].Result.Get("content").Str()) > maxHeld/2) != kept || (got[0].Error.Len() > 0) == kept {
				t.Errorf("call %d: %.200s", i, written(got))
			}
		}
		if tr := r.b.tr.(*toLegacy); tr.heldBytes != 0 {
			t.Errorf("%d bytes are still counted", tr.heldBytes)
		}
	})
}
