package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// asksFirst is a server that answers each call without a state with one, and tells what it gets.
func asksFirst(name string) fakeServer {
	return answering(func(method string, m strictjson.Value) string {
		params := m.Get("params")
		switch state := params.Get("requestState"); {
		case method == "tools/list":
			return `"result":{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}},{"name":"u","inputSchema":{"type":"object"}}]}`
		case method == "resources/list":
			return `"result":{"resultType":"complete","resources":[{"uri":"mem://` + name + `","name":"r"}]}`
		case method == "tools/call" && params.Get("name").Str() == "task":
			return `"result":{"resultType":"task","taskId":"T","status":"working","requestState":"of the task","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null}`
		case strings.HasPrefix(method, "tasks/"):
			return `"result":{"resultType":"complete","taskId":"T","status":"working","requestState":"again","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"_meta":{"got":` + string(strictjson.String(state.Str()).Append(nil)) + `}}`
		case state.Kind() == strictjson.KindAbsent:
			return `"result":{"resultType":"input_required","requestState":"of ` + name + ` \u003d\/=="}`
		case method == "prompts/get":
			return `"result":{"resultType":"complete","messages":[{"role":"user","content":{"type":"text","text":"got ` + state.Str() + `"}}]}`
		case method == "resources/read":
			return `"result":{"resultType":"complete","contents":[{"uri":"mem://` + name + `","text":"got ` + state.Str() + `"}]}`
		default:
			return `"result":{"resultType":"complete","content":[{"type":"text","text":"got ` + state.Str() + `"}]}`
		}
	})
}

func modernRequest(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,"_meta":` + modernMeta + `}}`
}

// A state goes back to the server that gave it, with the call it was given for, and nowhere else: with one server as with several.
func TestAStateGoesBackOnlyWithItsOwnCall(t *testing.T) {
	for _, several := range []bool{false, true} {
		t.Run(fmt.Sprintf("several=%t", several), func(t *testing.T) {
			one, prefix := newRig(t, Options{Launch: launcher(nil, asksFirst("a"))}), ""
			if several {
				one, prefix = world(t, map[string]fakeServer{"a": asksFirst("a"), "b": asksFirst("b")}), "a__"
			}
			call := func(r *rig, method, params, state string) string {
				t.Helper()
				if state != "" {
					params += fmt.Sprintf(`,"requestState":%q,"inputResponses":{}`, state)
				}
				return string(r.ask(modernRequest(method, params)).Append(nil))
			}
			first := func(method, params string) string {
				t.Helper()
				state := parsed(t, call(one, method, params, "")).Get("result").Get("requestState").Str()
				if !strings.HasPrefix(state, boundState) || strings.Contains(state, "of a") {
					t.Fatalf("%s %s: the state is %q", method, params, state)
				}
				return state
			}
			args := `,"arguments":{"x":1,"y":[2.0]}`
			state := first("tools/call", `"name":"`+prefix+`t"`+args)
			other, otherClient := newRig(t, Options{Launch: launcher(nil, asksFirst("a"))}), ""
			otherClient = parsed(t, call(other, "tools/call", `"name":"t"`+args, "")).Get("result").Get("requestState").Str()
			refused := map[string]string{
				"another tool":        call(one, "tools/call", `"name":"`+prefix+`u"`+args, state),
				"other arguments":     call(one, "tools/call", `"name":"`+prefix+`t","arguments":{"x":1,"y":[2]}`, state),
				"no arguments":        call(one, "tools/call", `"name":"`+prefix+`t"`, state),
				"a prompt":            call(one, "prompts/get", `"name":"`+prefix+`t"`+args, state),
				"altered":             call(one, "tools/call", `"name":"`+prefix+`t"`+args, state[:len(state)-1]+string(state[len(state)-1]^1)),
				"longer":              call(one, "tools/call", `"name":"`+prefix+`t"`+args, state+"A"),
				"the server's own":    call(one, "tools/call", `"name":"`+prefix+`t"`+args, "of a"),
				"empty":               call(one, "tools/call", `"name":"`+prefix+`t"`+args+`,"requestState":""`, ""),
				"no text":             call(one, "tools/call", `"name":"`+prefix+`t"`+args+`,"requestState":7`, ""),
				"another gateway's":   call(one, "tools/call", `"name":"`+prefix+`t"`+args, otherClient),
				"ours for a prompt":   call(one, "prompts/get", `"name":"`+prefix+`t"`, askState+"x"),
				"a tool's, by a task": call(one, "tasks/update", `"taskId":"T"`, state),
			}
			if several {
				refused["another server"] = call(one, "tools/call", `"name":"b__t"`+args, state)
				delete(refused, "a tool's, by a task") // nobody has the task
			}
			for name, v := range refused {
				if !strings.Contains(v, "-32602") || !strings.Contains(v, "requestState") {
					t.Errorf("%s: %s", name, v)
				}
			}
			for _, tt := range [][2]string{
				{"tools/call", `"name":"` + prefix + `t","arguments":{"y":[2.0],"x":1}`}, // the order of members means nothing
				{"prompts/get", `"name":"` + prefix + `p"`}, {"resources/read", `"uri":"mem://a"`},
			} {
				state := state
				if tt[0] != "tools/call" {
					state = first(tt[0], tt[1])
				}
				for range 2 { // how often it counts is the server's to say
					if v := call(one, tt[0], tt[1], state); !strings.Contains(v, `got of a =/==`) {
						t.Errorf("%s: %s", tt[0], v)
					}
				}
			}
		})
	}
}

func TestAStateOfATaskBelongsToTheTask(t *testing.T) {
	r := newRig(t, trusted(Options{Launch: launcher(nil, asksFirst("a"))}))
	state := r.ask(modernRequest("tools/call", `"name":"task"`)).Get("result").Get("requestState").Str()
	if v := string(r.ask(modernRequest("tasks/update", `"taskId":"T","requestState":"`+state+`"`)).Append(nil)); !strings.Contains(v, `"got":"of the task"`) {
		t.Errorf("%s", v)
	}
	if v := string(r.ask(modernRequest("tasks/update", `"taskId":"U","requestState":"`+state+`"`)).Append(nil)); !strings.Contains(v, "-32602") {
		t.Errorf("for another task: %s", v)
	}
	state = r.ask(modernRequest("tasks/get", `"taskId":"T"`)).Get("result").Get("requestState").Str()
	if v := string(r.ask(modernRequest("tasks/update", `"taskId":"T","requestState":"`+state+`"`)).Append(nil)); !strings.Contains(v, `"got":"again"`) {
		t.Errorf("of tasks/get: %s", v)
	}
}

// Two principals of one gateway cannot use each other's states, nor can two sessions of nobody; one principal may come back in
// another session.
func TestAStateIsItsClientsOwn(t *testing.T) {
	g, err := NewGateway(Options{Servers: []Server{{Source: Source{Server: "srv"}, Command: []string{"fake"}}}, Launch: launcher(nil, asksFirst("a"))})
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(work.Wait) // behind the ends of all clients
	client := func(principal string) func(more string) string {
		near, far := memoryTransport()
		work.Go(func() { g.Serve(context.Background(), Client{Transport: far, Principal: principal}) })
		peer := jsonrpc.NewPeer(near, nil)
		work.Go(func() { peer.Run(context.Background(), func(jsonrpc.Message) {}, func(*jsonrpc.BadMessage) {}) })
		t.Cleanup(func() { near.Close() })
		return func(more string) string {
			t.Helper()
			call, err := peer.Open(nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := call.Do(t.Context(), "tools/call", parsed(t, `{"name":"t","_meta":`+modernMeta+more+`}`))
			if err != nil {
				t.Fatal(err)
			}
			if m.Error.Kind() != strictjson.KindAbsent {
				return string(m.Error.Append(nil))
			}
			return string(m.Result.Append(nil))
		}
	}
	ann, annAgain, bob, one, two := client("ann"), client("ann"), client("bob"), client(""), client("")
	state := func(result string) string {
		return fmt.Sprintf(`,"requestState":%q`, parsed(t, result).Get("requestState").Str())
	}
	anns, ones := state(ann("")), state(one(""))
	for name, tt := range map[string]struct {
		by   func(string) string
		with string
		ok   bool
	}{
		"ann": {ann, anns, true}, "ann in another session": {annAgain, anns, true}, "bob": {bob, anns, false}, "nobody": {one, anns, false},
		"the session": {one, ones, true}, "another session": {two, ones, false}, "ann with a session's": {ann, ones, false},
	} {
		if got := tt.by(tt.with); strings.Contains(got, "got of a") != tt.ok || !tt.ok && !strings.Contains(got, "-32602") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
