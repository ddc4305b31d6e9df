package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of a server's life.
const (
	greetFor      = 60 * time.Second // a restarted server may take so long to be ready
	giveUpWriting = 30 * time.Second // a server that reads nothing for so long is given up
	soundAfter    = 10 * time.Second // one that answered and lived so long did not die at its start
	soundAnswers  = 10               // nor one that answered so often
	maxBackoff    = 30 * time.Second
	maxRemembered = 4096 // tasks, subscriptions
)

// upstream is one server as one client session sees it. It starts when it is first needed, and again when it is needed
// after it ended.
type upstream struct {
	Server
	s     *session
	treat *Treater
	book  *book
	stats jsonrpc.Stats

	starting chan struct{} // held while a server is started
	starts   int           // guarded by starting

	mu         sync.Mutex
	link       *link // the server that runs; nil if none does
	stopped    bool  // the session ends: nothing is started any more
	failures   int   // starts in a row that came to nothing
	notBefore  time.Time
	tasks      map[string]string           // which tool a task runs
	asking     map[string]bool             // ids of addresses that the client was asked to open
	subscribed map[string]strictjson.Value // params of resources/subscribe, told again after a restart
	pages      map[string]int
}

func newUpstream(s *session, spec Server) *upstream {
	return &upstream{
		Server: spec, s: s, treat: NewTreater(spec.Source), starting: make(chan struct{}, 1),
		book: newBook(s.g.opt.Pins, spec), tasks: map[string]string{}, asking: map[string]bool{}, subscribed: map[string]strictjson.Value{}, pages: map[string]int{},
	}
}

func (up *upstream) name() string { return up.Server.Server }

// running returns the server that runs, nil if none does.
func (up *upstream) running() *link {
	up.mu.Lock()
	defer up.mu.Unlock()
	return up.link
}

// ready returns a server that runs and was greeted, starting one if needed. A server that keeps ending is not started each
// time it is asked for.
func (up *upstream) ready(ctx context.Context, method string) (*link, error) {
	if l := up.running(); l != nil {
		return l, nil
	}
	select {
	case up.starting <- struct{}{}:
		defer func() { <-up.starting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	up.mu.Lock()
	l, stopped, wait := up.link, up.stopped, time.Until(up.notBefore)
	up.mu.Unlock()
	switch {
	case l != nil:
		return l, nil
	case stopped:
		return nil, errClientGone
	case wait > 0:
		return nil, fmt.Errorf("server %s keeps ending; it is started again at the earliest in %v", up.name(), wait.Round(time.Second/10))
	}
	l, err := up.start(ctx)
	if err != nil {
		up.failed()
		return nil, err
	}
	if hello := up.s.hellos(); hello.Kind() != strictjson.KindAbsent && method != "initialize" {
		if err := l.greet(ctx, hello); err != nil {
			l.shut()
			return nil, err
		}
	}
	if up.starts++; up.starts > 1 {
		up.s.counts.restarts.Add(1)
	}
	defer up.s.joined(l)
	up.mu.Lock()
	defer up.mu.Unlock()
	select {
	case <-l.closed:
		return nil, fmt.Errorf("server %s ended while it started", up.name())
	default:
	}
	if up.stopped {
		go l.shut()
		return nil, errClientGone
	}
	up.link = l
	return l, nil
}

// failed notes a start that came to nothing.
func (up *upstream) failed() {
	up.mu.Lock()
	defer up.mu.Unlock()
	up.failures++
	if up.failures > 1 { // the first is tried again at once
		up.notBefore = time.Now().Add(min(time.Second<<min(up.failures-2, 10), maxBackoff))
	}
}

// stop ends the server for good.
func (up *upstream) stop() {
	up.mu.Lock()
	up.stopped = true
	l := up.link
	up.mu.Unlock()
	if l != nil {
		l.shut()
	}
	up.starting <- struct{}{} // a start under way has seen that, and ended what it started
	<-up.starting
}

// tell passes on a notification of the client; a server that does not run needs none.
func (up *upstream) tell(m jsonrpc.Message) {
	if l := up.running(); l != nil {
		l.notify(m.Method, withoutWords(m.Params), m.Extra)
	}
}

// taskTool returns the tool that a task runs.
func (up *upstream) taskTool(id string) string {
	up.mu.Lock()
	defer up.mu.Unlock()
	return up.tasks[id]
}

// task returns the tool that a task runs. known = false: no request of the client became this task, nor can one that is open.
func (up *upstream) task(id string) (tool string, known bool) {
	up.mu.Lock()
	tool, known = up.tasks[id]
	up.mu.Unlock()
	if known {
		return tool, true
	}
	up.s.mu.Lock()
	defer up.s.mu.Unlock()
	for _, f := range up.s.flights { // its answer may be on its way
		if f.Method == "tools/call" && (up.s.modern || f.Params.Get("task").Kind() != strictjson.KindAbsent) {
			return f.Params.Get("name").Str(), true
		}
	}
	return "", false
}

// elicited says whether the client was asked to open the address of this id.
func (up *upstream) elicited(id string) bool {
	up.mu.Lock()
	defer up.mu.Unlock()
	return up.asking[id]
}

// rememberElicitations keeps the ids of the addresses that a message, treated by now, asks the client to open.
func (up *upstream) rememberElicitations(v strictjson.Value) {
	if id := v.Get("elicitationId").Str(); id != "" {
		remember(up, up.asking, id, true)
	}
	for _, e := range v.Get("data").Get("elicitations").Elems() {
		up.rememberElicitations(e)
	}
}

// link is one running server process.
type link struct {
	up     *upstream
	peer   *jsonrpc.Peer
	conn   jsonrpc.Transport
	bridge *era.Bridge // between conn and peer
	proc   *Process    // nil for a server that runs elsewhere
	since  time.Time
	ended  chan struct{} // the process has ended
	closed chan struct{} // and all it said was read

	version string           // of the protocol, where the gateway greeted it; "" otherwise
	offers  strictjson.Value // its capabilities, likewise
	unasked
}

func (up *upstream) start(ctx context.Context) (*link, error) {
	l := &link{up: up, since: time.Now(), ended: make(chan struct{}), closed: make(chan struct{})}
	l.unasked.init()
	if up.Connect != nil {
		return l, l.connect(ctx)
	}
	return l, l.launch(ctx)
}

// connect reaches a server that runs elsewhere.
func (l *link) connect(ctx context.Context) (err error) {
	if l.conn, err = l.up.Connect(ctx); err != nil {
		return fmt.Errorf("connecting to server %s: %w", l.up.name(), err)
	}
	l.join()
	go func() {
		err := l.peer.Run(context.WithoutCancel(l.up.s.ctx), l.hear, l.bad)
		l.up.s.log.Debug("connection ended", "server", l.up.name(), "why", err)
		l.conn.Close()
		close(l.ended)
		close(l.closed)
	}()
	return nil
}

// launch starts a server that is a process.
func (l *link) launch(ctx context.Context) error {
	up := l.up
	proc, err := up.s.g.opt.Launch(ctx, up.Server)
	if err != nil {
		return err
	}
	log := up.s.log.With("server", up.name())
	log.Debug("server started")
	l.proc = proc
	lines := jsonrpc.NewLines(proc.Stdout, proc.Stdin, jsonrpc.LineOptions{
		JSON:   ServerLimits,
		Stats:  &up.stats,
		GiveUp: giveUpWriting,
		Noise:  func(line string) { l.words("stdout", line) },
	})
	l.conn = lines
	l.join()
	var output sync.WaitGroup
	output.Go(func() {
		err := l.peer.Run(context.WithoutCancel(up.s.ctx), l.hear, l.bad)
		log.Debug("server's output ended", "why", err)
		proc.end(func() { lines.CloseWrite() }, l.ended)
	})
	output.Go(l.listenToErrors)
	go func() {
		how := proc.Wait()
		close(l.ended)
		log.Info("server ended", "how", how)
		time.AfterFunc(closeGrace, func() { // a process that left the group may hold its output open
			lines.Close()
			proc.Stderr.Close()
		})
		output.Wait()
		lines.Close()
		proc.Stderr.Close()
		close(l.closed)
	}()
	return nil
}

// join puts the peer at the end of the connection, behind what translates between the eras of client and server.
func (l *link) join() {
	l.bridge = era.New(l.conn, l.up.s.g.eras[l.up.name()])
	l.peer = jsonrpc.NewPeer(watched{l.bridge, l.lost}, &l.up.stats)
}

// watched is a transport that tells of its end before the peer's calls fail: whoever calls again finds the server gone, and
// starts it.
type watched struct {
	jsonrpc.Transport
	lost func()
}

func (w watched) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := w.Transport.Read(ctx)
	if bad := (*jsonrpc.BadMessage)(nil); err != nil && !errors.As(err, &bad) {
		w.lost()
	}
	return m, err
}

// ServerLimits is how messages of servers are read: case twins and lone surrogates cost a message only what the treatment
// drops, not the call.
var ServerLimits = strictjson.Limits{KeepCaseTwins: true, RepairSurrogates: true}

// lost takes a server that ended off its place, and remembers whether it lived.
func (l *link) lost() {
	l.stopAsking()
	l.up.mu.Lock()
	if l.up.link == l {
		l.up.link = nil
	}
	sound := l.answers.Load() >= soundAnswers || l.answers.Load() > 0 && time.Since(l.since) > soundAfter
	if sound {
		l.up.failures = 0
	}
	stopped := l.up.stopped
	l.up.mu.Unlock()
	if !sound && !stopped {
		l.up.failed()
	}
}

// shut ends the server in order, and returns when nothing of it is left.
func (l *link) shut() {
	if lines, ok := l.conn.(*jsonrpc.Lines); ok {
		l.proc.end(func() { lines.CloseWrite() }, l.ended)
	} else {
		l.conn.Close()
	}
	<-l.closed
}

// greet initializes a server that was started again as its client initialized the first.
func (l *link) greet(ctx context.Context, hello strictjson.Value) error {
	ctx, cancel := context.WithTimeout(ctx, greetFor)
	defer cancel()
	s := l.up.s
	result, err := l.ask(ctx, "initialize", hello)
	if err != nil {
		return err
	}
	s.mu.Lock()
	version, level := s.version, s.level
	s.mu.Unlock()
	l.version, l.offers = result.Get("protocolVersion").Str(), result.Get("capabilities")
	switch {
	case s.several != nil && !slices.Contains(legacyVersions, l.version):
		return fmt.Errorf("server %s speaks another protocol version: %s", l.up.name(), Quote(l.version))
	case s.several == nil && l.version != version:
		return fmt.Errorf("server %s came back with another protocol version: %s", l.up.name(), Quote(l.version))
	}
	l.notify("notifications/initialized", strictjson.Value{}, nil)
	if level.Kind() != strictjson.KindAbsent && l.can("logging/setLevel") {
		l.ask(ctx, "logging/setLevel", level) // a server that forgot how to log still serves
	}
	l.up.mu.Lock()
	var subscribed []strictjson.Value
	for _, params := range l.up.subscribed {
		subscribed = append(subscribed, params)
	}
	l.up.mu.Unlock()
	for _, params := range subscribed {
		l.ask(ctx, "resources/subscribe", params)
	}
	return nil
}

// ask asks a server something for the gateway itself.
func (l *link) ask(ctx context.Context, method string, params strictjson.Value) (strictjson.Value, error) {
	call, err := l.peer.Open(nil)
	if err != nil {
		return strictjson.Value{}, fmt.Errorf("server %s ended while it was asked for %s", l.up.name(), method)
	}
	m, err := call.Do(ctx, method, withoutWords(params))
	switch {
	case errors.Is(err, jsonrpc.ErrClosed):
		return strictjson.Value{}, fmt.Errorf("server %s ended while it was asked for %s", l.up.name(), method)
	case err != nil:
		return strictjson.Value{}, fmt.Errorf("asking server %s for %s: %w", l.up.name(), method, err)
	case m.Own:
		return strictjson.Value{}, fmt.Errorf("server %s: %w", l.up.name(), m.Failed())
	case m.Error.Kind() != strictjson.KindAbsent:
		code, _ := jsonrpc.ErrorCode(m.Error)
		return strictjson.Value{}, &refusedError{l.up.name(), method, code}
	}
	l.answers.Add(1)
	return m.Result, nil
}

// refusedError is a server's refusal of something the gateway itself asked for.
type refusedError struct {
	server, method string
	code           int
}

func (e *refusedError) Error() string { return fmt.Sprintf("server %s refused %s", e.server, e.method) }

// can says whether a server that the gateway greeted declared what a method needs.
func (l *link) can(method string) bool {
	if l.version == "" {
		return true
	}
	if method == "tasks/list" {
		return l.offers.Get("tasks").Get("list").Kind() != strictjson.KindAbsent
	}
	name := map[string]string{
		"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resources",
		"logging/setLevel": "logging",
	}[method]
	return name == "" || l.offers.Get(name).Kind() != strictjson.KindAbsent
}

// notify tells the server something. It does not wait: a server that reads nothing must not hold up the client.
func (l *link) notify(method string, params strictjson.Value, extra []strictjson.Member) {
	if err := l.peer.Notify(jsonrpc.AtOnce, method, params, extra...); err != nil {
		l.up.s.counts.flood.Add(1)
		l.up.s.log.Debug("a notification was dropped", "server", l.up.name(), "method", method)
	}
}

// answered remembers what an answer says about the session: what was agreed, and what a restart must tell again.
func (l *link) answered(f *flight, about About, m jsonrpc.Message) {
	l.answers.Add(1)
	if m.Error.Kind() != strictjson.KindAbsent {
		return
	}
	s, up := l.up.s, l.up
	switch f.Method {
	case "initialize":
		s.mu.Lock()
		s.hello, s.version, s.modern = f.Params, m.Result.Get("protocolVersion").Str(), false
		s.mu.Unlock()
	case "logging/setLevel":
		s.mu.Lock()
		s.level = f.Params
		s.mu.Unlock()
	case "resources/subscribe":
		remember(up, up.subscribed, about.URI, f.Params)
	case "resources/unsubscribe":
		up.mu.Lock()
		delete(up.subscribed, about.URI)
		up.mu.Unlock()
	case "tools/call":
		task := m.Result.Get("task").Get("taskId").Str()
		if task == "" {
			task = m.Result.Get("taskId").Str()
		}
		if task != "" {
			remember(up, up.tasks, task, about.Name)
			s.keepTask(up, task)
			l.keepToken(f)
		}
	}
}

// remember keeps a value within bounds: when there are too many, an arbitrary one goes.
func remember[V any](up *upstream, m map[string]V, key string, value V) {
	if len(key) > maxURI {
		return
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	for old := range m {
		if len(m) < maxRemembered {
			break
		}
		delete(m, old)
	}
	m[strings.Clone(key)] = value // without the message that it stands in
}

// listenToErrors drains the server's standard error, whatever it writes, so that it never blocks on it.
func (l *link) listenToErrors() {
	in := bufio.NewReaderSize(l.proc.Stderr, 4<<10)
	for {
		line, more, err := in.ReadLine()
		if len(line) > 0 {
			l.words("stderr", string(line))
		}
		for more && err == nil { // the rest of a line too long to log
			_, more, err = in.ReadLine()
		}
		if err != nil {
			return
		}
	}
}

// words logs what a server wrote that is no message, at a bounded rate.
func (l *link) words(stream, line string) {
	if l.talk.take() {
		l.up.s.log.Info("server wrote", "server", l.up.name(), "stream", stream, "text", cleanLine(line))
	}
}
