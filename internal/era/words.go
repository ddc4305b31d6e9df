package era

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Modern is the version without initialize that is translated.
const Modern = "2026-07-28"

// legacy are the versions with initialize, the newest first.
var legacy = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Legacy lists the versions with initialize, the newest first.
func Legacy() []string { return slices.Clone(legacy) }

// Versions lists the versions of both eras, the newest first.
func Versions() []string { return append([]string{Modern}, legacy...) }

const (
	metaPrefix       = "io.modelcontextprotocol/"
	metaVersion      = metaPrefix + "protocolVersion"
	metaClient       = metaPrefix + "clientInfo"
	metaCapabilities = metaPrefix + "clientCapabilities"
	metaLevel        = metaPrefix + "logLevel"
	metaServer       = metaPrefix + "serverInfo"
	metaSubscription = metaPrefix + "subscriptionId"

	metaRelated = metaPrefix + "related-task"

	tasksExtension = metaPrefix + "tasks"
)

// Codes of errors that one era has.
const (
	codeNoResource  = -32002 // legacy; modern: invalid params
	codeOpenAddress = -32042 // legacy: the user must open an address first; modern: input_required
	codeHeaders     = -32020 // modern, as the next two
	codeCapability  = -32021
	codeVersion     = -32022
)

// levels of logging, the most talkative first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// level gives the place of a name among the levels, -1 for none.
func level(v strictjson.Value) int { return slices.Index(levels, v.Str()) }

// asks are the requests that may need input of the client on the way.
func asks(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// inputs are what a server may ask of a client.
func inputs(method string) bool {
	return method == "sampling/createMessage" || method == "elicitation/create" || method == "roots/list"
}

func member(name string, v strictjson.Value) strictjson.Member {
	return strictjson.Member{Name: name, Value: v}
}

var str = strictjson.String

// only is an object with one member.
func only(name, text string) strictjson.Value { return strictjson.Object(member(name, str(text))) }

// names lists a set in order.
func names(set map[string]bool) strictjson.Value { return list(slices.Sorted(maps.Keys(set))) }

func list(texts []string) strictjson.Value {
	var values []strictjson.Value
	for _, text := range texts {
		values = append(values, str(text))
	}
	return strictjson.Array(values...)
}

func absent(v strictjson.Value) bool { return v.Kind() == strictjson.KindAbsent }

func request(id jsonrpc.ID, method string, params strictjson.Value) jsonrpc.Message {
	return jsonrpc.Message{Kind: jsonrpc.Request, ID: id, Method: method, Params: params}
}

func notification(method string, params strictjson.Value) jsonrpc.Message {
	return jsonrpc.Message{Kind: jsonrpc.Notification, Method: method, Params: params}
}

func result(id jsonrpc.ID, v strictjson.Value) jsonrpc.Message {
	return jsonrpc.Message{Kind: jsonrpc.Response, ID: id, Result: v}
}

// failure answers a request in words of the bridge's own, which quote nothing.
func failure(id jsonrpc.ID, code int, text string) jsonrpc.Message {
	return jsonrpc.Message{Kind: jsonrpc.Response, ID: id, Error: jsonrpc.NewError(code, text, strictjson.Value{}), Own: true}
}

// unsupported is the modern refusal of a version.
func unsupported(id jsonrpc.ID, asked strictjson.Value) jsonrpc.Message {
	return jsonrpc.Message{Kind: jsonrpc.Response, ID: id, Own: true, Error: jsonrpc.NewError(codeVersion, "the protocol version is not supported", strictjson.Object(
		member("supported", strictjson.Array(str(Modern))), member("requested", asked)))}
}

// cancelled says that a request is given up.
func cancelled(id jsonrpc.ID, reason string) jsonrpc.Message {
	return notification("notifications/cancelled", strictjson.Object(member("requestId", id.Value()), member("reason", str(reason))))
}

// withoutMeta takes what only the modern era has out of a request's params.
func withoutMeta(params strictjson.Value) strictjson.Value {
	meta := params.Get("_meta")
	if meta.Kind() != strictjson.KindObject {
		return params
	}
	var own []string
	for name := range meta.Members() {
		if strings.HasPrefix(name, metaPrefix) {
			own = append(own, name)
		}
	}
	if meta = meta.Without(own...); meta.Len() == 0 {
		meta = strictjson.Value{}
	}
	return params.With("_meta", meta)
}

// named says whether v is what a client or server may call itself.
func named(v strictjson.Value) bool {
	return v.Get("name").Kind() == strictjson.KindString && v.Get("version").Kind() == strictjson.KindString
}

// sound says whether a modern server has nothing to refuse in what a request says of its client.
func sound(meta strictjson.Value) bool {
	info := meta.Get(metaClient)
	return meta.Get(metaVersion).Str() == Modern && meta.Get(metaCapabilities).Kind() == strictjson.KindObject && (absent(info) || named(info))
}

// withoutTasks takes the tasks of either era out of capabilities.
func withoutTasks(capabilities strictjson.Value) strictjson.Value {
	if capabilities.Kind() != strictjson.KindObject {
		return strictjson.Object()
	}
	capabilities = capabilities.Without("tasks")
	if extensions := capabilities.Get("extensions"); !absent(extensions.Get(tasksExtension)) {
		capabilities = capabilities.With("extensions", extensions.Without(tasksExtension))
	}
	return capabilities
}

// withTasks declares the tasks extension.
func withTasks(capabilities strictjson.Value) strictjson.Value {
	extensions := capabilities.Get("extensions")
	if extensions.Kind() != strictjson.KindObject {
		extensions = strictjson.Object()
	}
	return capabilities.With("extensions", extensions.With(tasksExtension, strictjson.Object()))
}

// hasTasks says whether capabilities, of a client or server, declare the tasks extension.
func hasTasks(capabilities strictjson.Value) bool {
	return capabilities.Get("extensions").Get(tasksExtension).Kind() == strictjson.KindObject
}

// lacksTasks is the modern refusal of a client that does not declare the tasks extension.
func lacksTasks(id jsonrpc.ID) jsonrpc.Message {
	return jsonrpc.Message{Kind: jsonrpc.Response, ID: id, Own: true, Error: jsonrpc.NewError(codeCapability, "the client does not declare the tasks extension",
		strictjson.Object(member("requiredCapabilities", withTasks(strictjson.Object()))))}
}

// related is what the older era says of a task in _meta.
func related(id string) strictjson.Value { return only("taskId", id) }

// unrelated takes that out of the _meta of a result or question.
func unrelated(v strictjson.Value) strictjson.Value {
	meta := v.Get("_meta")
	if absent(meta.Get(metaRelated)) {
		return v
	}
	if meta = meta.Without(metaRelated); meta.Len() == 0 {
		meta = strictjson.Value{}
	}
	return v.With("_meta", meta)
}

// modernTask writes a task of the older era as one of the newer.
func modernTask(id string, v strictjson.Value) strictjson.Value {
	ttl := v.Get("ttl")
	if absent(ttl) {
		ttl = strictjson.Null()
	}
	v = v.With("taskId", str(id)).With("ttlMs", ttl).With("pollIntervalMs", v.Get("pollInterval"))
	return v.Without("ttl", "pollInterval", "result", "error", "inputRequests", "requestState", "resultType")
}

// legacyTask writes a task of the newer era as one of the older, in which a task has failed that led to a result that says so.
func legacyTask(id string, v strictjson.Value) strictjson.Value {
	if v.Get("status").Str() == "completed" && v.Get("result").Get("isError").Bool() {
		v = v.With("status", str("failed"))
	}
	ttl := v.Get("ttlMs")
	if absent(ttl) {
		ttl = strictjson.Null()
	}
	v = v.With("taskId", str(id)).With("ttl", ttl).With("pollInterval", v.Get("pollIntervalMs"))
	return v.Without("ttlMs", "pollIntervalMs", "result", "error", "inputRequests", "requestState", "resultType", "_meta")
}

// Takes says whether capabilities of a client declare that it answers a request of a server. Sampling with tools, or with a choice
// among them, is a capability of its own: the schema has a client without it refuse.
func Takes(capabilities strictjson.Value, method string, params strictjson.Value) bool {
	object := func(v strictjson.Value) bool { return v.Kind() == strictjson.KindObject }
	switch method {
	case "sampling/createMessage":
		sampling := capabilities.Get("sampling")
		return object(sampling) && (!withTools(params) || object(sampling.Get("tools")))
	case "elicitation/create":
		e := capabilities.Get("elicitation")
		if params.Get("mode").Str() == "url" {
			return object(e.Get("url"))
		}
		return object(e) && (e.Len() == 0 || object(e.Get("form")))
	case "roots/list":
		return object(capabilities.Get("roots"))
	}
	return false
}

func withTools(params strictjson.Value) bool {
	return !absent(params.Get("tools")) || !absent(params.Get("toolChoice"))
}

// needs names the capability that a client must declare for a request of a server.
func needs(method string, params strictjson.Value) strictjson.Value {
	var need strictjson.Value
	switch {
	case method == "sampling/createMessage" && withTools(params):
		need = strictjson.Object(member("sampling", strictjson.Object(member("tools", strictjson.Object()))))
	case method == "sampling/createMessage":
		need = strictjson.Object(member("sampling", strictjson.Object()))
	case method == "roots/list":
		need = strictjson.Object(member("roots", strictjson.Object()))
	case params.Get("mode").Str() == "url":
		need = strictjson.Object(member("elicitation", strictjson.Object(member("url", strictjson.Object()))))
	default:
		need = strictjson.Object(member("elicitation", strictjson.Object()))
	}
	return need
}

// modernAnswer says whether the answer to server/discover is one of a modern server. Whatever else it is, an answer that succeeds is
// one, unless it lists only versions of the other era.
func modernAnswer(m jsonrpc.Message) bool {
	versions := m.Result.Get("supportedVersions")
	if !absent(m.Error) {
		switch code, _ := jsonrpc.ErrorCode(m.Error); code {
		case codeHeaders, codeCapability:
			return true
		case codeVersion:
			versions = m.Error.Get("data").Get("supported")
		default:
			return false
		}
	}
	known := 0
	for _, v := range versions.Elems() {
		if !slices.Contains(legacy, v.Str()) {
			return true
		}
		known++
	}
	return known == 0 && absent(m.Error)
}

// speaksModern says whether the answer to server/discover offers the version that is translated.
func speaksModern(m jsonrpc.Message) bool {
	for _, v := range m.Result.Get("supportedVersions").Elems() {
		if v.Str() == Modern {
			return true
		}
	}
	return false
}
