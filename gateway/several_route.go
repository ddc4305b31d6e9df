package gateway

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// among finds, where several servers stand behind the gateway, which one a request is for, and gives it the params in the
// server's own names.
func (s *session) among(f *flight) (up *upstream, params, failure strictjson.Value) {
	params = f.Params
	switch f.Method {
	case "tools/call":
		name := params.Get("name").Str()
		up, inner := s.named(f, "tools/list", name)
		if up == nil {
			return nil, params, ownError(jsonrpc.CodeInvalidParams, "there is no tool %s", Quote(name))
		}
		return up, params.With("name", strictjson.String(inner)), strictjson.Value{}
	case "prompts/get":
		name := params.Get("name").Str()
		up, inner := s.named(f, "prompts/list", name)
		if up == nil {
			return nil, params, ownError(jsonrpc.CodeInvalidParams, "there is no prompt %s", Quote(name))
		}
		return up, params.With("name", strictjson.String(inner)), strictjson.Value{}
	case "completion/complete":
		ref := params.Get("ref")
		if name := ref.Get("name"); name.Kind() == strictjson.KindString {
			up, inner := s.named(f, "prompts/list", name.Str())
			if up == nil {
				return nil, params, ownError(jsonrpc.CodeInvalidParams, "there is no prompt %s", Quote(name.Str()))
			}
			return up, params.With("ref", ref.With("name", strictjson.String(inner))), strictjson.Value{}
		}
		up, failure = s.find(f, ref.Get("uri").Str())
		return up, params, failure
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		up, failure = s.find(f, params.Get("uri").Str())
		return up, params, failure
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/update":
		up, failure = s.taskOwner(params.Get("taskId").Str())
		return up, params, failure
	}
	return nil, params, ownError(jsonrpc.CodeMethodNotFound, "%s is not offered where several servers stand behind the gateway", Quote(f.Method))
}

// hasTask says whether a call became this task, or the server listed it.
func (up *upstream) hasTask(id string) bool {
	up.mu.Lock()
	defer up.mu.Unlock()
	_, known := up.tasks[id]
	return known
}

// taskOwner gives the server that has a task.
func (s *session) taskOwner(id string) (owner *upstream, failure strictjson.Value) {
	for _, up := range s.servers {
		known := up.hasTask(id)
		switch {
		case known && owner != nil: // a server that learns of another's task could answer for it
			return nil, ownError(codeRefused, "the servers %s and %s both have a task %s; neither is asked", owner.name(), up.name(), Quote(id))
		case known:
			owner = up
		}
	}
	if owner == nil {
		failure = ownError(jsonrpc.CodeInvalidParams, "there is no task %s", Quote(id))
	}
	return owner, failure
}

// named finds the server and its own name for a name the client sees. Names that were cut or cleaned are looked up among what
// the server offers.
func (s *session) named(f *flight, method, joined string) (up *upstream, inner string) {
	server, inner, ok := split(joined)
	if !ok {
		return nil, ""
	}
	for _, candidate := range s.servers {
		if candidate.name() == server {
			up = candidate
		}
	}
	if up == nil {
		return nil, ""
	}
	if !marked(inner) {
		return up, inner
	}
	if name, ok := s.known(f, up, method, joined); ok {
		return up, name
	}
	f.away()
	select {
	case <-s.restock(f, up, method).answered:
	case <-f.ctx.Done():
	}
	if name, ok := s.known(f, up, method, joined); ok {
		return up, name
	}
	return up, inner // it may be called so
}

// known finds a server's own name for a name the client sees among what it said it offers.
func (s *session) known(f *flight, up *upstream, method, joined string) (name string, ok bool) {
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	if have := s.several.shelf[up][f.shelf(method)]; have != nil {
		for _, entry := range have.entries {
			if name := entry.Get("name").Str(); join(up.name(), name) == joined {
				return name, true
			}
		}
	}
	return "", false
}

// marked says that a name may have been cut or cleaned by join.
func marked(name string) bool {
	i := len(name) - markLen - 1
	return i >= 0 && name[i] == '-' && strings.Trim(name[i+1:], "0123456789abcdef") == ""
}

// fits says that a URI may be of a template: it begins and ends as the template does around its first and last variable.
func fits(uri, template string) bool {
	first, last := strings.IndexByte(template, '{'), strings.LastIndexByte(template, '}')
	if first <= 0 || last < first {
		return false
	}
	return len(uri) >= first+len(template)-last-1 && strings.HasPrefix(uri, template[:first]) && strings.HasSuffix(uri, template[last+1:])
}

// mentioned remembers whose the resources are that a result mentions, so that they can be read.
func (s *session) mentioned(up *upstream, result strictjson.Value) {
	if s.several == nil {
		return
	}
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	for _, block := range result.Get("content").Elems() {
		s.owner(block.Get("uri").Str(), up)
		s.owner(block.Get("resource").Get("uri").Str(), up)
	}
	for _, message := range result.Get("messages").Elems() {
		s.owner(message.Get("content").Get("uri").Str(), up)
		s.owner(message.Get("content").Get("resource").Get("uri").Str(), up)
	}
}

// find gives the server that a resource belongs to: who listed it, else whose template it fits, else the only one that has
// resources at all. Two who offer the same are nobody.
func (s *session) find(f *flight, uri string) (*upstream, strictjson.Value) {
	if up, failure := s.offered(uri); up != nil || failure.Kind() != strictjson.KindAbsent {
		return up, failure
	}
	s.stock(f, "resources/list", "resources/templates/list")
	if up, failure := s.offered(uri); up != nil || failure.Kind() != strictjson.KindAbsent {
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
