package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Pins is what the operator chose about definitions. The zero value keeps no lock: then what a server said first in a session
// is what counts in that session.
type Pins struct {
	Lock       *Lock // what was approved; nil = nothing was
	AllowNew   bool  // show definitions that were not there when their server was approved
	AllowDrift bool  // where nothing was approved of a server: let it change definitions within a session
}

// maxDefinitions bounds what a session remembers of one server's definitions; the most seen on one is 78.
const maxDefinitions = 4096

// book is what one session knows about the definitions of one server.
type book struct {
	pins    Pins
	server  string
	launch  []string
	unknown bool // the client gets members that the table lacks

	mu       sync.Mutex
	first    map[PinKind]map[string]string // the digest that was seen first in this session
	standing map[PinKind]map[string]Standing
	read     map[PinKind]*link // the running server whose whole list of the kind was read

	granted map[string]bool // digests that a person approved for this session
	asked   int             // questions put to a person

	reading chan struct{} // held while a list is read
}

func newBook(pins Pins, s Server) *book {
	pins.AllowDrift = pins.AllowDrift || s.Trust == FirstParty
	return &book{pins: pins, server: s.Server, launch: s.launched(), unknown: s.PassUnknown, first: map[PinKind]map[string]string{}, standing: map[PinKind]map[string]Standing{},
		read: map[PinKind]*link{}, granted: map[string]bool{}, reading: make(chan struct{}, 1)}
}

// launched is how the server is started or reached.
func (s Server) launched() []string {
	if s.URL != "" {
		return []string{s.URL}
	}
	return s.Command
}

// withheld is one definition that a list does not show, for the first time, and why.
type withheld struct {
	kind     PinKind
	name     string
	standing Standing
	def      strictjson.Value
}

// show takes out of a list what a person did not approve, or what is not what the server said before: a definition that changes
// after a client has looked at it is how a server gets a harmless one approved and another one used. It returns what it took out
// that it had not taken out before.
func (b *book) show(method string, result strictjson.Value) (strictjson.Value, []withheld) {
	at := slices.IndexFunc(pinKinds, func(k PinKind) bool { return k.method() == method })
	list := strictjson.Value{}
	if at >= 0 {
		list = result.Get(pinKinds[at].section())
	}
	if list.Kind() != strictjson.KindArray {
		return result, nil
	}
	kind := pinKinds[at]
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []withheld
	kept := make([]strictjson.Value, 0, list.Len())
	for _, def := range list.Elems() {
		name := kind.nameOf(def)
		standing := b.judge(kind, name, def)
		if b.standing[kind] == nil {
			b.standing[kind] = map[string]Standing{}
		}
		before, known := b.standing[kind][name]
		if known || len(b.standing[kind]) < maxDefinitions {
			b.standing[kind][name] = standing
		}
		if b.passes(standing) {
			kept = append(kept, def)
		} else if !known || before != standing {
			out = append(out, withheld{kind, name, standing, def})
		}
	}
	if len(kept) == list.Len() {
		return result, nil
	}
	return result.With(kind.section(), strictjson.Array(kept...)), out
}

// judge says how a definition stands. Where nothing was approved the first one of its name in this session is the measure.
func (b *book) judge(kind PinKind, name string, def strictjson.Value) Standing {
	if !b.pins.Lock.Launched(b.server, b.launch) {
		return Changed
	}
	if b.granted[Digest(def)] {
		return Approved
	}
	shown := def
	if !b.unknown {
		shown = def.Without("_meta") // no client sees more of it than names that the table knows
	}
	digest := Digest(shown)
	if b.first[kind] == nil {
		b.first[kind] = map[string]string{}
	}
	first, seen := b.first[kind][name]
	if !seen && len(b.first[kind]) < maxDefinitions {
		first, b.first[kind][name] = digest, digest
	}
	standing := b.pins.Lock.Judge(b.server, kind, def)
	if first != digest && (standing == Added || standing == Unpinned && !b.pins.AllowDrift) {
		return Changed // two definitions of one name, one that changed under the client's eyes, or more than can be remembered
	}
	return standing
}

func (b *book) passes(s Standing) bool {
	return s == Approved || s == Unpinned || s == Added && b.pins.AllowNew
}

// method is how a client asks for the list of a kind.
func (k PinKind) method() string {
	return [...]string{"tools/list", "prompts/list", "resources/templates/list"}[k]
}

// refuses says why a tool or prompt may not be used, nil if it may.
func (b *book) refuses(kind PinKind, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	standing, known := b.standing[kind][name]
	switch {
	case !known && b.pinned():
		return fmt.Errorf("the %s %s of server %s was not approved; hearsay pin --diff shows what is new", kind, Quote(name), b.server)
	case !known || b.passes(standing):
		return nil
	case b.pinned() && standing == Changed:
		return fmt.Errorf("the %s %s of server %s is withheld: it changed since it was approved; hearsay pin --diff shows how", kind, Quote(name), b.server)
	case b.pinned():
		return fmt.Errorf("the %s %s of server %s is withheld: it was not there when the server was approved; hearsay pin --diff shows it", kind, Quote(name), b.server)
	}
	return fmt.Errorf("the %s %s of server %s is withheld: the server changed its definition within this session", kind, Quote(name), b.server)
}

// pinned says whether anything of the server was approved, so that what was not is withheld.
func (b *book) pinned() bool { return b.pins.Lock != nil && b.pins.Lock.Servers[b.server] != nil }

// pinned says why a thing may not be used: it is not, or no longer, what a person approved. A server that was pinned is asked for
// its whole list before its first call, and again after a restart: a client may call without ever looking.
func (up *upstream) pinned(f *flight, about About) error {
	kind := PinTool
	switch about.Method {
	case "tools/call":
	case "prompts/get":
		kind = PinPrompt
	default:
		return nil
	}
	if up.book.pinned() {
		if err := up.readDefinitions(f, kind); err != nil {
			return err
		}
	}
	return up.book.refuses(kind, about.Name)
}

// readDefinitions reads the list of a kind as a whole, once for each running server.
func (up *upstream) readDefinitions(f *flight, kind PinKind) error {
	l, err := f.reach(up)
	if err != nil {
		return err
	}
	b := up.book
	b.mu.Lock()
	known := b.read[kind] == l
	b.mu.Unlock()
	if known {
		return nil
	}
	f.away()
	select {
	case b.reading <- struct{}{}:
		defer func() { <-b.reading }()
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
	b.mu.Lock()
	known = b.read[kind] == l
	b.mu.Unlock()
	if known {
		return nil
	}
	ctx, cancel := context.WithTimeout(f.ctx, greetFor)
	defer cancel()
	err = l.list(ctx, kind, f.Params.Get("_meta").Without("progressToken", userMeta), maxPages, func(page strictjson.Value) {
		_, out := b.show(kind.method(), page)
		up.tellWithheld(out)
	})
	if err != nil {
		return fmt.Errorf("server %s was pinned, and cannot be checked: %w", up.name(), err)
	}
	b.mu.Lock()
	b.read[kind] = l
	b.mu.Unlock()
	return nil
}

// list reads the pages of a list, at most so many. meta is what a client of 2026-07-28 sends with each request; absent for others.
func (l *link) list(ctx context.Context, kind PinKind, meta strictjson.Value, pages int, page func(strictjson.Value)) error {
	cursor := strictjson.Value{}
	for range pages {
		call, err := l.peer.Open(nil)
		if err != nil {
			return err
		}
		params := strictjson.Object(strictjson.Member{Name: "cursor", Value: cursor}, strictjson.Member{Name: "_meta", Value: meta})
		m, err := call.Do(ctx, kind.method(), params)
		switch {
		case err != nil:
			return err
		case m.Own:
			return m.Failed()
		case m.Error.Kind() != strictjson.KindAbsent: // it has none of the kind
			return nil
		}
		page(m.Result)
		next := m.Result.Get("nextCursor")
		if next.Kind() != strictjson.KindString || next.Str() == cursor.Str() {
			return nil
		}
		cursor = next
	}
	return nil
}

// tellWithheld puts on record what a list does not show, and asks a person about it.
func (up *upstream) tellWithheld(out []withheld) {
	up.s.counts.withheld.Add(int64(len(out)))
	for _, w := range out {
		up.s.log.Warn("a definition is withheld", "server", up.name(), "kind", w.kind, "name", cleanLine(w.name), "why", w.standing)
		up.s.record(audit.Event{Kind: audit.Refusal, Server: up.name(), Tool: cleanLine(w.name), Answer: "deny", Reason: "pin", Text: w.standing.String()})
	}
	if up.s.g.opt.Ask == nil || !up.book.pinned() || len(out) == 0 {
		return
	}
	up.s.work.Go(func() {
		for _, w := range out {
			if !up.askAbout(w) {
				return
			}
		}
	})
}

// maxPinQuestions bounds how many questions about definitions one session puts to a person: a server that keeps changing them
// must not wear anybody down.
const maxPinQuestions = 8

// askAbout puts a definition that is withheld to a person, with what differs from the approved one. A yes holds for this session;
// hearsay pin makes it last. false: no more questions.
func (up *upstream) askAbout(w withheld) bool {
	b := up.book
	if hiddenIn(w.def) != "" || unseen(w.name) {
		return true // what a person cannot see whole is not asked about
	}
	b.mu.Lock()
	b.asked++
	enough := b.asked > maxPinQuestions
	b.mu.Unlock()
	if enough {
		return false
	}
	was := b.pins.Lock.Servers[b.server].Definitions[w.kind][w.name].Definition
	differs := map[string]any{
		"kind": w.kind.String(), "name": w.name, "change": w.standing.String(), "difference": strings.Join(lines(text(was), text(w.def)), "\n"),
	}
	answer := up.s.g.opt.Ask(up.s.ctx, approve.Question{
		Session: up.s.id, Principal: up.s.who, Server: up.name(), Tool: "hearsay pin", Args: differs, Call: Canonical(nil, w.def), Rule: "pins", HighRisk: true,
		Why: "The server offers a definition that is not as it was approved. Yes lets it be shown and used in this session; hearsay pin makes that last.",
	})
	if answer.Verdict == approve.Deny {
		return true
	}
	b.mu.Lock()
	b.granted[Digest(w.def)] = true
	b.standing[w.kind][w.name] = Approved
	b.mu.Unlock()
	if changed := "notifications/" + w.kind.section() + "/list_changed"; w.kind != PinTemplate {
		up.s.stale(up, changed)
		up.s.tellChanged(changed)
	}
	return true
}
