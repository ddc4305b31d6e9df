package era

import (
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of subscriptions.
const (
	maxFollowed = 128             // resources that a client hears of: each is an open request; tasks in one subscription
	maxReopen   = 8               // how often in a row one that the server ends is opened again
	reopenMin   = time.Second     // … the first time after so long, then twice as long each time
	reopenMax   = 5 * time.Minute // one that lasted so long did not end at once
	leaveFor    = time.Second     // how long one that was given up may take to end, before there is another to the same
)

// feed is the subscriptions that are open at a newer server: one for the lists, one for each resource. There are servers that take a
// second one for the same thing in place of the first, and forget it with the first: so none is ever replaced by a larger one.
type feed struct {
	open    map[string]*stream // by id
	uris    map[string]*stream // those of resources
	leaving map[string]*stream // of resources, that were given up and have not ended, by id
	stopped bool
}

// stream is one subscription.
type stream struct {
	id     jsonrpc.ID
	filter strictjson.Value
	uri    string       // of the resource; "" for the lists
	waits  []jsonrpc.ID // requests of the client that are answered when it is acknowledged
	agreed bool
	taken  func() // once: calls wait for this; nil = none do
	since  time.Time
	fails  int
	timer  *time.Timer // until it is opened again
}

func (f *feed) stop() {
	f.stopped = true
	for _, s := range f.open {
		s.quiet()
	}
	for _, s := range f.uris {
		s.quiet()
	}
	for _, s := range f.leaving {
		s.quiet()
	}
}

func (s *stream) quiet() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// subscribe takes a resources/subscribe.
func (t *toModern) subscribe(m jsonrpc.Message) {
	uri := m.Params.Get("uri").Str()
	s := t.uris[uri]
	switch {
	case !t.found.Get("capabilities").Get("resources").Get("subscribe").Bool():
		t.refuse(m, jsonrpc.CodeMethodNotFound, "the server has no subscriptions to resources")
	case s != nil && s.agreed:
		t.b.toClient(result(m.ID, strictjson.Object()))
	case s != nil && len(s.waits) < maxFollowed:
		s.waits = append(s.waits, m.ID)
	case s != nil || len(t.uris) >= maxFollowed:
		t.refuse(m, jsonrpc.CodeInternal, "too many subscriptions")
	default:
		s = &stream{uri: uri, waits: []jsonrpc.ID{m.ID}, filter: strictjson.Object(member("resourceSubscriptions", strictjson.Array(str(uri))))}
		t.uris[uri] = s
		t.begin(s)
	}
}

// begin opens a subscription to a resource, once the last one to the same has ended: a server may end it later, and forget both.
func (t *toModern) begin(s *stream) {
	for _, old := range t.leaving {
		if old.uri == s.uri {
			return
		}
	}
	t.follow(s)
}

// left notes that one that was given up has ended.
func (t *toModern) left(old *stream) {
	old.quiet()
	delete(t.leaving, old.id.Key())
	if s := t.uris[old.uri]; s != nil && s.id.IsZero() {
		t.begin(s)
	}
}

func (t *toModern) unsubscribe(m jsonrpc.Message) {
	if s := t.uris[m.Params.Get("uri").Str()]; s != nil {
		t.forget(s, "the subscription was given up")
	}
	t.b.toClient(result(m.ID, strictjson.Object()))
}

// followLists opens the subscription to what the server says of its lists.
func (t *toModern) followLists() {
	filter := strictjson.Object()
	for _, about := range changed {
		if t.found.Get("capabilities").Get(about.capability).Get("listChanged").Bool() {
			filter = filter.With(about.filter, strictjson.Bool(true))
		}
	}
	if filter.Len() > 0 {
		t.follow(&stream{filter: filter})
	}
}

// follow opens a subscription.
func (t *toModern) follow(s *stream) {
	s.id, s.since, s.agreed = jsonrpc.RandomID(), time.Now(), false
	t.open[s.id.Key()] = s
	s.taken = t.line.expect()
	t.b.toServer(request(s.id, "subscriptions/listen", strictjson.Object(member("notifications", s.filter), member("_meta", t.meta))))
}

// settled lets the calls go that waited for a subscription.
func (s *stream) settled() {
	if s.taken != nil {
		s.taken()
		s.taken = nil
	}
}

// forget gives a subscription up, and answers who waits for it.
func (t *toModern) forget(s *stream, why string) {
	open := t.open[s.id.Key()] == s
	if open {
		t.b.toServer(cancelled(s.id, "the client does not follow this any more"))
	}
	t.gone(s, why)
	if open && s.uri != "" && len(t.leaving) < maxFollowed {
		t.leaving[s.id.Key()] = s
		s.timer = time.AfterFunc(leaveFor, func() {
			t.b.mu.Lock()
			defer t.b.mu.Unlock()
			if !t.stopped && t.leaving[s.id.Key()] == s {
				t.left(s)
			}
		})
	}
}

func (t *toModern) gone(s *stream, why string) {
	s.quiet()
	delete(t.open, s.id.Key())
	delete(t.uris, s.uri)
	for _, id := range s.waits {
		t.b.toClient(failure(id, jsonrpc.CodeInvalidParams, why))
	}
	s.waits = nil
	s.settled()
}

// news takes a notification of a newer server.
func (t *toModern) news(m jsonrpc.Message) {
	meta := m.Params.Get("_meta")
	id, _ := jsonrpc.NewID(meta.Get(metaSubscription))
	s := t.open[id.Key()]
	switch _, list := changed[m.Method]; {
	case m.Method == "notifications/subscriptions/acknowledged":
		if s != nil && !s.agreed {
			t.acknowledged(s, m.Params.Get("notifications").Get("resourceSubscriptions"))
		}
		return
	case m.Method == "notifications/cancelled":
		id, _ := jsonrpc.NewID(m.Params.Get("requestId"))
		t.ended(failure(id, jsonrpc.CodeInternal, "cancelled"))
		return
	case list:
		if s == nil || s.uri != "" {
			return
		}
	case m.Method == "notifications/resources/updated":
		if s == nil || s.uri != m.Params.Get("uri").Str() {
			return
		}
	case m.Method == "notifications/progress":
	case m.Method == "notifications/message":
		if level(m.Params.Get("level")) < level(t.level) {
			return
		}
	default:
		return
	}
	if r := t.calls[m.On.Key()]; r != nil {
		m.On = r.id
	}
	if !id.IsZero() {
		if meta = meta.Without(metaSubscription); meta.Len() == 0 {
			meta = strictjson.Value{}
		}
		if m.Params = m.Params.With("_meta", meta); m.Params.Len() == 0 {
			m.Params = strictjson.Value{}
		}
	}
	t.b.toClient(m)
}

// acknowledged notes what the server says it will tell.
func (t *toModern) acknowledged(s *stream, uris strictjson.Value) {
	if s.agreed = s.uri == ""; s.agreed {
		s.settled()
		return
	}
	for _, uri := range uris.Elems() {
		s.agreed = s.agreed || uri.Str() == s.uri
	}
	if !s.agreed {
		t.forget(s, "the server does not take this subscription")
		return
	}
	for _, id := range s.waits {
		t.b.toClient(result(id, strictjson.Object()))
	}
	s.waits = nil
	s.settled()
}

// ended takes the end of a subscription. false: the answer is to something else.
func (t *toModern) ended(m jsonrpc.Message) bool {
	if old := t.leaving[m.ID.Key()]; old != nil {
		t.left(old)
		return true
	}
	s := t.open[m.ID.Key()]
	if s == nil {
		return false
	}
	delete(t.open, s.id.Key())
	if time.Since(s.since) > reopenMax {
		s.fails = 0
	}
	s.fails++
	if code, _ := jsonrpc.ErrorCode(m.Error); code == jsonrpc.CodeMethodNotFound || s.fails > maxReopen || len(s.waits) > 0 {
		t.gone(s, "the server does not take this subscription")
		return true
	}
	s.agreed = false
	s.settled()
	s.timer = time.AfterFunc(reopenMin<<(s.fails-1), func() {
		t.b.mu.Lock()
		defer t.b.mu.Unlock()
		if !t.stopped && (s.uri == "" || t.uris[s.uri] == s) {
			t.follow(s)
		}
	})
	return true
}
