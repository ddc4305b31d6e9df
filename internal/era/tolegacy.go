package era

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds towards an older server.
const (
	gatherFor    = 20 * time.Millisecond // what a server asks at once comes in one round
	maxSuspended = 64                    // calls whose client was asked for input and has not come back
	suspendFor   = 10 * time.Minute      // … and how long it may take
	maxWanted    = 64                    // questions of the server that are open
	maxRounds    = 16                    // how often one call may come back for input
	maxAsking    = 4 << 20               // bytes of questions that are kept, beside the one that may exceed it
	maxHeld      = 8 << 20               // bytes of answers to calls whose client has not come back, beside the one that may exceed it
)

// toLegacy stands for a modern server in front of one that knows only initialize.
type toLegacy struct {
	b     *Bridge
	hello strictjson.Value // the server's answer to initialize
	caps  strictjson.Value // of the client, as the server was told
	level int              // what the server was told to log from; -1 = nothing
	count int              // calls so far

	calls     map[string]*call   // open at the server, by its id there
	byClient  map[string]*call   // those that the client waits for, by its id
	suspended map[string]*call   // those that it was asked for input to, by their state
	orphans   []*wanted          // questions that belong to no call: the next one takes them along
	wanted    map[string]*wanted // every open question, by the server's id
	own       errands
	listens   map[string]*listen   // by the client's id
	followed  map[string]*followed // by their URI
	heldBytes int
	line      line

	tasks    map[string]*olderTask // by id
	required map[string]bool       // tools that are tasks only
	surveyed bool                  // the list of tools is known
}

// call is a request of the client.
type call struct {
	id     jsonrpc.ID // what the client waits under; zero while it has been asked for input
	server jsonrpc.ID // its id at the server
	sent   bool
	told   bool // the server was told its level
	number int  // of the bridge's calls
	method string
	params strictjson.Value
	caps   strictjson.Value
	level  int                   // what it wants logged; -1 = nothing
	lacks  strictjson.Value      // a capability that the server asked for in vain
	asTask bool                  // it was sent as a task
	task   *olderTask            // that it waits for
	then   func(jsonrpc.Message) // takes its answer, if not nil

	// Of a call that needs input.
	digest  [sha256.Size]byte // what it asks for: a retry must ask for the same
	state   string
	timer   *time.Timer // until what the server asks is passed on, or the client has taken too long
	rounds  int
	keys    int
	waiting []*wanted          // questions for the next round
	shown   map[string]*wanted // those of this round, by their key
	again   bool               // the server gave the call up until the questions are answered: it is sent anew
	held    *jsonrpc.Message   // its answer, which came before the client did
	created bool               // … and is a task already, in the newer form
}

// wanted is a question of the server.
type wanted struct {
	id     jsonrpc.ID       // zero: the server does not wait for the answer itself
	call   *call            // that it belongs to; nil = none yet, or a task
	task   *olderTask       // that it belongs to; nil = none
	key    string           // in that
	about  strictjson.Value // what its _meta said of a task
	method string
	params strictjson.Value
	bytes  int // of the message that it came in
	asked  int
}

// reply gives an answer what a question said of a task.
func (w *wanted) reply(answer strictjson.Value) strictjson.Value {
	if absent(w.about) {
		return answer
	}
	return answer.With("_meta", answer.Get("_meta").With(metaRelated, w.about))
}

func newToLegacy(b *Bridge, hello strictjson.Value) *toLegacy {
	return &toLegacy{
		b: b, hello: hello, caps: withoutTasks(b.hello.Get("_meta").Get(metaCapabilities)), level: -1,
		calls: map[string]*call{}, byClient: map[string]*call{}, suspended: map[string]*call{}, wanted: map[string]*wanted{},
		own: errands{}, listens: map[string]*listen{}, followed: map[string]*followed{}, line: line{mu: &b.mu},
		tasks: map[string]*olderTask{}, required: map[string]bool{},
	}
}

func (t *toLegacy) clientID(id jsonrpc.ID) jsonrpc.ID {
	if t.own.answer(failure(id, jsonrpc.CodeInternal, "unreadable")) {
		return jsonrpc.ID{}
	}
	c := t.calls[id.Key()]
	if c == nil {
		return id
	}
	t.drop(c)
	return c.id
}

func (t *toLegacy) end() {
	t.line.stop()
	for _, c := range t.suspended {
		c.timer.Stop()
	}
	for _, task := range t.tasks {
		task.quiet()
	}
}

func (t *toLegacy) fromClient(m jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Response: // to a question that came before the era was known
		t.b.toServer(m)
		return
	case jsonrpc.Notification:
		if m.Method == "notifications/cancelled" {
			t.cancel(m)
		}
		return
	}
	v := m.Params.Get("_meta").Get(metaVersion)
	switch {
	case m.Method == "initialize" && absent(v): // the client prefers the other era after all
		t.revert(m)
	case !absent(v) && v.Str() != Modern:
		t.b.toClient(unsupported(m.ID, v))
	case !absent(v) && m.Params.Get("_meta").Get(metaCapabilities).Kind() != strictjson.KindObject:
		t.b.toClient(failure(m.ID, jsonrpc.CodeInvalidParams, "params._meta lacks "+metaCapabilities))
	case m.Method == "server/discover":
		t.b.toClient(result(m.ID, t.discovery()))
	case m.Method == "subscriptions/listen":
		t.listen(m)
	case m.Method == "tasks/get" || m.Method == "tasks/update" || m.Method == "tasks/cancel":
		t.aboutTask(m)
	case asks(m.Method) && !absent(m.Params.Get("requestState")):
		t.resume(m)
	case asks(m.Method), translated(m.Method):
		t.send(t.newCall(m))
	default:
		t.b.toClient(failure(m.ID, jsonrpc.CodeMethodNotFound, m.Method+" is not translated: the server speaks MCP "+t.hello.Get("protocolVersion").Str()+", its client "+Modern))
	}
}

func translated(method string) bool {
	switch method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "completion/complete":
		return true
	}
	return false
}

// revert answers a client that initializes after all: from there on nothing is translated.
func (t *toLegacy) revert(m jsonrpc.Message) {
	for _, c := range t.suspended {
		t.expire(c, "the client began anew")
	}
	for _, l := range t.listens {
		t.unlisten(l)
	}
	for _, task := range t.tasks {
		t.silence(task, "the client began anew")
		task.quiet()
	}
	t.line.giveUp()
	t.line.move()
	t.b.toClient(result(m.ID, t.hello))
	t.b.tr = &reverted{b: t.b, ids: t}
}

// discovery is the answer to server/discover.
func (t *toLegacy) discovery() strictjson.Value {
	meta := strictjson.Object(member(metaServer, t.hello.Get("serverInfo")))
	versions := []strictjson.Value{str(Modern)}
	for _, v := range legacy { // initialize passes too, see revert
		if v <= t.hello.Get("protocolVersion").Str() {
			versions = append(versions, str(v))
		}
	}
	return strictjson.Object(
		member("resultType", str("complete")),
		member("supportedVersions", strictjson.Array(versions...)),
		member("capabilities", t.capabilities()),
		member("instructions", t.hello.Get("instructions")),
		member("_meta", meta),
		member("ttlMs", strictjson.Number("0")),
		member("cacheScope", str("private")))
}

func (t *toLegacy) newCall(m jsonrpc.Message) *call {
	t.count++
	c := &call{id: m.ID, server: m.ID, number: t.count, method: m.Method, params: m.Params}
	c.wants(m.Params.Get("_meta"), t.caps)
	t.byClient[m.ID.Key()] = c
	return c
}

// wants notes what a request says of its client.
func (c *call) wants(meta, otherwise strictjson.Value) {
	c.caps, c.level = meta.Get(metaCapabilities), level(meta.Get(metaLevel))
	if absent(c.caps) {
		c.caps = otherwise
	}
}

// send sends a call to the server once it is its turn.
func (t *toLegacy) send(c *call) {
	c.sent, c.told, c.asTask = false, false, false
	t.line.put(waiting{c, c.params.Size(), func() bool { return t.goes(c) }})
}

// goes sends a call whose turn it is. Questions that the server asked outside any call come first: a server that learns the roots when
// it starts should know them before it works.
func (t *toLegacy) goes(c *call) bool {
	if !c.told {
		c.told = true
		if t.loud(c) {
			return false
		}
	}
	asTask, known := t.runs(c)
	if !known {
		return false
	}
	if t.adopt(c); len(c.waiting) > 0 {
		t.suspend(c)
		return true
	}
	c.sent, c.asTask = true, asTask
	t.calls[c.server.Key()] = c
	params := withoutMeta(c.params).Without("inputResponses", "requestState", "task")
	if meta := params.Get("_meta"); !absent(meta.Get("progressToken")) { // it is the id on both sides
		params = params.With("_meta", meta.With("progressToken", c.server.Value()))
	}
	if asTask {
		params = params.With("task", strictjson.Object())
	}
	t.b.toServer(request(c.server, c.method, params))
	return true
}

// loud has the server log what a call wants to hear of: it knows one level, for all calls together. false: it knows that already.
func (t *toLegacy) loud(c *call) bool {
	if c.level < 0 || absent(t.hello.Get("capabilities").Get("logging")) {
		return false
	}
	want := c.level
	for _, other := range t.byClient {
		if other.level >= 0 {
			want = min(want, other.level)
		}
	}
	if want == t.level {
		return false
	}
	t.level = want
	set := t.line.expect()
	t.own.ask(t.b, "logging/setLevel", strictjson.Object(member("level", str(levels[want]))), func(jsonrpc.Message) { set() })
	return true
}

// cancel gives up what the client gives up.
func (t *toLegacy) cancel(m jsonrpc.Message) {
	id, _ := jsonrpc.NewID(m.Params.Get("requestId"))
	if l := t.listens[id.Key()]; l != nil {
		t.unlisten(l)
		return
	}
	c := t.byClient[id.Key()]
	if c == nil {
		return
	}
	t.drop(c)
	if c.sent {
		t.giveUp(c, notification(m.Method, withoutMeta(m.Params).With("requestId", c.server.Value())))
	}
}

// drop forgets a call, and answers the questions that belong to it.
func (t *toLegacy) drop(c *call) {
	delete(t.byClient, c.id.Key())
	delete(t.calls, c.server.Key())
	delete(t.suspended, c.state)
	t.line.drop(c)
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.held != nil {
		t.heldBytes -= size(*c.held)
	}
	for _, w := range c.waiting {
		t.refuse(w, "the call that needed this has ended")
	}
	for _, w := range c.shown {
		t.refuse(w, "the call that needed this has ended")
	}
	c.waiting, c.shown = nil, nil
}

func (t *toLegacy) refuse(w *wanted, why string) {
	if t.wanted[w.id.Key()] == w {
		delete(t.wanted, w.id.Key())
		t.b.toServer(failure(w.id, jsonrpc.CodeInternal, why))
	}
}

// fromServer takes what the server says.
func (t *toLegacy) fromServer(m jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Request:
		t.want(m)
	case jsonrpc.Notification:
		t.news(m)
	default:
		if t.own.answer(m) {
			return
		}
		if c := t.calls[m.ID.Key()]; c != nil {
			t.answered(c, m)
		} else {
			t.b.toClient(m) // nobody waits for it, and it is counted there
		}
	}
}

// answered takes the answer to a call.
func (t *toLegacy) answered(c *call, m jsonrpc.Message) {
	if c.then != nil {
		c.then(m)
		return
	}
	if task, is := t.became(c, m); task != nil && !hasTasks(c.caps) {
		t.waitFor(c, task)
		return
	} else if task != nil {
		m.Result, c.created = modernTask(task.id, m.Result.Get("task")).With("resultType", str("task")).With("_meta", m.Result.Get("_meta")), true
	} else if is {
		t.stop(m.Result.Get("task").Get("taskId").Str())
		m = failure(m.ID, jsonrpc.CodeInternal, "the server answered with a task that was not asked for, or is one too many")
	}
	switch code, _ := jsonrpc.ErrorCode(m.Error); {
	case code == codeOpenAddress && asks(c.method) && t.addresses(c, m): // the client is asked to open them
	case c.id.IsZero():
		if t.heldBytes > 0 && t.heldBytes+size(m) > maxHeld {
			m = failure(m.ID, jsonrpc.CodeInternal, "the answer came before the input it asked for, and was too large to keep")
		}
		delete(t.calls, c.server.Key())
		t.heldBytes += size(m)
		c.held = &m
	default:
		t.drop(c)
		t.deliver(c, m)
	}
}

// deliver answers the client.
func (t *toLegacy) deliver(c *call, m jsonrpc.Message) {
	m.ID = c.id
	switch {
	case c.created:
	case absent(m.Error):
		if c.method == "tools/list" {
			t.learn(m.Result)
			t.surveyed = t.surveyed || absent(m.Result.Get("nextCursor")) && absent(c.params.Get("cursor"))
		}
		m.Result = modernResult(c.method, m.Result)
	case !absent(c.lacks):
		m.Error = jsonrpc.NewError(codeCapability, m.Error.Get("message").Str(), strictjson.Object(member("requiredCapabilities", c.lacks)))
	default:
		m.Error = modernError(m.Error)
	}
	t.b.toClient(m)
}

// modernResult gives a result the members that every modern one has. What a server of the other era cannot mean by such a name is
// not taken for it.
func modernResult(method string, v strictjson.Value) strictjson.Value {
	if v.Kind() != strictjson.KindObject {
		return v
	}
	v = v.Without("inputRequests", "requestState").With("resultType", str("complete"))
	switch method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read":
		v = v.With("ttlMs", strictjson.Number("0")).With("cacheScope", str("private"))
	}
	return v
}

func modernError(v strictjson.Value) strictjson.Value {
	code := jsonrpc.CodeInternal
	switch was, _ := jsonrpc.ErrorCode(v); was {
	case codeNoResource:
		code = jsonrpc.CodeInvalidParams
	case codeHeaders, codeCapability, codeVersion, codeOpenAddress: // which mean something else to a modern client, or nothing
	default:
		return v
	}
	return jsonrpc.NewError(code, v.Get("message").Str(), v.Get("data"))
}

// asked is a digest of what a call asks for.
func asked(method string, params strictjson.Value) [sha256.Size]byte {
	data, _ := json.Marshal([]any{method, params.Without("_meta", "inputResponses", "requestState").Any()}) // names in order
	return sha256.Sum256(data)
}
