package gateway

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// listWait is how long a list waits for servers that have not answered yet. What comes later is told by list_changed.
const listWait = 5 * time.Second

// several is what a session keeps where it stands for several servers and answers some requests itself.
type several struct {
	mu     sync.Mutex
	shelf  map[*upstream]map[string]*shelf // what each server offers, by the method that lists it
	owners map[string]map[*upstream]bool   // who offered or mentioned a resource, by its URI
	warned map[[2]named]bool               // look-alikes that were logged
}

// warn logs, once each, tools of two servers whose names differ and look alike. The caller holds mu.
func (v *several) warn(log *slog.Logger, names map[string][]string) {
	for _, pair := range lookAlikes(names) {
		if pair[0].server != pair[1].server && pair[0].tool != pair[1].tool && !v.warned[pair] && len(v.warned) < maxRemembered {
			v.warned[pair] = true
			log.Warn("tools of two servers look alike", "one", join(pair[0].server, pair[0].tool), "other", join(pair[1].server, pair[1].tool))
		}
	}
}

// shelf is one list of one server, treated, in the server's own names.
type shelf struct {
	entries []strictjson.Value
	from    *link         // the running server that said so; another one is asked again
	asking  chan struct{} // closed when a question under way is answered; nil if none is
}

func newSeveral() *several {
	return &several{shelf: map[*upstream]map[string]*shelf{}, owners: map[string]map[*upstream]bool{}, warned: map[[2]named]bool{}}
}

// lists are the requests that all servers answer together, and the member their entries are in.
var lists = map[string]string{
	"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
}

// changedLists is what a notification makes stale.
var changedLists = map[string][]string{
	"notifications/tools/list_changed": {"tools/list"}, "notifications/prompts/list_changed": {"prompts/list"},
	"notifications/resources/list_changed": {"resources/list", "resources/templates/list"},
}

// legacyVersions are the versions with sessions, the newest first.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// own answers the requests that are for the gateway where it stands for several servers. false: the request is for one of them.
func (s *session) own(f *flight) bool {
	if s.several == nil {
		return false
	}
	ok := strictjson.Object()
	if f.Method != "initialize" && f.Method != "server/discover" && s.hellos().Kind() == strictjson.KindAbsent {
		s.finish(f, strictjson.Value{}, ownError(jsonrpc.CodeInvalidRequest, "the session has not been initialized"))
		return true
	}
	switch f.Method {
	case "initialize":
		s.finish(f, s.greetClient(f.Params), strictjson.Value{})
	case "ping":
		s.finish(f, ok, strictjson.Value{})
	case "server/discover": // the client goes on with initialize
		s.finish(f, strictjson.Value{}, ownError(jsonrpc.CodeMethodNotFound, "use initialize"))
	case "logging/setLevel":
		s.mu.Lock()
		s.level = f.Params
		s.mu.Unlock()
		for _, up := range s.servers {
			if l := up.running(); l != nil {
				s.background(func(ctx context.Context) { l.ask(ctx, f.Method, f.Params) })
			}
		}
		s.finish(f, ok, strictjson.Value{})
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		s.finish(f, s.list(f), strictjson.Value{})
	case "tasks/list":
		s.finish(f, strictjson.Object(strictjson.Member{Name: "tasks", Value: strictjson.Array()}), strictjson.Value{})
	default:
		return false
	}
	return true
}

// greetClient answers initialize for all servers together. They start when they are needed, so what they can is not known:
// everything is declared.
func (s *session) greetClient(hello strictjson.Value) strictjson.Value {
	version := hello.Get("protocolVersion").Str()
	if !slices.Contains(legacyVersions, version) {
		version = legacyVersions[0]
	}
	s.mu.Lock()
	s.hello, s.version, s.modern = hello.With("protocolVersion", strictjson.String(version)), version, false
	s.mu.Unlock()
	const capabilities = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},
		"logging":{},"completions":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`
	can, _ := strictjson.ParseString(capabilities, strictjson.Limits{})
	return strictjson.Object(
		strictjson.Member{Name: "protocolVersion", Value: strictjson.String(version)},
		strictjson.Member{Name: "capabilities", Value: can},
		strictjson.Member{Name: "serverInfo", Value: strictjson.Object(
			strictjson.Member{Name: "name", Value: strictjson.String("hearsay")},
			strictjson.Member{Name: "version", Value: strictjson.String(s.g.opt.version())})},
	)
}

// background runs work that belongs to the session but to no request.
func (s *session) background(work func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.work.Go(func() { work(s.ctx) })
	}
}

// list answers a list from what all servers offer: what is known at once, what is not after a bounded wait.
func (s *session) list(f *flight) strictjson.Value {
	ctx, cancel := context.WithTimeout(f.ctx, s.g.listWait)
	defer cancel()
	member := lists[f.Method]
	var wait []<-chan struct{}
	for _, up := range s.servers {
		wait = append(wait, s.restock(up, f.Method))
	}
	for _, done := range wait {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	type offer struct {
		up    *upstream
		entry strictjson.Value
	}
	offers := map[string][]offer{}
	var order []string
	for _, up := range s.servers {
		shelf := s.several.shelf[up][f.Method]
		if shelf == nil {
			continue
		}
		for _, entry := range shelf.entries {
			key := outerKey(up, f.Method, entry)
			if offers[key] == nil {
				order = append(order, key)
			}
			offers[key] = append(offers[key], offer{up, entry})
		}
	}
	if f.Method == "tools/list" {
		names := map[string][]string{}
		for _, key := range order {
			for _, o := range offers[key] {
				names[o.up.name()] = append(names[o.up.name()], o.entry.Get("name").Str())
			}
		}
		s.several.warn(s.log, names)
	}
	var entries []strictjson.Value
	for _, key := range order {
		same := offers[key]
		if len(same) > 1 {
			s.log.Warn("several servers offer the same; none of them is shown", "method", f.Method, "name", cleanLine(key), "servers", same[0].up.name()+", "+same[1].up.name())
			s.counts.withheld.Add(int64(len(same)))
			continue
		}
		entry := same[0].entry
		if f.Method == "tools/list" || f.Method == "prompts/list" {
			entry = entry.With("name", strictjson.String(key))
		}
		entries = append(entries, entry)
	}
	return strictjson.Object(strictjson.Member{Name: member, Value: strictjson.Array(entries...)})
}

// outerKey is what the client knows an entry of a list by.
func outerKey(up *upstream, method string, entry strictjson.Value) string {
	switch method {
	case "resources/list":
		return entry.Get("uri").Str()
	case "resources/templates/list":
		return entry.Get("uriTemplate").Str()
	}
	return join(up.name(), entry.Get("name").Str())
}

var closedChannel = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// restock asks a server for a list, unless what it said is still good or it is being asked. The channel is closed when that
// is done.
func (s *session) restock(up *upstream, method string) <-chan struct{} {
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	byMethod := s.several.shelf[up]
	if byMethod == nil {
		byMethod = map[string]*shelf{}
		s.several.shelf[up] = byMethod
	}
	have := byMethod[method]
	switch {
	case have == nil:
		have = &shelf{}
		byMethod[method] = have
	case have.asking != nil:
		return have.asking
	case have.from != nil && have.from == up.running():
		return closedChannel
	}
	done := make(chan struct{})
	have.asking = done
	began := time.Now()
	s.background(func(ctx context.Context) {
		link, entries, err := s.entries(ctx, up, method)
		if err != nil {
			s.log.Warn("a server does not say what it offers", "server", up.name(), "method", method, "why", err)
		}
		s.several.mu.Lock()
		late := time.Since(began) >= s.g.listWait
		have.asking = nil
		if err == nil {
			have.entries, have.from = entries, link
			s.noteOwners(up, method, entries)
		}
		s.several.mu.Unlock()
		close(done)
		if late && err == nil { // the client was answered without it
			for notification, methods := range changedLists {
				if slices.Contains(methods, method) {
					s.client.Notify(s.ctx, notification, strictjson.Value{})
				}
			}
		}
	})
	return done
}

// noteOwners remembers whose the resources of a list are. It is called with several.mu held.
func (s *session) noteOwners(up *upstream, method string, entries []strictjson.Value) {
	for _, e := range entries {
		switch method {
		case "resources/list":
			s.owner(e.Get("uri").Str(), up)
		case "resources/templates/list":
			s.owner(e.Get("uriTemplate").Str(), up)
		}
	}
}

func (s *session) owner(uri string, up *upstream) {
	if uri == "" || len(uri) > maxURI || len(s.several.owners) >= maxRemembered && s.several.owners[uri] == nil {
		return
	}
	if s.several.owners[uri] == nil {
		s.several.owners[uri] = map[*upstream]bool{}
	}
	s.several.owners[uri][up] = true
}

// entries reads all pages of a server's list, as the client may see it.
func (s *session) entries(ctx context.Context, up *upstream, method string) (*link, []strictjson.Value, error) {
	link, err := up.ready(ctx, method)
	if err != nil {
		return nil, nil, err
	}
	if !link.can(method) {
		return link, nil, nil
	}
	about := About{Method: method, Version: link.version}
	var all []strictjson.Value
	cursor := strictjson.Value{}
	for range maxPages {
		result, err := link.ask(ctx, method, strictjson.Object(strictjson.Member{Name: "cursor", Value: cursor}))
		if err != nil {
			return nil, nil, err
		}
		shown, out := up.book.show(method, result)
		up.tellWithheld(out)
		t := up.treat.Result(about, shown)
		if err := s.observe(up, about, t, result); err != nil {
			return nil, nil, err
		}
		if t.Refused != nil {
			return nil, nil, t.Refused
		}
		for _, e := range t.Value.Get(lists[method]).Elems() {
			all = append(all, e)
		}
		next := result.Get("nextCursor")
		if next.Kind() != strictjson.KindString || next.Str() == cursor.Str() {
			break
		}
		cursor = next
	}
	return link, all, nil
}

// stale takes what a server said it offers for outdated.
func (s *session) stale(up *upstream, notification string) {
	if s.several == nil {
		return
	}
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	for _, method := range changedLists[notification] {
		if have := s.several.shelf[up][method]; have != nil {
			have.from = nil
		}
	}
}

// find gives the server that a resource belongs to: who listed it, else whose template it fits, else the only one that has
// resources at all. Two who offer the same are nobody.
func (s *session) find(f *flight, uri string) (*upstream, strictjson.Value) {
	if up, failure := s.offered(uri); up != nil || failure.Kind() != strictjson.KindAbsent {
		return up, failure
	}
	ctx, cancel := context.WithTimeout(f.ctx, s.g.listWait)
	defer cancel()
	for _, method := range []string{"resources/list", "resources/templates/list"} {
		var wait []<-chan struct{}
		for _, up := range s.servers {
			wait = append(wait, s.restock(up, method))
		}
		for _, done := range wait {
			select {
			case <-done:
			case <-ctx.Done():
			}
		}
	}
	if up, failure := s.offered(uri); up != nil || failure.Kind() != strictjson.KindAbsent {
		return up, failure
	}
	return nil, ownError(codeNoResource, "no server offers %s", Quote(uri))
}

// codeNoResource is MCP's code for a resource that is not found.
const codeNoResource = -32002

func (s *session) offered(uri string) (*upstream, strictjson.Value) {
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	owners := maps.Clone(s.several.owners[uri])
	if owners == nil {
		owners = map[*upstream]bool{}
		for template, ups := range s.several.owners {
			if fits(uri, template) {
				maps.Copy(owners, ups)
			}
		}
	}
	switch len(owners) {
	case 0:
		return nil, strictjson.Value{}
	case 1:
		for up := range owners {
			return up, strictjson.Value{}
		}
	}
	var names []string
	for up := range owners {
		names = append(names, up.name())
	}
	slices.Sort(names)
	return nil, ownError(codeRefused, "%s is offered by the servers %s and %s; it is read from neither", Quote(uri), names[0], names[1])
}
