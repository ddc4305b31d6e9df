package era

import (
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// How long an answer is kept that came at once, for a client that asked for a task.
const (
	keepFor = 10 * time.Minute
	keepMin = time.Minute // where the client asks for less
	keepMax = time.Hour   // … or for more
)

// newerTask is a call of an older client that became a task: at a newer server, under its id, or, where that answered at once, here.
type newerTask struct {
	id      string
	answer  *jsonrpc.Message // of a server that made no task, so that it is over; nil = the task is the server's
	last    strictjson.Value // how it stood when the server last said so, without its words
	until   time.Time        // it may be forgotten then; zero = once it is over
	over    bool
	stopped bool // the client cancelled it, and was told so: it is over

	waits  []*round // requests that are answered when it has ended
	plain  bool     // the first of them is the call, of a client that asked for no task
	asked  map[string]bool
	inputs *round // the questions that the client has not answered
	polled bool   // tasks/get is at the server
	timer  *time.Timer
}

// runsTasks says whether a newer server may answer a call with a task.
func (t *toModern) runsTasks() bool { return hasTasks(t.found.Get("capabilities")) }

// takesTasks says whether the client is told so: the older era has tasks in its last version only.
func (t *toModern) takesTasks() bool { return t.version == legacy[0] && t.runsTasks() }

// declared has a request say that its client takes tasks.
func declared(params strictjson.Value) strictjson.Value {
	meta := params.Get("_meta")
	return params.With("_meta", meta.With(metaCapabilities, withTasks(meta.Get(metaCapabilities))))
}

// wantsTask notes that the client asks for a task. Whether there will be one is up to the server, once it is told that its client takes
// them.
func (t *toModern) wantsTask(r *round, task strictjson.Value) {
	if r.method != "tools/call" || task.Kind() != strictjson.KindObject || !t.takesTasks() {
		return
	}
	r.params, r.declares, r.keep = declared(r.params), true, keepFor
	if ttl := milliseconds(task.Get("ttl")); ttl > 0 {
		r.keep = max(keepMin, min(ttl, keepMax))
	}
}

// became takes the answer to a call that is a task, or shall be one. false: it is an answer like any other.
func (t *toModern) became(r *round, m jsonrpc.Message) bool {
	kind := m.Result.Get("resultType").Str()
	switch code, _ := jsonrpc.ErrorCode(m.Error); {
	case r.method != "tools/call":
		return false
	case code == codeCapability && !r.declares && t.runsTasks() && hasTasks(m.Error.Get("data").Get("requiredCapabilities")):
		r.declares, r.params = true, declared(r.params) // the server has done nothing yet; now the bridge waits for the task
		t.send(r, jsonrpc.RandomID(), r.params)
	case kind == "task" && r.declares:
		t.started(r, m.Result)
	case r.keep > 0 && absent(m.Error) && (kind == "" || kind == "complete"):
		t.hold(r, m)
	default:
		return false
	}
	return true
}

// started keeps a task of the server's.
func (t *toModern) started(r *round, v strictjson.Value) {
	id := v.Get("taskId").Str()
	if id == "" || len(id) > maxTaskID || t.tasks[id] != nil || !t.room() {
		if id != "" && t.tasks[id] == nil {
			t.stop(id)
		}
		t.fail(r, "the server answered with a task that cannot be kept")
		return
	}
	id = strings.Clone(id)
	task := &newerTask{id: id, asked: map[string]bool{}}
	task.note(v)
	t.tasks[id] = task
	if r.keep > 0 {
		t.drop(r)
		t.b.toClient(result(r.id, strictjson.Object(member("task", legacyTask(id, v)), member("_meta", legacyResult(v).Get("_meta")))))
		return
	}
	delete(t.calls, r.server.Key())
	r.of, task.plain, task.waits = task, true, []*round{r}
	t.pollAfter(task, every(v.Get("pollIntervalMs")))
}

// note keeps how a task stands.
func (task *newerTask) note(v strictjson.Value) {
	v = legacyTask(task.id, v)
	var kept []strictjson.Member
	for _, name := range []string{"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"} {
		if e := v.Get(name); e.Size() <= maxTaskID && e.Kind() == strictjson.KindString {
			kept = append(kept, member(name, str(strings.Clone(e.Str()))))
		} else if e.Kind() == strictjson.KindNumber && len(e.Number()) < 20 {
			kept = append(kept, member(name, strictjson.Number(strings.Clone(e.Number()))))
		} else if e.Kind() == strictjson.KindNull {
			kept = append(kept, member(name, e))
		}
	}
	task.last, task.until = strictjson.Object(kept...), time.Time{}
	if ttl := milliseconds(v.Get("ttl")); ttl > 0 {
		task.until = time.Now().Add(ttl)
	}
}

// hold keeps an answer that came at once as what a task led to. That task is the bridge's.
func (t *toModern) hold(r *round, m jsonrpc.Message) {
	held := 0
	for _, task := range t.tasks {
		if task.answer != nil {
			held += size(*task.answer)
		}
	}
	m.Result = legacyResult(m.Result)
	if !t.room() || held > 0 && held+size(m) > maxHeld {
		t.fail(r, "the answer came at once, and is too large to keep for a task beside others")
		return
	}
	task := &newerTask{id: rand.Text() + rand.Text(), answer: &m, until: time.Now().Add(r.keep), over: true}
	now := str(time.Now().UTC().Format(time.RFC3339))
	task.last = strictjson.Object(member("taskId", str(task.id)), member("status", str("completed")), member("createdAt", now), member("lastUpdatedAt", now),
		member("ttl", strictjson.Number(strconv.FormatInt(r.keep.Milliseconds(), 10))), member("pollInterval", strictjson.Number("100")))
	if m.Result.Get("isError").Bool() {
		task.last = task.last.With("status", str("failed"))
	}
	t.tasks[task.id] = task
	task.timer = time.AfterFunc(r.keep, func() {
		t.b.mu.Lock()
		defer t.b.mu.Unlock()
		t.release(task)
	})
	t.drop(r)
	t.b.toClient(result(r.id, strictjson.Object(member("task", task.last.With("status", str("working")))))) // as every task begins
}

// room says whether one more task can be kept, and forgets for it what has ended.
func (t *toModern) room() bool {
	if len(t.tasks) < maxTasks {
		return true
	}
	for _, task := range t.tasks {
		if len(task.waits) == 0 && (task.over && task.answer == nil || !task.until.IsZero() && time.Now().After(task.until)) {
			t.release(task)
		}
	}
	return len(t.tasks) < maxTasks
}

func (t *toModern) release(task *newerTask) {
	task.quiet()
	if task.inputs != nil {
		t.drop(task.inputs)
		task.inputs = nil
	}
	if t.tasks[task.id] == task {
		delete(t.tasks, task.id)
	}
}

func (task *newerTask) quiet() {
	if task.timer != nil {
		task.timer.Stop()
	}
}

// about are the params of the bridge's own questions about a task.
func (t *toModern) about(id string, more ...strictjson.Member) strictjson.Value {
	return declared(strictjson.Object(append([]strictjson.Member{member("taskId", str(id)), member("_meta", t.meta)}, more...)...))
}

// stop tells a server that nobody waits for a task.
func (t *toModern) stop(id string) {
	t.own.ask(t.b, "tasks/cancel", t.about(id), func(jsonrpc.Message) {})
}

// aboutTask takes tasks/get, tasks/result and tasks/cancel.
func (t *toModern) aboutTask(m jsonrpc.Message) {
	task := t.tasks[m.Params.Get("taskId").Str()]
	switch {
	case !t.takesTasks():
		t.refuse(m, jsonrpc.CodeMethodNotFound, m.Method+": the server has no tasks")
		return
	case task == nil || task.plain:
		t.refuse(m, jsonrpc.CodeInvalidParams, "there is no such task")
		return
	case m.Method == "tasks/get" && (task.answer != nil || task.stopped):
		t.b.toClient(result(m.ID, task.last))
		return
	case m.Method == "tasks/result" && task.answer != nil:
		t.b.toClient(result(m.ID, ofTask(task, task.answer.Result)))
		return
	case m.Method == "tasks/result" && task.stopped:
		t.refuse(m, jsonrpc.CodeInternal, "the task was cancelled")
		return
	case m.Method == "tasks/cancel" && task.over:
		t.refuse(m, jsonrpc.CodeInvalidParams, "the task has ended")
		return
	case m.Method == "tasks/result" && len(task.waits) >= maxTaskWaits:
		t.refuse(m, jsonrpc.CodeInternal, "too many requests wait for this task")
		return
	}
	r := &round{id: m.ID, method: m.Method, of: task, params: declared(t.modern(m.Params)), extra: m.Extra}
	t.byClient[m.ID.Key()] = r
	switch m.Method {
	case "tasks/get":
		r.then = func(m jsonrpc.Message) {
			task.stands(m)
			if absent(m.Error) {
				if m.Result = legacyTask(task.id, m.Result); task.stopped {
					m.Result = task.last
				}
			}
			t.finish(r, m)
		}
		t.send(r, m.ID, r.params)
	case "tasks/cancel":
		r.then = func(m jsonrpc.Message) {
			if !absent(m.Error) {
				t.finish(r, m)
				return
			}
			r.then = func(m jsonrpc.Message) { t.stoppedBy(r, task, m) } // it says only that it heard
			r.method = "tasks/get"
			t.send(r, jsonrpc.RandomID(), r.params)
		}
		t.send(r, m.ID, r.params)
	default:
		task.waits = append(task.waits, r)
		t.poll(task)
	}
}

// finish answers a request about a task.
func (t *toModern) finish(r *round, m jsonrpc.Message) {
	t.drop(r)
	m.ID = r.id
	if !absent(m.Error) {
		m.Error = legacyError(r.method, m.Error)
	}
	t.b.toClient(m)
}

// stoppedBy answers a tasks/cancel. In the older era a task that was cancelled stays so, whatever comes of it.
func (t *toModern) stoppedBy(r *round, task *newerTask, m jsonrpc.Message) {
	task.stands(m)
	if status := task.last.Get("status").Str(); status == "completed" || status == "failed" {
		t.finish(r, failure(r.id, jsonrpc.CodeInvalidParams, "the task has ended"))
		return
	}
	task.last = task.last.With("status", str("cancelled"))
	t.finish(r, result(r.id, task.last))
	t.ends(task, failure(jsonrpc.ID{}, jsonrpc.CodeInternal, "the task was cancelled"))
	task.stopped, task.over = true, true
}

// stands notes what a server answered to tasks/get, unless that is no concern of the client any more.
func (task *newerTask) stands(m jsonrpc.Message) {
	if task.stopped {
		return
	}
	if !absent(m.Error) {
		task.over = task.over || unknownTask(m)
		return
	}
	task.note(m.Result)
	switch m.Result.Get("status").Str() {
	case "completed", "failed", "cancelled":
		task.over = true
	}
}

// unknownTask says whether a server answered that it has no such task, or none any more.
func unknownTask(m jsonrpc.Message) bool {
	code, _ := jsonrpc.ErrorCode(m.Error)
	return code == jsonrpc.CodeInvalidParams
}

// ofTask marks a result as what a task led to.
func ofTask(task *newerTask, v strictjson.Value) strictjson.Value {
	if v.Kind() != strictjson.KindObject {
		return v
	}
	return v.With("_meta", v.Get("_meta").With(metaRelated, related(task.id)))
}

// poll asks a server how a task stands, as long as somebody waits for its end.
func (t *toModern) poll(task *newerTask) {
	if task.polled || len(task.waits) == 0 {
		return
	}
	task.quiet()
	task.polled = true
	t.own.ask(t.b, "tasks/get", t.about(task.id), func(m jsonrpc.Message) {
		task.polled = false
		task.stands(m)
		v := m.Result
		if !absent(m.Error) {
			switch {
			case unknownTask(m):
				t.release(task)
			case task.plain: // nobody will ask again
				t.stop(task.id)
			}
			t.ends(task, m)
			return
		}
		switch v.Get("status").Str() {
		case "completed":
			t.ends(task, result(jsonrpc.ID{}, legacyResult(v.Get("result"))))
		case "failed":
			fault := v.Get("error")
			if fault.Kind() != strictjson.KindObject {
				fault = jsonrpc.NewError(jsonrpc.CodeInternal, "the task failed", strictjson.Value{})
			}
			t.ends(task, jsonrpc.Message{Kind: jsonrpc.Response, Error: fault})
		case "cancelled":
			t.ends(task, failure(jsonrpc.ID{}, jsonrpc.CodeInternal, "the task was cancelled"))
		case "working", "input_required":
			t.needs(task, v.Get("inputRequests"))
			t.pollAfter(task, every(v.Get("pollIntervalMs")))
		default:
			t.abandon(task, "how the task stands could not be understood")
		}
	})
}

func (t *toModern) pollAfter(task *newerTask, wait time.Duration) {
	task.quiet()
	task.timer = time.AfterFunc(wait, func() {
		t.b.mu.Lock()
		defer t.b.mu.Unlock()
		if t.b.ended == nil && t.tasks[task.id] == task {
			t.poll(task)
		}
	})
}

// ends answers who waited for the end of a task.
func (t *toModern) ends(task *newerTask, m jsonrpc.Message) {
	task.quiet()
	if task.inputs != nil {
		t.drop(task.inputs)
		task.inputs = nil
	}
	waits := task.waits
	task.waits = nil
	for _, r := range waits {
		answer := m
		if absent(m.Error) && !task.plain {
			answer.Result = ofTask(task, m.Result)
		}
		t.finish(r, answer)
	}
	if task.plain {
		t.release(task)
	}
}

// needs asks the client for what a task needs, each thing once, and one round after the other.
func (t *toModern) needs(task *newerTask, inputs strictjson.Value) {
	if task.inputs != nil || len(task.waits) == 0 {
		return
	}
	var fresh []strictjson.Member
	for key, q := range inputs.Members() {
		if !task.asked[key] {
			fresh = append(fresh, member(key, q))
		}
	}
	if len(fresh) == 0 {
		return
	}
	if len(task.asked)+len(fresh) > maxTaskInput {
		t.abandon(task, "the task asked for input too often")
		return
	}
	task.inputs = &round{id: task.waits[0].id, method: "tasks/update", of: task}
	t.put(task.inputs, strictjson.Object(fresh...))
	if task.inputs != nil { // the task was not given up
		for _, q := range task.inputs.questions {
			task.asked[q.key] = true
		}
	}
}

// update brings a task what the client answered.
func (t *toModern) update(r *round) {
	r.of.inputs = nil
	t.own.ask(t.b, "tasks/update", t.about(r.of.id, member("inputResponses", strictjson.Object(r.inputs...))), func(jsonrpc.Message) {})
}

// abandon gives a task up that cannot go on.
func (t *toModern) abandon(task *newerTask, why string) {
	t.stop(task.id)
	task.over = true
	t.ends(task, failure(jsonrpc.ID{}, jsonrpc.CodeInternal, why))
}

// unwait takes a request out of those that wait for a task. Where it is the call itself, nobody else knows of the task.
func (t *toModern) unwait(r *round) {
	task := r.of
	task.waits = slices.DeleteFunc(task.waits, func(other *round) bool { return other == r })
	if task.plain {
		t.stop(task.id)
		t.release(task)
	}
}
