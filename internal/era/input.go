package era

import (
	"crypto/rand"
	"slices"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// adopt gives a call that may need input the questions that the server asked outside any call.
func (t *toLegacy) adopt(c *call) {
	if !asks(c.method) || c.rounds >= maxRounds {
		return
	}
	var kept []*wanted
	for _, w := range t.orphans {
		if Takes(c.caps, w.method, w.params) {
			w.call = c
			c.waiting = append(c.waiting, w)
		} else {
			kept = append(kept, w)
		}
	}
	t.orphans = kept
}

// want takes a question of the server.
func (t *toLegacy) want(m jsonrpc.Message) {
	refuse := func(code int, why string) { t.b.answer(failure(m.ID, code, why)) }
	key := m.ID.Key()
	switch {
	case m.Method == "ping":
		t.b.answer(result(m.ID, strictjson.Object()))
		return
	case !inputs(m.Method):
		refuse(jsonrpc.CodeMethodNotFound, "the client speaks MCP "+Modern+", which has no such request")
		return
	case t.wanted[key] != nil:
		refuse(jsonrpc.CodeInvalidRequest, "a request with this id is still open")
		return
	case len(t.wanted) >= maxWanted:
		refuse(jsonrpc.CodeInternal, "too many requests are open")
		return
	case t.tooMuch(size(m)):
		refuse(jsonrpc.CodeInternal, "the open requests are too large")
		return
	}
	about := m.Params.Get("_meta").Get(metaRelated)
	task := t.tasks[about.Get("taskId").Str()]
	c := t.occasion(m.On)
	if task != nil {
		c = task.call
	}
	if c != nil && !asks(c.method) {
		c = nil
	}
	caps := t.caps
	switch {
	case c != nil:
		caps = c.caps
	case task != nil:
		caps = task.caps
	}
	if !Takes(caps, m.Method, m.Params) {
		if c != nil {
			c.lacks = needs(m.Method, m.Params)
		}
		refuse(jsonrpc.CodeMethodNotFound, "the client does not take this request")
		return
	}
	w := &wanted{id: m.ID, call: c, about: about, method: m.Method, params: modernQuestion(m.Method, m.Params), bytes: size(m)}
	switch {
	case c == nil && task != nil && (task.over || task.keys >= maxTaskInput):
		refuse(jsonrpc.CodeInternal, "the task has ended, or has asked too often")
	case c == nil && task != nil:
		t.question(task, w)
	case c == nil:
		t.wanted[key] = w
		t.orphans = append(t.orphans, w)
	case c.rounds >= maxRounds:
		refuse(jsonrpc.CodeInternal, "the call has come back for input too often")
	default:
		t.wanted[key] = w
		c.waiting = append(c.waiting, w)
		if !c.id.IsZero() && len(c.waiting) == 1 {
			t.later(c, gatherFor, c.id, func() {
				if len(c.waiting) > 0 { // none was taken back
					t.suspend(c)
				}
			})
		}
	}
}

// tooMuch says that questions of so many bytes are too large beside those that are kept.
func (t *toLegacy) tooMuch(bytes int) bool {
	asking := t.asking()
	return asking > 0 && asking+bytes > maxAsking
}

// asking is the size of all questions that are kept.
func (t *toLegacy) asking() (n int) {
	for _, w := range t.orphans {
		n += w.bytes
	}
	for _, calls := range []map[string]*call{t.byClient, t.suspended} {
		for _, c := range calls {
			for _, w := range c.waiting {
				n += w.bytes
			}
			for _, w := range c.shown {
				n += w.bytes
			}
		}
	}
	for _, task := range t.tasks {
		for _, w := range task.asked {
			n += w.bytes
		}
	}
	return n
}

// later does something with a call unless it went on meanwhile: it was answered, or the client came back. id is what it is known by now.
func (t *toLegacy) later(c *call, after time.Duration, id jsonrpc.ID, do func()) {
	state := c.state
	c.timer = time.AfterFunc(after, func() {
		t.b.mu.Lock()
		defer t.b.mu.Unlock()
		known := t.suspended[state] == c
		if !id.IsZero() {
			known = t.byClient[id.Key()] == c
		}
		if known && c.id == id && c.state == state && t.b.ended == nil {
			do()
		}
	})
}

// withdraw takes back a question that the server gave up. What the client was asked already it is asked; its answer goes nowhere.
func (t *toLegacy) withdraw(id jsonrpc.ID) {
	w := t.wanted[id.Key()]
	if w == nil {
		return
	}
	delete(t.wanted, id.Key())
	if w.task != nil {
		delete(w.task.asked, w.key)
		return
	}
	list := &t.orphans
	if w.call != nil {
		list = &w.call.waiting
	}
	*list = slices.DeleteFunc(*list, func(other *wanted) bool { return other == w })
}

// modernQuestion takes what only the older era has out of a question.
func modernQuestion(method string, params strictjson.Value) strictjson.Value {
	params = unrelated(params.Without("task"))
	if method == "elicitation/create" {
		params = params.Without("elicitationId")
	}
	if meta := params.Get("_meta"); !absent(meta.Get("progressToken")) { // nothing can be told of its progress
		if meta = meta.Without("progressToken"); meta.Len() == 0 {
			meta = strictjson.Value{}
		}
		params = params.With("_meta", meta)
	}
	return params
}

// occasion finds the call that a message of the server belongs to: the one on whose stream it came; where that is not told, the
// one that was sent last, of those that the client waits for if there is one.
func (t *toLegacy) occasion(on jsonrpc.ID) *call {
	if c := t.calls[on.Key()]; c != nil {
		return c
	}
	var last *call
	for _, c := range t.calls {
		if !asks(c.method) {
			continue
		}
		if last == nil || last.id.IsZero() && !c.id.IsZero() || last.id.IsZero() == c.id.IsZero() && c.number > last.number {
			last = c
		}
	}
	return last
}

// suspend answers the client that its call needs input. The call stays open at the server.
func (t *toLegacy) suspend(c *call) {
	if len(t.suspended) >= maxSuspended {
		t.drop(c)
		t.b.toClient(failure(c.id, jsonrpc.CodeInternal, "too many calls wait for input"))
		return
	}
	c.rounds++
	c.digest = asked(c.method, c.params)
	c.state = rand.Text() + rand.Text()
	c.shown = map[string]*wanted{}
	var questions []strictjson.Member
	for _, w := range c.waiting {
		c.keys++
		w.asked++
		key := inputKey(c.keys)
		c.shown[key] = w
		questions = append(questions, member(key, strictjson.Object(member("method", str(w.method)), member("params", w.params))))
	}
	c.waiting = nil
	t.suspended[c.state] = c
	t.b.toClient(result(c.id, strictjson.Object(
		member("resultType", str("input_required")),
		member("inputRequests", strictjson.Object(questions...)),
		member("requestState", str(c.state)))))
	delete(t.byClient, c.id.Key())
	c.id = jsonrpc.ID{}
	t.later(c, suspendFor, c.id, func() { t.expire(c, "the client did not come back with the input") })
}

// expire gives up a call whose client was asked for input.
func (t *toLegacy) expire(c *call, why string) {
	t.drop(c)
	if c.sent && c.held == nil && !c.again {
		t.giveUp(c, cancelled(c.server, why))
	}
}

// resume goes on with a call whose client comes back with input.
func (t *toLegacy) resume(m jsonrpc.Message) {
	c := t.suspended[m.Params.Get("requestState").Str()]
	if c == nil || c.digest != asked(m.Method, m.Params) {
		t.b.toClient(failure(m.ID, jsonrpc.CodeInvalidParams, "there is no such call that waits for input: its requestState was used, has expired, or belongs to another call; make the call anew"))
		return
	}
	delete(t.suspended, c.state)
	c.timer.Stop()
	c.id, c.params = m.ID, m.Params
	c.wants(m.Params.Get("_meta"), t.caps)
	t.byClient[m.ID.Key()] = c
	responses := m.Params.Get("inputResponses")
	declined := false
	for key, w := range c.shown {
		answer := responses.Get(key)
		switch {
		case answer.Kind() == strictjson.KindObject && w.id.IsZero():
			declined = declined || answer.Get("action").Str() != "accept"
		case answer.Kind() == strictjson.KindObject:
			if t.wanted[w.id.Key()] == w {
				delete(t.wanted, w.id.Key())
				t.b.toServer(result(w.id, w.reply(answer)))
			}
		case w.asked < 2 && c.rounds < maxRounds: // it may have been forgotten
			c.waiting = append(c.waiting, w)
		case w.id.IsZero():
			declined = true
		default:
			t.refuse(w, "the client gave no answer")
		}
	}
	c.shown = nil
	switch {
	case declined:
		t.drop(c)
		t.b.toClient(failure(m.ID, jsonrpc.CodeInternal, "the call needs the user to open an address, and the user did not"))
	case len(c.waiting) > 0:
		t.suspend(c)
	case c.held != nil:
		t.drop(c)
		t.deliver(c, *c.held)
	case !c.sent || c.again:
		c.again = false
		c.server = m.ID
		t.send(c)
	}
}

var openAddress = strictjson.Object(member("mode", str("url")))

// addresses turns the error that says "the user must open these addresses first" into questions. The client's retry sends the call anew.
func (t *toLegacy) addresses(c *call, m jsonrpc.Message) bool {
	list := m.Error.Get("data").Get("elicitations")
	if !Takes(c.caps, "elicitation/create", openAddress) {
		c.lacks = needs("elicitation/create", openAddress)
		return false
	}
	if list.Len() == 0 || list.Len() > maxWanted || c.rounds >= maxRounds || t.tooMuch(size(m)) {
		return false
	}
	for _, w := range c.waiting { // the server waits for none of these any more
		delete(t.wanted, w.id.Key())
	}
	for _, w := range c.shown {
		delete(t.wanted, w.id.Key())
	}
	c.waiting = nil
	for _, params := range list.Elems() {
		c.waiting = append(c.waiting, &wanted{method: "elicitation/create", params: modernQuestion("elicitation/create", params).With("mode", str("url")), bytes: size(m) / list.Len()})
	}
	delete(t.calls, c.server.Key())
	c.again = true
	if !c.id.IsZero() {
		t.suspend(c)
	}
	return true
}
