package gateway

import (
	"maps"
	"slices"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// listen is a subscription (2026-07-28): the client's, or what became of it at one of several servers.
type listen struct {
	mu    sync.Mutex
	acked bool
	asked strictjson.Value // what it is for: the filter of the request, later of the acknowledgement
	held  []heldChange     // of several servers, until the client's subscription is acknowledged
	size  int              // bytes of those
}

// heldChange is a notification that came before its time.
type heldChange struct {
	m       jsonrpc.Message
	deliver func()
}

func newListen(filter strictjson.Value) *listen { return &listen{asked: filter} }

// listKinds are the lists one can subscribe to changes of, by the notification that tells of one.
var listKinds = map[string]string{
	"notifications/tools/list_changed": "toolsListChanged", "notifications/prompts/list_changed": "promptsListChanged",
	"notifications/resources/list_changed": "resourcesListChanged",
}

// aboutList says whether a member of a filter is about a list.
func aboutList(kind string) bool {
	return slices.Contains(slices.Collect(maps.Values(listKinds)), kind)
}

// singleKinds lists the members of a filter that name single things, by the notification that tells of them and the member that names
// the thing in it.
var singleKinds = map[string]struct{ filter, name string }{
	"notifications/resources/updated": {"resourceSubscriptions", "uri"}, "notifications/tasks": {"taskIds", "taskId"},
}

// allows says whether a notification belongs to the subscription: of a kind asked for, and after the acknowledgement.
func (n *listen) allows(m jsonrpc.Message) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m.Method == "notifications/subscriptions/acknowledged" {
		first := !n.acked
		n.acked = true
		return first
	}
	if kind, ok := listKinds[m.Method]; ok {
		return n.acked && n.asked.Get(kind).Bool()
	}
	kind, ok := singleKinds[m.Method]
	if !ok {
		return n.acked
	}
	for _, asked := range n.asked.Get(kind.filter).Elems() {
		if n.acked && asked.Str() == m.Params.Get(kind.name).Str() {
			return true
		}
	}
	return false
}

// granted leaves of an acknowledgement's params what the subscription asked for.
func (n *listen) granted(params strictjson.Value) strictjson.Value {
	said := params.Get("notifications")
	var kept []strictjson.Member
	for kind, asked := range n.asked.Members() {
		switch {
		case asked.Kind() == strictjson.KindArray:
			told := map[string]bool{}
			for _, name := range said.Get(kind).Elems() {
				told[name.Str()] = true
			}
			if names := common(asked, told); len(told) > 0 {
				kept = append(kept, strictjson.Member{Name: kind, Value: names})
			}
		case asked.Bool() && said.Get(kind).Bool():
			kept = append(kept, strictjson.Member{Name: kind, Value: asked})
		}
	}
	return params.With("notifications", strictjson.Object(kept...))
}

// common lists what is asked for and told of.
func common(asked strictjson.Value, told map[string]bool) strictjson.Value {
	var names []strictjson.Value
	for _, name := range asked.Elems() {
		if told[name.Str()] {
			names = append(names, name)
		}
	}
	return strictjson.Array(names...)
}

// deliver has a notification of one of several servers passed on, or kept until the client has its acknowledgement.
func (n *listen) deliver(m jsonrpc.Message, pass func()) {
	n.mu.Lock()
	if !n.acked {
		if size := m.Params.Size(); len(n.held) < maxChanges && n.size+size <= maxChanged {
			n.size += size
			n.held = append(n.held, heldChange{m, pass})
		}
		n.mu.Unlock()
		return
	}
	n.mu.Unlock()
	if n.allows(m) {
		pass()
	}
}

// acknowledge notes what the client was told that it gets, and passes on what came before.
func (n *listen) acknowledge(filter strictjson.Value) {
	n.mu.Lock()
	n.acked, n.asked = true, filter
	held := n.held
	n.held, n.size = nil, 0
	n.mu.Unlock()
	for _, h := range held {
		if n.allows(h.m) {
			h.deliver()
		}
	}
}

// tellChanged tells the client that a list changed: one of 2026-07-28 only where it subscribed to that.
func (s *session) tellChanged(method string) {
	s.mu.Lock()
	modern := s.modern
	var open []*flight
	for _, f := range s.flights {
		if f.listen != nil {
			open = append(open, f)
		}
	}
	s.mu.Unlock()
	if !modern {
		s.client.Notify(s.ctx, method, strictjson.Value{})
		return
	}
	m := jsonrpc.Message{Kind: jsonrpc.Notification, Method: method}
	for _, f := range open {
		tell := func() {
			s.client.Notify(jsonrpc.About(s.ctx, f.ID), method, mapSubscription(strictjson.Object(), f.ID))
		}
		if s.several != nil {
			f.listen.deliver(m, tell)
		} else if f.listen.allows(m) {
			tell()
		}
	}
}
