package era

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

var taskMeta = strings.Replace(meta, `"roots":{}`, `"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}`, 1)

// olderTasks is a rig whose modern client has found an older server that runs "slow" as a task, and nothing else.
func (r *rig) olderTasks(tasks string) {
	r.t.Helper()
	r.client(`{"id":"d","method":"server/discover","params":{` + taskMeta + `}}`)
	r.atServer()
	r.server(`{"id":"d",` + notNew)
	hello := r.atServer()
	if caps := hello[0].Params.Get("capabilities"); hasTasks(caps) || !absent(caps.Get("tasks")) {
		r.t.Errorf("the server was told of tasks: %s", caps.Append(nil))
	}
	r.server(`{"id":` + id(hello[0]) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":` + tasks + `},"serverInfo":{"name":"s","version":"2"}}}`)
	r.atServer()
	if got := r.atClient(); len(got) != 1 || !hasTasks(got[0].Result.Get("capabilities")) || !absent(got[0].Result.Get("capabilities").Get("tasks")) {
		r.t.Fatalf("declared: %s", written(got))
	}
	r.client(`{"id":"l","method":"tools/list","params":{` + taskMeta + `}}`)
	r.atServer()
	r.server(`{"id":"l","result":{"tools":[{"name":"slow","execution":{"taskSupport":"required"}},{"name":"t","execution":{"taskSupport":"optional"}}]}}`)
	r.atClient()
}

const (
	allTasks = `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`
	stamps   = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z"`
	elicitOf = `{"id":%d,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"%s"}}}}`
)

func slow(id, meta string) string {
	return `{"id":"` + id + `","method":"tools/call","params":{"name":"slow",` + meta + `}}`
}

// became has a call of the client become a task.
func (r *rig) became(call, task string) {
	r.t.Helper()
	r.client(slow(call, taskMeta))
	one(r.t, r.atServer(), `{"id":"`+call+`","method":"tools/call","params":{"name":"slow","task":{}}}`)
	r.server(`{"id":"` + call + `","result":{"task":{"taskId":"` + task + `","status":"working","statusMessage":"on it",` + stamps + `,"ttl":60000,"pollInterval":50},"_meta":{"io.modelcontextprotocol/model-immediate-response":"wait"}}}`)
	one(r.t, r.atClient(), `{"id":"`+call+`","result":{"taskId":"`+task+`","status":"working","statusMessage":"on it",`+stamps+`,"ttlMs":60000,"pollIntervalMs":50,"resultType":"task","_meta":{"io.modelcontextprotocol/model-immediate-response":"wait"}}}`)
}

func task(method, id, task, more string) string {
	return `{"id":"` + id + `","method":"tasks/` + method + `","params":{"taskId":"` + task + `"` + more + `,` + taskMeta + `}}`
}

func state(id jsonrpc.Message, status string) string {
	return `{"id":` + string(id.ID.Value().Append(nil)) + `,"result":{"taskId":"x","status":"` + status + `",` + stamps + `,"ttl":null}}`
}

func TestATaskOfAnOlderServer(t *testing.T) {
	for name, tt := range map[string]struct{ status, answer, want string }{
		"completed":            {"completed", `"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}`, `"status":"completed",` + stamps + `,"ttlMs":null,"resultType":"complete","result":{"content":[],"resultType":"complete"}`},
		"an error of the tool": {"failed", `"result":{"content":[],"isError":true}`, `"status":"completed",` + stamps + `,"ttlMs":null,"resultType":"complete","result":{"content":[],"isError":true,"resultType":"complete"}`},
		"failed":               {"failed", `"error":{"code":-32002,"message":"gone"}`, `"status":"failed",` + stamps + `,"ttlMs":null,"resultType":"complete","error":{"code":-32602,"message":"gone"}`},
		"cancelled":            {"cancelled", ``, `"status":"cancelled",` + stamps + `,"ttlMs":null,"resultType":"complete"`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.olderTasks(allTasks)
				r.became("a", "x")
				r.client(task("get", "g", "x", ""))
				one(t, r.atServer(), `{"id":"g","method":"tasks/get","params":{"taskId":"x"}}`)
				r.server(`{"id":"g","result":{"taskId":"another","status":"working",` + stamps + `,"ttl":5,"result":{"content":"forged"}}}`)
				one(t, r.atClient(), `{"id":"g","result":{"taskId":"x","status":"working",`+stamps+`,"ttlMs":5,"resultType":"complete"}}`)

				for range 2 { // as often as the client likes
					r.client(task("get", "h", "x", ""))
					get := one(t, r.atServer(), `{"id":"h","method":"tasks/get","params":{"taskId":"x"}}`)
					r.server(state(get, tt.status))
					if tt.answer != "" {
						fetch := one(t, r.atServer(), `{"id":ID,"method":"tasks/result","params":{"taskId":"x"}}`)
						none(t, "the client", r.atClient())
						r.server(`{"id":` + id(fetch) + `,` + tt.answer + `}`)
					}
					one(t, r.atClient(), `{"id":"h","result":{"taskId":"x",`+tt.want+`}}`)
				}
				r.server(fmt.Sprintf(elicitOf, 9, "x"))
				if got := written(r.atServer()); !strings.Contains(got, "has ended") {
					t.Errorf("a question of a task that has ended: %s", got)
				}
			})
		})
	}
}

func TestATaskOfAnOlderServerNeedsInput(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.olderTasks(allTasks)
		r.became("a", "x")
		r.client(task("get", "g", "x", ""))
		r.server(state(r.atServer()[0], "input_required"))
		fetch := one(t, r.atServer(), `{"id":ID,"method":"tasks/result","params":{"taskId":"x"}}`) // on which the server asks
		if got := r.atClient(); len(got) != 1 || got[0].Result.Get("status").Str() != "working" {
			t.Fatalf("nothing is asked yet: %s", written(got))
		}
		r.server(fmt.Sprintf(elicitOf, 8, "x"), `{"id":9,"method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`)
		none(t, "the client", r.atClient())
		const asks = `{"input-1":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}},"input-2":{"method":"roots/list","params":{}}}`
		for _, status := range []string{"input_required", "working"} { // whatever the server calls it
			r.client(task("get", "g", "x", ""))
			r.server(state(r.atServer()[0], status))
			got := r.atClient()
			if len(got) != 1 || got[0].Result.Get("status").Str() != "input_required" || string(got[0].Result.Get("inputRequests").Append(nil)) != asks {
				t.Fatalf("%s: %s", status, written(got))
			}
			none(t, "the server", r.atServer())
		}
		r.client(task("update", "u", "x", `,"inputResponses":{"input-1":{"action":"accept"},"input-2":null,"input-7":{}}`))
		one(t, r.atServer(), `{"id":8,"result":{"action":"accept","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`)
		one(t, r.atClient(), `{"id":"u","result":{"resultType":"complete"}}`)
		r.client(task("update", "u", "x", `,"inputResponses":{"input-1":{"action":"decline"}}`)) // was answered
		none(t, "the server", r.atServer())
		r.atClient()
		r.server(`{"method":"notifications/cancelled","params":{"requestId":9}}`)

		r.client(task("get", "g", "x", ""))
		r.server(state(r.atServer()[0], "completed"))
		none(t, "the server", r.atServer()) // tasks/result is under way
		r.server(`{"id":` + id(fetch) + `,"result":{"content":[]}}`)
		if got := r.atClient(); len(got) != 1 || got[0].Result.Get("result").Get("content").Len() != 0 || got[0].Result.Get("status").Str() != "completed" {
			t.Errorf("%s", written(got))
		}
		if tr := r.b.tr.(*toLegacy); len(tr.wanted)+len(tr.own)+len(tr.calls)+len(tr.byClient) > 0 {
			t.Errorf("left behind: %v %v %v %v", tr.wanted, tr.own, tr.calls, tr.byClient)
		}
	})
}

// A client that knows no tasks has the result of the call itself, and is asked in the middle of it.
func TestATaskForAClientWithoutTasks(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.olderTasks(allTasks)
		r.client(slow("a", meta))
		one(t, r.atServer(), `{"id":"a","method":"tools/call","params":{"name":"slow","task":{}}}`)
		r.server(`{"id":"a","result":{"task":{"taskId":"x","status":"working"}}}`)
		wait := one(t, r.atServer(), `{"id":ID,"method":"tasks/result","params":{"taskId":"x"}}`)
		r.server(fmt.Sprintf(elicitOf, 8, "x"))
		need := one2(t, r.atClient(), "a").Result
		r.client(`{"id":"b","method":"tools/call","params":{"name":"slow","inputResponses":{"input-1":{"action":"accept"}},"requestState":"` + need.Get("requestState").Str() + `",` + meta + `}}`)
		one(t, r.atServer(), `{"id":8,"result":{"action":"accept","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`)
		r.server(`{"id":` + id(wait) + `,"result":{"content":[]}}`)
		one(t, r.atClient(), `{"id":"b","result":{"content":[],"resultType":"complete"}}`)

		r.client(slow("c", meta))
		r.atServer()
		r.server(`{"id":"c","result":{"task":{"taskId":"y","status":"working"}}}`)
		r.atServer()
		r.client(`{"method":"notifications/cancelled","params":{"requestId":"c"}}`)
		one(t, r.atServer(), `{"id":ID,"method":"tasks/cancel","params":{"taskId":"y"}}`)
		r.server(fmt.Sprintf(elicitOf, 9, "y")) // nobody answers it any more
		one(t, r.atServer(), `{"id":9,"error":{"code":-32603,"message":"the task has ended, or has asked too often"}}`)
		for _, method := range []string{"get", "update", "cancel"} {
			r.client(strings.Replace(task(method, "q", "x", ""), taskMeta, meta, 1))
			if m := one(t, r.atClient(), `{"id":"q","error":{"code":-32021,"message":"the client does not declare the tasks extension","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`); !m.Own {
				t.Error("the bridge's words count as the server's")
			}
		}
		r.client(`{"id":"q","method":"subscriptions/listen","params":{"notifications":{"taskIds":["x"]},` + meta + `}}`)
		if got := written(r.atClient()); !strings.Contains(got, "-32021") {
			t.Error(got)
		}
		none(t, "the server", r.atServer())
	})
}

// A task may end with the words that the user must open an address first. The call is then made anew, and is none of that task's.
func TestATaskThatEndsWithAddresses(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.olderTasks(allTasks)
		r.client(slow("a", meta))
		r.atServer()
		r.server(`{"id":"a","result":{"task":{"taskId":"x","status":"working"}}}`)
		r.server(`{"id":` + id(r.atServer()[0]) + `,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://a.example/","message":"m","elicitationId":"e"}]}}}`)
		need := one2(t, r.atClient(), "a").Result
		r.client(`{"id":"b","method":"tools/call","params":{"name":"slow","inputResponses":{"input-1":{"action":"accept"}},"requestState":"` + need.Get("requestState").Str() + `",` + meta + `}}`)
		one(t, r.atServer(), `{"id":"b","method":"tools/call","params":{"name":"slow","task":{}}}`)
		r.client(`{"method":"notifications/cancelled","params":{"requestId":"b"}}`)
		one(t, r.atServer(), `{"method":"notifications/cancelled","params":{"requestId":"b"}}`)
	})
}

func TestWhichCallsAreTasks(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.olderTasks(allTasks)
		r.client(strings.Replace(callA, meta, taskMeta, 1)) // the tool may be one, and need not
		one(t, r.atServer(), `{"id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":1}}}`)
		r.server(`{"id":"a","result":{"task":{"taskId":"z","status":"working"}}}`)
		if got := written(r.atClient()); !strings.Contains(got, "not asked for") {
			t.Error(got)
		}
		one(t, r.atServer(), `{"id":ID,"method":"tasks/cancel","params":{"taskId":"z"}}`)
		r.client(slow("b", taskMeta))
		r.atServer()
		r.server(`{"id":"b","result":{"content":[]}}`) // answered at once all the same
		one(t, r.atClient(), `{"id":"b","result":{"content":[],"resultType":"complete"}}`)

		r.server(`{"method":"notifications/tools/list_changed"}`)
		r.client(slow("c", taskMeta)) // what is known of the tools is old
		list := one(t, r.atServer(), `{"id":ID,"method":"tools/list"}`)
		r.client(slow("d", taskMeta))
		none(t, "the server", r.atServer())
		r.server(`{"id":` + id(list) + `,"result":{"tools":[{"name":"slow"}],"nextCursor":"2"}}`)
		list = one(t, r.atServer(), `{"id":ID,"method":"tools/list","params":{"cursor":"2"}}`)
		r.server(`{"id":` + id(list) + `,"result":{"tools":[{"name":"other","execution":{"taskSupport":"required"}}]}}`)
		sent := r.atServer()
		if len(sent) != 2 {
			t.Fatal(written(sent))
		}
		same(t, sent[0], `{"id":"c","method":"tools/call","params":{"name":"slow"}}`)
		same(t, sent[1], `{"id":"d","method":"tools/call","params":{"name":"slow"}}`)
	})
}

func TestCancellingATaskOfAnOlderServer(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.olderTasks(allTasks)
		for n, answer := range []string{`"result":{"taskId":"x","status":"cancelled"}`, `"error":{"code":-32602,"message":"has ended"}`, `"error":{"code":-32603,"message":"m"}`} {
			name := fmt.Sprint("x", n)
			r.became("a", name)
			r.server(fmt.Sprintf(elicitOf, 8, name))
			r.client(task("cancel", "c", name, ""))
			sent := r.atServer()
			if len(sent) != 2 {
				t.Fatal(written(sent))
			}
			same(t, sent[0], `{"id":8,"error":{"code":-32603,"message":"the client gave the task up"}}`)
			same(t, sent[1], `{"id":"c","method":"tasks/cancel","params":{"taskId":"`+name+`"}}`)
			r.server(`{"id":"c",` + answer + `}`)
			want := `"result":{"resultType":"complete"}`
			if n == 2 {
				want = answer
			}
			one(t, r.atClient(), `{"id":"c",`+want+`}`)
		}
	})
	inBubble(t, nil, func(r *rig) { // a server that cannot
		r.olderTasks(`{"requests":{"tools":{"call":{}}}}`)
		r.became("a", "x")
		r.client(task("cancel", "c", "x", ""))
		one(t, r.atClient(), `{"id":"c","result":{"resultType":"complete"}}`)
		none(t, "the server", r.atServer())
	})
}

// A client reaches no task but its own.
func TestTasksThatAreNot(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.olderTasks(allTasks)
		for _, method := range []string{"get", "update", "cancel"} {
			r.client(task(method, "q", "another's", ""))
			one(t, r.atClient(), `{"id":"q","error":{"code":-32602,"message":"there is no such task"}}`)
		}
		r.became("a", "x")
		r.client(slow("b", taskMeta))
		r.atServer()
		r.server(`{"id":"b","result":{"task":{"taskId":"x","status":"working"}}}`) // an id that is taken
		if got := written(r.atClient()); !strings.Contains(got, "one too many") {
			t.Error(got)
		}
		r.atServer()
		r.client(task("get", "g", "x", ""))
		r.atServer()
		r.server(`{"id":"g","junk":"` + strings.Repeat("x", maxTaskState) + `","result":{"taskId":"x","status":"completed"}}`)
		if got := written(r.atClient()); !strings.Contains(got, "too large") {
			t.Error(got)
		}
		none(t, "the server", r.atServer())
		r.client(task("get", "g", "x", ""))
		r.atServer()
		r.server(`{"id":"g","error":{"code":-32602,"message":"expired"}}`)
		one(t, r.atClient(), `{"id":"g","error":{"code":-32602,"message":"expired"}}`)
		if tr := r.b.tr.(*toLegacy); len(tr.tasks) != 0 {
			t.Errorf("a task that the server has no more is kept: %v", tr.tasks)
		}
	})
}

func TestSubscriptionsToTasksOfAnOlderServer(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.olderTasks(allTasks)
		r.became("a", "x")
		r.client(`{"id":"s","method":"subscriptions/listen","params":{"notifications":{"taskIds":["x","another's","x"]},` + taskMeta + `}}`)
		one(t, r.atClient(), `{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["x"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}`)
		told := func(want ...string) {
			t.Helper()
			var got []string
			for _, m := range r.atClient() {
				if m.Method != "notifications/tasks" || m.Params.Get("taskId").Str() != "x" || m.On.Key() != `"s` || !absent(m.Params.Get("resultType")) {
					t.Errorf("%s", m.Append(nil))
				}
				got = append(got, m.Params.Get("status").Str())
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("told %q, want %q", got, want)
			}
		}
		r.server(state(r.atServer()[0], "working"))
		told("working")
		time.Sleep(pollUsual)
		r.server(state(r.atServer()[0], "working")) // nothing new
		told()
		r.server(`{"method":"notifications/tasks/status","params":{"taskId":"x","status":"completed","result":"forged"}}`, `{"method":"notifications/tasks/status","params":{"taskId":"y","status":"completed"}}`)
		r.server(state(one(t, r.atServer(), `{"id":ID,"method":"tasks/get","params":{"taskId":"x"}}`), "working"))
		r.server(fmt.Sprintf(elicitOf, 8, "x"))
		r.server(state(r.atServer()[0], "input_required"))
		fetch := r.atServer()[0]
		told("input_required")
		time.Sleep(pollUsual)
		r.server(`{"id":` + id(r.atServer()[0]) + `,"error":{"code":-32603,"message":"not now"}}`)
		told()
		time.Sleep(pollUsual) // it is asked again
		r.server(state(r.atServer()[0], "completed"))
		r.server(`{"id":` + id(fetch) + `,"result":{"content":[]}}`)
		told("completed")
		time.Sleep(10 * pollMax)
		synctest.Wait()
		for _, m := range r.atServer() {
			if m.Method == "tasks/get" {
				t.Errorf("a task that has ended is asked about: %s", m.Append(nil))
			}
		}
		r.client(`{"method":"notifications/cancelled","params":{"requestId":"s"}}`) // and a client that subscribes anew is told
		r.client(`{"id":"s","method":"subscriptions/listen","params":{"notifications":{"taskIds":["x"]},` + taskMeta + `}}`)
		r.atClient()
		r.server(state(r.atServer()[0], "completed"))
		r.server(`{"id":` + id(r.atServer()[0]) + `,"result":{"content":[]}}`)
		told("completed")
	})
}

func TestTasksOfAnOlderServerAreBounded(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.olderTasks(allTasks)
		r.became("a", "x")
		for n := range maxTaskInput + 3 {
			r.server(fmt.Sprintf(elicitOf, n+10, "x"))
			r.client(task("update", "u", "x", `,"inputResponses":{"input-`+fmt.Sprint(n+1)+`":{"action":"accept"}}`))
		}
		r.atClient()
		refused := 0
		for _, m := range r.atServer() {
			if !absent(m.Error) {
				refused++
			}
		}
		if refused != 3 {
			t.Errorf("%d of %d questions were refused", refused, maxTaskInput+3)
		}
		large := strings.Replace(elicitOf, `"message":"m"`, `"message":"`+strings.Repeat("x", maxAsking*2/3)+`"`, 1)
		r.became("b", "y")
		r.became("c", "z")
		for n, task := range []string{"y", "z"} {
			r.server(fmt.Sprintf(large, n+1, task))
		}
		if got := written(r.atServer()); strings.Count(got, "too large") != 1 {
			t.Errorf("of two large questions: %s", got)
		}
		for n := range maxTasks - 2 {
			call := fmt.Sprint("c", n)
			r.client(slow(call, taskMeta))
			r.server(`{"id":"` + call + `","result":{"task":{"taskId":"` + call + `","status":"working","ttl":60000}}}`)
		}
		r.atClient()
		tr := r.b.tr.(*toLegacy)
		if len(tr.tasks) != maxTasks {
			t.Errorf("%d tasks are kept", len(tr.tasks))
		}
		time.Sleep(time.Minute)
		r.client(slow("later", taskMeta))
		r.server(`{"id":"later","result":{"task":{"taskId":"later","status":"working","ttl":60000}}}`)
		if tr.tasks["later"] == nil || len(tr.tasks) > 1 {
			t.Errorf("of the tasks that have expired %d are kept", len(tr.tasks))
		}
		r.atServer()
	})
}
