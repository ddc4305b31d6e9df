package gateway

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// A probe is one message that must pass byte for byte but for ids and tokens, which are mapped: between a client and a server
// that the operator vouches for nothing is lost.
type probe struct{ name, method, json string }

var requestProbes = []probe{
	{"no params", "tools/list", ``},
	{"empty params", "tools/list", `{}`},
	{"cursor", "tools/list", `{"cursor":"c\u00e9\/="}`},
	{"unknown member", "tools/call", `{"name":"t","arguments":{},"future":{"a":[1,null]}}`},
	{"unknown member before the name", "tools/call", `{"aaa":1,"name":"t"}`},
	{"key order of arguments", "tools/call", `{"name":"t","arguments":{"z":1,"a":2,"m":{"y":1,"b":2}}}`},
	{"integer over 2^53", "tools/call", `{"name":"t","arguments":{"n":9007199254740993}}`},
	{"integer over 2^64", "tools/call", `{"name":"t","arguments":{"n":18446744073709551617}}`},
	{"number with 400 digits", "tools/call", `{"name":"t","arguments":{"n":` + strings.Repeat("7", 400) + `}}`},
	{"1e400", "tools/call", `{"name":"t","arguments":{"n":1e400}}`},
	{"1.0 is not 1", "tools/call", `{"name":"t","arguments":{"n":[1.0,1,1e0,1E+0]}}`},
	{"minus zero", "tools/call", `{"name":"t","arguments":{"n":[-0,-0.0]}}`},
	{"escapes stay as written", "tools/call", `{"name":"t","arguments":{"s":"\/\u0041\ud83d\ude00\u2028"}}`},
	{"NUL in a value", "tools/call", `{"name":"t","arguments":{"s":"a\u0000b"}}`},
	{"emoji, CJK, bidi", "tools/call", "{\"name\":\"t\",\"arguments\":{\"s\":\"\U0001F469\u200d\U0001F469\u200d\U0001F467 日本 \u202ex\u202c\"}}"},
	{"empty name in an object", "tools/call", `{"name":"t","arguments":{"":1}}`},
	{"names like prototypes", "tools/call", `{"name":"t","arguments":{"__proto__":1,"constructor":2,"toString":3}}`},
	{"null argument", "tools/call", `{"name":"t","arguments":{"x":null}}`},
	{"null arguments", "tools/call", `{"name":"t","arguments":null}`},
	{"absent arguments", "tools/call", `{"name":"t"}`},
	{"nesting of 100", "tools/call", `{"name":"t","arguments":{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`},
	{"long text", "tools/call", `{"name":"t","arguments":{"x":"` + strings.Repeat("long ", 100_000) + `"}}`},
	{"many members", "tools/call", `{"name":"t","arguments":{` + strings.TrimSuffix(manyMembers(500), ",") + `}}`},
	{"vendor key in _meta", "tools/call", `{"name":"t","_meta":{"com.example/trace":{"id":1e400}}}`},
	{"trace context in _meta", "tools/call", `{"name":"t","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b","baggage":"k=v"}}`},
	{"task", "tools/call", `{"name":"t","task":{"ttl":60000,"future":1}}`},
	{"modern _meta", "tools/call", `{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1","x":2},"io.modelcontextprotocol/logLevel":"debug"}}`},
	{"inputResponses and requestState", "tools/call", `{"name":"t","inputResponses":{"q":{"action":"accept","content":{"n":1.0}}},"requestState":"opaque\/=="}`},
	{"prompt with arguments", "prompts/get", `{"name":"p","arguments":{"a":"b","c":""}}`},
	{"prompts list", "prompts/list", `{"cursor":""}`},
	{"resource with odd uri", "resources/read", `{"uri":"mem://a b/%2f?x=ü#f"}`},
	{"resources list", "resources/list", `{"_meta":{"x":1}}`},
	{"templates list", "resources/templates/list", `{}`},
	{"subscribe", "resources/subscribe", `{"uri":"a://b","x":1}`},
	{"unsubscribe", "resources/unsubscribe", `{"uri":"a://b"}`},
	{"completion with context", "completion/complete", `{"ref":{"type":"ref/prompt","name":"p","title":"T"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}}`},
	{"completion of a template", "completion/complete", `{"ref":{"type":"ref/resource","uri":"a://{x}"},"argument":{"name":"x","value":""}}`},
	{"level", "logging/setLevel", `{"level":"warning","future":true}`},
	{"ping with _meta", "ping", `{"_meta":{"x":1}}`},
	{"task get", "tasks/get", `{"taskId":"a\/b"}`},
	{"task result", "tasks/result", `{"taskId":"t"}`},
	{"task list", "tasks/list", `{"cursor":"x"}`},
	{"task cancel", "tasks/cancel", `{"taskId":"t","why":1}`},
	{"task update", "tasks/update", `{"taskId":"t","inputResponses":{"q":{"action":"decline"}}}`},
	{"discover", "server/discover", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`},
}

var resultProbes = []probe{
	{"empty", "ping", `{}`},
	{"unknown member", "tools/call", `{"content":[],"future":{"a":1}}`},
	{"unknown content type", "tools/call", `{"content":[{"type":"hologram","x":1.0}]}`},
	{"big numbers in structuredContent", "tools/call", `{"content":[],"structuredContent":{"n":[9007199254740993,1e400,-0]}}`},
	{"structuredContent that is a list", "tools/call", `{"content":[],"structuredContent":[1,"x",null]}`},
	{"case twins in structuredContent", "tools/call", `{"content":[],"structuredContent":{"a":1,"A":2}}`},
	{"isError", "tools/call", `{"content":[{"type":"text","text":"no"}],"isError":true}`},
	{"image, audio, link, resource", "tools/call", `{"content":[{"type":"image","data":"iVBORw0=","mimeType":"image/png","annotations":{"priority":0.5}},{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"},{"type":"resource_link","uri":"a://b","name":"n","size":18446744073709551615},{"type":"resource","resource":{"uri":"a://c","blob":"AA==","mimeType":"x/y"}}]}`},
	{"_meta of a block", "tools/call", `{"content":[{"type":"text","text":"x","_meta":{"v":{"deep":[1]}}}],"_meta":{"w":1}}`},
	{"created task", "tools/call", `{"task":{"taskId":"t","status":"working","createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttl":null,"pollInterval":5},"_meta":{"io.modelcontextprotocol/model-immediate-response":"wait"}}`},
	{"task of the extension", "tools/call", `{"resultType":"task","taskId":"t","status":"working"}`},
	{"input required", "tools/call", `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"s=="}`},
	{"schema with odd keys, in order", "tools/list", `{"tools":[{"name":"t","inputSchema":{"type":"object","$defs":{"z":1,"a":2},"properties":{"b":{"default":1.0,"const":1e2},"a":{"x-mcp-header":"H"}},"required":["b"]},"outputSchema":{"type":"object"},"icons":[{"src":"data:,x"}],"execution":{"taskSupport":"optional"},"futureField":2,"annotations":{"title":"T","readOnlyHint":true}}],"nextCursor":"c","ttlMs":5,"cacheScope":"public"}`},
	{"instructions and experimental capabilities", "server/discover", `{"supportedVersions":["2026-07-28"],"capabilities":{"experimental":{"x":{"y":1}},"extensions":{"com.example/e":{}}},"instructions":"do\u0020this","resultType":"complete","ttlMs":0,"cacheScope":"private"}`},
	{"prompt of an assistant", "prompts/get", `{"description":"d","messages":[{"role":"assistant","content":{"type":"text","text":"x"}}]}`},
	{"resource contents", "resources/read", `{"contents":[{"uri":"a://b","text":"x\r\n\ty","mimeType":"text/plain; charset=utf-8","_meta":{"ui":{"csp":1}}}]}`},
	{"completions beyond 100", "completion/complete", `{"completion":{"values":["` + strings.Repeat(`v","`, 150) + `z"],"total":1e3,"hasMore":true}}`},
	{"tasks", "tasks/list", `{"tasks":[],"x":1}`},
	{"result of a task", "tasks/result", `{"content":[{"type":"text","text":"x"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}`},
	{"templates", "resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"a://{b}{?c*}","name":"n"}]}`},
}

var errorProbes = []probe{
	{"data of any kind", "tools/call", `{"code":-32000,"message":"m","data":[1e400,{"z":1,"a":"\/"}]}`},
	{"unknown code", "tools/call", `{"code":42,"message":""}`},
	{"unknown member", "prompts/get", `{"code":-32602,"message":"m","extra":1}`},
	{"url elicitation", "tools/call", `{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://e.example/x","elicitationId":"1","message":"m"}]}}`},
	{"resource not found", "resources/read", `{"code":-32002,"message":"nf","data":{"uri":"a://b"}}`},
	{"unsupported version", "server/discover", `{"code":-32022,"message":"v","data":{"supported":["2026-07-28"],"requested":"x"}}`},
	{"method not found", "completion/complete", `{"code":-32601,"message":"no"}`},
}

var clientNotes = []probe{
	{"roots changed", "notifications/roots/list_changed", ``},
	{"roots changed, with _meta", "notifications/roots/list_changed", `{"_meta":{"x":1.0}}`},
	{"a task's status", "notifications/tasks/status", `{"taskId":"t","status":"working","x":1e400}`},
	{"initialized", "notifications/initialized", `{"future":1}`},
}

var serverNotes = []probe{
	{"log with any data", "notifications/message", `{"level":"info","logger":"l","data":{"z":[1e400,null],"a":"\/"},"x":1}`},
	{"tools changed", "notifications/tools/list_changed", ``},
	{"prompts changed, with _meta", "notifications/prompts/list_changed", `{"_meta":{"v":1}}`},
	{"resources changed", "notifications/resources/list_changed", `{}`},
	{"resource updated", "notifications/resources/updated", `{"uri":"a://b","title":"T"}`},
}

var serverRequests = []probe{
	{"ping", "ping", ``},
	{"roots", "roots/list", `{"_meta":{"x":1}}`},
	{"sampling with everything", "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":1e2,"temperature":0.70,"systemPrompt":"s","includeContext":"none","stopSequences":["a"],"metadata":{"k":1e400},"modelPreferences":{"hints":[{"name":"m"}],"costPriority":0.0},"future":1}`},
	{"sampling with tools", "sampling/createMessage", `{"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[]}]}],"maxTokens":1,"tools":[{"name":"t","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}}`},
	{"elicitation form", "elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{"z":{"type":"number","minimum":1.0},"a":{"type":"string","enum":["x"],"enumNames":["X"],"default":"x"}},"required":["z"]}}`},
}

var clientAnswers = []probe{
	{"unknown members", "roots/list", `{"roots":[{"uri":"file:///a","name":"n","x":1e400}],"future":[1.0]}`},
	{"sampled with tool use", "sampling/createMessage", `{"model":"m","role":"assistant","stopReason":"custom","content":[{"type":"tool_use","id":"1","name":"t","input":{"z":1,"a":9007199254740993}}]}`},
	{"elicited", "elicitation/create", `{"action":"accept","content":{"n":1.0,"s":"\u0041","l":["a"]}}`},
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"m` + itoa(int64(i)) + `":` + itoa(int64(i)) + `,`)
	}
	return b.String()
}

// play sends every probe through a gateway in front of one server, and tells what came out: of what the client sends as the server
// got it, of what the server sends as the client got it. got is "" where nothing came.
func play(t *testing.T, source Source, came func(kind string, p probe, got string)) {
	if n := len(requestProbes) + len(resultProbes) + len(errorProbes) + len(clientNotes) + len(serverNotes) + len(serverRequests) + len(clientAnswers); n < 85 {
		t.Errorf("only %d probes", n)
	}
	answer := make(chan string, 1) // what the server answers next
	heard := make(chan strictjson.Value, 100)
	say := make(chan string)
	r := newRig(t, Options{Servers: []Server{{Source: source, Command: []string{"fake"}}}, Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		go func() {
			for line := range say {
				io.WriteString(out, line+"\n")
			}
		}()
		answering(func(method string, m strictjson.Value) string {
			heard <- m
			if m.Get("id").Kind() == strictjson.KindAbsent || method == "" {
				return ""
			}
			return <-answer
		})(in, out)
	})})
	defer close(say)
	lines := make(chan string, 100)
	go func() {
		for r.lines.Scan() {
			lines <- r.lines.Text()
		}
	}()
	next := func() strictjson.Value {
		t.Helper()
		select {
		case line := <-lines:
			v, err := strictjson.ParseString(line, ServerLimits)
			if err != nil {
				t.Fatal(err)
			}
			return v
		case m := <-heard: // a request of the server that was not passed on
			return m
		}
	}
	r.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"sampling":{"tools":{}},"elicitation":{},"tasks":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	next()
	text := func(v strictjson.Value) string {
		if v.Kind() == strictjson.KindAbsent {
			return ""
		}
		return string(v.Append(nil))
	}
	with := func(name, value string) string {
		if value == "" {
			return ""
		}
		return `,"` + name + `":` + value
	}
	for _, p := range requestProbes {
		answer <- `"result":{}`
		r.send(`{"jsonrpc":"2.0","id":"i","method":"` + p.method + `"` + with("params", p.json) + `}`)
		came("request", p, text((<-heard).Get("params")))
		<-lines
	}
	for _, probes := range []struct {
		kind string
		all  []probe
	}{{"result", resultProbes}, {"error", errorProbes}} {
		for _, p := range probes.all {
			answer <- `"` + probes.kind + `":` + p.json
			r.send(`{"jsonrpc":"2.0","id":"i","method":"` + p.method + `","params":{"name":"t","taskId":"t","uri":"a://b"}}`)
			<-heard
			v := next()
			came(probes.kind, p, text(v.Get(probes.kind)))
		}
	}
	for _, p := range clientNotes {
		r.send(`{"jsonrpc":"2.0","method":"` + p.method + `"` + with("params", p.json) + `}`)
		came("notification of the client", p, text((<-heard).Get("params")))
	}
	for _, p := range serverNotes {
		say <- `{"jsonrpc":"2.0","method":"` + p.method + `"` + with("params", p.json) + `}`
		v := next()
		if v.Get("method").Str() != p.method {
			t.Errorf("%s came as %s", p.name, v.Append(nil))
		}
		came("notification of the server", p, text(v.Get("params")))
	}
	for _, p := range serverRequests {
		say <- `{"jsonrpc":"2.0","id":"q","method":"` + p.method + `"` + with("params", p.json) + `}`
		v := next()
		came("request of the server", p, text(v.Get("params")))
		if v.Get("method").Kind() == strictjson.KindAbsent {
			continue
		}
		r.send(`{"jsonrpc":"2.0","id":` + text(v.Get("id")) + `,"error":{"code":-1,"message":"declined","data":{"z":1.0}}}`)
		came("error of the client", probe{p.name, p.method, `{"code":-1,"message":"declined","data":{"z":1.0}}`}, text((<-heard).Get("error")))
	}
	for _, p := range clientAnswers {
		say <- `{"jsonrpc":"2.0","id":"q","method":"` + p.method + `","params":{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":1,"message":"m","requestedSchema":{"type":"object","properties":{}}}}`
		v := next()
		r.send(`{"jsonrpc":"2.0","id":` + text(v.Get("id")) + `,"result":` + p.json + `}`)
		came("answer of the client", p, text((<-heard).Get("result")))
	}
}

func TestNothingIsLostOnTheWay(t *testing.T) {
	play(t, Source{Server: "srv", Trust: FirstParty}, func(kind string, p probe, got string) {
		if got != p.json {
			t.Errorf("%s, %s:\nsent %.400s\ngot  %.400s", kind, p.name, p.json, got)
		}
	})
}

// In the default mode what a client sends passes byte for byte as well; of what an untrusted server sends the only differences are
// those in the file, by the probe's name: frames, and what the table of channels folds, fixes or drops. Behind each frame is the
// very text that was sent.
func TestWhatFramingChangesIsListed(t *testing.T) {
	var list strings.Builder
	play(t, Source{Server: "srv"}, func(kind string, p probe, got string) {
		if strings.HasSuffix(kind, "of the client") || kind == "request" {
			if got != p.json {
				t.Errorf("%s, %s:\nsent %.400s\ngot  %.400s", kind, p.name, p.json, got)
			}
			return
		}
		var differs []string
		switch {
		case got == p.json:
			return
		case got == "":
			differs = []string{"refused"}
		default:
			a, err := strictjson.ParseString(p.json, ServerLimits)
			if err != nil {
				a = strictjson.Object() // no params at all
			}
			b, _ := strictjson.ParseString(got, ServerLimits)
			differs = differences("", a, b)
		}
		fmt.Fprintf(&list, "%s, %s: %s\n", kind, p.name, strings.Join(differs, "; "))
	})
	path := filepath.Join("testdata", "probes-framed.txt")
	if *update {
		if err := os.WriteFile(path, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(list.String(), "\n")); diff != "" {
		t.Errorf("listed -, now +; go test ./gateway -run Framing -update\n%s", diff)
	}
}

// differences lists where b, which reached the client, is not a: by frames, by members that were dropped, added or changed.
func differences(at string, a, b strictjson.Value) (all []string) {
	if string(a.Append(nil)) == string(b.Append(nil)) {
		return nil
	}
	below := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	switch {
	case a.Kind() == strictjson.KindObject && b.Kind() == strictjson.KindObject:
		for name, v := range a.Members() {
			if w := b.Get(name); w.Kind() == strictjson.KindAbsent {
				all = append(all, "dropped "+below(name))
			} else {
				all = append(all, differences(below(name), v, w)...)
			}
		}
		for name, w := range b.Members() {
			if a.Get(name).Kind() == strictjson.KindAbsent && name != "hearsay/provenance" { // which every message carries
				all = append(all, added(below(name), w)...)
			}
		}
		return all
	case a.Kind() == strictjson.KindArray && b.Kind() == strictjson.KindArray:
		elem := func(v strictjson.Value, i int) (e strictjson.Value) {
			for j, x := range v.Elems() {
				if j == i {
					e = x
				}
			}
			return e
		}
		for i := range max(a.Len(), b.Len()) {
			name := fmt.Sprintf("%s[%d]", at, i)
			switch {
			case i >= b.Len():
				return append(all, fmt.Sprintf("dropped %s and what follows", name))
			case i >= a.Len():
				all = append(all, added(name, elem(b, i))...)
			default:
				all = append(all, differences(name, elem(a, i), elem(b, i))...)
			}
		}
		return all
	}
	if b.Kind() == strictjson.KindObject {
		return append([]string{"changed " + at + " to an object"}, added(at, b)...)
	}
	if body, ok := envelope.Body(b.Str()); ok {
		sent := a.Str()
		if a.Kind() != strictjson.KindString {
			sent = string(a.Append(nil)) // JSON as text
		}
		if body == sent {
			return []string{"framed " + at}
		}
		return []string{fmt.Sprintf("framed %s, as %.120q", at, body)}
	}
	return []string{fmt.Sprintf("changed %s to %.120s", at, b.Append(nil))}
}

// added describes a value that the server did not send, by its texts.
func added(at string, v strictjson.Value) (all []string) {
	if v.Kind() == strictjson.KindObject {
		for name, w := range v.Members() {
			if name != "hearsay/provenance" {
				all = append(all, added(at+"."+name, w)...)
			}
		}
		return all
	}
	if body, ok := envelope.Body(v.Str()); ok {
		return []string{fmt.Sprintf("added %s, a frame of %.160q", at, body)}
	}
	return []string{fmt.Sprintf("added %s: %.120s", at, v.Append(nil))}
}
