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
	for _, entry := range s.several.entries(up, f.shelf(method)) {
		if name := entry.Get("name").Str(); join(up.name(), name) == joined {
			return name, true
		}
	}
	return "", false
}

// marked says that a name may have been cut or cleaned by join.
func marked(name string) bool {
	i := len(name) - markLen - 1
	return i >= 0 && name[i] == '-' && strings.Trim(name[i+1:], "0123456789abcdef") == ""
}
