package gateway

import (
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// notification passes a notification of the server on to the client: only with tokens and subscriptions that the client
// opened, at a bounded rate, and what only says "something changed" at most once in a while.
func (l *link) notification(m jsonrpc.Message) {
	s := l.up.s
	if m.Method == "notifications/cancelled" {
		l.cancelled(m)
		return
	}
	if m.Method == "notifications/subscriptions/acknowledged" && l.acknowledged(m) {
		return
	}
	about := About{Method: m.Method, Version: s.agreed()}
	to, allowed := l.addressee(m, &about)
	if !allowed {
		l.up.stats.Unsolicited.Add(1)
		return
	}
	if m.Method == "notifications/subscriptions/acknowledged" && to.on != nil {
		m.Params = to.on.granted(m.Params)
	}
	s.stale(l.up, m.Method)
	switch m.Method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/resources/updated":
		l.changed(m, about, to)
		return
	}
	if !l.news.take() {
		s.counts.flood.Add(1)
		return
	}
	l.pass(m, about, to)
}

// addressee is what a message to the client belongs to.
type addressee struct {
	request jsonrpc.ID                              // the open request of the client, for transports with a stream for each; zero for none
	mapped  func(strictjson.Value) strictjson.Value // puts the client's own token or id into the params; nil where there is none
	on      *listen                                 // the subscription that it came on; nil if on none
	client  *listen                                 // the client's subscription, where several servers share it; nil otherwise
}

// pass treats a notification and sends it on.
func (l *link) pass(m jsonrpc.Message, about About, to addressee) {
	s := l.up.s
	t := l.up.treat.Notification(about, m.Params)
	if s.observe(l.up, about, t, m.Params) != nil {
		return // it could not be recorded
	}
	if t.Refused != nil {
		s.log.Warn("a notification is not passed on", "server", l.up.name(), "method", m.Method, "why", t.Refused)
		return
	}
	params := t.Value
	if to.mapped != nil {
		params = to.mapped(params)
	}
	if params.Len() == 0 && m.Params.Kind() == strictjson.KindAbsent {
		params = strictjson.Value{}
	}
	s.client.Notify(jsonrpc.About(s.ctx, to.request), m.Method, params)
}

const metaSubscription = "io.modelcontextprotocol/subscriptionId"

func mapSubscription(v strictjson.Value, id jsonrpc.ID) strictjson.Value {
	return v.With("_meta", v.Get("_meta").With(metaSubscription, id.Value()))
}

// addressee finds what a notification belongs to, and how its token or subscription id is mapped to the client's. false: it
// belongs to nothing that the client opened.
func (l *link) addressee(m jsonrpc.Message, about *About) (to addressee, allowed bool) {
	if m.Method == "notifications/progress" {
		token, _ := jsonrpc.NewID(m.Params.Get("progressToken"))
		theirs := strictjson.Value{}
		if f := l.flight(token); f != nil {
			l.up.s.mu.Lock()
			f.alive()
			l.up.s.mu.Unlock()
			theirs, to.request = f.progress, f.ID
			about.Name = f.Params.Get("name").Str()
		} else {
			l.mu.Lock()
			kept := l.tokens[token.Key()]
			l.mu.Unlock()
			theirs, about.Name = kept.progress, kept.tool
		}
		to.mapped = func(v strictjson.Value) strictjson.Value { return v.With("progressToken", theirs) }
		return to, theirs.Kind() != strictjson.KindAbsent
	}
	switch m.Method {
	case "notifications/tasks/status", "notifications/tasks":
		id := m.Params.Get("taskId").Str()
		if about.Name, allowed = l.up.task(id); !allowed {
			return to, false
		}
	case "notifications/elicitation/complete":
		if !l.up.elicited(m.Params.Get("elicitationId").Str()) {
			return to, false
		}
	}
	sub := m.Params.Get("_meta").Get(metaSubscription)
	if sub.Kind() == strictjson.KindAbsent {
		l.up.s.mu.Lock()
		modern := l.up.s.modern
		l.up.s.mu.Unlock()
		to.request = l.occasion(m)
		return to, !modern || !subscribable(m.Method)
	}
	id, _ := jsonrpc.NewID(sub)
	f, n := l.flight(id), (*listen)(nil)
	if b := l.branch(id); b != nil {
		f, n, to.client = b.of, b.listen, b.of.listen
	} else if f != nil {
		n = f.listen
	}
	if n == nil {
		return to, false
	}
	to.request, to.on, to.mapped = f.ID, n, func(v strictjson.Value) strictjson.Value { return mapSubscription(v, f.ID) }
	return to, n.allows(m)
}

// flight is the open request of the client that became the call with this id; nil if none did.
func (l *link) flight(id jsonrpc.ID) *flight {
	return carried[flight](l, id)
}

// carried gives what a call of ours with this id was opened for; nil if it is not open, or for something else.
func carried[T any](l *link, id jsonrpc.ID) *T {
	call, ok := l.peer.Find(id)
	if !ok {
		return nil
	}
	data, _ := call.Data.(*T)
	return data
}

// occasion is the request of the client that a message of the server belongs to, where the transport tells; else the one that it
// most likely speaks of: the one that was made last of those that do something. Zero if none is open.
func (l *link) occasion(m jsonrpc.Message) jsonrpc.ID {
	if f := l.flight(m.On); f != nil {
		return f.ID
	}
	var last *flight
	for _, call := range l.peer.Calls() {
		f, ok := call.Data.(*flight)
		if !ok || last != nil && f.started.Before(last.started) {
			continue
		}
		switch f.Method {
		case "tools/call", "prompts/get", "resources/read", "tasks/result":
			last = f
		}
	}
	if last == nil {
		return jsonrpc.ID{}
	}
	return last.ID
}

// subscribable says which notifications come only to those who asked for them, since 2026-07-28.
func subscribable(method string) bool {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed",
		"notifications/resources/updated", "notifications/subscriptions/acknowledged":
		return true
	}
	return false
}

// cancelled gives up a request that the server made, or ends a subscription of the client: nothing else may it cancel.
func (l *link) cancelled(m jsonrpc.Message) {
	id, _ := jsonrpc.NewID(m.Params.Get("requestId"))
	l.mu.Lock()
	a := l.asked[id.Key()]
	l.mu.Unlock()
	if a != nil {
		a.cancel(errCancelled{m.Params})
		return
	}
	if b := l.branch(id); b != nil {
		b.end()
		return
	}
	if f := l.flight(id); f != nil && f.listen != nil {
		f.sentAs().Forget()
		l.pass(m, About{Method: m.Method}, addressee{request: f.ID, mapped: func(v strictjson.Value) strictjson.Value { return v.With("requestId", f.ID.Value()) }})
		f.cancel(errCancelled{})
		return
	}
	l.up.stats.Unsolicited.Add(1)
}

// keepToken keeps the progress token of a request that became a task: progress goes on after its answer.
func (l *link) keepToken(f *flight) {
	if f.progress.Kind() == strictjson.KindAbsent {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for old := range l.tokens {
		if len(l.tokens) < maxKept {
			break
		}
		delete(l.tokens, old)
	}
	l.tokens[f.sentAs().ID.Key()] = taskToken{f.progress, f.Params.Get("name").Str()}
}

// changes tells each thing that changed at once, and then not again before a gap is over.
type changes struct {
	mu   sync.Mutex
	told map[string]*change
	kept int // bytes of what is remembered of them
}

// change is a thing that was told a moment ago.
type change struct {
	again func() // what is to be told when the gap is over; nil = nothing
	size  int    // of that
}

// tell calls deliver now, or when the gap is over; of several in one gap the last. size is what deliver keeps in memory. false: too
// many things change, or too large ones.
func (c *changes) tell(key string, size int, deliver func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if told := c.told[key]; told != nil {
		if size > told.size && c.kept+size-told.size > maxChanged {
			return false
		}
		c.kept += size - told.size
		told.again, told.size = deliver, size
		return true
	}
	if len(c.told) >= maxChanges || c.kept+len(key) > maxChanged {
		return false
	}
	c.told[key] = new(change)
	c.kept += len(key)
	time.AfterFunc(changeGap, func() { c.over(key) })
	deliver()
	return true
}

func (c *changes) over(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told[key]
	if told.again == nil {
		delete(c.told, key)
		c.kept -= len(key)
		return
	}
	time.AfterFunc(changeGap, func() { c.over(key) })
	told.again()
	c.kept -= told.size
	told.again, told.size = nil, 0
}

// changed tells the client that something changed.
func (l *link) changed(m jsonrpc.Message, about About, to addressee) {
	key := m.Method + "\n" + m.Params.Get("uri").Str() + "\n" + string(m.Params.Get("_meta").Get(metaSubscription).Append(nil))
	deliver := func() { l.pass(m, about, to) }
	if to.client != nil {
		deliver = func() { to.client.deliver(m, func() { l.pass(m, about, to) }) }
	}
	if !l.changes.tell(key, m.Params.Size(), deliver) {
		l.up.s.counts.flood.Add(1)
	}
}

// bucket bounds a rate: burst at once, then rate a second.
type bucket struct {
	burst, rate float64
	mu          sync.Mutex
	used        float64
	at          time.Time
}

func (b *bucket) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.used = max(0, b.used-now.Sub(b.at).Seconds()*b.rate)
	b.at = now
	if b.used+1 > b.burst {
		return false
	}
	b.used++
	return true
}
