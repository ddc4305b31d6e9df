package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// modernServer is a server of 2026-07-28 that the test can have say things.
type modernServer struct {
	name    string
	tools   func() []string
	ttl     string
	mute    map[string]bool // methods it never answers
	more    func(method string, m strictjson.Value) string
	started func()

	mu      sync.Mutex
	out     io.Writer
	seen    []strictjson.Value
	listens []strictjson.Value // its open subscriptions
	changed chan struct{}      // gets a value at each message
}

func (v *modernServer) say(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	io.WriteString(v.out, line+"\n")
}

// note sends a notification on the subscription that was opened last.
func (v *modernServer) note(method, more string) {
	v.mu.Lock()
	id := v.listens[len(v.listens)-1].Get("id")
	v.mu.Unlock()
	v.say(`{"jsonrpc":"2.0","method":"notifications/` + method + `","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(id.Append(nil)) + `}` + more + `}}`)
}

// wait returns the messages of a method when there are n of them.
func (v *modernServer) wait(t *testing.T, method string, n int) []strictjson.Value {
	t.Helper()
	for {
		v.mu.Lock()
		var of []strictjson.Value
		for _, m := range v.seen {
			if m.Get("method").Str() == method {
				of = append(of, m)
			}
		}
		v.mu.Unlock()
		if len(of) >= n {
			return of
		}
		select {
		case <-v.changed:
		case <-time.After(20 * time.Second):
			t.Fatalf("server %s got %d of %d messages %s", v.name, len(of), n, method)
		}
	}
}

func newModernServer(name string, tools ...string) *modernServer {
	return &modernServer{name: name, tools: func() []string { return tools }, ttl: "0", mute: map[string]bool{}, changed: make(chan struct{}, 1000)}
}

func (v *modernServer) serve(in *bufio.Scanner, out io.Writer) {
	v.mu.Lock()
	v.out, v.listens = out, nil
	v.mu.Unlock()
	if v.started != nil {
		v.started()
	}
	for in.Scan() {
		m, err := strictjson.Parse(in.Bytes(), strictjson.Limits{})
		if err != nil {
			continue
		}
		method, id, params := m.Get("method").Str(), string(m.Get("id").Append(nil)), m.Get("params")
		v.mu.Lock()
		v.seen = append(v.seen, m)
		if method == "subscriptions/listen" {
			v.listens = append(v.listens, m)
		}
		v.mu.Unlock()
		v.changed <- struct{}{}
		if m.Get("id").Kind() == strictjson.KindAbsent || v.mute[method] {
			continue
		}
		if params.Get("_meta").Get(metaVersion).Str() != modernVersion {
			v.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"no version"}}`)
			continue
		}
		result := `"content":[{"type":"text","text":"answered by ` + v.name + `"}]`
		page := `,"ttlMs":` + v.ttl + `,"cacheScope":"public"`
		if v.more != nil {
			if text := v.more(method, m); text != "" {
				v.say(`{"jsonrpc":"2.0","id":` + id + `,` + text + `}`)
				continue
			}
		}
		switch method {
		case "server/discover":
			result = `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}` + page
		case "tools/list":
			var list []string
			for _, tool := range v.tools() {
				list = append(list, `{"name":"`+tool+`","inputSchema":{"type":"object"}}`)
			}
			result = `"tools":[` + strings.Join(list, ",") + `]` + page
		case "resources/list":
			result = `"resources":[{"uri":"` + v.name + `://1","name":"r"}]` + page
		case "resources/templates/list":
			result = `"resourceTemplates":[{"uriTemplate":"` + v.name + `://t/{id}","name":"t"}]` + page
		case "resources/read":
			result = `"contents":[{"uri":` + string(params.Get("uri").Append(nil)) + `,"text":"read at ` + v.name + `"}]` + page
		case "prompts/list":
			v.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no prompts"}}`)
			continue
		case "subscriptions/listen":
			v.note("subscriptions/acknowledged", `,"notifications":`+string(params.Get("notifications").Append(nil)))
			continue
		}
		v.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete",` + result + `}}`)
	}
}

// modernWorld is a gateway in front of such servers.
func modernWorld(t *testing.T, servers ...*modernServer) *rig {
	t.Helper()
	all := map[string]fakeServer{}
	for _, v := range servers {
		all[v.name] = v.serve
	}
	return world(t, all)
}

func TestSeveralServersForAModernClient(t *testing.T) {
	a, b := newModernServer("a", "send", strings.Repeat("long", 20)), newModernServer("b", "send")
	r := modernWorld(t, a, b)
	found := r.ask(modernRequest("server/discover", `"x":1`)).Get("result")
	if v := string(found.Append(nil)); !strings.Contains(v, `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`) ||
		!strings.Contains(v, `"resultType":"complete"`) || !strings.Contains(v, `"cacheScope":"private"`) || !strings.Contains(v, `"io.modelcontextprotocol/serverInfo":{"name":"hearsay","version":"1"}`) {
		t.Errorf("discovered %s", v)
	}
	v := r.ask(modernRequest("tools/list", `"x":1`))
	tools := namesIn(v, "tools", "name")
	if want := []string{"a__send", join("a", strings.Repeat("long", 20)), "b__send"}; !slices.Equal(tools, want) {
		t.Errorf("tools %q, want %q", tools, want)
	}
	if s := string(v.Append(nil)); !strings.Contains(s, `"resultType":"complete"`) || !strings.Contains(s, `"ttlMs":0,"cacheScope":"private"`) {
		t.Errorf("the list: %s", s)
	}
	if got := r.ask(modernRequest("prompts/list", `"x":1`)).Get("result").Get("prompts"); got.Kind() != strictjson.KindArray || got.Len() != 0 {
		t.Errorf("prompts of servers without: %s", got.Append(nil))
	}
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", `"name":"a__send"`, "answered by a"},
		{"tools/call", `"name":"b__send"`, "answered by b"},
		{"tools/call", `"name":"` + tools[1] + `"`, "answered by a"},
		{"tools/call", `"name":"send"`, "there is no tool"},
		{"resources/read", `"uri":"a://1"`, "read at a"},
		{"resources/read", `"uri":"b://t/7"`, "read at b"},
		{"resources/read", `"uri":"mem://nowhere"`, "-32602"},
		{"ping", `"x":1`, "-32601"},
		{"initialize", `"protocolVersion":"2025-11-25"`, "-3260"},
		{"logging/setLevel", `"level":"info"`, "-32601"},
		{"resources/subscribe", `"uri":"a://1"`, "-32601"},
		{"tasks/list", `"x":1`, "-32601"},
		{"tasks/result", `"taskId":"x"`, "-32601"},
		{"tasks/get", `"taskId":"x"`, "there is no task"},
		{"tools/list", `"cursor":"more"`, "-32602"},
		{"subscriptions/listen", `"notifications":7`, "-32602"},
	} {
		if v := string(r.ask(modernRequest(tt.method, tt.params)).Append(nil)); !strings.Contains(v, tt.want) {
			t.Errorf("%s %s: %s", tt.method, tt.params, v)
		}
	}
	for _, tt := range []struct{ meta, want string }{
		{`{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}`, `"code":-32022`},
		{`{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`, `-32602`},
		{`{}`, "has not been initialized"},
	} {
		if v := string(r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":` + tt.meta + `}}`).Append(nil)); !strings.Contains(v, tt.want) {
			t.Errorf("%s: %s", tt.meta, v)
		}
	}
	if v := string(r.ask(initialize).Append(nil)); !strings.Contains(v, "too late") {
		t.Errorf("initialize after requests of the other era: %s", v)
	}
	for _, m := range a.wait(t, "tools/call", 2) {
		if got := string(m.Get("params").Get("_meta").Append(nil)); got != modernMeta {
			t.Errorf("the server got the _meta %s", got)
		}
	}
	for _, m := range a.wait(t, "tools/list", 1) {
		if got := string(m.Get("params").Get("_meta").Append(nil)); got != modernMeta {
			t.Errorf("the server was asked for its tools with the _meta %s", got)
		}
	}
}

// Servers of either era stand behind one gateway, for clients of either.
func TestServersOfBothErasForClientsOfBoth(t *testing.T) {
	for _, tt := range []struct {
		era   string
		hello func(r *rig)
		line  func(method, params string) string
	}{
		{"2025-11-25", func(r *rig) { r.ask(initialize) }, func(method, params string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `}}`
		}},
		{"2026-07-28", func(r *rig) { r.ask(modernRequest("server/discover", `"x":1`)) }, modernRequest},
	} {
		t.Run(tt.era, func(t *testing.T) {
			older := answering(func(method string, m strictjson.Value) string {
				switch method {
				case "server/discover":
					return `"error":{"code":-32601,"message":"no such method"}`
				case "tools/list":
					return `"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
				case "tools/call":
					return `"result":{"content":[{"type":"text","text":"answered by older"}]}`
				}
				return `"result":{}`
			})
			r := world(t, map[string]fakeServer{"newer": newModernServer("newer", "t").serve, "older": older})
			tt.hello(r)
			if got := namesIn(r.ask(tt.line("tools/list", `"x":1`)), "tools", "name"); !slices.Equal(got, []string{"newer__t", "older__t"}) {
				t.Errorf("tools %q", got)
			}
			for _, name := range []string{"newer", "older"} {
				if v := string(r.ask(tt.line("tools/call", `"name":"`+name+`__t"`)).Append(nil)); !strings.Contains(v, "answered by "+name) {
					t.Errorf("%s: %s", name, v)
				}
			}
		})
	}
}

func TestASessionIsOfOneEra(t *testing.T) {
	a := newModernServer("a", "t")
	r := modernWorld(t, a)
	r.ask(modernRequest("server/discover", `"x":1`)) // who asks that may be of either
	if v := r.ask(initialize); v.Get("result").Get("protocolVersion").Str() != "2025-11-25" {
		t.Errorf("initialize: %s", v.Append(nil))
	}
	if v := string(r.ask(modernRequest("tools/list", `"x":1`)).Append(nil)); !strings.Contains(v, "was initialized") {
		t.Errorf("after initialize: %s", v)
	}
	if v := string(r.ask(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`).Append(nil)); !strings.Contains(v, "-32602") {
		t.Errorf("without a version: %s", v)
	}
}

// What a server of 2026-07-28 says counts as long as it says, for clients that can the same; it is asked again afterwards.
func TestAModernListCountsAsLongAsItsServerSays(t *testing.T) {
	brief, lasting := newModernServer("brief", "t"), newModernServer("lasting", "t")
	lasting.ttl = "3600000"
	r := modernWorld(t, brief, lasting)
	for range 3 {
		r.ask(modernRequest("tools/list", `"x":1`))
	}
	if n := len(brief.wait(t, "tools/list", 1)); n != 3 {
		t.Errorf("a server whose lists last no time was asked %d times", n)
	}
	if n := len(lasting.wait(t, "tools/list", 1)); n != 1 {
		t.Errorf("a server whose lists last an hour was asked %d times", n)
	}
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if n := len(lasting.wait(t, "tools/list", 1)); n != 2 {
		t.Errorf("asked %d times, by clients that can different things", n)
	}
}

func listenRequest(id, filter string) string {
	return `{"jsonrpc":"2.0","id":"` + id + `","method":"subscriptions/listen","params":{"notifications":` + filter + `,"_meta":` + modernMeta + `}}`
}

// nextNote returns the method of the next notification, checking whose subscription it is on.
func (r *rig) nextNote(id string) strictjson.Value {
	r.t.Helper()
	v := parsed(r.t, r.next())
	if got := v.Get("params").Get("_meta").Get(metaSubscription).Str(); got != id {
		r.t.Errorf("on subscription %q instead of %q: %s", got, id, v.Append(nil))
	}
	return v
}

func TestSubscriptionsOfSeveralServersAreOne(t *testing.T) {
	a, b, idle := newModernServer("a", "t"), newModernServer("b", "t"), newModernServer("idle", "t")
	r := modernWorld(t, a, b, idle)
	r.ask(modernRequest("tools/call", `"name":"a__t"`)) // a runs

	// Only servers that run are told of changes of lists; one acknowledgement for all.
	r.send(listenRequest("L", `{"toolsListChanged":true,"promptsListChanged":false}`))
	if v := r.nextNote("L"); v.Get("method").Str() != "notifications/subscriptions/acknowledged" || string(v.Get("params").Get("notifications").Append(nil)) != `{"toolsListChanged":true,"promptsListChanged":false}` {
		t.Errorf("acknowledged %s", v.Append(nil))
	}
	a.wait(t, "subscriptions/listen", 1)
	a.note("prompts/list_changed", "") // not asked for
	a.note("resources/updated", `,"uri":"a://1"`)
	a.note("tools/list_changed", "")
	if v := r.nextNote("L"); v.Get("method").Str() != "notifications/tools/list_changed" {
		t.Errorf("told %s", v.Append(nil))
	}
	if n := len(b.wait(t, "subscriptions/listen", 0)); n != 0 {
		t.Errorf("a server that did not run was subscribed to %d times", n)
	}

	// A server that starts later is subscribed to then.
	r.ask(modernRequest("tools/call", `"name":"b__t"`))
	b.wait(t, "subscriptions/listen", 1)
	b.note("tools/list_changed", "")
	if v := r.nextNote("L"); v.Get("method").Str() != "notifications/tools/list_changed" {
		t.Errorf("told %s", v.Append(nil))
	}

	// A resource is subscribed to at its owner alone; what nobody has is not acknowledged.
	r.send(listenRequest("R", `{"resourceSubscriptions":["b://1","b://t/9","none://1"]}`))
	if v := r.nextNote("R"); string(v.Get("params").Get("notifications").Append(nil)) != `{"resourceSubscriptions":["b://1","b://t/9"]}` {
		t.Errorf("acknowledged %s", v.Append(nil))
	}
	asked := b.wait(t, "subscriptions/listen", 2)[1].Get("params").Get("notifications")
	if string(asked.Append(nil)) != `{"resourceSubscriptions":["b://1","b://t/9"]}` {
		t.Errorf("the owner was asked for %s", asked.Append(nil))
	}
	b.note("resources/updated", `,"uri":"b://2"`)
	b.note("resources/updated", `,"uri":"b://1"`)
	if v := r.nextNote("R"); v.Get("params").Get("uri").Str() != "b://1" {
		t.Errorf("told %s", v.Append(nil))
	}
	if n := len(a.wait(t, "subscriptions/listen", 1)); n != 1 {
		t.Errorf("who does not own the resource was subscribed to %d times", n-1)
	}

	// A server may end its part; the subscription goes on.
	b.mu.Lock()
	first := b.listens[0].Get("id")
	b.mu.Unlock()
	b.say(`{"jsonrpc":"2.0","id":` + string(first.Append(nil)) + `,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":` + string(first.Append(nil)) + `}}}`)
	a.note("tools/list_changed", "")
	if v := r.nextNote("L"); v.Get("method").Str() != "notifications/tools/list_changed" {
		t.Errorf("told %s", v.Append(nil))
	}

	// The client gives it up: so is every part.
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"L"}}`)
	gone := a.wait(t, "notifications/cancelled", 1)[0]
	a.mu.Lock()
	if got, want := string(gone.Get("params").Get("requestId").Append(nil)), string(a.listens[0].Get("id").Append(nil)); got != want {
		t.Errorf("given up %s, open %s", got, want)
	}
	a.mu.Unlock()
	a.note("tools/list_changed", "")
	if v := r.ask(modernRequest("tools/call", `"name":"a__t"`), func(line string) { t.Errorf("told %s", line) }); v.Get("result").Kind() != strictjson.KindObject {
		t.Errorf("afterwards: %s", v.Append(nil))
	}
}

// A server that says nothing, or lies about what it was asked for, neither holds up the acknowledgement for long nor speaks for
// others.
func TestASlowOrLyingServerDoesNotSpoilASubscription(t *testing.T) {
	t.Parallel() // it waits by design
	slow, lying, sound := newModernServer("slow", "t"), newModernServer("lying", "t"), newModernServer("sound", "t")
	slow.mute["subscriptions/listen"] = true
	slow.mute["tools/list"] = true
	lying.more = func(method string, m strictjson.Value) string {
		if method != "subscriptions/listen" {
			return ""
		}
		lying.note("resources/updated", `,"uri":"lying://1"`) // before its acknowledgement
		lying.note("subscriptions/acknowledged", `,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["sound://1","lying://1"]}`)
		lying.note("subscriptions/acknowledged", `,"notifications":{}`)
		lying.note("resources/updated", `,"uri":"sound://1"`)
		lying.note("resources/updated", `,"uri":"lying://1"`)
		return `"result":{"resultType":"complete","x":1}`
	}
	r := world(t, map[string]fakeServer{"slow": slow.serve, "lying": lying.serve, "sound": sound.serve}, waiting(2*time.Second))
	if got := namesIn(r.ask(modernRequest("tools/list", `"x":1`)), "tools", "name"); !slices.Equal(got, []string{"lying__t", "sound__t"}) {
		t.Errorf("tools %q", got)
	}
	r.send(listenRequest("L", `{"toolsListChanged":true,"resourceSubscriptions":["lying://1","slow://1","sound://1"]}`))
	if v := r.nextNote("L"); string(v.Get("params").Get("notifications").Append(nil)) != `{"toolsListChanged":true,"resourceSubscriptions":["lying://1","sound://1"]}` {
		t.Errorf("acknowledged %s", v.Append(nil))
	}
	if v := r.nextNote("L"); v.Get("params").Get("uri").Str() != "lying://1" {
		t.Errorf("told %s", v.Append(nil))
	}
	sound.note("resources/updated", `,"uri":"sound://1"`)
	if v := r.nextNote("L"); v.Get("params").Get("uri").Str() != "sound://1" {
		t.Errorf("told %s", v.Append(nil))
	}
	// What comes late is told on the subscription.
	var id string
	slow.mu.Lock()
	for _, m := range slow.seen {
		if m.Get("method").Str() == "tools/list" {
			id = string(m.Get("id").Append(nil))
		}
	}
	slow.mu.Unlock()
	slow.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[{"name":"late","inputSchema":{"type":"object"}}]}}`)
	if v := r.nextNote("L"); v.Get("method").Str() != "notifications/tools/list_changed" {
		t.Errorf("told %s", v.Append(nil))
	}
	if got := namesIn(r.ask(modernRequest("tools/list", `"x":1`)), "tools", "name"); !slices.Equal(got, []string{"lying__t", "slow__late", "sound__t"}) {
		t.Errorf("tools afterwards %q", got)
	}
}

// A server that dies keeps its part of a subscription for when it is started again.
func TestASubscriptionOutlivesAServer(t *testing.T) {
	a, b := newModernServer("a", "t", "die"), newModernServer("b", "t")
	dying := func(in *bufio.Scanner, out io.Writer) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		toServer, fromTest := io.Pipe()
		go a.serve(bufio.NewScanner(toServer), out)
		context.AfterFunc(ctx, func() { fromTest.Close() })
		for in.Scan() {
			if strings.Contains(in.Text(), `"die"`) {
				return
			}
			fmt.Fprintln(fromTest, in.Text())
		}
	}
	r := world(t, map[string]fakeServer{"a": dying, "b": b.serve})
	r.ask(modernRequest("tools/call", `"name":"a__t"`))
	r.send(listenRequest("L", `{"toolsListChanged":true,"resourceSubscriptions":["a://1"]}`))
	r.nextNote("L")
	if v := string(r.ask(modernRequest("tools/call", `"name":"a__die"`)).Append(nil)); !strings.Contains(v, "ended before it answered") {
		t.Errorf("the call of the server that died: %s", v)
	}
	if v := string(r.ask(modernRequest("tools/call", `"name":"b__t"`)).Append(nil)); !strings.Contains(v, "answered by b") {
		t.Errorf("the other server: %s", v)
	}
	r.ask(modernRequest("tools/call", `"name":"a__t"`))
	again := a.wait(t, "subscriptions/listen", 2)[1]
	if got := string(again.Get("params").Get("notifications").Append(nil)); got != `{"toolsListChanged":true,"resourceSubscriptions":["a://1"]}` {
		t.Errorf("the server that was started again was asked for %s", got)
	}
	a.note("resources/updated", `,"uri":"a://1"`)
	if v := r.nextNote("L"); v.Get("params").Get("uri").Str() != "a://1" {
		t.Errorf("told %s", v.Append(nil))
	}
}

func TestAModernServerThatHangsDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel() // it waits by design
	hangs, sound := newModernServer("hangs", "t"), newModernServer("sound", "t")
	for _, method := range []string{"tools/list", "tools/call", "resources/list", "resources/templates/list"} {
		hangs.mute[method] = true
	}
	r := world(t, map[string]fakeServer{"dead": func(in *bufio.Scanner, _ io.Writer) { in.Scan() }, "hangs": hangs.serve, "sound": sound.serve}, waiting(2*time.Second))
	r.send(`{"jsonrpc":"2.0","id":"hangs","method":"tools/call","params":{"name":"hangs__t","_meta":` + modernMeta + `}}`)
	for range 2 {
		if got := namesIn(r.ask(modernRequest("tools/list", `"x":1`)), "tools", "name"); !slices.Equal(got, []string{"sound__t"}) {
			t.Errorf("tools %q", got)
		}
		if v := string(r.ask(modernRequest("tools/call", `"name":"sound__t"`)).Append(nil)); !strings.Contains(v, "answered by sound") {
			t.Errorf("answered %s", v)
		}
		if v := string(r.ask(modernRequest("resources/read", `"uri":"sound://1"`)).Append(nil)); !strings.Contains(v, "read at sound") {
			t.Errorf("answered %s", v)
		}
	}
}
