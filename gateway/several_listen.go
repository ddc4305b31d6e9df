package gateway

import (
	"context"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// shared is what a subscription of the client's is to several servers: one at each that it concerns, merged under the client's
// id. It lasts until the client gives it up, whatever becomes of the servers. A server that does not run is subscribed to when
// it starts: before, it can change nothing that anybody saw.
type shared struct {
	parts map[*upstream]strictjson.Value // what each server is asked for

	mu       sync.Mutex // guards all below
	over     bool
	branches map[*link]*branch
}

// branch is what a subscription of the client's became at one of several servers.
type branch struct {
	*listen         // what the server was asked for
	of      *flight // the client's subscription
	call    *jsonrpc.Call
	once    sync.Once
	settled chan struct{}    // closed when the server acknowledged, or will not
	agreed  strictjson.Value // what it acknowledged; set before settled is closed
}

// branch gives what became of a subscription of the client's under this id of ours; nil if none did.
func (l *link) branch(id jsonrpc.ID) *branch {
	return carried[branch](l, id)
}

func (b *branch) settle(agreed strictjson.Value) {
	b.once.Do(func() {
		b.agreed = agreed
		close(b.settled)
	})
}

// end gives up a branch and tells whether it was open.
func (b *branch) end() bool {
	b.settle(strictjson.Value{})
	return b.call.Forget()
}

// acknowledged takes a server's acknowledgement of a branch. The client gets one for all. false: it is of no branch.
func (l *link) acknowledged(m jsonrpc.Message) bool {
	id, _ := jsonrpc.NewID(m.Params.Get("_meta").Get(metaSubscription))
	b := l.branch(id)
	if b == nil {
		return false
	}
	if b.allows(m) {
		b.settle(m.Params.Get("notifications"))
	} else {
		l.up.stats.Unsolicited.Add(1)
	}
	return true
}

// listen serves a subscription of the client's.
func (s *session) listen(f *flight) {
	filter := f.Params.Get("notifications")
	if filter.Kind() != strictjson.KindObject {
		s.finish(f, strictjson.Value{}, ownError(jsonrpc.CodeInvalidParams, "notifications must be an object"))
		return
	}
	parts, single := s.parts(f, filter)
	f.shared = &shared{parts: parts, branches: map[*link]*branch{}}
	s.watch(f, 0, func() { s.unlisten(f) })
	s.mu.Lock()
	f.ready = true // servers that start from now on are subscribed to, see [session.joined]
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(f.ctx, s.g.listWait)
	defer cancel()
	select {
	case <-f.turn: // what the client sent before and behind this is sent before and behind it
	case <-ctx.Done():
	}
	var mu sync.Mutex
	agreed := map[string]map[string]bool{"resourceSubscriptions": {}, "taskIds": {}} // what a server will tell of
	var sending, asking sync.WaitGroup
	for up := range parts {
		if up.running() == nil && !single[up] {
			continue
		}
		sending.Add(1)
		asking.Go(func() {
			var b *branch
			if l, err := up.ready(ctx, f.Method); err == nil {
				b = s.subscribe(ctx, f, l)
			}
			sending.Done()
			if b == nil {
				return
			}
			select {
			case <-b.settled:
			case <-ctx.Done():
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for kind := range agreed {
				for _, name := range b.agreed.Get(kind).Elems() {
					agreed[kind][name.Str()] = true
				}
			}
		})
	}
	sending.Wait()
	f.passTurn()
	asking.Wait()
	if f.ctx.Err() != nil {
		return
	}
	// That a list changed is the gateway's to say, for whatever server. Of single things counts what their owner will tell.
	var granted []strictjson.Member
	for kind, v := range filter.Members() {
		if single := agreed[kind]; single != nil {
			granted = append(granted, strictjson.Member{Name: kind, Value: common(v, single)})
		} else if aboutList(kind) {
			granted = append(granted, strictjson.Member{Name: kind, Value: v})
		}
	}
	grant := strictjson.Object(granted...)
	s.client.Notify(jsonrpc.About(s.ctx, f.ID), "notifications/subscriptions/acknowledged",
		mapSubscription(strictjson.Object(strictjson.Member{Name: "notifications", Value: grant}), f.ID))
	f.listen.acknowledge(grant)
}

// parts divides a filter: changes of lists concern every server, a resource or task its owner only. single are the owners.
func (s *session) parts(f *flight, filter strictjson.Value) (parts map[*upstream]strictjson.Value, single map[*upstream]bool) {
	parts, single = map[*upstream]strictjson.Value{}, map[*upstream]bool{}
	asked := false
	owner := func(kind, name string) *upstream {
		if kind == "taskIds" {
			up, _ := s.taskOwner(name)
			return up
		}
		up, listed, _ := s.offered(name)
		if !listed && !asked {
			asked = true
			s.stock(f, "resources/list", "resources/templates/list")
			up, _, _ = s.offered(name)
		}
		return up
	}
	for kind, v := range filter.Members() {
		switch {
		case aboutList(kind) && v.Bool():
			for _, up := range s.servers {
				parts[up] = with(parts[up], kind, v)
			}
		case kind == "resourceSubscriptions" || kind == "taskIds":
			names := map[*upstream][]strictjson.Value{}
			for _, name := range v.Elems() {
				if up := owner(kind, name.Str()); up != nil {
					names[up], single[up] = append(names[up], name), true
				}
			}
			for up, list := range names {
				parts[up] = with(parts[up], kind, strictjson.Array(list...))
			}
		}
	}
	return parts, single
}

func with(object strictjson.Value, name string, v strictjson.Value) strictjson.Value {
	if object.Kind() == strictjson.KindAbsent {
		object = strictjson.Object()
	}
	return object.With(name, v)
}

// subscribe opens the branch of a subscription at a running server, unless there is one; nil: there is none to be.
func (s *session) subscribe(ctx context.Context, f *flight, l *link) *branch {
	part := f.shared.parts[l.up]
	if part.Kind() == strictjson.KindAbsent {
		return nil
	}
	f.shared.mu.Lock()
	b := f.shared.branches[l]
	if b != nil || f.shared.over {
		f.shared.mu.Unlock()
		return b
	}
	b = &branch{listen: newListen(part), of: f, settled: make(chan struct{})}
	call, err := l.peer.Open(b)
	if err != nil {
		f.shared.mu.Unlock()
		return nil
	}
	b.call = call
	f.shared.branches[l] = b
	f.shared.mu.Unlock()
	ended := func(jsonrpc.Message, error) {
		b.settle(strictjson.Value{})
		f.shared.mu.Lock()
		defer f.shared.mu.Unlock()
		delete(f.shared.branches, l)
	}
	params := f.Params.With("_meta", f.asked()).With("notifications", part)
	if err := call.Send(ctx, f.Method, params, ended, f.Extra...); err != nil {
		ended(jsonrpc.Message{}, err)
	}
	return b
}

// unlisten gives up all that a subscription became.
func (s *session) unlisten(f *flight) {
	f.shared.mu.Lock()
	f.shared.over = true
	branches := f.shared.branches
	f.shared.branches = nil
	f.shared.mu.Unlock()
	for l, b := range branches {
		if b.end() {
			l.notify("notifications/cancelled", strictjson.Object(
				strictjson.Member{Name: "requestId", Value: b.call.ID.Value()},
				strictjson.Member{Name: "reason", Value: strictjson.String("the subscription is over")}), nil)
		}
	}
	s.close(f, nil)
}

// joined subscribes to a server that just started, for all that the client listens to.
func (s *session) joined(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flights {
		if f.ready && s.ctx.Err() == nil {
			s.work.Go(func() { s.subscribe(f.ctx, f, l) })
		}
	}
}
