//go:build real

package realtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tasks between the TypeScript SDK's client and server-everything: begun, followed to the end, fetched, listed, cancelled. Directly, behind the
// gateway, and behind one with several servers.
func TestFeatureTasks(t *testing.T) {
	p := newParts(t)
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	file := filepath.Join(dir, "hearsay.yaml")
	text := fmt.Sprintf(`servers:
  everything: {command: [node, %q], sandbox: off}
  filesystem: {command: [node, %q, %q], sandbox: off}
permissions: {allow: ["everything.*"]}
tools:
  everything.simulate-research-query: {effects: [read]}
`, p.everything[1], p.filesystem[1], p.dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, prefix string
		command      []string
		framed       bool
	}{
		{"directly", "", p.everything, false},
		{"behind", "", p.behind(p.everything), true},
		{"several", "everything__", []string{p.hearsay, "mcp", "-c", file}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PREFIX", tt.prefix)
			out := p.typescript(t, "tasks", tt.command, nil)
			for name, want := range map[string]string{"cancel": `"cancelled"`, "get": `"completed"`, "list": `["cancelled","completed"]`} {
				if got := string(out[name]); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			for _, name := range []string{"run", "result"} {
				var result struct{ Content []struct{ Text string } }
				if err := json.Unmarshal(out[name], &result); err != nil || len(result.Content) == 0 {
					t.Fatalf("%s: %v, %s", name, err, out[name])
				}
				said := result.Content[0].Text
				if tt.framed {
					said = unframed(t, said)
				}
				if !strings.Contains(said, "whales") {
					t.Errorf("%s: %q", name, said)
				}
			}
			if !strings.Contains(string(out["none"]), "error") {
				t.Errorf("a task that is not: %s", out["none"])
			}
		})
	}
}

// said gives the text of a result as JSON, out of its frame.
func said(t *testing.T, what string, data json.RawMessage) string {
	t.Helper()
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(data, &result); err != nil || len(result.Content) == 0 {
		t.Fatalf("%s: %v, %s", what, err, data)
	}
	return unframed(t, result.Content[0].Text)
}

// The tasks extension's own client, of 2026-07-28, in front of server-everything, whose tasks are those of 2025-11-25, and of a server of its
// own era.
func TestTasksAcrossErasForANewerClient(t *testing.T) {
	p := newParts(t)
	goserver := buildServer(t)
	for _, tt := range []struct {
		name, tool, args, asks, said string
		server                       []string
	}{
		{"older", "simulate-research-query", `{"topic":"whales","ambiguous":true}`, "multiple interpretations", "whales (", p.everything},
		{"older, unasked", "simulate-research-query", `{"topic":"whales","ambiguous":false}`, "", "whales", p.everything},
		{"newer", "confirm_delete", `{"filename":"x"}`, "confirm?", `"accept"`, []string{goserver, "-modern", "-tasks"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := p.script(t, "tasks.mjs", append([]string{tt.tool, tt.args}, p.behind(tt.server)...), nil)
			if got := string(out["kind"]) + string(out["cancelled"]); got != `"task""cancelled"` {
				t.Errorf("the call was a task, and was cancelled: %s", got)
			}
			if got := said(t, "result", out["result"]); !strings.Contains(got, tt.said) {
				t.Errorf("result: %q", got)
			}
			var asked []string
			var states [][2]string
			if err := errors.Join(json.Unmarshal(out["asked"], &asked), json.Unmarshal(out["states"], &states)); err != nil || len(states) == 0 {
				t.Fatalf("%v: %s", err, out["states"])
			}
			for _, state := range states {
				if state[1] != "" {
					unframed(t, state[1])
				}
			}
			switch {
			case len(asked) == 1 && tt.asks != "":
				if !strings.Contains(unframed(t, asked[0]), tt.asks) {
					t.Errorf("asked %q", asked[0])
				}
			case len(asked) > 0 || tt.asks != "":
				t.Errorf("asked %q", asked)
			}
			if got := string(out["none"]); got != `{"code":-32602}` {
				t.Errorf("a task that is not: %s", got)
			}
		})
	}
}

// The TypeScript SDK's client, of 2025-11-25, in front of a server on the Go SDK whose tasks are those of 2026-07-28.
func TestTasksAcrossErasForAnOlderClient(t *testing.T) {
	p := newParts(t)
	server := []string{buildServer(t), "-modern", "-tasks"}
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	file := filepath.Join(t.TempDir(), "hearsay.yaml")
	text := fmt.Sprintf("servers:\n  far: {url: %q}\n  filesystem: {command: [node, %q, %q], sandbox: off}\npermissions: {allow: [\"far.*\"]}\ntools:\n%s",
		onAddress(t, append(server, "-http")...), p.filesystem[1], p.dir, effectsOf("far", "confirm_delete", "echo"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, prefix string
		command      []string
	}{
		{"stdio", "", p.behind(server)},
		{"several, by HTTP", "far__", []string{p.hearsay, "mcp", "-c", file}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PREFIX", tt.prefix)
			out := p.typescript(t, "newerTasks", tt.command, nil)
			for name, want := range map[string]string{"run": `"decline"`, "atOnce": "hello"} {
				var run struct {
					States [][2]string
					Result json.RawMessage
				}
				if err := json.Unmarshal(out[name], &run); err != nil || len(run.States) == 0 || run.States[0][0] != "working" {
					t.Fatalf("%s: %v, %s", name, err, out[name])
				}
				for _, state := range run.States {
					if state[1] != "" {
						unframed(t, state[1])
					}
				}
				if got := said(t, name, run.Result); !strings.Contains(got, want) {
					t.Errorf("%s: %q", name, got)
				}
			}
			if got := said(t, "plain", out["plain"]); !strings.Contains(got, `"decline"`) {
				t.Errorf("without a task: %q", got)
			}
			if got := string(out["cancel"]); got != `["cancelled","cancelled"]` {
				t.Errorf("cancelled: %s", got)
			}
			if !strings.Contains(string(out["none"]), "-32602") {
				t.Errorf("a task that is not: %s", out["none"])
			}
			var seen struct{ Elicitation []struct{ Message string } }
			if err := json.Unmarshal(out["seen"], &seen); err != nil || len(seen.Elicitation) != 2 {
				t.Fatalf("%v: %s", err, out["seen"])
			}
			for _, asked := range seen.Elicitation {
				if !strings.Contains(unframed(t, asked.Message), "confirm?") {
					t.Errorf("asked %q", asked.Message)
				}
			}
		})
	}
}
