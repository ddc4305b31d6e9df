package era

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

const probeMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// Where client and server are of one era, nothing is added, changed or held up, and no goroutine stands between.
func TestOneEraPassesUntouched(t *testing.T) {
	for name, steps := range map[string][]string{
		"legacy": {
			`> {"id":1,"method":"ping"}`, `< {"id":1,"result":{}}`,
			`> {"id":2,"method":"initialize",` + oldHello + `,"x":1}`, `< {"id":2,"result":{"protocolVersion":"2025-06-18","odd":1.0}}`,
			`> {"method":"notifications/initialized"}`, `< ` + sample, `> {"id":7,"result":{"z":1}}`,
			`> {"id":3,"method":"tools/call","params":{"name":"t",` + meta + `}}`, `< {"id":3,"result":{"resultType":"input_required"}}`,
		},
		"modern": {
			`> {"id":1,"method":"server/discover","params":{` + meta + `}}`, `< {"id":1,"result":{"supportedVersions":["2026-07-28","2025-11-25"],"x":1.0}}`,
			`> {"id":2,"method":"tools/call","params":{"name":"t",` + meta + `}}`, `< {"id":2,"result":{"resultType":"input_required","requestState":"s"}}`,
			`< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`, `> {"id":3,"method":"ping"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				for _, s := range steps {
					if text, ok := strings.CutPrefix(s, "> "); ok {
						r.client(text)
						one(t, r.atServer(), text)
					} else {
						r.server(s[2:])
						one(t, r.atClient(), s[2:])
					}
				}
				if r.b.way.Load() != straight || r.b.listening || r.b.writing {
					t.Error("something stands between")
				}
			})
		})
	}
}

// A modern client need not begin with server/discover: it is asked for, so that an older server does not get what it half understands.
func TestTheBridgeAsksBeforeACallItDoesNotKnowTheEraOf(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.client(callA)
		ask := one(t, r.atServer(), `{"id":ID,"method":"server/discover","params":{`+probeMeta+`}}`)
		r.server(`{"id":` + id(ask) + `,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`)
		none(t, "the client", r.atClient())
		one(t, r.atServer(), callA)
		if r.b.way.Load() != straight {
			t.Error("not straight")
		}
	})
	inBubble(t, nil, func(r *rig) {
		r.client(callA)
		r.server(`{"id":` + id(r.atServer()[0]) + `,` + notNew)
		hello := r.atServer()
		r.server(`{"id":` + id(hello[0]) + `,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}`)
		sent := r.atServer()
		if len(sent) != 2 {
			t.Fatal(written(sent))
		}
		same(t, sent[1], `{"id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":1}}}`)
	})
}

// What a server refuses because the client got it wrong says nothing of its era.
func TestTheBridgeAsksWhereTheClientDoesSoBadly(t *testing.T) {
	for _, odd := range []string{
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}`,
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`,
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{}}`,
		`"_meta":{}`,
	} {
		inBubble(t, nil, func(r *rig) {
			r.client(`{"id":"d","method":"server/discover","params":{` + odd + `}}`)
			ask := r.atServer()
			if len(ask) != 1 || id(ask[0]) == `"d"` || !sound(ask[0].Params.Get("_meta")) {
				t.Fatal(written(ask))
			}
			r.server(`{"id":` + id(ask[0]) + `,"result":{"supportedVersions":["2026-07-28"]}}`)
			one(t, r.atServer(), `{"id":"d","method":"server/discover","params":{`+odd+`}}`)
		})
	}
}

func TestAServerThatTakesNeither(t *testing.T) {
	inBubble(t, nil, func(r *rig) { // modern client: it gets what it got before
		r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
		r.atServer()
		r.server(`{"id":"d",` + notNew)
		r.server(`{"id":` + id(r.atServer()[0]) + `,"error":{"code":-1,"message":"no initialize either"}}`)
		one(t, r.atClient(), `{"id":"d",`+notNew)
		r.client(callA)
		one(t, r.atServer(), callA)
	})
	inBubble(t, nil, func(r *rig) { // older client
		const refused = `{"id":1,"error":{"code":-7,"message":"not today"}}`
		r.client(`{"id":1,"method":"initialize",` + oldHello + `}`)
		r.atServer()
		r.server(refused)
		r.server(`{"id":` + id(r.atServer()[0]) + `,` + notNew)
		one(t, r.atClient(), refused)
		r.client(`{"id":2,"method":"initialize",` + oldHello + `}`)
		one(t, r.atServer(), `{"id":2,"method":"initialize",`+oldHello+`}`)
	})
	inBubble(t, nil, func(r *rig) { // and one that does not say
		const refused = `{"id":1,"error":{"code":-7,"message":"not today"}}`
		r.client(`{"id":1,"method":"initialize",` + oldHello + `}`)
		r.server(refused)
		none(t, "the client", r.atClient())
		time.Sleep(probeFor)
		one(t, r.atClient(), refused)
	})
}

// Older servers need not answer what they do not know.
func TestAServerThatIgnoresServerDiscover(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
		r.atServer()
		time.Sleep(probeFor)
		r.server(`{"id":` + id(r.atServer()[0]) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
		if got := r.atClient(); len(got) != 1 || got[0].Result.Get("supportedVersions").Len() != 5 {
			t.Errorf("%s", written(got))
		}
	})
	inBubble(t, nil, func(r *rig) { // a modern one that was only slow to start
		r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
		time.Sleep(probeFor)
		sent := r.atServer()
		r.server(`{"id":"d","result":{"supportedVersions":["2026-07-28"]}}`, `{"id":`+id(sent[1])+`,`+notNew)
		one(t, r.atClient(), `{"id":"d","result":{"supportedVersions":["2026-07-28"]}}`)
		r.client(callA)
		one(t, r.atServer(), callA)
	})
}

func TestWhatWasLearntIsUsedAndGivenUp(t *testing.T) {
	older, newer := new(Memory), new(Memory)
	inBubble(t, older, func(r *rig) { r.modernClient() })
	inBubble(t, newer, func(r *rig) { r.legacyClient() })

	inBubble(t, older, func(r *rig) { // a modern client of a server that takes initialize only
		r.client(callA)
		hello := r.atServer()
		if len(hello) != 1 || hello[0].Method != "initialize" {
			t.Fatal(written(hello))
		}
		r.server(`{"id":` + id(hello[0]) + `,` + notNew) // but it is another one by now
		ask := one(t, r.atServer(), `{"id":ID,"method":"server/discover","params":{`+probeMeta+`}}`)
		r.server(`{"id":` + id(ask) + `,"result":{"supportedVersions":["2026-07-28"]}}`)
		one(t, r.atServer(), callA)
		none(t, "the client", r.atClient())
	})
	inBubble(t, newer, func(r *rig) { // an older client of a server that takes server/discover only
		r.client(`{"id":1,"method":"initialize",` + oldHello + `}`)
		ask := one(t, r.atServer(), `{"id":ID,"method":"server/discover","params":{`+newMeta+`}}`)
		r.server(`{"id":` + id(ask) + `,` + notNew)
		one(t, r.atServer(), `{"id":1,"method":"initialize",`+oldHello+`}`)
		r.server(`{"id":1,"result":{"protocolVersion":"2025-11-25"}}`)
		one(t, r.atClient(), `{"id":1,"result":{"protocolVersion":"2025-11-25"}}`)
	})
	refusing := new(Memory)
	inBubble(t, refusing, func(r *rig) { // a server that refuses one client's server/discover may take another's
		r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
		r.atServer()
		r.server(`{"id":"d","error":{"code":-32602,"message":"no"}}`)
		r.server(`{"id":` + id(r.atServer()[0]) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		if modern, legacy := refusing.get(); modern != unknown || legacy != yes {
			t.Errorf("learnt %v, %v", modern, legacy)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		mem := new(Memory)
		mem.note(no, yes)
		time.Sleep(believe + 1)
		if modern, legacy := mem.get(); modern != unknown || legacy != unknown {
			t.Error("it is believed for ever")
		}
	})
}

func TestUnreadableAnswers(t *testing.T) {
	bad := func(r *rig, m jsonrpc.Message) {
		r.w.in <- queued{err: &jsonrpc.BadMessage{Err: context.Canceled, IDs: []jsonrpc.ID{m.ID}}}
		synctest.Wait()
	}
	inBubble(t, nil, func(r *rig) { // to the client's own server/discover
		r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
		bad(r, r.atServer()[0])
		if len(r.bad) != 1 || r.b.way.Load() != straight {
			t.Error("the client is not told")
		}
	})
	const unreadable = `{"id":"d","error":{"code":-32603,"message":"what the server answered to initialize could not be read"}}`
	older := new(Memory)
	inBubble(t, older, func(r *rig) { // to the bridge's initialize
		r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
		r.atServer()
		r.server(`{"id":"d",` + notNew)
		bad(r, r.atServer()[0])
		one(t, r.atClient(), unreadable)
		r.client(callA) // it is left alone with the server
		one(t, r.atServer(), callA)
	})
	older.note(no, yes)
	inBubble(t, older, func(r *rig) { // … which came first
		r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
		bad(r, r.atServer()[0])
		one(t, r.atClient(), unreadable)
	})
	inBubble(t, nil, func(r *rig) { // … and before the answer to server/discover
		r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
		time.Sleep(probeFor)
		bad(r, r.atServer()[1])
		none(t, "the client", r.atClient())
		r.server(`{"id":"d","result":{"supportedVersions":["2026-07-28"]}}`)
		one(t, r.atClient(), `{"id":"d","result":{"supportedVersions":["2026-07-28"]}}`)
	})
	inBubble(t, nil, func(r *rig) { // to a call that has come back once
		r.modernClient()
		state := r.ask(callA, sample)
		r.client(retry("b", state, `{"input-1":`+sampled+`}`))
		bad(r, message(t, doneA))
		if len(r.bad) != 1 || r.bad[0].ID().Key() != `"b` {
			t.Errorf("%v", r.bad)
		}
	})
	inBubble(t, nil, func(r *rig) { // to the bridge's own subscription
		r.modernClient()
		r.client(`{"id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a://1"]},` + meta + `}}`)
		bad(r, r.atServer()[0])
		if got := r.atClient(); len(got) != 1 || got[0].Params.Get("notifications").Len() != 0 {
			t.Errorf("%s", written(got))
		}
	})
}

// A server that reads nothing holds up its client, within the bound, and not the bridge: what waits for nothing is told so.
func TestAServerThatReadsNothing(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.w.full = make(chan struct{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var err error
		for range 2 * maxQueue {
			if err = r.b.Write(ctx, message(t, `{"id":"l","method":"tools/list"}`)); err != nil {
				break
			}
		}
		if err == nil || len(r.b.out.list) > maxQueue {
			t.Errorf("%v, %d messages wait", err, len(r.b.out.list))
		}
		close(r.w.full)
	})
}

func TestWritesEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		done := make(chan error)
		go func() { done <- r.b.Write(t.Context(), message(t, callA)) }()
		synctest.Wait()
		close(r.w.in)
		if err := <-done; err == nil {
			t.Error("a request to a server that has ended was taken")
		}
	})
}
