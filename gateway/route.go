package gateway

import (
	"strconv"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// route finds the server that a request is for and the params it gets.
func (s *session) route(f *flight) (up *upstream, params strictjson.Value, about About, failure strictjson.Value) {
	up, params = s.servers[0], f.Params
	if s.several != nil {
		if up, params, failure = s.among(f); failure.Kind() != strictjson.KindAbsent {
			return nil, params, about, failure
		}
	}
	about = up.about(f, params)
	about.Screen = s.screen(f, up, about)
	return up, params, about, strictjson.Value{}
}

// about describes a request in the server's own names.
func (up *upstream) about(f *flight, params strictjson.Value) About {
	a := About{Method: f.Method, Version: f.version}
	switch f.Method {
	case "tools/call", "prompts/get":
		a.Name = params.Get("name").Str()
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		a.URI = params.Get("uri").Str()
	case "completion/complete":
		a.Name, a.URI = params.Get("ref").Get("name").Str(), params.Get("ref").Get("uri").Str()
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/update":
		a.Name = up.taskTool(params.Get("taskId").Str())
	}
	return a
}

// label names a message for the audit: the tool, or else the method.
func (a About) label() string {
	if a.Name != "" {
		return cleanLine(a.Name)
	}
	return a.Method
}

// maxPages bounds how many pages of one list a client is led through. Servers with hundreds of tools have a few pages.
const maxPages = 500

// outgoing gives a treated result its last changes for the client.
func (s *session) outgoing(f *flight, up *upstream, about About, result strictjson.Value) strictjson.Value {
	result = s.bind(f, up, about, result)
	if f.listen != nil {
		result = mapSubscription(result, f.ID)
	}
	if next := result.Get("nextCursor"); next.Kind() != strictjson.KindAbsent && !up.page(f, next) {
		s.log.Warn("a list does not end; its next page is not offered", "server", up.name(), "method", f.Method)
		result = result.Without("nextCursor")
	}
	return result
}

// page counts the pages of a list. false: the list goes in circles, or does not end.
func (up *upstream) page(f *flight, next strictjson.Value) bool {
	cursor := f.Params.Get("cursor")
	up.mu.Lock()
	defer up.mu.Unlock()
	if cursor.Kind() == strictjson.KindAbsent {
		up.pages[f.Method] = 0
		return true
	}
	up.pages[f.Method]++
	return next.Str() != cursor.Str() && up.pages[f.Method] < maxPages
}

// detail is what the audit keeps of an answer: counts.
func (t Treated) detail(took time.Duration) map[string]string {
	return map[string]string{
		"framed": strconv.Itoa(t.Framed), "dropped": strconv.Itoa(t.Dropped), "withheld": strconv.Itoa(t.Withheld),
		"ms": strconv.FormatInt(took.Milliseconds(), 10),
	}
}
