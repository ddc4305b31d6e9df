//go:build real

package realtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// patience is for a machine that does much else: nothing here waits so long for anything but its failure.
const patience = 2 * time.Minute

// parts are the real parts that the tests need.
type parts struct {
	npm, hearsay           string
	everything, filesystem []string
	server                 []string // our own, server.mjs
	dir                    string   // what filesystem serves
}

func newParts(t *testing.T) parts {
	t.Helper()
	_, err := exec.LookPath("node")
	repotest.Need(t, "node", err == nil)
	npm, err := filepath.Abs(repotest.NPM(t))
	if err != nil {
		t.Fatal(err)
	}
	p := parts{npm: npm, hearsay: filepath.Join(t.TempDir(), "hearsay"), dir: t.TempDir()}
	build := exec.Command("go", "build", "-o", p.hearsay, "./cmd/hearsay")
	build.Dir = repotest.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.everything = []string{"node", npm + "/@modelcontextprotocol/server-everything/dist/index.js"}
	p.filesystem = []string{"node", npm + "/@modelcontextprotocol/server-filesystem/dist/index.js", p.dir}
	p.server = []string{"node", filepath.Join(repotest.Root(t), "internal/realtest/server.mjs"), npm}
	return p
}

// behind puts the gateway in front of a server's command.
func (p parts) behind(command []string, flags ...string) []string {
	return slices.Concat([]string{p.hearsay, "mcp", "--name", "srv"}, flags, []string{"--"}, command)
}

// typescript runs client.mjs and returns what it prints. ready is called when the client says so.
func (p parts) typescript(t *testing.T, what string, command []string, ready func(pid int)) map[string]json.RawMessage {
	t.Helper()
	return p.script(t, "client.mjs", append([]string{what}, command...), ready)
}

// script runs a client that is written for Node.
func (p parts) script(t *testing.T, file string, args []string, ready func(pid int)) map[string]json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(repotest.Root(t), "internal/realtest", file)}, args...)...)
	cmd.Env = append(os.Environ(), "HEARSAY_NPM="+p.npm, "PLANTED_SECRET=s3cret")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var last string
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		last = lines.Text()
		if last == "READY" && ready != nil {
			ready(cmd.Process.Pid)
			ready = nil
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the client of the TypeScript SDK: %v\n…%s", err, stderr.String()[max(0, stderr.Len()-2000):])
	}
	var result map[string]json.RawMessage
	if err := json.Unmarshal([]byte(last), &result); err != nil {
		t.Fatalf("%v: %.300s", err, last)
	}
	return result
}

var clock = regexp.MustCompile(`\d{1,2}:\d\d:\d\d( [AP]M)?`)

// value decodes JSON, without the times that servers write into their texts.
func value(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(clock.ReplaceAll(raw, []byte("TIME")), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTypeScriptClientLosesNothing(t *testing.T) {
	p := newParts(t)
	for what, server := range map[string][]string{"everything": p.everything, "filesystem": p.filesystem} {
		direct := p.typescript(t, what, server, nil)
		behind := p.typescript(t, what, p.behind(server, "--first-party"), nil)
		if len(direct) < 5 {
			t.Fatalf("%s: only %d results", what, len(direct))
		}
		for name := range direct {
			if diff := cmp.Diff(value(t, direct[name]), value(t, behind[name])); diff != "" {
				t.Errorf("%s %s: direct -, behind hearsay +\n%s", what, name, diff)
			}
		}
	}
}

// texts collects the strings that stand under the names a model or a person reads.
func texts(v any) (all []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			all = append(all, texts(e)...)
		}
	case map[string]any:
		for name, e := range v {
			if s, ok := e.(string); ok && (name == "text" || name == "message") {
				all = append(all, s)
			} else {
				all = append(all, texts(e)...)
			}
		}
	}
	return all
}

// withoutFrames replaces each framed text by its body.
func withoutFrames(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutFrames(v[i])
		}
	case map[string]any:
		for name, e := range v {
			v[name] = withoutFrames(e)
		}
	case string:
		if body, ok := envelope.Body(strings.TrimPrefix(v, "MCP error -32602: ")); ok {
			return body
		}
	}
	return v
}

// results of the TypeScript client whose every text comes from the server.
var framedResults = []string{"echo", "sum", "structured", "image", "annotated", "reference", "links", "wrong", "unknown", "prompt",
	"promptArgs", "noPrompt", "resource", "noResource", "roots", "sampling", "elicitation", "long", "write", "read", "dir", "outside"}

func TestTypeScriptClientGetsTheSameButForTheFrame(t *testing.T) {
	p := newParts(t)
	for what, server := range map[string][]string{"everything": p.everything, "filesystem": p.filesystem} {
		direct := p.typescript(t, what, server, nil)
		behind := p.typescript(t, what, p.behind(server), nil)
		for name, raw := range direct {
			want, got := value(t, raw), value(t, behind[name])
			if slices.Contains(framedResults, name) {
				for _, text := range texts(got) {
					if body, ok := envelope.Body(strings.TrimPrefix(text, "MCP error -32602: ")); !ok || strings.Contains(body, "namzu-untrusted") {
						t.Errorf("%s %s: a text is not framed: %.300s", what, name, text)
					}
				}
			}
			// Each text of the server is there, whole, and nothing else changed but what the table of channels says.
			have := texts(withoutFrames(got))
			for _, text := range texts(want) {
				text = strings.TrimSpace(envelope.NeutralizeLookalikes(text))
				if !slices.ContainsFunc(have, func(s string) bool { return strings.HasSuffix(text, s) }) && name != "seen" {
					t.Errorf("%s %s: lost %.200q; there is %.500q", what, name, text, have)
				}
			}
			switch name {
			case "tools":
				want = without(want, "outputSchema", "execution")
				got = without(got, "_meta", "execution")
				fallthrough
			case "prompts", "resources", "templates", "capabilities", "complete", "ping", "level", "subscribe", "unsubscribe":
				if diff := cmp.Diff(want, without(got, "_meta")); diff != "" {
					t.Errorf("%s %s: direct -, behind hearsay +\n%s", what, name, diff)
				}
			}
		}
	}
}

// without takes members of these names out of every object.
func without(v any, names ...string) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = without(v[i], names...)
		}
	case map[string]any:
		for _, name := range names {
			delete(v, name)
		}
		for name := range v {
			v[name] = without(v[name], names...)
		}
	}
	return v
}

func TestNothingIsLostAmong200Calls(t *testing.T) {
	p := newParts(t)
	if got := p.typescript(t, "many", p.behind(p.everything), nil); string(got["right"]) != "200" {
		t.Errorf("%s of 200 calls got their own answer", got["right"])
	}
}

func TestHeavyServer(t *testing.T) {
	p := newParts(t)
	got := p.typescript(t, "heavy", p.behind(p.server), nil)
	if !bytes.Contains(got["stderr"], []byte("written")) {
		t.Errorf("after 16 MiB on standard error: %.300s", got["stderr"])
	}
	if string(got["big"]) != "true" {
		t.Error("a result of 32 MiB did not come through")
	}
	if string(got["length"]) != "true" {
		t.Error("a request of 5 MiB did not come through")
	}
	environment, ok := envelope.Body(value(t, got["environment"]).(string))
	if !ok || strings.Contains(environment, "PLANTED_SECRET") || strings.Contains(environment, "HEARSAY_NPM") || !strings.Contains(environment, "PATH") {
		t.Errorf("the server sees the variables %s", environment)
	}
}

func TestCancelledCallEnds(t *testing.T) {
	p := newParts(t)
	got := p.typescript(t, "cancel", p.behind(p.everything), nil)
	if !bytes.Contains(got["long"], []byte("no longer wanted")) || !bytes.Contains(got["echo"], []byte("after")) {
		t.Errorf("the cancelled call: %s; the next: %.300s", got["long"], got["echo"])
	}
}

// below lists the processes below pid that run a script of this name.
func below(pid int, script string) (found []int) {
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range children {
		data, _ := os.ReadFile(file)
		for _, field := range bytes.Fields(data) {
			child, _ := strconv.Atoi(string(field))
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			if bytes.HasPrefix(line, []byte("node\x00")) && bytes.Contains(line, []byte(script)) {
				found = append(found, child)
			}
			found = append(found, below(child, script)...)
		}
	}
	return found
}

func TestADyingServerGivesAnErrorAndTheNextCallStartsIt(t *testing.T) {
	p := newParts(t)
	got := p.typescript(t, "death", p.behind(p.everything), func(client int) {
		servers := below(client, "server-everything")
		if len(servers) != 1 {
			t.Errorf("%d servers below the client", len(servers))
		}
		for _, pid := range servers {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if !bytes.Contains(got["long"], []byte("ended before it answered")) || !bytes.Contains(got["echo"], []byte("after")) {
		t.Errorf("the call of the server that was killed: %s; the next: %.300s", got["long"], got["echo"])
	}
}

// goClient connects the Go SDK's client to a command, with the newest version that the other side speaks.
func goClient(t *testing.T, command []string, opt *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return goClientOf(t, "", command, opt)
}

// goClientOf is goClient with a version.
func goClientOf(t *testing.T, version string, command []string, opt *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "realtest", Version: "1"}, opt)
	cmd := exec.Command(command[0], command[1:]...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func TestGoClient(t *testing.T) {
	p := newParts(t)
	const version = "2025-11-25"
	direct, behind := goClientOf(t, version, p.everything, nil), goClientOf(t, version, p.behind(p.everything, "--first-party"), nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask := func(s *mcp.ClientSession) map[string]any {
		out := map[string]any{"initialize": s.InitializeResult()}
		add := func(name string, result any, err error) {
			if err != nil {
				result = err.Error()
			}
			data, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = value(t, data)
		}
		tools, err := s.ListTools(ctx, nil)
		add("tools", tools, err)
		prompts, err := s.ListPrompts(ctx, nil)
		add("prompts", prompts, err)
		resources, err := s.ListResources(ctx, nil)
		add("resources", resources, err)
		call := func(name string, args map[string]any) {
			result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
			add("call "+name, result, err)
		}
		call("echo", map[string]any{"message": "hello"})
		call("get-structured-content", map[string]any{"location": "Chicago"})
		call("no-such-tool", nil)
		read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: "demo://resource/static/document/architecture.md"})
		add("read", read, err)
		prompt, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "args-prompt", Arguments: map[string]string{"city": "Oslo"}})
		add("prompt", prompt, err)
		return out
	}
	want, got := ask(direct), ask(behind)
	for name := range want {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s: direct -, behind hearsay +\n%s", name, diff)
		}
	}
	framed := goClient(t, p.behind(p.everything), nil)
	result, err := framed.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}})
	if err != nil {
		t.Fatal(err)
	}
	if body, ok := envelope.Body(result.Content[0].(*mcp.TextContent).Text); !ok || body != "Echo: hello" {
		t.Errorf("the framed result: %q", result.Content[0].(*mcp.TextContent).Text)
	}
}

// The Go SDK's client speaks 2026-07-28 with its own server, and as well with one that knows only initialize: server/discover,
// input_required, subscriptions.
func TestGoClientAndServerOfBothEras(t *testing.T) {
	p := newParts(t)
	server := filepath.Join(t.TempDir(), "server")
	build := exec.Command("go", "build", "-o", server, "./internal/realtest/goserver")
	build.Dir = repotest.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, flags := range [][]string{nil, {"-legacy"}} {
		t.Run(strings.Join(append([]string{"server"}, flags...), " "), func(t *testing.T) {
			changed := make(chan bool, 10)
			asked := 0
			opt := &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked++
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "blue"}}, nil
				},
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
			}
			s := goClient(t, p.behind(append([]string{server}, flags...)), opt)
			if v := s.InitializeResult().ProtocolVersion; v != "2026-07-28" {
				t.Errorf("spoken: %s", v)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := envelope.Body(result.Content[0].(*mcp.TextContent).Text); body != "the person said blue" || asked != 1 {
				t.Errorf("asked %d times; the tool said %q", asked, result.Content[0].(*mcp.TextContent).Text)
			}
			if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "grow"}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Error("nobody said that the list of tools changed")
			}
		})
	}
}

func TestNoProcessIsLeft(t *testing.T) {
	p := newParts(t)
	alive := func(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && !zombie(pid) }
	for _, tt := range []struct {
		name string
		end  func(gateway *exec.Cmd, stdin interface{ Close() error })
	}{
		{"the client closes its end", func(_ *exec.Cmd, stdin interface{ Close() error }) { stdin.Close() }},
		{"the gateway is asked to end", func(c *exec.Cmd, _ interface{ Close() error }) { c.Process.Signal(syscall.SIGTERM) }},
		{"the gateway is killed", func(c *exec.Cmd, _ interface{ Close() error }) { c.Process.Kill() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// A server that starts another process and ignores what it can; the last case is the kernel's work and reaches
			// only the process that the gateway started.
			script := `trap "" TERM; sleep 1000 & exec node "$0" "$1"`
			if tt.name == "the gateway is killed" {
				script = `exec node "$0" "$1"`
			}
			command := p.behind([]string{"sh", "-c", script, p.server[1], p.npm})
			cmd := exec.Command(command[0], command[1:]...)
			stdin, _ := cmd.StdinPipe()
			stdout, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			var pids []int
			children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
			for _, file := range children {
				data, _ := os.ReadFile(file)
				for _, field := range bytes.Fields(data) {
					pid, _ := strconv.Atoi(string(field))
					pids = append(pids, pid)
					grand, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
					for _, file := range grand {
						data, _ := os.ReadFile(file)
						for _, field := range bytes.Fields(data) {
							pid, _ := strconv.Atoi(string(field))
							pids = append(pids, pid)
						}
					}
				}
			}
			if want := 1 + strings.Count(script, "&"); len(pids) < want {
				t.Fatalf("processes %v", pids)
			}
			tt.end(cmd, stdin)
			cmd.Wait()
			deadline := time.Now().Add(patience)
			for _, pid := range pids {
				for alive(pid) && time.Now().Before(deadline) {
					time.Sleep(10 * time.Millisecond)
				}
				if alive(pid) {
					line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					t.Errorf("left: %d %q", pid, line)
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	}
}

func zombie(pid int) bool {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(data, ')')
	return i > 0 && i+2 < len(data) && data[i+2] == 'Z'
}
