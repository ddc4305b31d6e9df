package gateway

import (
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// claims are the resources that one server says are its own: those and the templates that it lists, and those that its results
// mention, which are told apart, since a result may mention anything. Each kind is bounded for each server by itself: one that claims
// very much takes no room from another.
type claims struct{ listed, mentioned map[string]bool }

// claim notes that a server listed or mentioned a resource. The caller holds mu.
func (v *several) claim(up *upstream, uri string, listed bool) {
	c := v.claims[up]
	if c == nil {
		c = &claims{map[string]bool{}, map[string]bool{}}
		v.claims[up] = c
	}
	set := c.mentioned
	if listed {
		set = c.listed
	}
	if uri != "" && len(uri) <= maxURI && len(set) < maxRemembered {
		set[strings.Clone(uri)] = true // without the message that it stands in
	}
}

// listedEntries notes whose the resources of a list are. The caller holds mu.
func (v *several) listedEntries(up *upstream, method string, entries []strictjson.Value) {
	for _, e := range entries {
		switch method {
		case "resources/list":
			v.claim(up, e.Get("uri").Str(), true)
		case "resources/templates/list":
			v.claim(up, e.Get("uriTemplate").Str(), true)
		}
	}
}

// mentioned notes whose the resources may be that a result mentions, so that they can be read.
func (s *session) mentioned(up *upstream, result strictjson.Value) {
	if s.several == nil {
		return
	}
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	mention := func(block strictjson.Value) {
		s.several.claim(up, block.Get("uri").Str(), false)
		s.several.claim(up, block.Get("resource").Get("uri").Str(), false)
	}
	for _, block := range result.Get("content").Elems() {
		mention(block)
	}
	for _, message := range result.Get("messages").Elems() {
		mention(message.Get("content"))
	}
}

// find gives the server that a resource belongs to. Where no list says so, the servers are asked for theirs first: else one that
// mentions another's resource in time would be read in its place.
func (s *session) find(f *flight, uri string) (*upstream, strictjson.Value) {
	up, listed, failure := s.offered(uri)
	if !listed {
		s.stock(f, "resources/list", "resources/templates/list")
		up, _, failure = s.offered(uri)
	}
	if up != nil || failure.Kind() != strictjson.KindAbsent {
		return up, failure
	}
	code := codeNoResource
	if f.version >= modernVersion {
		code = jsonrpc.CodeInvalidParams
	}
	return nil, ownError(code, "no server offers %s", Quote(uri))
}

// codeNoResource is the code for a resource that is not found, before 2026-07-28.
const codeNoResource = -32002

// offered gives the server that a resource belongs to, as far as is known: whoever lists it, else whose template it fits or whose
// results mention it. What two claim is nobody's. listed says that a list is the reason, and not a mention alone.
func (s *session) offered(uri string) (owner *upstream, listed bool, failure strictjson.Value) {
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	var exact, likely []*upstream
	for _, up := range s.servers {
		c := s.several.claims[up]
		if c == nil {
			continue
		}
		if c.listed[uri] {
			exact = append(exact, up)
			continue
		}
		fitting := false
		for template := range c.listed {
			fitting = fitting || fits(uri, template)
		}
		if fitting || c.mentioned[uri] {
			likely = append(likely, up)
			listed = listed || fitting
		}
	}
	if exact != nil {
		likely, listed = exact, true
	}
	switch len(likely) {
	case 0:
		return nil, listed, failure
	case 1:
		return likely[0], listed, failure
	}
	names := []string{likely[0].name(), likely[1].name()}
	slices.Sort(names)
	return nil, listed, ownError(codeRefused, "%s is offered by the servers %s and %s; it is read from neither", Quote(uri), names[0], names[1])
}

// fits says that a URI may be of a template: it begins and ends as the template does around its first and last variable.
func fits(uri, template string) bool {
	first, last := strings.IndexByte(template, '{'), strings.LastIndexByte(template, '}')
	if first <= 0 || last < first {
		return false
	}
	return len(uri) >= first+len(template)-last-1 && strings.HasPrefix(uri, template[:first]) && strings.HasSuffix(uri, template[last+1:])
}
