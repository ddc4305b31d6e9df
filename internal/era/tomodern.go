package era

import (
	"slices"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds towards a newer server.
const (
	maxInputs = 16          // questions in one "input_required"
	maxKey    = 1024        // bytes of the name of one
	maxStates = 4 << 20     // bytes of what servers gave with them to bring back, beside the one that may exceed it
	busyWait  = time.Second // before a retry that a server asks for without a question; twice as long each time
	maxBusy   = 5           // such retries of one call
)

// toModern stands for a server that knows initialize in front of one that does not.
type toModern struct {
	b       *Bridge
	found   strictjson.Value // the server's answer to server/discover
	meta    strictjson.Value // what each request carries
	level   strictjson.Value // what the client wants logged; absent = nothing
	version string           // what the client was told

	calls    map[string]*round // by their id at the server
	byClient map[string]*round // by the client's
	asked    map[string]*round // that wait for an answer of the client, by the id of the question
	feed
	line  line
	tasks map[string]*newerTask // by id
	own   errands
}

// round is a request of the client, which may be sent more than once.
type round struct {
	id, server jsonrpc.ID
	method     string
	params     strictjson.Value // as it goes to the server, without the input
	extra      []strictjson.Member
	rounds     int
	busy       int
	timer      *time.Timer

	keep     time.Duration         // it was asked for as a task, whose outcome is kept so long; 0 = it was not
	declares bool                  // the server was told that the client takes tasks
	of       *newerTask            // that it is about, or waits for
	then     func(jsonrpc.Message) // takes its answer, if not nil

	questions map[string]question // that the client has not answered, by their id
	state     strictjson.Value
	inputs    []strictjson.Member
}

// question is one input that the client was asked for.
type question struct {
	id  jsonrpc.ID
	key string
}

func newToModern(b *Bridge, found strictjson.Value) *toModern {
	version := b.hello.Get("protocolVersion").Str()
	if !slices.Contains(legacy, version) {
		version = legacy[0]
	}
	t := &toModern{b: b, found: found, meta: modernMeta(b.hello), version: version,
		calls: map[string]*round{}, byClient: map[string]*round{}, asked: map[string]*round{}, line: line{mu: &b.mu},
		tasks: map[string]*newerTask{}, own: errands{}}
	t.feed.open, t.feed.uris, t.leaving = map[string]*stream{}, map[string]*stream{}, map[string]*stream{}
	return t
}

// modernMeta is what a modern request says of its client, from what the client said when it initialized.
func modernMeta(hello strictjson.Value) strictjson.Value {
	caps := withoutTasks(hello.Get("capabilities"))
	if roots := caps.Get("roots"); roots.Kind() == strictjson.KindObject {
		caps = caps.With("roots", roots.Without("listChanged"))
	}
	return strictjson.Object(member(metaVersion, str(Modern)), member(metaClient, hello.Get("clientInfo")), member(metaCapabilities, caps))
}

func (t *toModern) clientID(id jsonrpc.ID) jsonrpc.ID {
	if r := t.calls[id.Key()]; r != nil {
		t.drop(r)
		return r.id
	}
	if m := failure(id, jsonrpc.CodeInternal, "unreadable"); t.ended(m) || t.own.answer(m) {
		return jsonrpc.ID{}
	}
	return id
}

func (t *toModern) end() {
	for _, r := range t.byClient {
		r.stop()
	}
	t.feed.stop()
	t.line.stop()
	for _, task := range t.tasks {
		task.quiet()
	}
}

func (r *round) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

func (t *toModern) fromClient(m jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Response:
		t.input(m)
		return
	case jsonrpc.Notification:
		switch m.Method {
		case "notifications/initialized":
			t.followLists()
		case "notifications/cancelled":
			id, _ := jsonrpc.NewID(m.Params.Get("requestId"))
			if r := t.byClient[id.Key()]; r != nil {
				sent := t.calls[r.server.Key()] == r
				t.drop(r)
				if r.of != nil {
					t.unwait(r)
				}
				if sent {
					t.b.toServer(notification(m.Method, m.Params.With("requestId", r.server.Value())))
				}
			}
		}
		return
	}
	ok := result(m.ID, strictjson.Object())
	switch m.Method {
	case "initialize":
		t.b.toClient(result(m.ID, t.greeting()))
	case "ping":
		t.b.toClient(ok)
	case "logging/setLevel":
		switch {
		case absent(t.found.Get("capabilities").Get("logging")):
			t.refuse(m, jsonrpc.CodeMethodNotFound, "the server has no logging")
		case level(m.Params.Get("level")) < 0:
			t.refuse(m, jsonrpc.CodeInvalidParams, "there is no such level")
		default:
			t.level = m.Params.Get("level")
			t.b.toClient(ok)
		}
	case "resources/subscribe":
		t.subscribe(m)
	case "resources/unsubscribe":
		t.unsubscribe(m)
	case "tasks/get", "tasks/result", "tasks/cancel":
		t.aboutTask(m)
	default:
		if !asks(m.Method) && !translated(m.Method) {
			t.refuse(m, jsonrpc.CodeMethodNotFound, m.Method+" is not translated: the server speaks MCP "+Modern+", its client "+t.version)
			return
		}
		r := &round{id: m.ID, method: m.Method, params: t.modern(m.Params), extra: m.Extra}
		t.wantsTask(r, m.Params.Get("task"))
		t.byClient[m.ID.Key()] = r
		t.send(r, m.ID, r.params)
	}
}

func (t *toModern) refuse(m jsonrpc.Message, code int, why string) {
	t.b.toClient(failure(m.ID, code, why))
}

// modern gives a request's params what every modern one has.
func (t *toModern) modern(params strictjson.Value) strictjson.Value {
	meta := params.Get("_meta")
	for name, v := range t.meta.Members() {
		if absent(meta.Get(name)) {
			meta = meta.With(name, v)
		}
	}
	if !absent(t.level) {
		meta = meta.With(metaLevel, t.level)
	}
	return params.Without("task").With("_meta", meta)
}

// send sends a call once it is its turn.
func (t *toModern) send(r *round, id jsonrpc.ID, params strictjson.Value) {
	delete(t.calls, r.server.Key())
	t.line.put(waiting{r, params.Size(), func() bool {
		r.server = id
		t.calls[id.Key()] = r
		t.b.toServer(jsonrpc.Message{Kind: jsonrpc.Request, ID: id, Method: r.method, Params: params, Extra: r.extra})
		return true
	}})
}

// greeting is the answer to initialize.
func (t *toModern) greeting() strictjson.Value {
	info := t.found.Get("_meta").Get(metaServer)
	if absent(info) {
		info = t.found.Get("serverInfo") // early servers
	}
	if !named(info) {
		info = strictjson.Object(member("name", str("unnamed")), member("version", str("0")))
	}
	caps := withoutTasks(t.found.Get("capabilities"))
	if t.takesTasks() {
		caps = caps.With("tasks", strictjson.Object(member("cancel", strictjson.Object()),
			member("requests", strictjson.Object(member("tools", strictjson.Object(member("call", strictjson.Object())))))))
	}
	return strictjson.Object(
		member("protocolVersion", str(t.version)),
		member("capabilities", caps),
		member("serverInfo", info),
		member("instructions", t.found.Get("instructions")))
}

// drop forgets a call, and takes back what the client was asked for it.
func (t *toModern) drop(r *round) {
	r.stop()
	if t.byClient[r.id.Key()] == r {
		delete(t.byClient, r.id.Key())
	}
	delete(t.calls, r.server.Key())
	t.line.drop(r)
	for key, q := range r.questions {
		delete(t.asked, key)
		t.b.toClient(cancelled(q.id, "the call that needed this has ended"))
	}
	r.questions = nil
}

// fail answers a call that cannot go on.
func (t *toModern) fail(r *round, why string) {
	if r.method == "tasks/update" {
		t.abandon(r.of, why)
		return
	}
	t.drop(r)
	t.b.toClient(failure(r.id, jsonrpc.CodeInternal, why))
}

func (t *toModern) fromServer(m jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Request:
		t.b.answer(failure(m.ID, jsonrpc.CodeMethodNotFound, "MCP "+Modern+" has no requests of a server"))
	case jsonrpc.Notification:
		t.news(m)
	default:
		if t.ended(m) || t.own.answer(m) {
			return
		}
		r := t.calls[m.ID.Key()]
		if r == nil {
			t.b.toClient(m) // nobody waits for it, and it is counted there
			return
		}
		t.answered(r, m)
	}
}

func (t *toModern) answered(r *round, m jsonrpc.Message) {
	if r.then != nil {
		r.then(m)
		return
	}
	if t.became(r, m) {
		return
	}
	switch kind := m.Result.Get("resultType").Str(); {
	case kind == "input_required" && asks(r.method):
		t.ask(r, m.Result)
		return
	case kind != "" && kind != "complete":
		t.fail(r, "the server answered with a kind of result that is not translated")
		return
	}
	t.drop(r)
	m.ID = r.id
	if absent(m.Error) {
		m.Result = legacyResult(m.Result)
	} else {
		m.Error = legacyError(r.method, m.Error)
	}
	t.b.toClient(m)
}

// legacyResult takes out what only modern results have.
func legacyResult(v strictjson.Value) strictjson.Value {
	if v.Kind() != strictjson.KindObject {
		return v
	}
	v = v.Without("resultType", "ttlMs", "cacheScope")
	if meta := v.Get("_meta"); !absent(meta.Get(metaServer)) {
		if meta = meta.Without(metaServer); meta.Len() == 0 {
			meta = strictjson.Value{}
		}
		v = v.With("_meta", meta)
	}
	return v
}

func legacyError(method string, v strictjson.Value) strictjson.Value {
	code, _ := jsonrpc.ErrorCode(v)
	switch {
	case code == jsonrpc.CodeInvalidParams && method == "resources/read" && !absent(v.Get("data").Get("uri")):
		code = codeNoResource
	case code == codeHeaders || code == codeCapability || code == codeVersion:
		code = jsonrpc.CodeInternal
	default:
		return v
	}
	return jsonrpc.NewError(code, v.Get("message").Str(), v.Get("data"))
}
