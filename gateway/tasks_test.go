package gateway

import (
	"bufio"
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// tellsAll is a server that takes all clients for one: every task is anybody's.
func tellsAll() fakeServer {
	const task = `"status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null`
	inner := answering(func(method string, m strictjson.Value) string {
		if id := m.Get("params").Get("taskId").Str(); id != "" && !strings.HasPrefix(id, "of ") {
			return `"error":{"code":-32602,"message":"no such task"}`
		}
		switch method {
		case "tools/call":
			return `"result":{"task":{"taskId":` + string(m.Get("params").Get("arguments").Get("task").Append(nil)) + `,` + task + `}}`
		case "tasks/list":
			return `"result":{"tasks":[{"taskId":"of ann",` + task + `},{"taskId":"of bob",` + task + `}]}`
		case "tasks/result":
			return `"result":{"content":[{"type":"text","text":"SECRET"}]}`
		case "tasks/get", "tasks/cancel":
			return `"result":{"taskId":"of ann",` + task + `,"statusMessage":"SECRET"}`
		}
		return `"result":{}`
	})
	return func(in *bufio.Scanner, out io.Writer) { inner(in, declaringTasks{out}) }
}

// declaringTasks adds the capability to what a server writes.
type declaringTasks struct{ io.Writer }

func (d declaringTasks) Write(p []byte) (int, error) {
	_, err := io.WriteString(d.Writer, strings.Replace(string(p), `"logging":{}`, `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`, 1))
	return len(p), err
}

// What one principal's call became reaches no other, whatever the server thinks; the principal may come back in another session. A client that
// is nobody in particular has the gateway for itself.
func TestATaskIsItsPrincipalsOwn(t *testing.T) {
	for _, servers := range [][]string{{"srv"}, {"srv", "two"}} {
		t.Run(strings.Join(servers, " and "), func(t *testing.T) {
			opt := Options{Launch: launcher(nil, tellsAll(), tellsAll(), tellsAll(), tellsAll(), tellsAll(), tellsAll(), tellsAll(), tellsAll())}
			for _, name := range servers {
				opt.Servers = append(opt.Servers, Server{Source: Source{Server: name}, Command: []string{"fake"}})
			}
			g, err := NewGateway(opt)
			if err != nil {
				t.Fatal(err)
			}
			var work sync.WaitGroup
			t.Cleanup(work.Wait) // behind the ends of all clients
			client := func(principal string) func(method, params string) string {
				near, far := memoryTransport()
				work.Go(func() { g.Serve(context.Background(), Client{Transport: far, Principal: principal}) })
				peer := jsonrpc.NewPeer(near, nil)
				work.Go(func() { peer.Run(context.Background(), func(jsonrpc.Message) {}, func(*jsonrpc.BadMessage) {}) })
				t.Cleanup(func() { near.Close() })
				do := func(method, params string) string {
					t.Helper()
					call, err := peer.Open(nil)
					if err != nil {
						t.Fatal(err)
					}
					m, err := call.Do(t.Context(), method, parsed(t, params))
					if err != nil {
						t.Fatal(err)
					}
					return string(m.Error.Append(nil)) + string(m.Result.Append(nil))
				}
				do("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
				return do
			}
			tool := "t"
			if len(servers) > 1 {
				tool = "srv__t"
			}
			ann, bob := client("ann"), client("bob")
			for who, do := range map[string]func(string, string) string{"of ann": ann, "of bob": bob} {
				if got := do("tools/call", `{"name":"`+tool+`","arguments":{"task":"`+who+`"},"task":{}}`); !strings.Contains(got, who) {
					t.Fatal(got)
				}
			}
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
				if got := bob(method, `{"taskId":"of ann"}`); strings.Contains(got, "SECRET") || !strings.Contains(got, "-32602") {
					t.Errorf("%s of another's: %s", method, got)
				}
				if got := ann(method, `{"taskId":"of ann"}`); !strings.Contains(got, "SECRET") {
					t.Errorf("%s of one's own: %s", method, got)
				}
			}
			for who, do := range map[string]func(string, string) string{"of ann": ann, "of bob": bob} {
				if got := do("tasks/list", `{}`); strings.Count(got, `"taskId"`) != 1 || !strings.Contains(got, who) {
					t.Errorf("%s: %s", who, got)
				}
			}
			if again := client("ann"); len(servers) == 1 {
				if got := again("tasks/result", `{"taskId":"of ann"}`); !strings.Contains(got, "SECRET") {
					t.Errorf("in another session: %s", got)
				}
				if got := client("")("tasks/result", `{"taskId":"of long ago"}`); !strings.Contains(got, "SECRET") {
					t.Errorf("of nobody in particular: %s", got)
				}
			}
		})
	}
}

func TestTasksOfAPrincipalAreBounded(t *testing.T) {
	g := &Gateway{tasks: map[string]map[string]bool{}}
	s := &session{g: g, who: "p"}
	up := &upstream{Server: Server{Source: Source{Server: "srv"}}}
	for n := range maxRemembered + 9 {
		s.keepTask(up, strconv.Itoa(n))
	}
	s.keepTask(up, strings.Repeat("x", maxOpaque+1))
	if len(g.tasks["p"]) != maxRemembered || !s.ownsTask(up, strconv.Itoa(maxRemembered+8)) {
		t.Errorf("%d tasks are kept", len(g.tasks["p"]))
	}
}
