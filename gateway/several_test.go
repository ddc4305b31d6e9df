package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func TestJoinedNames(t *testing.T) {
	seen := map[string]string{}
	for _, pair := range [][2]string{
		{"a", "b__c"}, {"a", "b"}, {"acme", "_status"}, {"acme", "status"}, {"a-b", "c"}, {"a", "b-c"}, {"a", "b.c"}, {"a", "b/c"}, {"a", "b c"},
		{"a", "__"}, {"a", strings.Repeat("x", 61)}, {"a", strings.Repeat("x", 62)}, {"a", strings.Repeat("x", 63)}, {"a", "é"}, {"a", "è"},
		{strings.Repeat("s", 32), strings.Repeat("t", 128)}, {strings.Repeat("s", 32), strings.Repeat("t", 127)},
	} {
		joined := join(pair[0], pair[1])
		if len(joined) > maxJoined || !joinable.MatchString(joined) {
			t.Errorf("%q is no name for a model's API", joined)
		}
		if other, twice := seen[joined]; twice {
			t.Errorf("%v and %s are both called %s", pair, other, joined)
		}
		seen[joined] = fmt.Sprint(pair)
		server, name, ok := split(joined)
		if !ok || server != pair[0] || name != pair[1] && !marked(name) {
			t.Errorf("%v joined as %s, split as %s and %s", pair, joined, server, name)
		}
	}
	for _, names := range [][]string{{"acme_"}, {"a__b"}, {"mail", "Mail"}, {"mail", "rnail"}} {
		if CheckServerNames(names, true) == nil {
			t.Errorf("the server names %q are accepted", names)
		}
	}
	if err := CheckServerNames([]string{"acme", "a_b", "files"}, true); err != nil {
		t.Error(err)
	}
}

// world is a gateway in front of several servers inside the test.
func world(t *testing.T, servers map[string]fakeServer, prepare ...func(*Gateway)) *rig {
	opt := Options{Joined: true, Version: "1"}
	var names []string
	for name := range servers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		opt.Servers = append(opt.Servers, Server{Source: Source{Server: name}, Command: []string{"fake"}})
	}
	launchers := map[string]func(context.Context, Server) (*Process, error){}
	for name, server := range servers {
		launchers[name] = launcher(nil, server)
	}
	opt.Launch = func(ctx context.Context, s Server) (*Process, error) { return launchers[s.Server](ctx, s) }
	return newRig(t, opt, prepare...)
}

// offering is a server with these tools and resources, that says its name.
func offering(name string, tools, resources []string, seen func(string)) fakeServer {
	return answering(func(method string, m strictjson.Value) string {
		var list []string
		switch method {
		case "tools/list":
			for _, tool := range tools {
				list = append(list, fmt.Sprintf(`{"name":%q,"description":"of %s","inputSchema":{"type":"object"}}`, tool, name))
			}
			return `"result":{"tools":[` + strings.Join(list, ",") + `]}`
		case "prompts/list":
			return `"result":{"prompts":[{"name":"p"}]}`
		case "resources/list":
			for _, r := range resources {
				list = append(list, fmt.Sprintf(`{"uri":%q,"name":"r"}`, r))
			}
			return `"result":{"resources":[` + strings.Join(list, ",") + `]}`
		case "resources/templates/list":
			return `"result":{"resourceTemplates":[{"uriTemplate":"` + name + `://t/{id}","name":"t"}]}`
		case "resources/read":
			return `"result":{"contents":[{"uri":` + string(m.Get("params").Get("uri").Append(nil)) + `,"text":"read at ` + name + `"}]}`
		case "prompts/get":
			return `"result":{"messages":[{"role":"user","content":{"type":"text","text":"prompt of ` + name + `"}}]}`
		}
		if seen != nil {
			seen(method + " " + m.Get("params").Get("name").Str())
		}
		return `"result":{"content":[{"type":"text","text":"answered by ` + name + `"}]}`
	})
}

func namesIn(v strictjson.Value, member, key string) (names []string) {
	for _, e := range v.Get("result").Get(member).Elems() {
		names = append(names, e.Get(key).Str())
	}
	return names
}

func TestSeveralServers(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	long := strings.Repeat("long", 20)
	r := world(t, map[string]fakeServer{
		"mail": offering("mail", []string{"send", long}, []string{"mem://1", "mem://both"}, func(s string) { mu.Lock(); seen = append(seen, s); mu.Unlock() }),
		"web":  offering("web", []string{"send", "get"}, []string{"mem://2", "mem://both"}, nil),
	})
	if v := r.ask(`{"jsonrpc":"2.0","id":0,"method":"tools/list"}`); v.Get("error").Kind() == strictjson.KindAbsent {
		t.Errorf("before initialize: %s", v.Append(nil))
	}
	if v := r.ask(initialize); v.Get("result").Get("protocolVersion").Str() != "2025-11-25" || v.Get("result").Get("capabilities").Get("tools").Kind() != strictjson.KindObject {
		t.Errorf("initialize: %s", v.Append(nil))
	}
	v := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	tools := namesIn(v, "tools", "name")
	if want := []string{"mail__send", join("mail", long), "web__send", "web__get"}; !slices.Equal(tools, want) {
		t.Errorf("tools %q, want %q", tools, want)
	}
	if got, want := namesIn(r.ask(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`), "prompts", "name"), []string{"mail__p", "web__p"}; !slices.Equal(got, want) {
		t.Errorf("prompts %q", got)
	}
	if got, want := namesIn(r.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`), "resources", "uri"), []string{"mem://1", "mem://2"}; !slices.Equal(got, want) {
		t.Errorf("resources %q, want %q: what two offer is not shown", got, want)
	}
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"mail__send"}`, "answered by mail"},
		{"tools/call", `{"name":"web__send"}`, "answered by web"},
		{"tools/call", `{"name":"` + tools[1] + `"}`, "answered by mail"},
		{"tools/call", `{"name":"send"}`, "there is no tool"},
		{"tools/call", `{"name":"other__send"}`, "there is no tool"},
		{"prompts/get", `{"name":"web__p"}`, "prompt of web"},
		{"resources/read", `{"uri":"mem://1"}`, "read at mail"},
		{"resources/read", `{"uri":"mem://2"}`, "read at web"},
		{"resources/read", `{"uri":"web://t/7"}`, "read at web"},
		{"resources/read", `{"uri":"mem://both"}`, "servers mail and web"},
		{"resources/read", `{"uri":"mem://nowhere"}`, "no server offers"},
		{"ping", `{}`, `"result":{}`},
		{"logging/setLevel", `{"level":"info"}`, `"result":{}`},
		{"tasks/get", `{"taskId":"x"}`, "there is no task"},
		{"subscriptions/listen", `{"notifications":{}}`, "not offered"},
		{"tools/list", `{"cursor":"next"}`, "one"},
	} {
		if v := string(r.ask(`{"jsonrpc":"2.0","id":1,"method":"` + tt.method + `","params":` + tt.params + `}`).Append(nil)); !strings.Contains(v, tt.want) {
			t.Errorf("%s %s: %s", tt.method, tt.params, v)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(seen, "tools/call send") || !slices.Contains(seen, "tools/call "+long) {
		t.Errorf("the server got %q, not its own names", seen)
	}
}

func TestATaskOfTwoServersIsNobodys(t *testing.T) {
	tasks := func(name, id string) fakeServer {
		return answering(func(method string, m strictjson.Value) string {
			switch method {
			case "tools/call":
				return `"result":{"task":{"taskId":"` + id + `","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null}}`
			case "tasks/result":
				return `"result":{"content":[{"type":"text","text":"of ` + name + `"}]}`
			}
			return ""
		})
	}
	r := world(t, map[string]fakeServer{"a": tasks("a", "T1"), "b": tasks("b", "T1"), "c": tasks("c", "T2")})
	r.ask(initialize)
	for i, name := range []string{"a", "b", "c"} {
		r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__t","arguments":{},"task":{}}}`, i+1, name))
	}
	if v := string(r.ask(`{"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{"taskId":"T1"}}`).Append(nil)); !strings.Contains(v, "servers a and b") {
		t.Errorf("one of two answered: %s", v)
	}
	if v := string(r.ask(`{"jsonrpc":"2.0","id":9,"method":"tasks/result","params":{"taskId":"T2"}}`).Append(nil)); !strings.Contains(v, "of c") {
		t.Errorf("%s", v)
	}
}

func TestOneServerDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel() // it waits by design
	release := make(chan struct{})
	r := world(t, map[string]fakeServer{
		"dead": func(in *bufio.Scanner, _ io.Writer) { in.Scan() },
		"lying": func(in *bufio.Scanner, out io.Writer) {
			in.Scan()
			io.WriteString(out, "[]\n{\"tools\":null}\nnot json\n")
			in.Scan()
		},
		"slow": answering(func(method string, m strictjson.Value) string {
			if method == "tools/list" {
				<-release
				return `"result":{"tools":[{"name":"late","inputSchema":{"type":"object"}}]}`
			}
			return `"result":{}`
		}),
		"sound": offering("sound", []string{"t"}, nil, nil),
	}, waiting(2*time.Second))
	r.ask(initialize)
	if got := namesIn(r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), "tools", "name"); !slices.Equal(got, []string{"sound__t"}) {
		t.Errorf("tools %q", got)
	}
	if v := string(r.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sound__t"}}`).Append(nil)); !strings.Contains(v, "answered by sound") {
		t.Errorf("answered %s", v)
	}
	close(release)
	if line := r.next(); !strings.Contains(line, "notifications/tools/list_changed") {
		t.Errorf("the client was told %s", line)
	}
	if got := namesIn(r.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`), "tools", "name"); !slices.Equal(got, []string{"slow__late", "sound__t"}) {
		t.Errorf("tools afterwards %q", got)
	}
}

func TestAListIsAskedForAgainOnlyWhenItChanged(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	r := world(t, map[string]fakeServer{"srv": func(in *bufio.Scanner, out io.Writer) {
		answering(func(method string, m strictjson.Value) string {
			mu.Lock()
			defer mu.Unlock()
			switch method {
			case "tools/list":
				asked++
				return fmt.Sprintf(`"result":{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}`, asked)
			case "tools/call":
				io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n")
			}
			return `"result":{"content":[]}`
		})(in, out)
	}})
	r.ask(initialize)
	list := func() []string {
		return namesIn(r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), "tools", "name")
	}
	list()
	if got := list(); !slices.Equal(got, []string{"srv__t1"}) {
		t.Errorf("the second list: %q", got)
	}
	told := 0
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__x"}}`, func(line string) { told += strings.Count(line, "list_changed") })
	if got := list(); told != 1 || !slices.Equal(got, []string{"srv__t2"}) {
		t.Errorf("told %d times; the list after a change: %q", told, got)
	}
}

func TestAServerThatRunsElsewhere(t *testing.T) {
	connects := 0
	connect := func(context.Context) (jsonrpc.Transport, error) {
		connects++
		if connects == 1 {
			return nil, errors.New("nobody there")
		}
		near, far := memoryTransport()
		go func() { // answers one call after the greeting, and is gone
			defer far.Close()
			for {
				m, err := far.Read(context.Background())
				if err != nil {
					return
				}
				result := strictjson.Object(strictjson.Member{Name: "content", Value: strictjson.Array()})
				if m.Method == "initialize" {
					result = parsed(t, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"f","version":"1"}}`)
				}
				if m.Kind == jsonrpc.Request {
					far.Write(context.Background(), jsonrpc.Message{Kind: jsonrpc.Response, ID: m.ID, Result: result})
				}
				if m.Method == "tools/call" {
					return
				}
			}
		}()
		return near, nil
	}
	r := newRig(t, Options{Joined: true, Servers: []Server{{Source: Source{Server: "far"}, Connect: connect}}})
	r.ask(initialize)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"far__t"}}`
	if v := string(r.ask(call).Append(nil)); !strings.Contains(v, "nobody there") {
		t.Errorf("without a connection: %s", v)
	}
	if v := r.ask(call); v.Get("result").Kind() != strictjson.KindObject {
		t.Errorf("with one: %s", v.Append(nil))
	}
	if connects != 2 {
		t.Errorf("%d connections", connects)
	}
}

func TestServersThatStartWithTheClient(t *testing.T) {
	started := make(chan string, 4)
	launch := launcher(func(s Server) { started <- s.Server }, offering("x", []string{"t"}, nil, nil))
	r := newRig(t, Options{Launch: launch, Servers: []Server{
		{Source: Source{Server: "lazy"}, Command: []string{"fake"}}, {Source: Source{Server: "eager"}, Command: []string{"fake"}, AtStart: true},
	}})
	r.ask(initialize)
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if name := <-started; name != "eager" {
		t.Errorf("%s was started first", name)
	}
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lazy__t"}}`)
	if name := <-started; name != "lazy" {
		t.Errorf("%s was started second", name)
	}
}
