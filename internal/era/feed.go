package era

import (
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// feed is the one subscription that is kept open at a newer server, for all that an older client hears of: it is opened anew when
// the client wants to hear of something else, and the old one given up once the new one is acknowledged.
type feed struct {
	uris    map[string]bool // resources that the client subscribed to
	pending []subscribing   // what waits for the next acknowledgement
	now     jsonrpc.ID      // the one that is acknowledged; zero = none
	next    jsonrpc.ID      // the one that is being opened; zero = none
	stale   bool            // what is wanted has changed since next was opened
	fails   int             // that ended at once, in a row
	timer   *time.Timer
	stopped bool
}

// subscribing is a resources/subscribe of the client.
type subscribing struct {
	id  jsonrpc.ID
	uri string
}

func (f *feed) stop() {
	f.stopped = true
	if f.timer != nil {
		f.timer.Stop()
	}
}

// subscribe takes a resources/subscribe.
func (t *toModern) subscribe(m jsonrpc.Message) {
	uri := m.Params.Get("uri").Str()
	switch {
	case !t.found.Get("capabilities").Get("resources").Get("subscribe").Bool():
		t.refuse(m, jsonrpc.CodeMethodNotFound, "the server has no subscriptions to resources")
		return
	case len(t.uris) >= maxURIs || len(t.pending) >= maxURIs:
		t.refuse(m, jsonrpc.CodeInternal, "too many subscriptions")
		return
	}
	t.uris[uri] = true
	t.pending = append(t.pending, subscribing{m.ID, uri})
	t.follow()
}

// follow opens the subscription for what the client is to hear of now.
func (t *toModern) follow() {
	if !t.next.IsZero() {
		t.stale = true
		return
	}
	t.stale = false
	filter := strictjson.Object()
	for _, about := range changed {
		if t.found.Get("capabilities").Get(about.capability).Get("listChanged").Bool() {
			filter = filter.With(about.filter, strictjson.Bool(true))
		}
	}
	if len(t.uris) > 0 {
		filter = filter.With("resourceSubscriptions", names(t.uris))
	}
	if filter.Len() == 0 {
		t.leave()
		return
	}
	t.next = jsonrpc.RandomID()
	t.b.toServer(request(t.next, "subscriptions/listen", strictjson.Object(member("notifications", filter), member("_meta", t.meta))))
}

// leave gives up the subscription that is open.
func (t *toModern) leave() {
	if !t.now.IsZero() {
		t.b.toServer(cancelled(t.now, "the client wants to hear of something else"))
		t.now = jsonrpc.ID{}
	}
}

// news takes a notification of a newer server.
func (t *toModern) news(m jsonrpc.Message) {
	meta := m.Params.Get("_meta")
	id, _ := jsonrpc.NewID(meta.Get(metaSubscription))
	ours := !id.IsZero() && (id.Key() == t.now.Key() || id.Key() == t.next.Key())
	switch _, list := changed[m.Method]; {
	case m.Method == "notifications/subscriptions/acknowledged":
		if ours && id.Key() == t.next.Key() {
			t.acknowledged(m.Params.Get("notifications"))
		}
		return
	case m.Method == "notifications/cancelled":
		id, _ := jsonrpc.NewID(m.Params.Get("requestId"))
		t.ended(failure(id, jsonrpc.CodeInternal, "cancelled"))
		return
	case list, m.Method == "notifications/resources/updated":
		if !ours {
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

// acknowledged answers who waited to hear whether the server agrees, and gives up the old subscription.
func (t *toModern) acknowledged(agreed strictjson.Value) {
	t.leave()
	t.now, t.next, t.fails = t.next, jsonrpc.ID{}, 0
	has := map[string]bool{}
	for _, uri := range agreed.Get("resourceSubscriptions").Elems() {
		has[uri.Str()] = true
	}
	pending := t.pending
	t.pending = nil
	for _, s := range pending {
		switch {
		case has[s.uri] || !t.uris[s.uri]: // or it was given up meanwhile
			t.b.toClient(result(s.id, strictjson.Object()))
		case t.stale: // it came after this one was opened
			t.pending = append(t.pending, s)
		default:
			delete(t.uris, s.uri)
			t.b.toClient(failure(s.id, jsonrpc.CodeInvalidParams, "the server does not take this subscription"))
		}
	}
	if t.stale {
		t.follow()
	}
}

// ended takes the end of a subscription. false: the answer is to something else.
func (t *toModern) ended(m jsonrpc.Message) bool {
	switch key := m.ID.Key(); key {
	case "":
		return false
	case t.next.Key():
		t.next = jsonrpc.ID{}
		for _, s := range t.pending {
			delete(t.uris, s.uri)
			t.b.toClient(failure(s.id, jsonrpc.CodeInternal, "the server does not take subscriptions"))
		}
		t.pending = nil
		if code, _ := jsonrpc.ErrorCode(m.Error); code == jsonrpc.CodeMethodNotFound {
			t.stale = false
			return true
		}
	case t.now.Key():
		t.now = jsonrpc.ID{}
	default:
		return false
	}
	if t.fails++; t.fails > maxReopen || t.stopped || !t.next.IsZero() {
		return true
	}
	t.timer = time.AfterFunc(min(reopenMin<<(t.fails-1), reopenMax), func() {
		t.b.mu.Lock()
		defer t.b.mu.Unlock()
		if !t.stopped && t.next.IsZero() && t.now.IsZero() {
			t.follow()
		}
	})
	return true
}
