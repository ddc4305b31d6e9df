package era

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// at is a call of a modern client that wants what is logged from a level on; "" = nothing.
func at(name, level string) string {
	call := strings.Replace(callA, `"id":"a"`, `"id":"`+name+`"`, 1)
	if level == "" {
		return call
	}
	return strings.Replace(call, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"`+level+`",`, 1)
}

// ids lists the ids of requests, and checks that they are calls.
func ids(t *testing.T, messages []jsonrpc.Message) string {
	t.Helper()
	var list []string
	for _, m := range messages {
		if m.Method != "tools/call" {
			t.Errorf("not a call: %s", m.Append(nil))
		}
		list = append(list, strings.Trim(id(m), `"`))
	}
	return strings.Join(list, " ")
}

func setLevel(level string) string {
	return `{"id":ID,"method":"logging/setLevel","params":{"level":"` + level + `"}}`
}

// A server may take up a call beside the level that was set before it, and what it logs then would be lost.
func TestACallWaitsUntilItsLevelIsSet(t *testing.T) {
	for name, answer := range map[string]string{"set": `"result":{}`, "refused": `"error":{"code":-32601,"message":"no"}`} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.modernClient()
				r.client(at("1", "warning"))
				set := one(t, r.atServer(), setLevel("warning"))
				for _, next := range []string{at("2", ""), at("3", "debug"), at("4", "error")} {
					r.client(next)
				}
				r.client(`{"method":"notifications/cancelled","params":{"requestId":"4"}}`)
				none(t, "the server", r.atServer()) // the calls keep their order, and one that was given up is nobody's business
				r.server(`{"id":` + id(set) + `,` + answer + `}`)
				sent := r.atServer()
				if len(sent) != 3 || ids(t, sent[:2]) != "1 2" {
					t.Fatal(written(sent))
				}
				r.server(`{"id":` + id(same(t, sent[2], setLevel("debug"))) + `,` + answer + `}`)
				if got := ids(t, r.atServer()); got != "3" {
					t.Errorf("sent: %s", got)
				}
				r.client(at("5", "info"))
				if got := ids(t, r.atServer()); got != "5" {
					t.Errorf("a call that the server is loud enough for waits: %s", got)
				}
				none(t, "the client", r.atClient())
			})
		})
	}
}

func TestAServerThatSetsNoLevel(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.client(at("1", "warning"))
		set := one(t, r.atServer(), setLevel("warning"))
		time.Sleep(lineFor)
		if got := ids(t, r.atServer()); got != "1" {
			t.Fatalf("sent: %s", got)
		}
		r.client(at("2", "info")) // it is not waited for any more
		sent := r.atServer()
		if len(sent) != 2 || ids(t, sent[1:]) != "2" {
			t.Fatal(written(sent))
		}
		r.server(`{"id":` + id(set) + `,"result":{}}`) // before it has answered at last
		r.client(at("3", "debug"))
		one(t, r.atServer(), setLevel("debug"))
	})
}

// What waits is bounded: too many calls wait no longer.
func TestALineIsBounded(t *testing.T) {
	for name, padding := range map[string]int{"number": 0, "bytes": maxBytes / 10} {
		inBubble(t, nil, func(r *rig) {
			r.modernClient()
			r.client(at("first", "warning"))
			one(t, r.atServer(), setLevel("warning"))
			limit := maxQueue
			if padding > 0 {
				limit = 12
			}
			n := 0
			for ; n <= limit; n++ {
				call := strings.Replace(at(fmt.Sprint(n), ""), `"x":1`, `"x":"`+strings.Repeat("x", padding)+`"`, 1)
				r.client(call)
				r.w.mu.Lock()
				gone := len(r.w.sent)
				r.w.mu.Unlock()
				if gone > 0 {
					break
				}
			}
			if sent := r.atServer(); n >= limit || len(sent) != n+2 || id(sent[0]) != `"first"` {
				t.Errorf("%s: %d calls wait, %d were sent", name, n, len(sent))
			}
			if l := r.b.tr.(*toLegacy).line; len(l.calls) > 0 || l.bytes != 0 {
				t.Errorf("%s: %d calls of %d bytes are still in line", name, len(l.calls), l.bytes)
			}
		})
	}
}

// What a server asks while a call is in line comes before it.
func TestAQuestionWhileACallIsInLine(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.client(at("a", "info"))
		set := one(t, r.atServer(), setLevel("info"))
		r.server(`{"id":7,"method":"roots/list"}`)
		none(t, "the client", r.atClient())
		r.server(`{"id":` + id(set) + `,"result":{}}`)
		none(t, "the server", r.atServer())
		state := one2(t, r.atClient(), "a").Result.Get("requestState").Str()
		r.client(retry("b", state, `{"input-1":{"roots":[]}}`))
		sent := r.atServer()
		if len(sent) != 2 {
			t.Fatal(written(sent))
		}
		same(t, sent[0], `{"id":7,"result":{"roots":[]}}`)
		if ids(t, sent[1:]) != "b" {
			t.Error(written(sent))
		}
	})
}

func TestAClientThatInitializesWhileItsCallsAreInLine(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		r.client(at("a", "info"))
		set := one(t, r.atServer(), setLevel("info"))
		r.client(`{"id":1,"method":"initialize",` + oldHello + `}`)
		if got := ids(t, r.atServer()); got != "a" {
			t.Error(got)
		}
		r.server(`{"id":`+id(set)+`,"result":{}}`, doneA)
		if got := r.atClient(); len(got) != 2 || id(got[1]) != `"a"` {
			t.Error(written(got))
		}
	})
}

const listenTo = `{"id":"%s","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a://1"]},` + meta + `}}`

// A call that comes after a subscription may be what changes the resource.
func TestACallWaitsForTheSubscriptionBeforeIt(t *testing.T) {
	for name, end := range map[string]string{"taken": `"result":{}`, "refused": `"error":{"code":-32602,"message":"no"}`, "given up": "", "stuck": ""} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.modernClient()
				r.client(fmt.Sprintf(listenTo, "l"))
				asked := one(t, r.atServer(), `{"id":ID,"method":"resources/subscribe","params":{"uri":"a://1"}}`)
				r.client(callA)
				none(t, "the server", r.atServer())
				switch name {
				case "given up":
					r.client(`{"method":"notifications/cancelled","params":{"requestId":"l"}}`)
				case "stuck":
					time.Sleep(lineFor)
				default:
					r.server(`{"id":` + id(asked) + `,` + end + `}`)
				}
				if got := ids(t, r.atServer()); got != "a" {
					t.Errorf("sent: %s", got)
				}
			})
		})
	}
}

// A server may take up the end of a subscription beside the next one to the same resource, and forget both.
func TestASubscriptionAfterTheLastOneToTheSame(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		const subscribe, unsubscribe = `{"id":ID,"method":"resources/subscribe","params":{"uri":"a://1"}}`, `{"id":ID,"method":"resources/unsubscribe","params":{"uri":"a://1"}}`
		cancel := func(id string) string {
			return `{"method":"notifications/cancelled","params":{"requestId":"` + id + `"}}`
		}
		taken := func(m jsonrpc.Message) string { return `{"id":` + id(m) + `,"result":{}}` }
		updated := func(want string) {
			t.Helper()
			r.server(`{"method":"notifications/resources/updated","params":{"uri":"a://1"}}`)
			var got []string
			for _, m := range r.atClient() {
				got = append(got, m.Method+" "+m.On.Key())
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("the client got %q, want %q", got, want)
			}
		}
		r.client(fmt.Sprintf(listenTo, "1"))
		r.server(taken(one(t, r.atServer(), subscribe)))
		r.atClient()
		r.client(cancel("1"))
		gone := one(t, r.atServer(), unsubscribe)
		r.client(fmt.Sprintf(listenTo, "2"))
		none(t, "the server", r.atServer()) // before it has forgotten
		updated("")
		r.server(taken(gone))
		again := one(t, r.atServer(), subscribe)
		r.client(fmt.Sprintf(listenTo, "3"))
		r.client(cancel("2"))
		none(t, "the server", r.atServer()) // the third waits for the same
		r.server(taken(again))
		updated(`notifications/subscriptions/acknowledged "3, notifications/resources/updated "3`)
		r.client(cancel("3"))
		r.server(taken(one(t, r.atServer(), unsubscribe)))

		r.client(fmt.Sprintf(listenTo, "4"))
		late := one(t, r.atServer(), subscribe)
		r.client(cancel("4"))
		none(t, "the server", r.atServer())
		r.server(taken(late))
		r.server(taken(one(t, r.atServer(), unsubscribe))) // nobody wants it any more
		updated("")
		if tr := r.b.tr.(*toLegacy); len(tr.followed)+len(tr.listens)+len(tr.own) > 0 {
			t.Errorf("left behind: %v, %v, %d", tr.followed, tr.listens, len(tr.own))
		}
	})
}

// An older client hears of changed lists from the first call on.
func TestACallWaitsForTheSubscriptionToTheLists(t *testing.T) {
	const acknowledged = `{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`
	for _, end := range []string{"acknowledged", "refused", "stuck"} {
		t.Run(end, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.legacyClient()
				r.client(`{"method":"notifications/initialized"}`)
				lists := r.atServer()
				if len(lists) != 1 || lists[0].Method != "subscriptions/listen" {
					t.Fatal(written(lists))
				}
				for n := range 3 {
					r.client(fmt.Sprintf(`{"id":"%d","method":"tools/call","params":{"name":"t"}}`, n))
				}
				r.client(`{"method":"notifications/cancelled","params":{"requestId":"1"}}`)
				none(t, "the server", r.atServer())
				switch end {
				case "acknowledged":
					r.server(fmt.Sprintf(acknowledged, id(lists[0])))
				case "refused":
					r.server(`{"id":` + id(lists[0]) + `,` + notNew)
				default:
					time.Sleep(lineFor)
					synctest.Wait()
				}
				if got := ids(t, r.atServer()); got != "0 2" {
					t.Errorf("sent: %s", got)
				}
				r.client(`{"id":"3","method":"tools/call","params":{"name":"t"}}`)
				if got := ids(t, r.atServer()); got != "3" {
					t.Errorf("sent: %s", got)
				}
				if l := r.b.tr.(*toModern).line; len(l.calls)+l.bytes+l.owed > 0 {
					t.Errorf("left behind: %+v", l)
				}
			})
		})
	}
}

// So may a newer one, which says when it has.
func TestASubscriptionAfterTheLastOneToTheSameAtANewerServer(t *testing.T) {
	for _, says := range []bool{true, false} {
		inBubble(t, nil, func(r *rig) {
			r.legacyClient()
			ask := func(method, uri string) {
				r.client(`{"id":"s","method":"resources/` + method + `","params":{"uri":"` + uri + `"}}`)
			}
			ask("subscribe", "a://1")
			old := r.atServer()[0]
			ask("unsubscribe", "a://1")
			if sent := r.atServer(); len(sent) != 1 || sent[0].Method != "notifications/cancelled" {
				t.Fatal(written(sent))
			}
			ask("subscribe", "a://2") // another has nothing to wait for
			if sent := r.atServer(); len(sent) != 1 || sent[0].Method != "subscriptions/listen" {
				t.Fatal(written(sent))
			}
			ask("subscribe", "a://1")
			none(t, "the server", r.atServer())
			if says {
				r.server(`{"id":` + id(old) + `,"result":{"resultType":"complete"}}`)
			} else {
				time.Sleep(leaveFor)
			}
			if sent := r.atServer(); len(sent) != 1 || sent[0].Method != "subscriptions/listen" || id(sent[0]) == id(old) {
				t.Errorf("the server says so: %v; %s", says, written(sent))
			}
			ask("unsubscribe", "a://1")
			r.atServer()
			ask("subscribe", "a://1")
			ask("unsubscribe", "a://1") // before it was sent
			time.Sleep(2 * leaveFor)
			none(t, "the server", r.atServer())
			if tr := r.b.tr.(*toModern); len(tr.leaving) > 0 || len(tr.uris) != 1 {
				t.Errorf("left behind: %v, %v", tr.leaving, tr.uris)
			}
		})
	}
}
