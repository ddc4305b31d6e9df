package streamhttp

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of a session.
const (
	maxOpenCalls = 256              // requests of one session that wait for an answer
	maxPending   = 64               // messages that wait for the reader
	keepFinished = time.Minute      // a finished stream, for a client that takes it up again
	idleSession  = 30 * time.Minute // without a request or an open stream
)

// Session is the [jsonrpc.Transport] to one client: a session of the older era, or all modern requests of one principal that say the same
// of their client.
// Ids of requests are the session's own: those of two clients never meet.
type Session struct {
	// ID is the session's id in the older era; "" in the modern one.
	ID string
	// Principal is who authenticated.
	Principal string

	inbox   chan jsonrpc.Message
	ctx     context.Context
	cancel  context.CancelFunc
	mirrors mirrors // modern era: what the client was told about headers

	mu       sync.Mutex // guards all below
	count    uint64
	open     map[string]*exchange // by the session's own id
	byClient map[string]*exchange // older era: by the client's id
	finished []*stream            // oldest first, older era
	listen   *stream              // older era: what belongs to no request
	used     time.Time
	active   int // handlers that are at work
	dropped  int
}

// exchange is one request of the client.
type exchange struct {
	own, client jsonrpc.ID
	method      string
	stream      *stream
}

func newSession(id, principal string) *Session {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{ID: id, Principal: principal, inbox: make(chan jsonrpc.Message, maxPending), ctx: ctx, cancel: cancel,
		open: map[string]*exchange{}, byClient: map[string]*exchange{}, used: time.Now()}
	if id != "" {
		s.listen = newStream("listen")
	}
	return s
}

// Modern reports whether the session is of the era without sessions.
func (s *Session) Modern() bool { return s.ID == "" }

// Read returns the next message of the client. Its requests have ids of the session's own.
func (s *Session) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-s.inbox: // also what came before the end
		return m, nil
	default:
	}
	select {
	case m := <-s.inbox:
		return m, nil
	case <-ctx.Done():
		return jsonrpc.Message{}, ctx.Err()
	case <-s.ctx.Done():
		return jsonrpc.Message{}, io.EOF
	}
}

// Write hands over a message for the client: an answer to the request's own stream, what is marked by [jsonrpc.About] to that
// request's, anything else to the listening stream. In the modern era, where there is none, it is dropped.
func (s *Session) Write(ctx context.Context, m jsonrpc.Message) error {
	if s.ctx.Err() != nil {
		return jsonrpc.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Kind == jsonrpc.Response {
		x, ok := s.open[m.ID.Key()]
		if !ok {
			s.dropped++
			return nil // the client is gone, or cancelled it
		}
		m.ID = x.client
		m.Result = restoreSubscription(m.Result, x)
		if x.method == "tools/list" && s.Modern() {
			s.mirrors.learn(m.Result)
		}
		x.stream.add(m.Append(nil), true)
		s.forget(x)
		return nil
	}
	x := s.open[jsonrpc.AboutID(ctx).Key()]
	if x == nil {
		if id, ok := jsonrpc.NewID(m.Params.Get("_meta").Get(metaSubscription)); ok {
			x = s.open[id.Key()]
		}
	}
	switch {
	case x != nil:
		m.Params = restoreSubscription(m.Params, x)
		x.stream.add(m.Append(nil), false)
	case s.listen != nil:
		s.listen.add(m.Append(nil), false)
	default:
		s.dropped++
	}
	return nil
}

// restoreSubscription puts the client's own id back where a message names the subscription it belongs to.
func restoreSubscription(v strictjson.Value, x *exchange) strictjson.Value {
	meta := v.Get("_meta")
	id, ok := jsonrpc.NewID(meta.Get(metaSubscription))
	if !ok || id.Key() != x.own.Key() {
		return v
	}
	return v.With("_meta", meta.With(metaSubscription, x.client.Value()))
}

// Close ends the session. Streams that are open end without an answer.
func (s *Session) Close() error {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.open {
		x.stream.finish()
	}
	if s.listen != nil {
		s.listen.finish()
	}
	return nil
}

// forget takes a request whose stream has its answer out of the open ones. It is called with mu held.
func (s *Session) forget(x *exchange) {
	delete(s.open, x.own.Key())
	if s.byClient[x.client.Key()] == x {
		delete(s.byClient, x.client.Key())
	}
	if s.Modern() {
		return
	}
	s.finished = append(s.finished, x.stream)
	limit := time.Now().Add(-keepFinished)
	for len(s.finished) > maxOpenCalls || s.finished[0].endedBefore(limit) {
		s.finished = s.finished[1:]
	}
}

// begin takes in a request and gives the exchange that its answer will arrive on.
func (s *Session) begin(m jsonrpc.Message) (*exchange, jsonrpc.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxOpenCalls {
		return nil, m, fmt.Errorf("%d requests of this session wait for an answer already", maxOpenCalls)
	}
	if _, twice := s.byClient[m.ID.Key()]; twice && !s.Modern() {
		return nil, m, fmt.Errorf("a request with this id waits for an answer already")
	}
	s.count++
	own, _ := jsonrpc.NewID(strictjson.Number(strconv.FormatUint(s.count, 10)))
	x := &exchange{own: own, client: m.ID, method: m.Method, stream: newStream(own.Key())}
	s.open[own.Key()] = x
	if !s.Modern() {
		s.byClient[m.ID.Key()] = x
	}
	m.ID = own
	return x, m, nil
}

// accept hands a message to the reader.
func (s *Session) accept(ctx context.Context, m jsonrpc.Message) error {
	if m.Method == "notifications/cancelled" {
		id, _ := jsonrpc.NewID(m.Params.Get("requestId"))
		s.mu.Lock()
		if x, ok := s.byClient[id.Key()]; ok {
			m.Params = m.Params.With("requestId", x.own.Value())
		}
		s.mu.Unlock()
	}
	select {
	case s.inbox <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return jsonrpc.ErrClosed
	}
}

// abandon is called when a modern client has closed the stream of a request: that cancels it.
func (s *Session) abandon(x *exchange) {
	s.mu.Lock()
	_, waiting := s.open[x.own.Key()]
	delete(s.open, x.own.Key())
	s.mu.Unlock()
	if !waiting {
		return
	}
	params := strictjson.Object(
		strictjson.Member{Name: "requestId", Value: x.own.Value()},
		strictjson.Member{Name: "reason", Value: strictjson.String("the client closed the stream")})
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	select {
	case s.inbox <- jsonrpc.Message{Kind: jsonrpc.Notification, Method: "notifications/cancelled", Params: params}:
	case <-ctx.Done():
	}
}

// resumable finds the stream with this id among those that are open or finished a moment ago.
func (s *Session) resumable(id string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listen != nil && s.listen.id == id {
		return s.listen
	}
	for _, x := range s.open {
		if x.stream.id == id {
			return x.stream
		}
	}
	for _, st := range s.finished {
		if st.id == id {
			return st
		}
	}
	return nil
}

// enter and leave count the handlers at work, for idle.
func (s *Session) enter() {
	s.mu.Lock()
	s.active++
	s.mu.Unlock()
}

func (s *Session) leave() {
	s.mu.Lock()
	s.active--
	s.used = time.Now()
	s.mu.Unlock()
}

func (s *Session) idle(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active == 0 && len(s.open) == 0 && now.Sub(s.used) > idleSession
}
