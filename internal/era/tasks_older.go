package era

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of tasks, towards servers of either era.
const (
	maxTasks     = 1024             // that are kept of one client
	maxTaskID    = 1024             // bytes of a task's id, or of a tool's name
	maxTaskInput = 64               // questions of one task
	maxTaskWaits = 16               // requests that wait for the same task
	maxTools     = 4096             // tools that are known to be tasks only
	maxTaskState = 64 << 10         // bytes in which an older server says how a task stands
	maxSurvey    = 32               // pages of a list of tools that the bridge reads itself
	pollUsual    = time.Second      // how often a server is asked how a task stands, where it does not say
	pollMin      = pollUsual / 10   // … where it says less
	pollMax      = 30 * time.Second // … or more
)

// olderTask is a call of a modern client that became a task at an older server. Its id is the server's.
type olderTask struct {
	id      string
	caps    strictjson.Value // of the client, when it made the call
	began   time.Time
	ttl     time.Duration // 0 = it does not end
	keys    int           // questions so far
	asked   map[string]*wanted
	over    bool // it has ended
	fetched bool // tasks/result is at the server
	waits   []func(m jsonrpc.Message)
	call    *call // that goes on when it has ended, of a client that knows no tasks; else nil

	// For subscriptions.
	timer  *time.Timer
	polled bool              // tasks/get is at the server for them
	told   [sha256.Size]byte // what they were told last
}

// offersTasks says whether an older server takes calls of tools as tasks.
func (t *toLegacy) offersTasks() bool {
	call := t.hello.Get("capabilities").Get("tasks").Get("requests").Get("tools").Get("call")
	return call.Kind() == strictjson.KindObject
}

// capabilities are what a modern client is told of an older server's.
func (t *toLegacy) capabilities() strictjson.Value {
	caps := withoutTasks(t.hello.Get("capabilities"))
	if t.offersTasks() {
		caps = withTasks(caps)
	}
	return caps
}

// aboutTask takes tasks/get, tasks/update and tasks/cancel.
func (t *toLegacy) aboutTask(m jsonrpc.Message) {
	task := t.tasks[m.Params.Get("taskId").Str()]
	done := result(m.ID, strictjson.Object(member("resultType", str("complete"))))
	switch {
	case !t.offersTasks():
		t.b.toClient(failure(m.ID, jsonrpc.CodeMethodNotFound, m.Method+": the server has no tasks"))
	case !hasTasks(m.Params.Get("_meta").Get(metaCapabilities)):
		t.b.toClient(lacksTasks(m.ID))
	case task == nil:
		t.b.toClient(failure(m.ID, jsonrpc.CodeInvalidParams, "there is no such task"))
	case m.Method == "tasks/get":
		c := t.newCall(m)
		c.then = func(m jsonrpc.Message) {
			delete(t.calls, c.server.Key())
			t.stands(task, m, func(m jsonrpc.Message) {
				if t.byClient[c.id.Key()] == c {
					t.drop(c)
					m.ID = c.id
					t.b.toClient(m)
				}
			})
		}
		t.send(c)
	case m.Method == "tasks/update":
		responses := m.Params.Get("inputResponses")
		for key, w := range task.asked {
			if answer := responses.Get(key); answer.Kind() == strictjson.KindObject {
				t.withdraw(w.id)
				t.b.toServer(result(w.id, w.reply(answer)))
			}
		}
		t.b.toClient(done)
	case absent(t.hello.Get("capabilities").Get("tasks").Get("cancel")): // then nobody stops it: a client is promised no more
		t.silence(task, "the client gave the task up")
		t.b.toClient(done)
	default:
		t.silence(task, "the client gave the task up")
		c := t.newCall(m)
		c.then = func(m jsonrpc.Message) {
			t.drop(c)
			m.ID = c.id
			if absent(m.Error) || unknownTask(m) { // it had ended
				m = result(c.id, done.Result)
			}
			t.b.toClient(m)
		}
		t.send(c)
	}
}

// silence answers the questions of a task that nobody answers any more.
func (t *toLegacy) silence(task *olderTask, why string) {
	for _, w := range task.asked {
		t.refuse(w, why)
	}
	clear(task.asked)
}

// stands tells how a task stands, in one message of the newer form: whatever it has led to is in it, what it needs as well. m is the
// server's answer to tasks/get.
func (t *toLegacy) stands(task *olderTask, m jsonrpc.Message, tell func(jsonrpc.Message)) {
	if size(m) > maxTaskState { // it may be kept until the server says what the task led to
		m = failure(m.ID, jsonrpc.CodeInternal, "what the server says of the task is too large")
	}
	if !absent(m.Error) {
		if unknownTask(m) {
			t.forget(task)
		}
		m.Error = modernError(m.Error)
		tell(m)
		return
	}
	v := modernTask(task.id, m.Result).With("resultType", str("complete"))
	switch m.Result.Get("status").Str() {
	case "completed", "failed":
		task.over = true
		if len(task.waits) >= maxTaskWaits {
			tell(failure(jsonrpc.ID{}, jsonrpc.CodeInternal, "too many requests wait for what this task led to"))
			return
		}
		task.waits = append(task.waits, func(m jsonrpc.Message) { tell(result(jsonrpc.ID{}, led(v, m))) })
		t.fetch(task)
	case "cancelled":
		task.over = true
		t.silence(task, "the task has ended")
		tell(result(jsonrpc.ID{}, v))
	case "input_required":
		t.fetch(task) // which has the server ask
		if len(task.asked) > 0 {
			tell(result(jsonrpc.ID{}, task.needs(v)))
			return
		}
		time.AfterFunc(gatherFor, func() {
			t.b.mu.Lock()
			defer t.b.mu.Unlock()
			if t.b.ended == nil {
				tell(result(jsonrpc.ID{}, task.needs(v)))
			}
		})
	default:
		tell(result(jsonrpc.ID{}, task.needs(v)))
	}
}

// led puts what a task led to into what is said of it. A failed task of the older era may have a result that says so.
func led(v strictjson.Value, m jsonrpc.Message) strictjson.Value {
	if !absent(m.Error) {
		return v.With("status", str("failed")).With("error", modernError(m.Error))
	}
	return v.With("status", str("completed")).With("result", modernResult("tools/call", unrelated(m.Result)))
}

// needs puts what a task needs into what is said of it. One that waits for input has asked for it.
func (task *olderTask) needs(v strictjson.Value) strictjson.Value {
	if len(task.asked) == 0 {
		if v.Get("status").Str() == "input_required" {
			v = v.With("status", str("working"))
		}
		return v
	}
	var questions []strictjson.Member
	for i := 1; i <= task.keys; i++ {
		key := inputKey(i)
		if w := task.asked[key]; w != nil {
			questions = append(questions, member(key, strictjson.Object(member("method", str(w.method)), member("params", w.params))))
		}
	}
	return v.With("status", str("input_required")).With("inputRequests", strictjson.Object(questions...))
}

func inputKey(n int) string { return "input-" + strconv.Itoa(n) }

// fetch asks the server for what a task led to. It answers when the task has ended, and asks the client itself until then.
func (t *toLegacy) fetch(task *olderTask) {
	if task.fetched {
		return
	}
	task.fetched = true
	t.own.ask(t.b, "tasks/result", only("taskId", task.id), func(m jsonrpc.Message) {
		task.fetched = false
		waits := task.waits
		task.waits = nil
		if len(waits) > 0 {
			t.silence(task, "the task has ended")
		}
		for _, tell := range waits {
			tell(m)
		}
	})
}

// runs says whether a call has to be a task. What the server's tools say of that is asked for once, before the first call, if the
// client has not.
func (t *toLegacy) runs(c *call) (task, known bool) {
	if c.method != "tools/call" || !t.offersTasks() {
		return false, true
	}
	if !t.surveyed {
		t.surveyed = true
		t.survey("", maxSurvey, t.line.expect())
		return false, false
	}
	return t.required[c.params.Get("name").Str()], true
}

// survey reads the list of tools.
func (t *toLegacy) survey(cursor string, pages int, done func()) {
	params := strictjson.Value{}
	if cursor != "" {
		params = only("cursor", cursor)
	}
	t.own.ask(t.b, "tools/list", params, func(m jsonrpc.Message) {
		t.learn(m.Result)
		if next := m.Result.Get("nextCursor").Str(); next != "" && next != cursor && pages > 1 {
			t.survey(next, pages-1, done)
			return
		}
		done()
	})
}

// learn notes which tools are tasks only.
func (t *toLegacy) learn(list strictjson.Value) {
	for _, tool := range list.Get("tools").Elems() {
		name := tool.Get("name").Str()
		if tool.Get("execution").Get("taskSupport").Str() != "required" {
			delete(t.required, name)
		} else if len(t.required) < maxTools && len(name) <= maxTaskID {
			t.required[strings.Clone(name)] = true
		}
	}
}

// became takes the answer to a call that was sent as a task. false: it is an answer like any other.
func (t *toLegacy) became(c *call, m jsonrpc.Message) (task *olderTask, is bool) {
	v := m.Result.Get("task")
	if c.method != "tools/call" || v.Kind() != strictjson.KindObject || !absent(m.Result.Get("content")) {
		return nil, false
	}
	id := v.Get("taskId").Str()
	if !c.asTask || id == "" || len(id) > maxTaskID || t.tasks[id] != nil || !t.room() {
		return nil, true
	}
	id = strings.Clone(id) // as all that is kept: without the message that it came with
	caps, _ := strictjson.Parse(c.caps.Append(nil), strictjson.Limits{})
	task = &olderTask{id: id, caps: caps, began: time.Now(), ttl: milliseconds(v.Get("ttl")), asked: map[string]*wanted{}}
	t.tasks[id] = task
	return task, true
}

// room says whether one more task can be kept, and forgets for it what has ended.
func (t *toLegacy) room() bool {
	if len(t.tasks) < maxTasks {
		return true
	}
	for _, task := range t.tasks {
		if task.over || task.ttl > 0 && time.Since(task.began) > task.ttl {
			t.forget(task)
		}
	}
	return len(t.tasks) < maxTasks
}

func (t *toLegacy) forget(task *olderTask) {
	t.silence(task, "the task is gone")
	delete(t.tasks, task.id)
	task.quiet()
}

func (task *olderTask) quiet() {
	if task.timer != nil {
		task.timer.Stop()
		task.timer = nil
	}
}

// waitFor has a call whose client knows no tasks go on until its task has ended.
func (t *toLegacy) waitFor(c *call, task *olderTask) {
	c.task, task.call = task, c
	t.own.ask(t.b, "tasks/result", only("taskId", task.id), func(m jsonrpc.Message) {
		task.over, task.call, c.task = true, nil, nil
		if t.calls[c.server.Key()] == c {
			m.Result = unrelated(m.Result)
			t.answered(c, m)
		}
	})
}

// giveUp tells the server that a call is not wanted any more.
func (t *toLegacy) giveUp(c *call, m jsonrpc.Message) {
	if c.task == nil {
		t.b.toServer(m)
		return
	}
	c.task.call, c.task.over = nil, true // nobody answers what it asks from now on
	t.stop(c.task.id)
}

// stop has the server stop a task, if it can.
func (t *toLegacy) stop(id string) {
	if !absent(t.hello.Get("capabilities").Get("tasks").Get("cancel")) {
		t.own.ask(t.b, "tasks/cancel", only("taskId", id), func(jsonrpc.Message) {})
	}
}

// question takes a question of the server that belongs to a task.
func (t *toLegacy) question(task *olderTask, w *wanted) {
	task.keys++
	w.task, w.key = task, inputKey(task.keys)
	task.asked[w.key] = w
	t.wanted[w.id.Key()] = w
	t.poll(task)
}

// follows says whether a subscription is about a task.
func (t *toLegacy) follows(task *olderTask) bool {
	for _, l := range t.listens {
		if slices.Contains(l.tasks, task.id) {
			return true
		}
	}
	return false
}

// poll asks for subscriptions how a task stands, now and as long as there are some: an older server need not say of itself.
func (t *toLegacy) poll(task *olderTask) {
	if task == nil || task.polled || t.tasks[task.id] != task || !t.follows(task) {
		return
	}
	task.quiet()
	task.polled = true
	t.own.ask(t.b, "tasks/get", only("taskId", task.id), func(m jsonrpc.Message) {
		wait := every(m.Result.Get("pollInterval"))
		t.stands(task, m, func(m jsonrpc.Message) {
			task.polled = false
			v := m.Result.Without("resultType")
			if told := sha256.Sum256(v.Append(nil)); absent(m.Error) && told != task.told {
				task.told = told
				for _, l := range t.listens {
					if l.acked && slices.Contains(l.tasks, task.id) {
						l.tell(t.b, notification("notifications/tasks", v))
					}
				}
			}
			if !task.over || !absent(m.Error) {
				task.timer = time.AfterFunc(wait, func() {
					t.b.mu.Lock()
					defer t.b.mu.Unlock()
					if t.b.ended == nil {
						t.poll(task)
					}
				})
			}
		})
	})
}

// every is how long to wait before a server is asked again.
func every(asked strictjson.Value) time.Duration {
	if wait := milliseconds(asked); wait > 0 {
		return max(pollMin, min(wait, pollMax))
	}
	return pollUsual
}

// milliseconds reads a number of them, of which there may be too many; 0 for none.
func milliseconds(v strictjson.Value) time.Duration {
	n, err := strconv.ParseInt(v.Number(), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(max(0, min(n, 1<<40))) * time.Millisecond
}
