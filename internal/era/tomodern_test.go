package era

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

func TestCallsOfAnOlderClient(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.legacyClient()
		for _, tt := range []struct{ ask, sent, answer, got string }{
			{`"method":"tools/list"}`, `"method":"tools/list","params":{` + newMeta + `}}`,
				`"result":{"tools":[{"name":"t","z":1.0}],"resultType":"complete","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}}}`, `"result":{"tools":[{"name":"t","z":1.0}]}}`},
			{`"method":"tools/call","params":{"name":"t","arguments":{"n":9007199254740993},"task":{},"_meta":{"progressToken":"q"}},"extra":1}`,
				`"method":"tools/call","params":{"name":"t","arguments":{"n":9007199254740993},"_meta":{"progressToken":"q",` + strings.TrimPrefix(newMeta, `"_meta":{`) + `},"extra":1}`,
				`"result":{"content":[],"resultType":"complete"}}`, `"result":{"content":[]}}`},
			{`"method":"resources/read","params":{"uri":"a://b"}}`, `"method":"resources/read","params":{"uri":"a://b",` + newMeta + `}}`,
				`"error":{"code":-32602,"message":"gone","data":{"uri":"a://b"}}}`, `"error":{"code":-32002,"message":"gone","data":{"uri":"a://b"}}}`},
			{`"method":"prompts/get","params":{"name":"p"}}`, `"method":"prompts/get","params":{"name":"p",` + newMeta + `}}`,
				`"error":{"code":-32021,"message":"m"}}`, `"error":{"code":-32603,"message":"m"}}`},
			{`"method":"tools/call","params":{"name":"t"}}`, `"method":"tools/call","params":{"name":"t",` + newMeta + `}}`,
				`"result":{"resultType":"task","taskId":"1"}}`, `"error":{"code":-32603,"message":"the server answered with a kind of result that is not translated"}}`},
			{`"method":"tools/list"}`, `"method":"tools/list","params":{` + newMeta + `}}`, `"result":{"resultType":"input_required","requestState":"s"}}`,
				`"error":{"code":-32603,"message":"the server answered with a kind of result that is not translated"}}`},
		} {
			r.client(`{"id":"q",` + tt.ask)
			one(t, r.atServer(), `{"id":"q",`+tt.sent)
			r.server(`{"id":"q",` + tt.answer)
			one(t, r.atClient(), `{"id":"q",`+tt.got)
		}
		r.client(`{"id":"p","method":"ping"}`)
		one(t, r.atClient(), `{"id":"p","result":{}}`)
		r.client(`{"id":"l","method":"logging/setLevel","params":{"level":"info"}}`)
		one(t, r.atClient(), `{"id":"l","result":{}}`)
		r.client(`{"id":"l","method":"logging/setLevel","params":{"level":"loud"}}`)
		one(t, r.atClient(), `{"id":"l","error":{"code":-32602,"message":"there is no such level"}}`)
		r.client(`{"id":"q","method":"tools/call"}`)
		if sent := r.atServer(); len(sent) != 1 || sent[0].Params.Get("_meta").Get(metaLevel).Str() != "info" {
			t.Errorf("without the level: %s", written(sent))
		}
		r.client(`{"id":"s","method":"tasks/list"}`)
		if got := written(r.atClient()); !strings.Contains(got, "is not translated") {
			t.Error(got)
		}
		r.server(`{"id":1,"method":"sampling/createMessage","params":{}}`) // which modern servers do not send
		if sent := r.atServer(); len(sent) != 1 || sent[0].Error.Get("code").Number() != "-32601" {
			t.Error(written(sent))
		}
		none(t, "the client", r.atClient())
	})
}

const twoInputs = `"result":{"resultType":"input_required","requestState":"st","inputRequests":{"k1":{"method":"elicitation/create","params":{"mode":"url","url":"https://e.example/","message":"m"}},"k2":{"method":"roots/list"}}}}`

func TestInputForANewerServer(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.legacyClient()
		r.client(`{"id":"q","method":"tools/call","params":{"name":"t"}}`)
		r.atServer()
		r.server(`{"id":"q",` + twoInputs)
		asked := r.atClient()
		if len(asked) != 2 || asked[0].Params.Get("elicitationId").Str() == "" || asked[0].On.Key() != `"q` {
			t.Fatal(written(asked))
		}
		same(t, asked[1], `{"id":ID,"method":"roots/list"}`)
		r.client(`{"id":` + id(asked[1]) + `,"result":{"roots":[]}}`)
		none(t, "the server", r.atServer())
		r.client(`{"id":` + id(asked[0]) + `,"result":{"action":"accept"}}`)
		again := one(t, r.atServer(), `{"id":ID,"method":"tools/call","params":{"name":"t",`+newMeta+`,"inputResponses":{"k2":{"roots":[]},"k1":{"action":"accept"}},"requestState":"st"}}`)
		if id(again) == `"q"` {
			t.Error("a retry with the id of the first request")
		}
		r.server(`{"id":"q","result":{"content":[]}}`) // late, from the first round: nobody waits for it
		if got := r.atClient(); len(got) != 1 || r.b.tr.(*toModern).byClient[`"q`] == nil {
			t.Errorf("a second answer to the first round: %s", written(got))
		}
		r.server(`{"id":` + id(again) + `,"result":{"content":[],"resultType":"complete"}}`)
		one(t, r.atClient(), `{"id":"q","result":{"content":[]}}`)
	})
}

func TestInputThatTheClientRefuses(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.legacyClient()
		r.client(`{"id":"q","method":"tools/call","params":{"name":"t"}}`)
		r.atServer()
		r.server(`{"id":"q",` + twoInputs)
		asked := r.atClient()
		r.client(`{"id":` + id(asked[0]) + `,"error":{"code":-1,"message":"no"}}`)
		got := r.atClient()
		if len(got) != 2 || got[0].Params.Get("requestId").Number() != asked[1].ID.Value().Number() {
			t.Fatalf("the other question is still open: %s", written(got))
		}
		same(t, got[1], `{"id":"q","error":{"code":-32603,"message":"the client did not give the input that the server needs for this"}}`)
		r.client(`{"id":` + id(asked[1]) + `,"result":{"roots":[]}}`)
		none(t, "the server", r.atServer())

		r.client(`{"id":"r","method":"tools/call","params":{"name":"t"}}`)
		r.atServer()
		r.server(`{"id":"r",` + twoInputs)
		r.atClient()
		r.client(`{"method":"notifications/cancelled","params":{"requestId":"r"}}`)
		if taken := r.atClient(); len(taken) != 2 {
			t.Errorf("of two questions were taken back: %s", written(taken))
		}
		if tr := r.b.tr.(*toModern); len(tr.asked)+len(tr.calls)+len(tr.byClient) > 0 {
			t.Errorf("left behind: %v %v %v", tr.asked, tr.calls, tr.byClient)
		}
	})
}

func TestRoundsAreBounded(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.legacyClient()
		r.client(`{"id":"q","method":"tools/call","params":{"name":"t"}}`)
		for i := range 2 * maxRounds {
			sent := r.atServer()
			if len(sent) != 1 {
				t.Fatal(written(sent))
			}
			r.server(`{"id":` + id(sent[0]) + `,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}}`)
			got := r.atClient()
			if got[0].Kind == jsonrpc.Response {
				if i != maxRounds || !strings.Contains(written(got), "too often") {
					t.Errorf("after %d rounds: %s", i, written(got))
				}
				return
			}
			r.client(`{"id":` + id(got[0]) + `,"result":{"roots":[]}}`)
		}
		t.Fatal("no end")
	})
	inBubble(t, nil, func(r *rig) { // too busy
		r.legacyClient()
		r.client(`{"id":"q","method":"tools/call","params":{"name":"t"}}`)
		began := time.Now()
		for range maxBusy {
			r.server(`{"id":` + id(r.atServer()[0]) + `,"result":{"resultType":"input_required","requestState":"later"}}`)
			none(t, "the client", r.atClient())
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		r.server(`{"id":` + id(r.atServer()[0]) + `,"result":{"resultType":"input_required","requestState":"later"}}`)
		one(t, r.atClient(), `{"id":"q","error":{"code":-32603,"message":"the server is busy"}}`)
		if time.Since(began) < time.Minute {
			t.Error("it was not waited for")
		}
	})
	inBubble(t, nil, func(r *rig) { // too much, or not to be had
		r.legacyClient()
		many := ""
		for i := range maxInputs + 1 {
			many += fmt.Sprintf(`,"k%d":{"method":"roots/list"}`, i)
		}
		for _, wants := range []string{many[1:], `"k":{"method":"tools/call"}`, `"k":{"method":"roots/list","params":[]}`} {
			r.client(`{"id":"q","method":"tools/call","params":{"name":"t"}}`)
			r.atServer()
			r.server(`{"id":"q","result":{"resultType":"input_required","inputRequests":{` + wants + `}}}`)
			if got := r.atClient(); len(got) != 1 || id(got[0]) != `"q"` || got[0].Error.Len() == 0 {
				t.Errorf("%.60s: %s", wants, written(got))
			}
		}
	})
}

func TestSubscriptionsOfAnOlderClient(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.legacyClient()
		about := func(method string, sub jsonrpc.Message, more string) string {
			return `{"method":"notifications/` + method + `","params":{` + more + `"_meta":{"io.modelcontextprotocol/subscriptionId":` + id(sub) + `}}}`
		}
		r.client(`{"method":"notifications/initialized"}`)
		lists := r.atServer()
		if len(lists) != 1 || lists[0].Method != "subscriptions/listen" || lists[0].Params.Get("notifications").Len() != 2 {
			t.Fatal(written(lists))
		}
		r.server(about("subscriptions/acknowledged", lists[0], `"notifications":{"toolsListChanged":true},`))
		r.server(about("tools/list_changed", lists[0], ``), about("resources/updated", lists[0], `"uri":"a://1",`), `{"method":"notifications/tools/list_changed"}`,
			`{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"other"}}}`)
		one(t, r.atClient(), `{"method":"notifications/tools/list_changed"}`)

		subscribe := func(uri string) jsonrpc.Message {
			t.Helper()
			r.client(`{"id":"s","method":"resources/subscribe","params":{"uri":"` + uri + `"}}`)
			none(t, "the client", r.atClient())
			return one(t, r.atServer(), `{"id":ID,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["`+uri+`"]},`+newMeta+`}}`)
		}
		first := subscribe("a://1")
		r.client(`{"id":"again","method":"resources/subscribe","params":{"uri":"a://1"}}`)
		r.server(about("subscriptions/acknowledged", first, `"notifications":{"resourceSubscriptions":["a://1"]},`))
		if got := r.atClient(); len(got) != 2 || got[0].Result.Len()+got[1].Result.Len() != 0 || got[1].Error.Len() > 0 {
			t.Errorf("two requests for one subscription: %s", written(got))
		}
		second := subscribe("a://2")
		r.server(about("subscriptions/acknowledged", second, `"notifications":{},`))
		one(t, r.atClient(), `{"id":"s","error":{"code":-32602,"message":"the server does not take this subscription"}}`)
		one(t, r.atServer(), `{"method":"notifications/cancelled","params":{"requestId":`+id(second)+`,"reason":"the client does not follow this any more"}}`)
		r.server(about("resources/updated", first, `"uri":"a://1",`), about("resources/updated", first, `"uri":"a://2",`), about("resources/updated", second, `"uri":"a://2",`))
		one(t, r.atClient(), `{"method":"notifications/resources/updated","params":{"uri":"a://1"}}`)

		r.server(`{"method":"notifications/cancelled","params":{"requestId":` + id(first) + `}}`) // the server ends it
		time.Sleep(reopenMin)
		third := r.atServer()
		if len(third) != 1 || third[0].Params.Get("notifications").Get("resourceSubscriptions").Len() != 1 {
			t.Fatalf("it is not opened again: %s", written(third))
		}
		r.server(about("resources/updated", third[0], `"uri":"a://1",`))
		r.atClient()
		r.client(`{"id":"u","method":"resources/unsubscribe","params":{"uri":"a://1"}}`)
		one(t, r.atClient(), `{"id":"u","result":{}}`)
		one(t, r.atServer(), `{"method":"notifications/cancelled","params":{"requestId":`+id(third[0])+`,"reason":"the client does not follow this any more"}}`)

		opened := 0
		for last := lists[0]; opened < 3*maxReopen; opened++ { // one that always ends is not opened for ever
			r.server(`{"id":` + id(last) + `,"result":{"resultType":"complete"}}`)
			var sent []jsonrpc.Message
			for range 100 {
				time.Sleep(reopenMax / 10)
				if sent = r.atServer(); len(sent) > 0 {
					break
				}
			}
			if len(sent) == 0 {
				break
			}
			last = sent[0]
		}
		if opened != maxReopen {
			t.Errorf("opened again %d times", opened)
		}
		for i := range 2 * maxFollowed {
			r.client(fmt.Sprintf(`{"id":"f%d","method":"resources/subscribe","params":{"uri":"b://%d"}}`, i, i))
		}
		if sent := r.atServer(); len(sent) != maxFollowed {
			t.Errorf("%d subscriptions", len(sent))
		}
	})
}
