package streamhttp

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// maxSchemas bounds the tools of which a session knows which arguments stand in headers. Few servers have any.
const maxSchemas = 1024

// learn remembers the schemas of listed tools that want arguments repeated in headers (x-mcp-header). It is called with mu held.
func (s *Session) learn(result strictjson.Value) {
	for _, tool := range result.Get("tools").Elems() {
		name, schema := tool.Get("name").Str(), tool.Get("inputSchema")
		wants := false
		walkParams(schema, strictjson.Value{}, 0, func(string, strictjson.Value) { wants = true })
		if !wants {
			delete(s.schemas, name)
		} else if len(s.schemas) < maxSchemas {
			if s.schemas == nil {
				s.schemas = map[string]strictjson.Value{}
			}
			s.schemas[strings.Clone(name)] = schema
		}
	}
}

// paramsDiffer says how the Mcp-Param headers of a call differ from its arguments; "" if they do not. Of a tool that this
// session has not listed only the form of the headers is checked.
func (s *Session) paramsDiffer(h http.Header, m jsonrpc.Message) string {
	if m.Method != "tools/call" {
		return ""
	}
	for name, values := range h {
		if _, ok := strings.CutPrefix(name, headerParam); !ok {
			continue
		}
		if _, valid := decodeHeader(values[0]); !valid || len(values) > 1 {
			return "the header " + strconv.Quote(name) + " cannot be decoded"
		}
	}
	s.mu.Lock()
	schema := s.schemas[m.Params.Get("name").Str()]
	s.mu.Unlock()
	differs := ""
	walkParams(schema, m.Params.Get("arguments"), 0, func(param string, arg strictjson.Value) {
		name := http.CanonicalHeaderKey(headerParam + param)
		got, present := h[name]
		want, usable := primitive(arg)
		switch {
		case !token(param) || differs != "":
		case !usable && present:
			differs = "the header " + strconv.Quote(name) + " has no argument that it repeats"
		case usable && !present:
			differs = "the header " + strconv.Quote(name) + " is missing"
		case usable:
			if value, _ := decodeHeader(got[0]); !sameParam(value, want, arg) {
				differs = "the header " + strconv.Quote(name) + " is not the argument in the body"
			}
		}
	})
	return differs
}

// sameParam compares a header with an argument: numbers by value, anything else by its characters.
func sameParam(header, want string, arg strictjson.Value) bool {
	if arg.Kind() != strictjson.KindNumber {
		return header == want
	}
	n, err := strconv.ParseInt(strings.TrimSpace(header), 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == want
}
