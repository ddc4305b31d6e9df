package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of what a server may send unasked.
const (
	maxAsked   = 64                     // requests to the client that are open
	maxAskedIn = 8 << 20                // … and their size, beside the one that may exceed it
	maxKept    = 1024                   // progress tokens of tasks
	changeGap  = 250 * time.Millisecond // between two notifications that say the same
	maxChanges = 1024                   // different things that may change within a gap
	maxChanged = 64 << 20               // … and bytes of what is remembered of them: one message of the largest kind
)

// unasked is the state of what a server sends unasked.
type unasked struct {
	answers atomic.Int64 // requests it has answered
	talk    bucket       // lines on standard error, noise
	news    bucket       // notifications
	wants   bucket       // requests to the client

	mu      sync.Mutex
	asked   map[string]*asked    // its open requests to the client, by the key of its id
	askedIn int                  // and their size
	tokens  map[string]taskToken // of requests that became tasks, by the key of our own token
	changes changes
}

func (fs *unasked) init() {
	fs.talk, fs.news, fs.wants = bucket{burst: 200, rate: 50}, bucket{burst: 2000, rate: 500}, bucket{burst: 200, rate: 20}
	fs.asked, fs.tokens, fs.changes.told = map[string]*asked{}, map[string]taskToken{}, map[string]*change{}
}

// taskToken is a progress token of the client that outlives its request.
type taskToken struct {
	progress strictjson.Value
	tool     string
}

// asked is a request of a server that waits for the client.
type asked struct {
	link     *link
	progress strictjson.Value // the server's own token; absent if it wants no progress
	cancel   context.CancelCauseFunc
}

// bad notes a message of the server that could not be read and answers nothing.
func (l *link) bad(b *jsonrpc.BadMessage) {
	l.up.s.log.Warn("unreadable message from a server", "server", l.up.name(), "why", b.Err)
	if id := b.ID(); b.Request && !id.IsZero() {
		l.peer.Reply(jsonrpc.AtOnce, id, strictjson.Value{}, ownError(jsonrpc.CodeInvalidRequest, "%v", b.Err))
	}
}

// hear takes a request or notification of the server.
func (l *link) hear(m jsonrpc.Message) {
	s := l.up.s
	s.counts.members.Add(int64(len(m.Extra))) // beside the members of JSON-RPC; they end here
	if !KnownMethod(m.Method, true, m.Kind == jsonrpc.Notification) {
		s.counts.unknown.Add(1)
		if l.talk.take() {
			s.log.Warn("a server used a method the gateway does not know", "server", l.up.name(), "method", cleanLine(m.Method))
		}
		if m.Kind == jsonrpc.Request {
			l.refuse(m, jsonrpc.CodeMethodNotFound, "no such method")
		}
		return
	}
	if m.Kind == jsonrpc.Request {
		l.request(m)
	} else {
		l.notification(m)
	}
}

func (l *link) refuse(m jsonrpc.Message, code int, why string) {
	l.peer.Reply(jsonrpc.AtOnce, m.ID, strictjson.Value{}, ownError(code, "%s", why))
}

// request passes a request of the server on to the client, if the client said that it takes such.
func (l *link) request(m jsonrpc.Message) {
	s := l.up.s
	key := m.ID.Key()
	switch {
	case !s.takes(m):
		s.record(audit.Event{Kind: audit.Refusal, Server: l.up.name(), Tool: m.Method, Reason: "capability"})
		l.refuse(m, jsonrpc.CodeMethodNotFound, "the client does not take this request")
		return
	case s.ctx.Err() != nil:
		return
	case !l.wants.take():
		s.counts.flood.Add(1)
		l.refuse(m, jsonrpc.CodeInternal, "too many requests in a short time")
		return
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	a := &asked{link: l, progress: m.Params.Get("_meta").Get("progressToken"), cancel: cancel}
	size := m.Params.Size()
	l.mu.Lock()
	twice := l.asked[key] != nil
	much := len(l.asked) >= maxAsked || len(l.asked) > 0 && l.askedIn+size > maxAskedIn
	if !much && !twice {
		l.asked[key] = a
		l.askedIn += size
	}
	l.mu.Unlock()
	switch {
	case twice:
		cancel(nil)
		l.refuse(m, jsonrpc.CodeInvalidRequest, "a request with this id is still open")
		return
	case much:
		cancel(nil)
		s.counts.flood.Add(1)
		l.refuse(m, jsonrpc.CodeInternal, "too much is asked at once")
		return
	}
	s.work.Go(func() {
		defer cancel(nil)
		result, failure := l.askClient(ctx, a, m)
		l.stirred()
		l.mu.Lock()
		l.askedIn -= size
		delete(l.asked, key) // before the answer is out: the server may use its id again
		l.mu.Unlock()
		if ctx.Err() == nil {
			l.peer.Reply(s.ctx, m.ID, result, failure)
		}
	})
}

// askClient puts the server's request to the client.
func (l *link) askClient(ctx context.Context, a *asked, m jsonrpc.Message) (result, failure strictjson.Value) {
	s := l.up.s
	about := About{Method: m.Method, Version: s.agreed()}
	t := l.up.treat.Request(about, m.Params)
	if err := s.observe(l.up, about, t, m.Params); err != nil {
		return strictjson.Value{}, ownError(jsonrpc.CodeInternal, "hearsay could not record this request")
	}
	if t.Refused != nil {
		s.record(audit.Event{Kind: audit.Refusal, Server: l.up.name(), Tool: m.Method, Reason: "treatment", Text: t.Refused.Error()})
		return strictjson.Value{}, ownError(codeRefused, "%v", t.Refused)
	}
	call, err := s.client.Open(a)
	if err != nil {
		return strictjson.Value{}, ownError(jsonrpc.CodeInternal, "%v", err)
	}
	l.up.rememberElicitations(t.Value)
	params := t.Value
	if m.Params.Kind() == strictjson.KindAbsent && params.Len() == 0 {
		params = strictjson.Value{} // as it came
	}
	if a.progress.Kind() != strictjson.KindAbsent {
		params = params.With("_meta", params.Get("_meta").With("progressToken", call.ID.Value()))
	}
	answer, err := call.Do(jsonrpc.About(ctx, l.occasion(m)), m.Method, params)
	if err == nil {
		return answer.Result, answer.Error
	}
	if gone, ok := context.Cause(ctx).(errCancelled); ok {
		about := About{Method: "notifications/cancelled"}
		if t := l.up.treat.Notification(about, gone.params); t.Refused == nil {
			s.client.Notify(s.ctx, about.Method, t.Value.With("requestId", call.ID.Value()))
		}
	}
	return strictjson.Value{}, ownError(jsonrpc.CodeInternal, "the client did not answer: %v", err)
}

// stopAsking gives up the requests of a server that ended.
func (l *link) stopAsking() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.asked {
		a.cancel(errCancelled{strictjson.Object(
			strictjson.Member{Name: "requestId", Value: strictjson.Number("0")},
			strictjson.Member{Name: "reason", Value: strictjson.String("the server ended")})})
	}
}

// takes says whether the client declared that it takes the request.
func (s *session) takes(m jsonrpc.Message) bool {
	s.mu.Lock()
	hello, modern := s.hello, s.modern
	s.mu.Unlock()
	if modern || hello.Kind() == strictjson.KindAbsent { // since 2026-07-28 servers make no requests; before initialize neither
		return false
	}
	capabilities := hello.Get("capabilities")
	switch m.Method {
	case "ping":
		return true
	case "tasks/get", "tasks/result", "tasks/list", "tasks/cancel":
		return capabilities.Get("tasks").Kind() == strictjson.KindObject
	}
	return era.Takes(capabilities, m.Method, m.Params)
}

// hellos gives the params of the client's initialize; absent before.
func (s *session) hellos() strictjson.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello
}

func (s *session) agreed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// stirred starts the time-outs of open calls anew: the server is at work for one of them.
func (l *link) stirred() {
	s := l.up.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flights {
		f.alive()
	}
}
