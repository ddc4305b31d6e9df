package streamhttp

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// maxMirrored bounds how many tools with arguments in headers are remembered of one server.
const maxMirrored = 4096

// mirrors remembers, from the answers to tools/list that pass, the input schemas that have arguments repeated in headers.
type mirrors struct {
	mu      sync.Mutex
	schemas map[string]strictjson.Value // by the tool's name
}

// learn takes note of an answer to tools/list.
func (t *mirrors) learn(result strictjson.Value) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tool := range result.Get("tools").Elems() {
		name, schema := tool.Get("name").Str(), tool.Get("inputSchema")
		mirrored := false
		walkParams(schema, strictjson.Value{}, 0, func(string, strictjson.Value) { mirrored = true })
		switch {
		case !mirrored:
			delete(t.schemas, name)
		case len(t.schemas) < maxMirrored:
			if t.schemas == nil {
				t.schemas = map[string]strictjson.Value{}
			}
			t.schemas[strings.Clone(name)] = schema
		}
	}
}

// of gives the schema that a call's headers follow; absent where none is known.
func (t *mirrors) of(m jsonrpc.Message) strictjson.Value {
	if m.Method != "tools/call" {
		return strictjson.Value{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.schemas[m.Params.Get("name").Str()]
}

// differ says how the Mcp-Param headers of a call differ from its arguments (SEP-2243); "" if they do not. Of a tool that was not
// listed only the form of the headers is checked.
func (t *mirrors) differ(m jsonrpc.Message, h http.Header) string {
	if m.Method != "tools/call" {
		return ""
	}
	for name, values := range h {
		if !strings.HasPrefix(name, headerParam) {
			continue
		}
		if _, valid := decodeHeader(values[0]); !valid || len(values) > 1 {
			return "the header " + strconv.Quote(name) + " cannot be decoded"
		}
	}
	differs := ""
	walkParams(t.of(m), m.Params.Get("arguments"), 0, func(param string, arg strictjson.Value) {
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

// paramHeaders gives the Mcp-Param headers for a call's arguments: one for each property of the tool's input schema, at any
// depth, that carries x-mcp-header and has a string, truth value or safe integer as its argument (SEP-2243).
func paramHeaders(inputSchema, arguments strictjson.Value) http.Header {
	h := http.Header{}
	walkParams(inputSchema, arguments, 0, func(name string, arg strictjson.Value) {
		if text, ok := primitive(arg); ok && token(name) {
			h.Set(headerParam+name, encodeHeader(text))
		}
	})
	return h
}

// maxSchemaDepth bounds the walk over a schema that a server wrote.
const maxSchemaDepth = 16

func walkParams(schema, args strictjson.Value, depth int, found func(name string, arg strictjson.Value)) {
	if depth > maxSchemaDepth {
		return
	}
	for property, sub := range schema.Get("properties").Members() {
		arg := args.Get(property)
		if name := sub.Get("x-mcp-header").Str(); name != "" {
			found(name, arg)
		}
		if sub.Get("properties").Kind() == strictjson.KindObject {
			walkParams(sub, arg, depth+1, found)
		}
	}
}

const maxSafeInteger = 1<<53 - 1

func primitive(v strictjson.Value) (string, bool) {
	switch v.Kind() {
	case strictjson.KindString:
		return v.Str(), true
	case strictjson.KindBool:
		return strconv.FormatBool(v.Bool()), true
	case strictjson.KindNumber:
		n, err := strconv.ParseInt(v.Number(), 10, 64)
		if err != nil || n > maxSafeInteger || n < -maxSafeInteger {
			return "", false
		}
		return strconv.FormatInt(n, 10), true
	}
	return "", false
}
