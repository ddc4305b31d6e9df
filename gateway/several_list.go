package gateway

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of what is known of the servers' lists.
const (
	// listWait is how long a list waits for servers that have not answered yet. What comes later is told by list_changed.
	listWait = 5 * time.Second
	// maxKeep bounds how long an answer of a server of 2026-07-28 counts, whatever it says.
	maxKeep = time.Hour
	// maxShelves is how many answers of one server are kept: four lists, for clients that can different things.
	maxShelves = 64
)

// shelf is one list of one server, treated, in the server's own names.
type shelf struct {
	entries []strictjson.Value
	from    *link     // the running server that said so; another one is asked again
	until   time.Time // when it stops to count; zero = when the server says so
	asking  *question // one under way; nil if none is
}

// shelfKey names a list as one kind of client gets it.
type shelfKey struct {
	method string
	client string // what a client of 2026-07-28 says of itself with each request; "" before, where a session is one client
}

func (f *flight) shelf(method string) shelfKey {
	meta := f.asked()
	return shelfKey{method, string(meta.Get(metaCapabilities).Append(nil)) + string(meta.Get(metaVersion).Append(nil))}
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

// list answers a list from what all servers offer: what is known at once, what is not after a bounded wait. It has one page.
func (s *session) list(f *flight) (result, failure strictjson.Value) {
	if failure := onePage(f); failure.Kind() != strictjson.KindAbsent {
		return result, failure
	}
	s.stock(f, f.Method)
	member := lists[f.Method]
	type offer struct {
		up    *upstream
		entry strictjson.Value
	}
	offers := map[string][]offer{}
	names := map[string][]string{}
	var order []string
	for _, up := range s.servers {
		for _, entry := range s.several.entries(up, f.shelf(f.Method)) {
			key := outerKey(up, f.Method, entry)
			if offers[key] == nil {
				order = append(order, key)
			}
			offers[key] = append(offers[key], offer{up, entry})
			names[up.name()] = append(names[up.name()], entry.Get("name").Str())
		}
	}
	if f.Method == "tools/list" {
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
	return s.ownResult(f, strictjson.Member{Name: member, Value: strictjson.Array(entries...)}), failure
}

// onePage refuses a page that the gateway offered nobody.
func onePage(f *flight) (failure strictjson.Value) {
	if cursor := f.Params.Get("cursor"); cursor.Kind() == strictjson.KindNumber || cursor.Str() != "" {
		return ownError(jsonrpc.CodeInvalidParams, "there is no such page: the list has one")
	}
	return failure
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

// stock has the servers say what they offer, as far as that is not known, and waits for each no longer than listWait since it was
// asked: one that is slow holds up the first request only.
func (s *session) stock(f *flight, methods ...string) {
	var asked []question
	for _, method := range methods {
		for _, up := range s.servers {
			asked = append(asked, s.restock(f, up, method))
		}
	}
	for _, q := range asked {
		ctx, cancel := context.WithDeadline(f.ctx, q.since.Add(s.g.listWait))
		select {
		case <-q.answered:
		case <-ctx.Done():
		}
		cancel()
	}
}

// question is a list that a server was asked for.
type question struct {
	since    time.Time
	answered chan struct{} // closed when it is
}

var answeredQuestion = func() question { c := make(chan struct{}); close(c); return question{answered: c} }()

// restock asks a server for a list, unless what it said is still good or it is being asked.
func (s *session) restock(f *flight, up *upstream, method string) question {
	key := f.shelf(method)
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	shelves := s.several.shelf[up]
	if shelves == nil || shelves[key] == nil && len(shelves) >= maxShelves {
		shelves = map[shelfKey]*shelf{}
		s.several.shelf[up] = shelves
	}
	have := shelves[key]
	switch {
	case have == nil:
		have = &shelf{}
		shelves[key] = have
	case have.asking != nil:
		return *have.asking
	case have.from != nil && have.from == up.running() && (have.until.IsZero() || time.Now().Before(have.until)):
		return answeredQuestion
	}
	asking := question{time.Now(), make(chan struct{})}
	have.asking = &asking
	meta, version := f.asked(), f.version
	s.background(func(ctx context.Context) {
		got, err := s.entries(ctx, up, method, meta, version)
		if err != nil {
			s.log.Warn("a server does not say what it offers", "server", up.name(), "method", method, "why", err)
		}
		s.several.mu.Lock()
		late := time.Since(asking.since) >= s.g.listWait
		have.asking = nil
		if err == nil {
			have.entries, have.from, have.until = got.entries, got.from, got.until
			s.several.listedEntries(up, method, got.entries)
		}
		s.several.mu.Unlock()
		close(asking.answered)
		if late && err == nil { // the client was answered without it
			for notification, methods := range changedLists {
				if slices.Contains(methods, method) {
					s.tellChanged(notification)
				}
			}
		}
	})
	return asking
}

// entries reads all pages of a server's list, as the client may see it. meta goes with each request.
func (s *session) entries(ctx context.Context, up *upstream, method string, meta strictjson.Value, version string) (got shelf, err error) {
	if got.from, err = up.ready(ctx, method); err != nil || !got.from.can(method) {
		return got, err
	}
	about := About{Method: method, Version: version}
	if version >= modernVersion {
		got.until = time.Now().Add(maxKeep)
	} else {
		about.Version = got.from.version
	}
	member := lists[method]
	if method == "tasks/list" {
		member = "tasks"
	}
	cursor := strictjson.Value{}
	for range maxPages {
		began := time.Now()
		result, err := got.from.ask(ctx, method, strictjson.Object(strictjson.Member{Name: "cursor", Value: cursor}, strictjson.Member{Name: "_meta", Value: meta}))
		if refused := (*refusedError)(nil); errors.As(err, &refused) && refused.code == jsonrpc.CodeMethodNotFound {
			return got, nil // it has none
		}
		if err != nil {
			return got, err
		}
		shown, out := up.book.show(method, result)
		up.tellWithheld(out)
		t := up.treat.Result(about, shown)
		if err := s.observe(up, about, t, result); err != nil {
			return got, err
		}
		if t.Refused != nil {
			return got, t.Refused
		}
		for _, e := range t.Value.Get(member).Elems() {
			if len(got.entries) >= maxDefinitions {
				s.log.Warn("a server lists too much; the rest is not shown", "server", up.name(), "method", method)
				return got, nil
			}
			got.entries = append(got.entries, e)
		}
		if version >= modernVersion { // nobody hears of a change but who listens: it counts only as long as the server says
			ttl, _ := strconv.ParseInt(result.Get("ttlMs").Number(), 10, 64)
			if until := began.Add(time.Duration(max(0, min(ttl, maxKeep.Milliseconds()))) * time.Millisecond); until.Before(got.until) {
				got.until = until
			}
		}
		next := result.Get("nextCursor")
		if next.Kind() != strictjson.KindString || next.Str() == cursor.Str() {
			break
		}
		cursor = next
	}
	return got, nil
}

// stale takes what a server said it offers for outdated.
func (s *session) stale(up *upstream, notification string) {
	if s.several == nil {
		return
	}
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	for key, have := range s.several.shelf[up] {
		if slices.Contains(changedLists[notification], key.method) {
			have.from = nil
		}
	}
}

// warn logs, once each, tools of two servers whose names differ and look alike.
func (v *several) warn(log *slog.Logger, names map[string][]string) {
	pairs := lookAlikes(names)
	var alike [][2]named
	v.mu.Lock()
	for _, pair := range pairs {
		if pair[0].server != pair[1].server && pair[0].tool != pair[1].tool && !v.warned[pair] && len(v.warned) < maxRemembered {
			v.warned[pair] = true
			alike = append(alike, pair)
		}
	}
	v.mu.Unlock() // a log may be slow
	for _, pair := range alike {
		log.Warn("tools of two servers look alike", "one", join(pair[0].server, pair[0].tool), "other", join(pair[1].server, pair[1].tool))
	}
}

// entries gives what a server is known to offer. What is known is replaced as a whole, never changed.
func (v *several) entries(up *upstream, key shelfKey) []strictjson.Value {
	v.mu.Lock()
	defer v.mu.Unlock()
	if have := v.shelf[up][key]; have != nil {
		return have.entries
	}
	return nil
}
