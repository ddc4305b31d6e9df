package gateway

import (
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
		id := params.Get("taskId").Str()
		var owner *upstream
		for _, up := range s.servers {
			up.mu.Lock()
			_, known := up.tasks[id]
			up.mu.Unlock()
			switch {
			case known && owner != nil: // a server that learns of another's task could answer for it
				return nil, params, ownError(codeRefused, "the servers %s and %s both have a task %s; neither is asked", owner.name(), up.name(), Quote(id))
			case known:
				owner = up
			}
		}
		if owner != nil {
			return owner, params, strictjson.Value{}
		}
		return nil, params, ownError(jsonrpc.CodeInvalidParams, "there is no task %s", Quote(id))
	}
	return nil, params, ownError(jsonrpc.CodeMethodNotFound, "%s is not offered where several servers stand behind the gateway", Quote(f.Method))
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
	select {
	case <-s.restock(up, method):
	case <-f.ctx.Done():
	}
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	if have := s.several.shelf[up][method]; have != nil {
		for _, entry := range have.entries {
			if name := entry.Get("name").Str(); join(server, name) == joined {
				return up, name
			}
		}
	}
	return up, inner // it may be called so
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
