package era

import (
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

const (
	maxListens = 64   // subscriptions of one client
	maxURIs    = 1024 // resources in all of them
)

// changed are the notifications that only say that a list changed, by the member of a filter that asks for them, and the capability
// that a server declares for them.
var changed = map[string]struct{ filter, capability string }{
	"notifications/tools/list_changed":     {"toolsListChanged", "tools"},
	"notifications/prompts/list_changed":   {"promptsListChanged", "prompts"},
	"notifications/resources/list_changed": {"resourcesListChanged", "resources"},
}

// news takes a notification of an older server.
func (t *toLegacy) news(m jsonrpc.Message) {
	switch m.Method {
	case "notifications/progress":
		token, _ := jsonrpc.NewID(m.Params.Get("progressToken"))
		if c := t.calls[token.Key()]; c != nil && !c.id.IsZero() {
			m.Params, m.On = m.Params.With("progressToken", c.id.Value()), c.id
			t.b.toClient(m)
		}
	case "notifications/message":
		c := t.occasion(m.On)
		if c != nil && !c.id.IsZero() && c.level >= 0 && level(m.Params.Get("level")) >= c.level {
			m.On = c.id
			t.b.toClient(m)
		}
	case "notifications/cancelled": // a question of the server's
		id, _ := jsonrpc.NewID(m.Params.Get("requestId"))
		t.withdraw(id)
	case "notifications/resources/updated":
		uri := m.Params.Get("uri").Str()
		for _, l := range t.listens {
			if l.acked && l.uris[uri] {
				l.tell(t.b, m)
			}
		}
	case "notifications/tasks/status":
		t.poll(t.tasks[m.Params.Get("taskId").Str()])
	default:
		if m.Method == "notifications/tools/list_changed" {
			t.surveyed = false
		}
		about, known := changed[m.Method]
		if !known {
			return
		}
		for _, l := range t.listens {
			if l.acked && l.filter.Get(about.filter).Bool() {
				l.tell(t.b, m)
			}
		}
	}
}

// listen is a subscription of a modern client.
type listen struct {
	id     jsonrpc.ID
	filter strictjson.Value // what of it the server can do
	uris   map[string]bool  // resources: true once the server agreed
	tasks  []string
	taken  func() // calls that came after it wait for this
	acked  bool
}

// tell sends a notification on the subscription.
func (l *listen) tell(b *Bridge, m jsonrpc.Message) {
	m.On = l.id
	m.Params = m.Params.With("_meta", m.Params.Get("_meta").With(metaSubscription, l.id.Value()))
	b.toClient(m)
}

// listen opens a subscription: the server is told of resources one by one, and then the client what came of it.
func (t *toLegacy) listen(m jsonrpc.Message) {
	asked := m.Params.Get("notifications")
	tasks := asked.Get("taskIds")
	if !absent(tasks) && !hasTasks(m.Params.Get("_meta").Get(metaCapabilities)) {
		t.b.toClient(lacksTasks(m.ID))
		return
	}
	if len(t.listens) >= maxListens || asked.Get("resourceSubscriptions").Len() > maxURIs-t.subscribed() {
		t.b.toClient(failure(m.ID, jsonrpc.CodeInternal, "too many subscriptions"))
		return
	}
	l := &listen{id: m.ID, filter: strictjson.Object(), uris: map[string]bool{}}
	can := t.hello.Get("capabilities")
	for _, about := range changed {
		if asked.Get(about.filter).Bool() && can.Get(about.capability).Get("listChanged").Bool() {
			l.filter = l.filter.With(about.filter, strictjson.Bool(true))
		}
	}
	t.listens[m.ID.Key()] = l
	l.taken = t.line.expect()
	if can.Get("resources").Get("subscribe").Bool() {
		for _, uri := range asked.Get("resourceSubscriptions").Elems() {
			if uri.Kind() == strictjson.KindString {
				l.uris[uri.Str()] = false
			}
		}
	}
	for _, id := range tasks.Elems() {
		if task := t.tasks[id.Str()]; task != nil && !slices.Contains(l.tasks, task.id) && len(l.tasks) < maxFollowed {
			l.tasks = append(l.tasks, task.id)
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(l.uris)) {
		t.follow(uri)
	}
	t.acknowledge(l)
}

// followed is a resource of subscriptions. The server is told one thing of it at a time: it may take up the next beside it, and end with
// the first.
type followed struct {
	at   bool // the server tells of it
	busy bool // … or is asked to begin or to end
}

// follow has the server tell of a resource as long as a subscription wants it.
func (t *toLegacy) follow(uri string) {
	f := t.followed[uri]
	if f == nil {
		f = &followed{}
		t.followed[uri] = f
	}
	wanted := false
	for _, l := range t.listens {
		_, its := l.uris[uri]
		wanted = wanted || its
		if its && f.at && !f.busy {
			l.uris[uri] = true
		}
	}
	params := strictjson.Object(member("uri", str(uri)))
	switch {
	case f.busy:
	case wanted && !f.at:
		f.busy = true
		t.own.ask(t.b, "resources/subscribe", params, func(m jsonrpc.Message) {
			f.busy, f.at = false, absent(m.Error)
			for _, l := range t.listens {
				if !f.at {
					delete(l.uris, uri)
				}
			}
			t.follow(uri)
			for _, l := range t.listens {
				t.acknowledge(l)
			}
		})
	case !wanted && f.at:
		f.busy = true
		t.own.ask(t.b, "resources/unsubscribe", params, func(jsonrpc.Message) {
			f.busy, f.at = false, false
			t.follow(uri)
		})
	case !wanted:
		delete(t.followed, uri)
	}
}

// subscribed counts the resources in all subscriptions.
func (t *toLegacy) subscribed() (n int) {
	for _, l := range t.listens {
		n += len(l.uris)
	}
	return n
}

// acknowledge tells the client what it will hear of, once the server has said so.
func (t *toLegacy) acknowledge(l *listen) {
	if l.acked || slices.Contains(slices.Collect(maps.Values(l.uris)), false) {
		return
	}
	l.acked = true
	agreed := l.filter
	if len(l.uris) > 0 {
		agreed = agreed.With("resourceSubscriptions", names(l.uris))
	}
	if len(l.tasks) > 0 {
		agreed = agreed.With("taskIds", list(l.tasks))
	}
	l.tell(t.b, notification("notifications/subscriptions/acknowledged", strictjson.Object(member("notifications", agreed))))
	for _, id := range l.tasks {
		if task := t.tasks[id]; task != nil {
			task.told = [sha256.Size]byte{} // this one was told nothing yet
			t.poll(task)
		}
	}
	l.taken()
}

// unlisten ends a subscription that the client gave up.
func (t *toLegacy) unlisten(l *listen) {
	delete(t.listens, l.id.Key())
	for uri := range l.uris {
		t.follow(uri)
	}
	if !l.acked {
		l.taken()
	}
}

// reverted passes everything on between a client that initialized after all and its server, which was greeted before.
type reverted struct {
	b   *Bridge
	ids *toLegacy
}

func (r *reverted) fromClient(m jsonrpc.Message) {
	if m.Method != "notifications/initialized" { // which the server was told
		r.b.toServer(m)
	}
}

func (r *reverted) fromServer(m jsonrpc.Message) {
	if m.Kind == jsonrpc.Response {
		r.ids.fromServer(m)
		return
	}
	r.b.toClient(m)
}

func (r *reverted) clientID(id jsonrpc.ID) jsonrpc.ID { return r.ids.clientID(id) }
func (r *reverted) end()                              {}
