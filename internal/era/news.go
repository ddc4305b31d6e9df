package era

import (
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
	default:
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
	owed   int              // answers to resources/subscribe
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
	if can.Get("resources").Get("subscribe").Bool() {
		for _, uri := range asked.Get("resourceSubscriptions").Elems() {
			if _, twice := l.uris[uri.Str()]; !twice && uri.Kind() == strictjson.KindString {
				t.subscribe(l, uri)
			}
		}
	}
	t.acknowledge(l)
}

func (t *toLegacy) subscribe(l *listen, uri strictjson.Value) {
	name := uri.Str()
	l.uris[name] = t.holds(name, l)
	if l.uris[name] {
		return
	}
	l.owed++
	t.ask("resources/subscribe", strictjson.Object(member("uri", uri)), func(m jsonrpc.Message) {
		l.owed--
		if absent(m.Error) {
			l.uris[name] = true
		} else {
			delete(l.uris, name)
		}
		t.acknowledge(l)
	})
}

// holds says whether another subscription has the resource.
func (t *toLegacy) holds(uri string, but *listen) bool {
	for _, l := range t.listens {
		if l != but && l.uris[uri] {
			return true
		}
	}
	return false
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
	if l.owed > 0 || l.acked || t.listens[l.id.Key()] != l {
		return
	}
	l.acked = true
	agreed := l.filter
	if len(l.uris) > 0 {
		agreed = agreed.With("resourceSubscriptions", names(l.uris))
	}
	l.tell(t.b, notification("notifications/subscriptions/acknowledged", strictjson.Object(member("notifications", agreed))))
}

// unlisten ends a subscription that the client gave up.
func (t *toLegacy) unlisten(l *listen) {
	delete(t.listens, l.id.Key())
	for uri := range l.uris {
		if !t.holds(uri, l) {
			t.ask("resources/unsubscribe", strictjson.Object(member("uri", str(uri))), func(jsonrpc.Message) {})
		}
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
