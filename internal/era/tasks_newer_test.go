package era

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// newerTasks is a rig whose older client has found a newer server that has tasks.
func (r *rig) newerTasks(version string) {
	r.t.Helper()
	r.client(`{"id":1,"method":"initialize",` + strings.Replace(oldHello, "2025-06-18", version, 1) + `}`)
	r.atServer()
	r.server(`{"id":1,` + notNew)
	r.server(`{"id":` + id(r.atServer()[0]) + `,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`)
	got := r.atClient()
	caps := got[0].Result.Get("capabilities")
	want := `{"tools":{},"extensions":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`
	if version < "2025-11-25" {
		want = `{"tools":{},"extensions":{}}`
	}
	if string(caps.Append(nil)) != want {
		r.t.Errorf("declared: %s", caps.Append(nil))
	}
}

var tasksMeta = strings.Replace(newMeta, `"roots":{}}}`, `"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, 1)

// ran has a call of the client become a task.
func (r *rig) ran(call, task string) {
	r.t.Helper()
	r.client(`{"id":"` + call + `","method":"tools/call","params":{"name":"t","task":{"ttl":5}}}`)
	one(r.t, r.atServer(), `{"id":"`+call+`","method":"tools/call","params":{"name":"t",`+tasksMeta+`}}`)
	r.server(`{"id":"` + call + `","result":{"resultType":"task","taskId":"` + task + `","status":"working","statusMessage":"on it",` + stamps + `,"ttlMs":60000,"pollIntervalMs":50,"_meta":{"x":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}}}`)
	one(r.t, r.atClient(), `{"id":"`+call+`","result":{"task":{"taskId":"`+task+`","status":"working","statusMessage":"on it",`+stamps+`,"ttl":60000,"pollInterval":50},"_meta":{"x":1}}}`)
}

func ofTasks(method, id, task string) string {
	return `{"id":"` + id + `","method":"tasks/` + method + `","params":{"taskId":"` + task + `"}}`
}

func detailed(m jsonrpc.Message, more string) string {
	return `{"id":` + id(m) + `,"result":{"resultType":"complete","taskId":"x",` + stamps + `,"ttlMs":null,` + more + `}}`
}

func TestATaskOfANewerServer(t *testing.T) {
	for name, tt := range map[string]struct{ stands, status, led string }{
		"completed":            {`"status":"completed","result":{"resultType":"complete","content":[],"_meta":{"y":1}}`, "completed", `"result":{"content":[],"_meta":{"y":1,"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`},
		"an error of the tool": {`"status":"completed","result":{"content":[],"isError":true}`, "failed", `"result":{"content":[],"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`},
		"failed":               {`"status":"failed","error":{"code":-32021,"message":"m"}`, "failed", `"error":{"code":-32603,"message":"m"}}`},
		"failed without why":   {`"status":"failed"`, "failed", `"error":{"code":-32603,"message":"the task failed"}}`},
		"cancelled":            {`"status":"cancelled"`, "cancelled", `"error":{"code":-32603,"message":"the task was cancelled"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.newerTasks("2025-11-25")
				r.ran("a", "x")
				r.client(ofTasks("get", "g", "x"))
				get := one(t, r.atServer(), `{"id":"g","method":"tasks/get","params":{"taskId":"x",`+tasksMeta+`}}`)
				r.server(detailed(get, `"status":"working","result":{"content":"not yet"},"requestState":"s"`))
				one(t, r.atClient(), `{"id":"g","result":{"taskId":"x",`+stamps+`,"status":"working","ttl":null}}`)

				r.client(ofTasks("result", "r", "x"))
				get = one(t, r.atServer(), `{"id":ID,"method":"tasks/get","params":{"taskId":"x",`+tasksMeta+`}}`)
				r.server(detailed(get, `"status":"working"`))
				none(t, "the client", r.atClient())
				none(t, "the server", r.atServer())
				time.Sleep(pollUsual)
				r.server(detailed(r.atServer()[0], tt.stands))
				one(t, r.atClient(), `{"id":"r",`+tt.led)
				time.Sleep(time.Hour)
				none(t, "the server", r.atServer()) // nobody waits any more

				r.client(ofTasks("get", "g", "x"))
				r.server(detailed(r.atServer()[0], tt.stands))
				if got := r.atClient(); len(got) != 1 || got[0].Result.Get("status").Str() != tt.status || got[0].Result.Len() != 5 {
					t.Errorf("%s", written(got))
				}
				r.client(ofTasks("cancel", "c", "x"))
				one(t, r.atClient(), `{"id":"c","error":{"code":-32602,"message":"the task has ended"}}`)
				if tr := r.b.tr.(*toModern); len(tr.byClient)+len(tr.calls)+len(tr.own)+len(tr.asked) > 0 {
					t.Errorf("left behind: %v %v %v", tr.byClient, tr.calls, tr.own)
				}
			})
		})
	}
}

func TestATaskOfANewerServerNeedsInput(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.newerTasks("2025-11-25")
		r.ran("a", "x")
		const needs = `"status":"input_required","inputRequests":{"k1":{"method":"elicitation/create","params":{"message":"m"}},"k2":{"method":"roots/list"}}`
		r.client(ofTasks("get", "g", "x")) // which asks nothing yet
		r.server(detailed(r.atServer()[0], needs))
		if got := r.atClient(); len(got) != 1 || got[0].Result.Get("status").Str() != "input_required" || !absent(got[0].Result.Get("inputRequests")) {
			t.Fatal(written(got))
		}
		r.client(ofTasks("result", "r", "x"))
		r.client(ofTasks("result", "s", "x"))
		r.server(detailed(r.atServer()[0], needs))
		asked := r.atClient()
		if len(asked) != 2 || asked[0].On.Key() != `"r` {
			t.Fatal(written(asked))
		}
		same(t, asked[0], `{"id":ID,"method":"elicitation/create","params":{"message":"m","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`)
		same(t, asked[1], `{"id":ID,"method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`)
		time.Sleep(pollUsual)
		r.server(detailed(r.atServer()[0], needs)) // each is asked once
		none(t, "the client", r.atClient())
		r.client(`{"id":` + id(asked[1]) + `,"result":{"roots":[]}}`)
		none(t, "the server", r.atServer())
		r.client(`{"id":` + id(asked[0]) + `,"result":{"action":"accept","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`)
		update := one(t, r.atServer(), `{"id":ID,"method":"tasks/update","params":{"taskId":"x",`+tasksMeta+`,"inputResponses":{"k2":{"roots":[]},"k1":{"action":"accept"}}}}`)
		r.server(`{"id":` + id(update) + `,"result":{"resultType":"complete"}}`)
		time.Sleep(pollUsual)
		r.server(detailed(r.atServer()[0], needs)) // it has not looked at the answers yet
		none(t, "the client", r.atClient())
		time.Sleep(pollUsual)
		r.server(detailed(r.atServer()[0], `"status":"completed","result":{"content":[]}`))
		if got := r.atClient(); len(got) != 2 || got[0].Result.Get("content").Kind() == 0 || got[1].Result.Get("content").Kind() == 0 {
			t.Errorf("%s", written(got))
		}
	})
	inBubble(t, nil, func(r *rig) { // a client that gives none
		r.newerTasks("2025-11-25")
		r.ran("a", "x")
		r.client(ofTasks("result", "r", "x"))
		r.server(detailed(r.atServer()[0], `"status":"input_required","inputRequests":{"k1":{"method":"elicitation/create"},"k2":{"method":"roots/list"}}`))
		asked := r.atClient()
		r.client(`{"id":` + id(asked[0]) + `,"error":{"code":-1,"message":"no"}}`)
		one(t, r.atServer(), `{"id":ID,"method":"tasks/cancel","params":{"taskId":"x",`+tasksMeta+`}}`)
		got := r.atClient()
		if len(got) != 2 || got[0].Method != "notifications/cancelled" || !strings.Contains(written(got[1:]), "did not give the input") {
			t.Errorf("%s", written(got))
		}
	})
	inBubble(t, nil, func(r *rig) { // one that goes away, and a server that asks for what there is not
		r.newerTasks("2025-11-25")
		r.ran("a", "x")
		r.client(ofTasks("result", "r", "x"))
		get := r.atServer()[0]
		r.client(`{"method":"notifications/cancelled","params":{"requestId":"r"}}`)
		r.server(detailed(get, `"status":"input_required","inputRequests":{"k1":{"method":"elicitation/create"}}`))
		none(t, "the client", r.atClient())
		time.Sleep(time.Hour)
		none(t, "the server", r.atServer())
		r.client(ofTasks("result", "r", "x"))
		r.server(detailed(r.atServer()[0], `"status":"input_required","inputRequests":{"k1":{"method":"tools/call"}}`))
		if got := written(r.atClient()); !strings.Contains(got, "that no client gives") {
			t.Error(got)
		}
	})
	for _, odd := range []string{`{"status":"obey"}`, `{}`, `[]`, `"working"`, `null`} { // a server that does not say how it stands
		inBubble(t, nil, func(r *rig) {
			r.newerTasks("2025-11-25")
			r.ran("a", "x")
			r.client(ofTasks("result", "r", "x"))
			r.server(`{"id":` + id(r.atServer()[0]) + `,"result":` + odd + `}`)
			one(t, r.atClient(), `{"id":"r","error":{"code":-32603,"message":"how the task stands could not be understood"}}`)
		})
	}
}

// A server that needs no task: the client has one all the same, which has ended.
func TestATaskThatWasAnsweredAtOnce(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.newerTasks("2025-11-25")
		at := func(call, answer string) string {
			t.Helper()
			r.client(`{"id":"` + call + `","method":"tools/call","params":{"name":"t","task":{"ttl":120000}}}`)
			r.atServer()
			r.server(`{"id":"` + call + `","result":` + answer + `}`)
			got := r.atClient()
			task := got[0].Result.Get("task")
			if len(got) != 1 || task.Get("status").Str() != "working" || task.Get("ttl").Number() != "120000" || len(task.Get("taskId").Str()) < 50 {
				t.Fatal(written(got))
			}
			return task.Get("taskId").Str()
		}
		for answer, status := range map[string]string{`{"resultType":"complete","content":[]}`: "completed", `{"content":[],"isError":true}`: "failed"} {
			task := at("a", answer)
			for range 2 {
				r.client(ofTasks("get", "g", task))
				if got := r.atClient(); len(got) != 1 || got[0].Result.Get("status").Str() != status || got[0].Result.Get("taskId").Str() != task {
					t.Error(written(got))
				}
				r.client(ofTasks("result", "r", task))
				if got := r.atClient(); len(got) != 1 || got[0].Result.Get("_meta").Get(metaRelated).Get("taskId").Str() != task || got[0].Result.Get("content").Kind() == 0 {
					t.Error(written(got))
				}
			}
			r.client(ofTasks("cancel", "c", task))
			one(t, r.atClient(), `{"id":"c","error":{"code":-32602,"message":"the task has ended"}}`)
			none(t, "the server", r.atServer())
			time.Sleep(2 * time.Minute)
			r.client(ofTasks("get", "g", task))
			one(t, r.atClient(), `{"id":"g","error":{"code":-32602,"message":"there is no such task"}}`)
		}
		large := `{"content":"` + strings.Repeat("x", maxHeld*2/3) + `"}`
		at("b", large)
		r.client(`{"id":"c","method":"tools/call","params":{"name":"t","task":{}}}`)
		r.server(`{"id":"c","result":` + large + `}`)
		if got := written(r.atClient()); !strings.Contains(got, "too large to keep") {
			t.Errorf("%.300s", got)
		}
		r.client(`{"id":"d","method":"tools/call","params":{"name":"t","task":{}}}`)
		r.server(`{"id":"d","error":{"code":-32602,"message":"no such tool"}}`)
		one(t, r.atClient(), `{"id":"d","error":{"code":-32602,"message":"no such tool"}}`)
		r.atServer()
	})
}

// A client that asks for no task, or knows none, has the result of the call itself, and is asked in the middle of it.
func TestATaskForAClientThatAskedForNone(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2025-06-18"} {
		inBubble(t, nil, func(r *rig) {
			r.newerTasks(version)
			start := func(call string) {
				t.Helper()
				r.client(`{"id":"` + call + `","method":"tools/call","params":{"name":"t"}}`)
				one(t, r.atServer(), `{"id":"`+call+`","method":"tools/call","params":{"name":"t",`+newMeta+`}}`)
				r.server(`{"id":"` + call + `","error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`)
				again := one(t, r.atServer(), `{"id":ID,"method":"tools/call","params":{"name":"t",`+tasksMeta+`}}`)
				r.server(`{"id":` + id(again) + `,"result":{"resultType":"task","taskId":"x","status":"working",` + stamps + `,"ttlMs":null,"pollIntervalMs":2000}}`)
				none(t, "the client", r.atClient())
				none(t, "the server", r.atServer())
				time.Sleep(2 * time.Second)
			}
			start("a")
			r.server(detailed(r.atServer()[0], `"status":"input_required","inputRequests":{"k1":{"method":"roots/list"}}`))
			asked := r.atClient()
			if len(asked) != 1 || asked[0].On.Key() != `"a` {
				t.Fatal(written(asked))
			}
			r.client(ofTasks("get", "g", "x")) // of which it was not told
			if got := written(r.atClient()); !strings.Contains(got, `"id":"g","error":{"code":-3260`) {
				t.Error(got)
			}
			r.client(`{"id":` + id(asked[0]) + `,"result":{"roots":[]}}`)
			if sent := r.atServer(); len(sent) != 1 || sent[0].Method != "tasks/update" {
				t.Error(written(sent))
			}
			time.Sleep(pollUsual)
			r.server(detailed(r.atServer()[0], `"status":"completed","result":{"resultType":"complete","content":[]}`))
			one(t, r.atClient(), `{"id":"a","result":{"content":[]}}`)

			start("b")
			r.client(`{"method":"notifications/cancelled","params":{"requestId":"b"}}`)
			sent := r.atServer()
			if len(sent) != 2 || sent[1].Method != "tasks/cancel" {
				t.Error(written(sent))
			}
			r.server(detailed(sent[0], `"status":"completed","result":{"content":[]}`))
			none(t, "the client", r.atClient())
			r.client(`{"id":"c","method":"tools/call","params":{"name":"t"}}`)
			r.atServer()
			r.server(`{"id":"c","result":{"resultType":"task","taskId":"y","status":"working"}}`) // though nobody said that he takes one
			if got := written(r.atClient()); !strings.Contains(got, "not translated") {
				t.Error(got)
			}
			start("e")
			r.server(`{"id":` + id(r.atServer()[0]) + `,"error":{"code":-32603,"message":"m"}}`) // and may be at work still
			one(t, r.atClient(), `{"id":"e","error":{"code":-32603,"message":"m"}}`)
			if sent := r.atServer(); len(sent) != 1 || sent[0].Method != "tasks/cancel" {
				t.Error(written(sent))
			}
			const never = `,"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
			r.client(`{"id":"d","method":"tools/call","params":{"name":"t"}}`)
			r.server(`{"id":` + id(r.atServer()[0]) + never) // and it says so again
			r.server(`{"id":` + id(r.atServer()[0]) + never)
			if got := written(r.atClient()); !strings.Contains(got, `"id":"d","error":{"code":-32603`) {
				t.Error(got)
			}
			none(t, "the server", r.atServer())
			if tr := r.b.tr.(*toModern); len(tr.tasks) > 0 {
				t.Errorf("left behind: %v", tr.tasks)
			}
		})
	}
}

func TestCancellingATaskOfANewerServer(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.newerTasks("2025-11-25")
		r.ran("a", "x")
		r.client(ofTasks("result", "r", "x"))
		late := r.atServer()[0]
		r.client(ofTasks("cancel", "c", "x"))
		one(t, r.atServer(), `{"id":"c","method":"tasks/cancel","params":{"taskId":"x",`+tasksMeta+`}}`)
		r.server(`{"id":"c","result":{"resultType":"complete"}}`)
		get := one(t, r.atServer(), `{"id":ID,"method":"tasks/get","params":{"taskId":"x",`+tasksMeta+`}}`)
		r.server(detailed(get, `"status":"working"`)) // it takes its time
		got := r.atClient()
		if len(got) != 2 {
			t.Fatal(written(got))
		}
		same(t, got[0], `{"id":"c","result":{"taskId":"x","status":"cancelled",`+stamps+`,"ttl":null}}`)
		same(t, got[1], `{"id":"r","error":{"code":-32603,"message":"the task was cancelled"}}`)
		r.server(detailed(late, `"status":"completed","result":{"content":[]}`))
		r.client(ofTasks("get", "g", "x")) // and stays so
		one(t, r.atClient(), `{"id":"g","result":{"taskId":"x","status":"cancelled",`+stamps+`,"ttl":null}}`)
		r.client(ofTasks("result", "r", "x"))
		one(t, r.atClient(), `{"id":"r","error":{"code":-32603,"message":"the task was cancelled"}}`)
		r.client(ofTasks("cancel", "c", "x"))
		one(t, r.atClient(), `{"id":"c","error":{"code":-32602,"message":"the task has ended"}}`)

		r.ran("b", "y")
		r.client(ofTasks("cancel", "c", "y"))
		r.atServer()
		r.server(`{"id":"c","result":{"resultType":"complete"}}`)
		r.server(detailed(r.atServer()[0], `"status":"completed","result":{"content":[]}`)) // too late
		one(t, r.atClient(), `{"id":"c","error":{"code":-32602,"message":"the task has ended"}}`)
		r.ran("d", "z")
		r.client(ofTasks("cancel", "c", "z"))
		r.atServer()
		r.server(`{"id":"c","error":{"code":-32603,"message":"m"}}`)
		one(t, r.atClient(), `{"id":"c","error":{"code":-32603,"message":"m"}}`)
	})
}

func TestTasksOfANewerServerThatAreNot(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.newerTasks("2025-11-25")
		for _, method := range []string{"get", "result", "cancel"} {
			r.client(ofTasks(method, "q", "another's"))
			one(t, r.atClient(), `{"id":"q","error":{"code":-32602,"message":"there is no such task"}}`)
		}
		r.ran("a", "x")
		r.client(`{"id":"b","method":"tools/call","params":{"name":"t","task":{}}}`)
		r.atServer()
		r.server(`{"id":"b","result":{"resultType":"task","taskId":"x","status":"working"}}`) // an id that is taken
		if got := written(r.atClient()); !strings.Contains(got, "cannot be kept") {
			t.Error(got)
		}
		none(t, "the server", r.atServer())
		r.client(ofTasks("result", "r", "x"))
		r.server(`{"id":` + id(r.atServer()[0]) + `,"error":{"code":-32602,"message":"expired"}}`)
		one(t, r.atClient(), `{"id":"r","error":{"code":-32602,"message":"expired"}}`)
		if tr := r.b.tr.(*toModern); len(tr.tasks) > 0 {
			t.Errorf("a task that the server has no more is kept: %v", tr.tasks)
		}
		r.client(`{"id":"s","method":"tasks/list"}`)
		if got := written(r.atClient()); !strings.Contains(got, "tasks/list is not translated") {
			t.Error(got)
		}
	})
	inBubble(t, nil, func(r *rig) {
		r.legacyClient()
		r.client(ofTasks("get", "q", "x"))
		one(t, r.atClient(), `{"id":"q","error":{"code":-32601,"message":"tasks/get: the server has no tasks"}}`)
	})
}

func TestTasksOfANewerServerAreBounded(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.newerTasks("2025-11-25")
		call := func(name, task string) {
			r.client(`{"id":"` + name + `","method":"tools/call","params":{"name":"t","task":{}}}`)
			r.server(`{"id":"` + name + `","result":{"resultType":"task","taskId":"` + task + `","status":"working","ttlMs":60000,"createdAt":"` + strings.Repeat("x", 4<<10) + `"}}`)
		}
		for n := range maxTasks {
			call("c", fmt.Sprint("x", n))
		}
		r.atClient()
		r.atServer()
		call("c", "more")
		if got := written(r.atClient()); !strings.Contains(got, "cannot be kept") {
			t.Error(got)
		}
		if sent := r.atServer(); len(sent) != 2 || sent[1].Method != "tasks/cancel" {
			t.Errorf("the server goes on: %s", written(sent))
		}
		tr := r.b.tr.(*toModern)
		if kept := tr.tasks["x0"].last.Size(); kept > 1024 {
			t.Errorf("%d bytes of a task are kept", kept)
		}
		for n := range maxTaskWaits + 1 {
			r.client(ofTasks("result", fmt.Sprint("r", n), "x0"))
		}
		if got := written(r.atClient()); !strings.Contains(got, "too many requests wait") {
			t.Error(got)
		}
		get := r.atServer()
		if len(get) != 1 {
			t.Fatalf("%d requests wait by %d requests", maxTaskWaits, len(get))
		}
		for n := range 2 * maxTaskInput { // one thing after the other
			r.server(detailed(get[0], fmt.Sprintf(`"status":"input_required","inputRequests":{"k%d":{"method":"roots/list"}}`, n)))
			asked := r.atClient()
			if len(asked) != 1 {
				if n != maxTaskInput || !strings.Contains(written(asked), "too often") {
					t.Errorf("round %d: %.500s", n, written(asked))
				}
				break
			}
			r.client(`{"id":` + id(asked[0]) + `,"result":{"roots":[]}}`)
			time.Sleep(pollUsual)
			synctest.Wait()
			get = r.atServer()[1:]
		}
		time.Sleep(2 * time.Minute)
		r.client(`{"id":"c","method":"tools/call","params":{"name":"t","task":{}}}`)
		r.server(`{"id":"c","result":{"resultType":"task","taskId":"later","status":"working","ttlMs":60000}}`)
		if len(tr.tasks) != 1 || tr.tasks["later"] == nil {
			t.Errorf("of the tasks that have expired %d are kept", len(tr.tasks)-1)
		}
	})
}

// What has ended makes room, also where the server says neither for how long it keeps a task nor that it has ended.
func TestTasksOfANewerServerThatMakeRoom(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"cancelled": func(r *rig) {
			r.client(ofTasks("cancel", "q", "x0"))
			r.atServer()
			r.server(`{"id":"q","result":{"resultType":"complete"}}`)
			r.server(detailed(r.atServer()[0], `"status":"working"`))
		},
		"completed": func(r *rig) {
			r.client(ofTasks("get", "q", "x0"))
			r.server(detailed(r.atServer()[0], `"status":"completed","result":{"content":[]}`))
		},
		"gone": func(r *rig) {
			r.client(ofTasks("get", "q", "x0"))
			r.server(`{"id":"q","error":{"code":-32602,"message":"no such task"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.newerTasks("2025-11-25")
				for n := range maxTasks + 1 {
					if n == maxTasks {
						r.atServer()
						end(r)
						r.atClient()
					}
					r.client(`{"id":"c","method":"tools/call","params":{"name":"t","task":{}}}`)
					r.server(fmt.Sprintf(`{"id":"c","result":{"resultType":"task","taskId":"x%d","status":"working","ttlMs":null}}`, n))
				}
				if got := written(r.atClient()); strings.Contains(got, "cannot be kept") {
					t.Error(got)
				}
				if tr := r.b.tr.(*toModern); len(tr.tasks) != maxTasks || tr.tasks["x0"] != nil {
					t.Errorf("%d tasks are kept", len(tr.tasks))
				}
			})
		})
	}
}
