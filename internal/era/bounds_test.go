package era

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// What a server has kept here is bounded in bytes, not only in messages.

func TestAServerThatSaysMuchWaitsForItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.modernClient()
		r.mu.Lock()
		r.hold = make(chan struct{})
		r.mu.Unlock()
		long := message(t, `{"id":"none","result":{"content":"`+strings.Repeat("x", maxBytes/4)+`"}}`)
		for range cap(r.w.in) {
			r.w.in <- queued{m: long}
		}
		synctest.Wait()
		if waits := len(r.w.in); waits < cap(r.w.in)-8 {
			t.Errorf("%d messages of %d bytes were read for a client that reads none", cap(r.w.in)-waits, maxBytes/4)
		}
		close(r.hold)
		synctest.Wait()
		if got := r.atClient(); len(got) != cap(r.w.in) {
			t.Errorf("%d messages came", len(got))
		}
		close(r.w.in)
	})
}

// A bubble ends only when every goroutine in it has.
func TestCloseEndsABridgeThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.modernClient()
		r.w.full = make(chan struct{})
		r.mu.Lock()
		r.hold = make(chan struct{})
		r.mu.Unlock()
		long := message(t, `{"id":"none","result":{"content":"`+strings.Repeat("x", maxBytes)+`"}}`)
		r.w.in <- queued{m: message(t, `{"id":1,"method":"ping"}`)} // its answer waits for the server
		for range 5 {
			r.w.in <- queued{m: long}
		}
		synctest.Wait()
		if len(r.w.in) == 0 {
			t.Error("all was read for a client that reads none")
		}
		close(r.w.in)
		r.b.Close()
		r.b.Close() // once more is no harm
		close(r.w.full)
		synctest.Wait()
		if len(r.w.in) > 0 {
			t.Error("the goroutine that reads the server still waits for the client")
		}
		close(r.hold) // which ends the client of the test
	})
}

func TestAServerThatAsksAndReadsNothing(t *testing.T) {
	for name, meet := range map[string]func(*rig){"older": (*rig).modernClient, "newer": (*rig).legacyClient} {
		inBubble(t, nil, func(r *rig) {
			meet(r)
			r.w.full = make(chan struct{})
			for n := range 3 * maxQueue {
				r.server(fmt.Sprintf(`{"id":%d,"method":"ping"}`, n), fmt.Sprintf(`{"id":%d,"method":"tools/call"}`, n))
			}
			r.b.mu.Lock()
			waits := len(r.b.out.list)
			r.b.mu.Unlock()
			if waits > maxQueue {
				t.Errorf("%s: %d answers wait", name, waits)
			}
			close(r.w.full)
		})
	}
}

func TestLargeQuestions(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		large := `{"messages":[{"role":"user","content":{"type":"text","text":"` + strings.Repeat("x", maxAsking*2/3) + `"}}],"maxTokens":5}`
		for n := range 10 {
			r.server(fmt.Sprintf(`{"id":%d,"method":"sampling/createMessage","params":%s}`, n, large))
		}
		if refused := r.atServer(); len(refused) != 9 {
			t.Errorf("%d of 10 large questions refused", len(refused))
		}
		r.client(callA) // takes the one along
		got := r.atClient()
		if len(got) != 1 || got[0].Result.Get("inputRequests").Len() != 1 {
			t.Fatalf("%.300s", written(got))
		}
		r.server(`{"id":20,"method":"sampling/createMessage","params":`+large+`}`, `{"method":"notifications/cancelled","params":{"requestId":0}}`,
			`{"id":21,"method":"sampling/createMessage","params":`+large+`}`)
		if refused := r.atServer(); len(refused) != 2 { // the one taken back is at the client
			t.Errorf("%d more were refused", len(refused))
		}
	})
}

// A question has the whole message kept that it came in.
func TestSmallQuestionsInLargeMessages(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		junk := strings.Repeat("x", maxAsking*2/3)
		for n, where := range []string{`"junk":"` + junk + `","params":{}`, `"params":{"_meta":{"` + metaRelated + `":{"junk":"` + junk + `"}}}`, `"params":{"_meta":{"progressToken":"` + junk + `"}}`} {
			r.server(fmt.Sprintf(`{"id":%d,"method":"roots/list",%s}`, n, where))
			if refused := r.atServer(); len(refused) != min(n, 1) {
				t.Errorf("question %d: %d refused", n, len(refused))
			}
			r.server(fmt.Sprintf(`{"id":"a%d","method":"roots/list"}`, n))
			none(t, "the server", r.atServer())
		}
	})
}

// So is what a name is of, and a name may be large itself.
func TestLongNamesOfQuestions(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.newerTasks("2025-11-25")
		need := `"inputRequests":{"` + strings.Repeat("k", maxKey+1) + `":{"method":"roots/list"}}`
		r.client(`{"id":"b","method":"tools/call","params":{"name":"t"}}`)
		r.atServer()
		r.server(`{"id":"b","result":{"resultType":"input_required",` + need + `}}`)
		if got := written(r.atClient()); !strings.Contains(got, "a name that is too long") {
			t.Error(got)
		}
		r.ran("a", "x")
		r.client(ofTasks("result", "r", "x"))
		r.server(detailed(r.atServer()[0], `"status":"input_required",`+need))
		if got := written(r.atClient()); !strings.Contains(got, "a name that is too long") {
			t.Error(got)
		}
		if tr := r.b.tr.(*toModern); len(tr.tasks["x"].asked) > 0 || len(tr.asked) > 0 {
			t.Error("the name is kept")
		}
	})
}

func TestLargeAnswersBeforeTheirInput(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		var states []string
		for n := range 4 {
			id := fmt.Sprint("c", n)
			states = append(states, r.ask(strings.Replace(callA, `"a"`, `"`+id+`"`, 1), fmt.Sprintf(`{"id":%d,"method":"roots/list"}`, n)))
			r.server(`{"id":"` + id + `","result":{"content":"` + strings.Repeat("x", maxHeld*2/3) + `"}}`)
		}
		kept := 0
		for _, state := range states {
			r.client(retry("r", state, `{"input-1":{"roots":[]}}`))
			got := r.atClient()
			if len(got) != 1 {
				t.Fatalf("%d answers", len(got))
			}
			if absent(got[0].Error) {
				kept++
			}
		}
		if kept != 1 {
			t.Errorf("%d answers of two thirds of the bound were kept", kept)
		}
	})
}

func TestLargeStates(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.legacyClient()
		failed := 0
		for n := range 4 {
			id := fmt.Sprint("c", n)
			r.client(`{"id":"` + id + `","method":"tools/call","params":{"name":"t"}}`)
			r.server(`{"id":"` + id + `","result":{"resultType":"input_required","requestState":"` + strings.Repeat("s", maxStates*2/3) + `","inputRequests":{"k":{"method":"roots/list"}}}}`)
			for _, m := range r.atClient() {
				if !absent(m.Error) {
					failed++
				}
			}
		}
		if failed != 3 {
			t.Errorf("%d of 4 calls with two thirds of the bound failed", failed)
		}
	})
}

func TestAServerThatAnswersNothingIsAskedNoMore(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.modernClient()
		failed, answered := 0, 0
		ask := func(times int) []jsonrpc.Message {
			r.b.mu.Lock()
			for range times {
				r.b.tr.(*toLegacy).own.ask(r.b, "tools/list", strictjson.Value{}, func(m jsonrpc.Message) {
					if absent(m.Error) {
						answered++
					} else if m.Own {
						failed++
					}
				})
			}
			r.b.mu.Unlock()
			return r.atServer()
		}
		sent := ask(maxErrands + 3)
		if len(sent) != maxErrands || failed != 3 {
			t.Fatalf("%d questions are open, %d failed at once", len(sent), failed)
		}
		r.server(`{"id":`+id(sent[0])+`,"result":{}}`, `{"id":`+id(sent[0])+`,"result":{}}`) // once counts
		if sent = ask(2); answered != 1 || len(sent) != 1 || failed != 4 {
			t.Errorf("%d answered, then %d sent, %d failed", answered, len(sent), failed)
		}
		r.atClient()
	})
}
