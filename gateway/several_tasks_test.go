package gateway

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// withTasks is a server of 2025-11-25 that lists these tasks, two a page; without any it says that it lists none.
func withTasks(hang bool, ids ...string) fakeServer {
	return func(in *bufio.Scanner, out io.Writer) {
		for in.Scan() {
			m, err := strictjson.Parse(in.Bytes(), strictjson.Limits{})
			if err != nil || m.Get("id").Kind() == strictjson.KindAbsent {
				continue
			}
			if m.Get("params").Get("name").Str() == "hang" {
				continue
			}
			result := `{"content":[{"type":"text","text":"x"}]}`
			switch m.Get("method").Str() {
			case "initialize":
				list := `"list":{},`
				if ids == nil {
					list = ""
				}
				result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{` + list + `"cancel":{}}},"serverInfo":{"name":"f","version":"1"}}`
			case "tasks/list":
				if hang {
					continue
				}
				from := 0
				fmt.Sscanf(m.Get("params").Get("cursor").Str(), "from %d", &from)
				var page []string
				for _, id := range ids[from:min(from+2, len(ids))] {
					page = append(page, `{"taskId":"`+id+`","status":"working","statusMessage":"of `+id+`","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null}`)
				}
				next := ""
				if from+2 < len(ids) {
					next = fmt.Sprintf(`,"nextCursor":"from %d"`, from+2)
				}
				result = `{"tasks":[` + strings.Join(page, ",") + `]` + next + `}`
			case "tasks/get":
				result = `{"taskId":` + string(m.Get("params").Get("taskId").Append(nil)) + `,"status":"completed","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null}`
			}
			io.WriteString(out, `{"jsonrpc":"2.0","id":`+string(m.Get("id").Append(nil))+`,"result":`+result+"}\n")
		}
	}
}

// tasks/list of several servers: all their pages, after a bounded wait; a task that two have is nobody's.
func TestTasksOfSeveralServers(t *testing.T) {
	t.Parallel() // it waits by design
	r := world(t, map[string]fakeServer{
		"a": withTasks(false, "a1", "a2", "a3", "a4", "a5", "both"), "b": withTasks(false, "both", "b1"), "hangs": withTasks(true, "h"), "none": withTasks(false),
		"sleeps": withTasks(false, "s1"),
	}, waiting(2*time.Second))
	r.ask(initialize)
	if v := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`); v.Get("result").Get("tasks").Len() != 0 {
		t.Errorf("before any server runs: %s", v.Append(nil))
	}
	for _, name := range []string{"a", "b", "hangs", "none"} {
		r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `__t"}}`)
	}
	// A call that may become a task is open meanwhile.
	r.send(`{"jsonrpc":"2.0","id":"open","method":"tools/call","params":{"name":"hangs__hang","task":{}}}`)
	v := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`)
	if got, want := namesIn(v, "tasks", "taskId"), []string{"a1", "a2", "a3", "a4", "a5", "b1"}; !slices.Equal(got, want) {
		t.Errorf("tasks %q, want %q", got, want)
	}
	if s := string(v.Append(nil)); strings.Contains(s, `"statusMessage":"of a1"`) || !strings.Contains(s, "of a1") {
		t.Errorf("what a server says of its task is not framed: %s", s)
	}
	for params, want := range map[string]string{
		`{"taskId":"a5"}`: `"status":"completed"`, `{"taskId":"both"}`: "servers a and b", `{"taskId":"s1"}`: "there is no task",
	} {
		if v := string(r.ask(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":` + params + `}`).Append(nil)); !strings.Contains(v, want) {
			t.Errorf("%s: %s", params, v)
		}
	}
	if v := string(r.ask(`{"jsonrpc":"2.0","id":1,"method":"tasks/list","params":{"cursor":"from 2"}}`).Append(nil)); !strings.Contains(v, "-32602") {
		t.Errorf("a page: %s", v)
	}
}
