package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

// Bounds of a session. Honest clients stay far below each.
const (
	maxFlights = 1024             // requests of the client that are open
	drainFor   = 10 * time.Second // what the open requests of a client that sends no more may still take
	drainBlind = time.Second      // … where it is not known whether the client still reads
)

// Session numbers are for logs and the audit; they authorise nothing.
var sessions atomic.Int64

// session is one client and the servers it talks to, which nobody else talks to.
type session struct {
	g         *Gateway
	id        string
	log       *slog.Logger
	who       string // the principal
	client    *jsonrpc.Peer
	transport jsonrpc.Transport
	gone      func() bool
	stats     jsonrpc.Stats
	counts    counts
	ctx       context.Context
	cancel    context.CancelCauseFunc
	work      sync.WaitGroup // the goroutines of requests, both ways

	servers []*upstream
	several *several // nil where one server answers for itself

	mu      sync.Mutex
	flights map[string]*flight // the client's open requests, by the key of its id
	alarm   *time.Timer        // one for all open requests: starting one for each would wake another thread each time
	alarmAt time.Time          // when it goes off; zero = it is not set
	owed    int                // answers that the client waits for, also those on their way; subscriptions do not count
	last    chan struct{}      // closed when the request before has been sent on: requests keep their order
	hello   strictjson.Value   // the params of the client's initialize; absent before, and for a client of 2026-07-28
	version string             // what was agreed with a client that initialized
	level   strictjson.Value   // the params of its last logging/setLevel, told again to a server that was restarted
	modern  bool               // it spoke 2026-07-28

	asked map[string]asking // questions that the client has taken to its user, by their state

	authority *authority // shared with the other sessions of the principal
}

// counts are what was dropped or refused in a session.
type counts struct {
	unknown  atomic.Int64 // messages of servers whose method no row of the table names
	flood    atomic.Int64 // notifications over the rate
	members  atomic.Int64 // members the treatment dropped
	withheld atomic.Int64 // blocks and entries it withheld
	restarts atomic.Int64
}

var (
	errClientGone = errors.New("the client is gone")
	errTimeout    = errors.New("the server did not answer in time")
)

func newSession(g *Gateway, c Client, a *authority) *session {
	id := "s" + itoa(sessions.Add(1))
	s := &session{
		g: g, id: id, log: g.opt.Log.With("session", id), who: c.Principal, authority: a, transport: c.Transport, gone: c.Gone,
		flights: map[string]*flight{}, last: make(chan struct{}),
	}
	close(s.last)
	s.client = jsonrpc.NewPeer(c.Transport, &s.stats)
	for _, spec := range g.opt.Servers {
		s.servers = append(s.servers, newUpstream(s, spec))
	}
	if g.opt.several() {
		s.several = newSeveral()
	}
	return s
}

// run serves the client until it ends, and then ends everything.
func (s *session) run(ctx context.Context) error {
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(errClientGone)
	for _, up := range s.servers {
		if up.AtStart && s.several == nil {
			s.background(func(ctx context.Context) { up.ready(ctx, "initialize") })
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.client.RunOn(s.ctx, s.hear, s.bad) }()
	var err error
	select {
	case err = <-ended:
		s.drain() // it may have closed its end only to say that no more will come
	case <-s.ctx.Done(): // a read of standard input cannot be interrupted: that goroutine ends with the process
	}
	s.cancel(errClientGone)
	var all sync.WaitGroup
	for _, up := range s.servers {
		all.Go(up.stop)
	}
	all.Wait()
	s.transport.Close()
	s.mu.Lock() // whoever opens a request has added it to work, or sees that the session has ended
	if s.alarm != nil {
		s.alarm.Stop()
	}
	s.mu.Unlock()
	s.work.Wait()
	s.report()
	if errors.Is(context.Cause(s.ctx), errHalted) {
		return errHalted
	}
	if errors.Is(err, io.EOF) || errors.Is(err, jsonrpc.ErrClosed) || ctx.Err() != nil {
		return nil
	}
	return err
}

// drain lets the open requests of a client that sends no more come to their end.
func (s *session) drain() {
	limit := drainBlind
	if s.gone != nil {
		limit = drainFor
	}
	end := time.Now().Add(limit)
	for time.Now().Before(end) && (s.gone == nil || !s.gone()) {
		s.mu.Lock()
		owed := s.owed
		s.mu.Unlock()
		if owed == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// report logs what the session lost, if anything.
func (s *session) report() {
	var lost []any
	add := func(name string, n int64) {
		if n > 0 {
			lost = append(lost, name, n)
		}
	}
	add("client_noise", s.stats.Noise.Load())
	add("client_unreadable", s.stats.Bad.Load())
	add("client_unsolicited", s.stats.Unsolicited.Load())
	for _, up := range s.servers {
		add(up.Server.Server+"_noise", up.stats.Noise.Load())
		add(up.Server.Server+"_unreadable", up.stats.Bad.Load())
		add(up.Server.Server+"_unsolicited", up.stats.Unsolicited.Load())
	}
	add("unknown_methods", s.counts.unknown.Load())
	add("flood", s.counts.flood.Load())
	add("members", s.counts.members.Load())
	add("withheld", s.counts.withheld.Load())
	add("restarts", s.counts.restarts.Load())
	if len(lost) > 0 {
		s.log.Info("session ended; dropped on the way", lost...)
	} else {
		s.log.Debug("session ended")
	}
}

// bad answers a message of the client that could not be read.
func (s *session) bad(b *jsonrpc.BadMessage) {
	s.log.Warn("unreadable message from the client", "why", b.Err)
	code := jsonrpc.CodeInvalidRequest
	if errors.Is(b.Err, strictjson.ErrSyntax) || errors.Is(b.Err, strictjson.ErrNumber) || errors.Is(b.Err, strictjson.ErrTrailing) {
		code = jsonrpc.CodeParse
	}
	s.reply(b.ID(), strictjson.Value{}, ownError(code, "hearsay did not pass this message on: %v", b.Err))
}

// hear takes a request or notification of the client, on the goroutine that reads. Before it waits, it has another read on.
func (s *session) hear(m jsonrpc.Message, readOn func()) {
	if !KnownMethod(m.Method, false, m.Kind == jsonrpc.Notification) {
		s.log.Warn("the client used a method the gateway does not know", "method", cleanLine(m.Method))
		if m.Kind == jsonrpc.Request {
			s.reply(m.ID, strictjson.Value{}, ownError(jsonrpc.CodeMethodNotFound, "no method passes that the table of methods does not name, and %s is not in it", Quote(m.Method)))
		}
		return
	}
	if m.Params.Kind() != strictjson.KindAbsent && m.Params.Kind() != strictjson.KindObject {
		if m.Kind == jsonrpc.Request {
			s.reply(m.ID, strictjson.Value{}, ownError(jsonrpc.CodeInvalidParams, "params must be an object"))
		}
		return
	}
	if m.Kind == jsonrpc.Notification {
		s.notification(m)
		return
	}
	if args := m.Params.Get("arguments").Kind(); args != strictjson.KindAbsent && args != strictjson.KindObject && args != strictjson.KindNull {
		s.reply(m.ID, strictjson.Value{}, ownError(jsonrpc.CodeInvalidParams, "arguments must be an object: others cannot be judged by their names"))
		return
	}
	f, failure := s.open(m)
	if failure.Kind() != strictjson.KindAbsent {
		s.reply(m.ID, strictjson.Value{}, failure)
		return
	}
	f.readOn = readOn
	if m.Params.Size() > maxInline {
		f.away()
	}
	s.serve(f)
}

// maxInline is how large the params of a request may be for it to be judged before the next one is read; judging more may
// take as long as another core needs for several.
const maxInline = 64 << 10

// alone reports whether the client waits for nothing but this request, and has sent nothing more, as far as its transport can
// tell. Only the goroutine that reads may ask.
func (s *session) alone() bool {
	t, ok := s.transport.(interface{ Waiting() bool })
	if ok && t.Waiting() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owed <= 1
}

// flight is one open request of the client.
type flight struct {
	jsonrpc.Message
	ctx      context.Context
	cancel   context.CancelCauseFunc
	started  time.Time
	version  string           // the protocol version it is spoken in
	progress strictjson.Value // the client's own token; absent if it wants no progress
	listen   *listen          // of a subscriptions/listen
	shared   *shared          // … and what became of it at several servers
	ready    bool             // … where also servers that start later are concerned; guarded by session.mu
	again    bool             // it was sent a second time, see [session.again]
	failed   bool             // the server says that it failed
	single   bool             // its answer is one block
	answer   *answered        // to a question of the gateway's, which it brought; nil = none
	screened []screen.Finding // what the screens saw in its answer
	halt     bool             // … and that the session must end

	turn, sent chan struct{} // the request before was sent; this one was
	pass, over sync.Once
	readOn     func() // has another goroutine read the client's next message; nil once one does

	mu   sync.Mutex
	call *jsonrpc.Call // what it became at the server; nil until it is sent

	// Guarded by the session's mu.
	unwatch  func() bool   // ends the watch over ctx; nil before it is sent
	patience time.Duration // how long the server may take; 0 = for ever
	until    time.Time     // and when that is over
}

func (f *flight) passTurn() { f.pass.Do(func() { close(f.sent) }) }

// yieldTurn passes the turn when it comes: what is sent to no server, or may wait for long, holds up nobody.
func (f *flight) yieldTurn() {
	go func() {
		select {
		case <-f.turn:
		case <-f.ctx.Done():
		}
		f.passTurn()
	}()
}

// away is called before the request waits for anything but the disk: the client's next message is read meanwhile.
func (f *flight) away() {
	if f.readOn != nil {
		f.readOn()
		f.readOn = nil
	}
}

// reach gives the server that runs, or starts it.
func (f *flight) reach(up *upstream) (*link, error) {
	if l := up.running(); l != nil {
		return l, nil
	}
	f.away()
	return up.ready(f.ctx, f.Method)
}

// watch has giveUp called when the request is given up: by the client, by the end of the session, or since it took too long.
// What waits for events by its nature may take for ever.
func (s *session) watch(f *flight, patience time.Duration, giveUp func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.unwatch = context.AfterFunc(f.ctx, giveUp)
	if f.listen == nil && f.Method != "tasks/result" && patience > 0 {
		f.patience = patience
		f.alive()
		s.wakeAt(f.until)
	}
}

// alive starts the time-out anew. The caller holds the session's mu.
func (f *flight) alive() {
	if f.patience > 0 {
		f.until = time.Now().Add(f.patience)
	}
}

// wakeAt has overdue called at a time, or earlier. The caller holds mu.
func (s *session) wakeAt(t time.Time) {
	switch {
	case !s.alarmAt.IsZero() && !t.Before(s.alarmAt):
		return
	case s.alarm == nil:
		s.alarm = time.AfterFunc(time.Until(t), s.overdue)
	default:
		s.alarm.Reset(time.Until(t))
	}
	s.alarmAt = t
}

// overdue ends the requests that took too long, and sets the alarm for the next that may.
func (s *session) overdue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarmAt = time.Time{}
	now, next := time.Now(), time.Time{}
	for _, f := range s.flights {
		switch {
		case f.until.IsZero():
		case !f.until.After(now):
			f.cancel(errTimeout)
		case next.IsZero() || f.until.Before(next):
			next = f.until
		}
	}
	if !next.IsZero() && s.ctx.Err() == nil {
		s.wakeAt(next)
	}
}

// errCancelled says that the client gave the request up.
type errCancelled struct{ params strictjson.Value }

func (errCancelled) Error() string { return "the client cancelled the request" }

const metaVersion = "io.modelcontextprotocol/protocolVersion"

func (s *session) open(m jsonrpc.Message) (*flight, strictjson.Value) {
	meta := m.Params.Get("_meta")
	f := &flight{Message: m, started: time.Now(), sent: make(chan struct{}), progress: meta.Get("progressToken"), version: meta.Get(metaVersion).Str()}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := m.ID.Key()
	switch {
	case s.ctx.Err() != nil:
		return nil, ownError(jsonrpc.CodeInternal, "the session has ended")
	case s.flights[key] != nil:
		return nil, ownError(jsonrpc.CodeInvalidRequest, "a request with this id is still open")
	case len(s.flights) >= maxFlights:
		return nil, ownError(jsonrpc.CodeInternal, "more than %d requests are open", maxFlights)
	}
	if f.version == "" {
		f.version = s.version
	} else if m.Method != "initialize" {
		s.modern = s.modern || s.hello.Kind() == strictjson.KindAbsent
	}
	if m.Method == "subscriptions/listen" {
		f.listen = newListen(m.Params.Get("notifications"))
	}
	f.ctx, f.cancel = context.WithCancelCause(s.ctx)
	s.flights[key] = f
	s.work.Add(1)
	if f.listen == nil {
		s.owed++
	}
	f.turn, s.last = s.last, f.sent
	return f, strictjson.Value{}
}

// close ends a request, once, with or without an answer. Its id is free before the answer is out: the client may use it again.
func (s *session) close(f *flight, answer func()) {
	f.over.Do(func() {
		f.passTurn()
		s.mu.Lock()
		delete(s.flights, f.ID.Key())
		unwatch := f.unwatch
		s.mu.Unlock()
		if unwatch != nil {
			unwatch()
		}
		f.cancel(nil)
		if answer != nil {
			answer()
		}
		if f.listen == nil {
			s.mu.Lock()
			s.owed--
			s.mu.Unlock()
		}
		s.work.Done()
	})
}

// notification takes a notification of the client.
func (s *session) notification(m jsonrpc.Message) {
	switch m.Method {
	case "notifications/cancelled":
		id, _ := jsonrpc.NewID(m.Params.Get("requestId"))
		s.mu.Lock()
		f := s.flights[id.Key()]
		s.mu.Unlock()
		if f != nil {
			f.cancel(errCancelled{m.Params})
		}
		return
	case "notifications/progress": // on a request that a server made of the client
		id, _ := jsonrpc.NewID(m.Params.Get("progressToken"))
		if call, ok := s.client.Find(id); ok {
			if asked, ok := call.Data.(*asked); ok && asked.progress.Kind() != strictjson.KindAbsent {
				asked.link.notify(m.Method, m.Params.With("progressToken", asked.progress), m.Extra)
			}
		}
		return
	}
	if s.several != nil && m.Method == "notifications/initialized" { // each server was told when it was greeted
		s.wake()
		return
	}
	for _, up := range s.servers { // initialized, roots/list_changed, tasks/status
		up.tell(m)
	}
}

// reply answers the client.
func (s *session) reply(id jsonrpc.ID, result, failure strictjson.Value) {
	if err := s.client.Reply(s.ctx, id, result, failure); err != nil {
		s.log.Debug("the client took no answer", "why", err)
	}
}
