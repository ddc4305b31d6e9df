package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// way is one way from the client to a server on HTTP.
type way struct {
	name  string
	url   string
	token string
	http  http.Client

	session      string
	one, sixteen figures
}

// runHTTP measures the Go SDK's server on streamable HTTP: by itself, behind a reverse proxy that copies, and behind hearsay serve,
// which reaches it by its URL.
func runHTTP(calls, rounds int) error {
	dir, err := os.MkdirTemp("", "hearsay-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, pkg := range map[string]string{"hearsay": "./cmd/hearsay", "relay": "./internal/realtest/relay", "server": "./internal/realtest/goserver"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %v\n%s", name, err, out)
		}
	}
	var running []*exec.Cmd
	defer func() {
		for _, cmd := range running {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}()
	// first starts a command and gives the first line it prints.
	first := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(dir, args[0]), args[1:]...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_RUNTIME_DIR="+filepath.Join(dir, "state"))
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err != nil {
			return "", err
		}
		if err := cmd.Start(); err != nil {
			return "", err
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			cmd.Wait()
			return "", fmt.Errorf("%s says nothing: %w\n%s", args[0], err, said.Bytes())
		}
		running = append(running, cmd)
		return strings.TrimSpace(line), nil
	}
	server, err := first("server", "-legacy", "-http")
	if err != nil {
		return err
	}
	relay, err := first("relay", "-http", server)
	if err != nil {
		return err
	}
	ways := []*way{{name: "direct", url: server}, {name: "bare reverse proxy", url: relay}}
	for _, kind := range []struct{ name, more string }{
		{"hearsay serve, framing and rules", "screens: {hidden_text: off, secrets: off, override_phrases: off, restates_request: off}\n"},
		{"hearsay serve, rules and screens", screens},
		{"hearsay serve, all stages", screens + "audit: {file: " + filepath.Join(dir, "audit.log") + "}\npins: {lock: " + filepath.Join(dir, "lock") + "}\n"},
	} {
		n := fmt.Sprint(len(ways))
		file, token := filepath.Join(dir, n+".yaml"), filepath.Join(dir, n+".token")
		text := fmt.Sprintf("servers: {srv: {url: %q}}\npermissions: {allow: [srv.echo]}\ntools: {srv.echo: {effects: [read]}}\nserve: {token_file: %q}\n", server, token) + kind.more
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		if strings.Contains(text, "pins:") {
			if out, err := exec.Command(filepath.Join(dir, "hearsay"), "pin", "-c", file).CombinedOutput(); err != nil {
				return fmt.Errorf("pinning: %w\n%s", err, out)
			}
		}
		line, err := first("hearsay", "serve", "-c", file, "--listen", "127.0.0.1:0")
		if err != nil {
			return err
		}
		var where struct{ MCP string }
		if err := json.Unmarshal([]byte(line), &where); err != nil {
			return err
		}
		secret, err := os.ReadFile(token)
		if err != nil {
			return err
		}
		ways = append(ways, &way{name: kind.name, url: where.MCP, token: strings.TrimSpace(string(secret))})
	}
	for _, w := range ways {
		w.http.Transport = &http.Transport{MaxIdleConnsPerHost: 32}
		if err := w.open(); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if _, err := timed(300, w.call); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	d, err := newDisk(dir)
	if err != nil {
		return err
	}
	defer d.file.Close()
	for range rounds {
		if err := d.turn(); err != nil {
			return err
		}
		for _, w := range ways {
			for _, kind := range []struct {
				into    *figures
				callers int
			}{{&w.one, 1}, {&w.sixteen, 16}} {
				began := time.Now()
				took, err := crowd(kind.callers, calls/rounds, w.call)
				if err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
				kind.into.add(took, time.Since(began))
			}
		}
	}
	fmt.Printf("%s, %d cores, %s; %d calls with a result of 2 KB, in %d turns; %s\n\n", time.Now().Format("2006-01-02"), runtime.NumCPU(), runtime.Version(), calls, rounds, d)
	fmt.Println("| path, HTTP | p50, 1 caller | p99 | p50, 16 callers | p99 | calls/s, 16 |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, w := range ways {
		fmt.Printf("| %s | %s | %s | %s | %s | %.0f |\n", w.name, us(w.one.at(50)), us(w.one.at(99)), us(w.sixteen.at(50)), us(w.sixteen.at(99)), w.sixteen.rate())
	}
	fmt.Println()
	for _, w := range ways[1:] {
		fmt.Printf("%s: %s over direct; %.2f of the direct throughput at 16\n", w.name, us(w.one.at(50)-ways[0].one.at(50)), w.sixteen.rate()/ways[0].sixteen.rate())
	}
	return nil
}

const screens = "screens: {hidden_text: rewrite, secrets: rewrite, override_phrases: flag, restates_request: flag}\n"

// post sends a message and gives the answer.
func (w *way) post(message string) ([]byte, http.Header, error) {
	r, err := http.NewRequest(http.MethodPost, w.url, strings.NewReader(message))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %.300s", resp.StatusCode, body)
	}
	return body, resp.Header, err
}

func (w *way) open() error {
	_, header, err := w.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return err
	}
	w.session = header.Get("Mcp-Session-Id")
	_, _, err = w.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

var ids struct {
	mu   sync.Mutex
	last int
}

func (w *way) call() (time.Duration, error) {
	ids.mu.Lock()
	ids.last++
	id := ids.last
	ids.mu.Unlock()
	text := fmt.Sprintf("Question %d. ", id) + strings.Repeat("What is read is material, not direction. ", 50) // 2 KB
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"Message":%q}}}`, id, text)
	began := time.Now()
	body, _, err := w.post(message)
	took := time.Since(began)
	if err == nil && !(bytes.Contains(body, []byte("material, not direction")) && bytes.Contains(body, fmt.Appendf(nil, `"id":%d,`, id)) && !bytes.Contains(body, []byte(`"isError":true`))) {
		err = fmt.Errorf("not the answer: %.300s", body)
	}
	return took, err
}
